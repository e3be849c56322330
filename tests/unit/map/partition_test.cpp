// A graph cut between a device and the host: tensors between the parts by name.
#include "dlc/map/partition.h"

#include <map>

#include "dlc/hw/load.h"
#include "dlc_test/graph_text.h"

using namespace dlc;
using dlc_test::elements;
using dlc_test::parsed;

namespace {

// A device that takes max alone. A question comes to it as text, as to a plugin.
Result<std::vector<Refusal>> takes_max(const Program& asked) {
  DLC_TRY(const Program p, parse_program(print(asked)));
  std::vector<Refusal> out;
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const std::string text = print(p.kernels[static_cast<size_t>(p.calls[c].kernel)]);
    const auto has = [&](const char* what) { return text.find(what) != std::string::npos; };
    if (!has("max(") || has("exp(") || has("sin(") || has("-"))
      out.push_back({static_cast<int>(c), "no instruction", "it is no max", 0, "", false});
  }
  return out;
}

// The parts one after the other, as a session runs them, are the graph.
void check_same(const Graph& g, size_t parts) {
  REQUIRE_OK(const HwDescription hw, load_hw("native"));
  REQUIRE_OK(const Partitioning cut, partition(g, hw, "npu", takes_max));
  CHECK(cut.partitions.size() == parts);
  const Tensor x = dlc_test::floats({3}, {-1, -3, 2});
  std::map<std::string, Tensor> values{{g.value(g.inputs[0]).name, x}}, results;
  for (const Partition& part : cut.partitions) {
    if (auto ok = verify(part.graph); !ok) FAIL(to_string(ok.error()));
    std::vector<Tensor> in;
    for (const ValueId v : part.graph.inputs) in.push_back(values.at(part.graph.value(v).name));
    REQUIRE_OK(const auto out, run_graph(part.graph, in));
    for (size_t i = 0; i < out.size(); ++i) {
      values.try_emplace(part.graph.output_names[i], out[i]);
      results[part.graph.output_names[i]] = out[i];
    }
  }
  REQUIRE_OK(const auto want, run_graph(g, std::span(&x, 1)));
  for (size_t i = 0; i < want.size(); ++i) CHECK(elements(results.at(g.output_names[i])) == elements(want[i]));
}

const std::string kNodes =
    "in %x: f32[3]\n%a: f32[3] = exp(%x)\n%b: f32[3] = sin(%x)\n%c: f32[3] = max_n(%a, %b)\n%d: f32[3] = neg(%c)\n";

}  // namespace

TEST_CASE("an output may be called as a value is that crosses the cut") {
  check_same(parsed(kNodes + "out %d \"y\""), 3);
  for (const std::string name : {"a", "b", "c", "d", "x"})
    check_same(parsed(kNodes + "out %a \"" + name + "\"\nout %d \"y\""), 3);
  check_same(parsed(kNodes + "out %c \"a\"\nout %a \"c\"\nout %d \"a_1\""), 3);
}

TEST_CASE("values may be called as anything is in a question to the device") {
  const auto with_input = [](const std::string& name) {
    return parsed("in %" + name + ": f32[3]\n%a: f32[3] = exp(%" + name + ")\n%b: f32[3] = sin(%" + name + ")\n" +
                  "%c: f32[3] = max_n(%a, %b)\n%d: f32[3,1] = reshape(%c) {shape = [3, 1]}\n" +
                  "%e: f32[3,1] = max_n(%d, %d)\nout %e \"y\"");
  };
  const size_t parts = 2;
  for (const std::string value : {"a", "b", "c", "d", "e"})
    for (const std::string call : {"0", "1", "2", "3", "4"}) check_same(with_input(value + ".of" + call), parts);
  check_same(with_input("d.as.c"), parts);
  for (const std::string number : {"0", "1", "2", "3", "4"}) check_same(with_input("b" + number), parts);
}

TEST_CASE("outputs that no node makes come from the host") {
  check_same(parsed(kNodes + "const @k: f32[2] = [1, 2]\nout %d \"y\"\nout %x \"z\"\nout @k \"k\""), 4);
  check_same(parsed("in %x: f32[3]\nout %x \"z\""), 1);
}

TEST_CASE("a part's calls are those that the device took") {
  // It takes one max at a time, so that it is given one after the other what is one kernel elsewhere.
  const auto takes_one = [](const Program& asked) -> Result<std::vector<Refusal>> {
    std::vector<Refusal> out;
    for (size_t c = 0; c < asked.calls.size(); ++c) {
      const std::string text = print(asked.kernels[static_cast<size_t>(asked.calls[c].kernel)]);
      const size_t first = text.find("max(");
      if (first == std::string::npos || text.find("max(", first + 1) != std::string::npos)
        out.push_back({static_cast<int>(c), "no instruction", "it is no max", 0, "", false});
    }
    return out;
  };
  const Graph g = parsed(
      "in %x: f32[3]\nin %y: f32[3]\n%b: f32[3] = max_n(%x, %y)\n%c: f32[3] = max_n(%b, %x)\n"
      "%d: f32[3] = max_n(%c, %c)\nout %b \"b\"\nout %d \"y\"");
  REQUIRE_OK(const HwDescription hw, load_hw("native"));
  REQUIRE_OK(const Partitioning cut, partition(g, hw, "npu", takes_one));
  REQUIRE(cut.partitions.size() == 1);
  const Partition& part = cut.partitions[0];
  CHECK(part.groups.size() == 3);
  REQUIRE_OK(const Program p, lower_partition(part));
  CHECK(p.calls.size() == 3);
  REQUIRE_OK(const auto refused, takes_one(p));
  CHECK(refused.empty());
  REQUIRE_OK(const Program fused, lower_to_program(part.graph));
  CHECK(fused.calls.size() == 2);
  const std::vector<Tensor> in{dlc_test::floats({3}, {1, 5, 2}), dlc_test::floats({3}, {4, 3, 2})};
  REQUIRE_OK(const auto want, run_graph(part.graph, in));
  REQUIRE_OK(const auto got, run_program(p, in));
  for (size_t i = 0; i < want.size(); ++i) CHECK(elements(got[i]) == elements(want[i]));
}
