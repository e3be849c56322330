// Graphs cut at extern ops: the pieces, one after the other, are the graph.
#include "dlc/graph/segments.h"

#include <map>

#include "dlc_test/graph_text.h"

using namespace dlc;
using dlc_test::parsed;

namespace {

Tensor row(const std::vector<float>& v) { return dlc_test::floats({static_cast<int64_t>(v.size())}, v); }

// As a session runs partitions: tensors between them by name, results may be called as an input is.
std::vector<Tensor> run(const Graph& g, const std::vector<Segment>& segments, const Tensor& x) {
  std::map<std::string, Tensor> values{{g.value(g.inputs[0]).name, x}}, results;
  for (const Segment& s : segments) {
    std::vector<Tensor> in;
    for (const ValueId v : s.graph.inputs) in.push_back(values.at(s.graph.value(v).name));
    auto out = run_graph(s.graph, in);
    if (!out) FAIL(to_string(out.error()));
    for (size_t i = 0; i < out->size(); ++i) {
      values.try_emplace(s.graph.output_names[i], (*out)[i]);
      results[s.graph.output_names[i]] = (*out)[i];
    }
  }
  std::vector<Tensor> all;
  for (const std::string& name : g.output_names) all.push_back(results.at(name));
  return all;
}

void check_same(const Graph& g, const Tensor& x, size_t pieces) {
  REQUIRE_OK(const auto segments, cut_at_externs(g));
  CHECK(segments.size() == pieces);
  for (const Segment& s : segments)
    if (auto ok = verify(s.graph); !ok) FAIL(to_string(ok.error()));
  const Tensor inputs[] = {x};
  REQUIRE_OK(const auto want, run_graph(g, inputs));
  const auto got = run(g, segments, x);
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].shape() == want[i].shape());
    for (int64_t e = 0; e < got[i].elements(); ++e) CHECK(got[i].get_double(e) == want[i].get_double(e));
  }
}

}  // namespace

TEST_CASE("a graph without extern ops is one segment") {
  check_same(parsed("in %x: f32[3]\n%y: f32[3] = neg(%x)\nout %y \"y\""), row({1, 2, 3}), 1);
}

TEST_CASE("what an extern op is given and gives crosses the cut") {
  check_same(parsed("in %x: f32[3]\n%a: f32[3] = neg(%x)\n%v: f32[2], %i: s64[2] = top_k(%a) {k = 2, axis = 0}\n"
                    "%y: f32[2] = add(%v, %v)\n%z: f32[3] = abs(%a)\nout %y \"y\"\nout %i \"i\"\nout %z \"z\""),
             row({1, 2, 3}), 3);
}

TEST_CASE("an output may be called as another value is") {
  // Exporters number values, and so do graphs: an output "a" beside %a, which crosses the cut, is not %a.
  const std::string nodes =
      "in %x: f32[3]\n%a: f32[3] = neg(%x)\n%b: f32[3] = exp(%x)\n"
      "%v: f32[3], %i: s64[3] = top_k(%a) {k = 3, axis = 0}\n%w: f32[3] = relu(%v)\n";
  for (const std::string name : {"a", "b", "v", "i", "w", "x"})
    check_same(parsed(nodes + "out %b \"" + name + "\"\nout %w \"y\""), row({-1, -3, 2}), 3);
  // The new name is no output's either.
  check_same(parsed(nodes + "out %b \"a\"\nout %w \"a_1\"\nout %v \"w\""), row({-1, -3, 2}), 3);
  check_same(parsed(nodes + "out %a \"v\"\nout %v \"a\"\nout %w \"w\""), row({-1, -3, 2}), 3);
}

TEST_CASE("a size that an extern op finds out is known to the segments after it") {
  // The last node uses the size only: nothing that has it in its shape is one of its operands.
  const Graph g = parsed(
      "in %x: f32[4]\n%n: s64[1,K] = non_zero(%x) {count = K}\nconst @one: f32[] = 1\n"
      "%y: f32[K] = expand(@one) {shape = [K]}\nout %y \"y\"",
      "(K in 0..1000)");
  CHECK(found_symbols(g).contains("K"));
  check_same(g, row({1, 0, 3, 0}), 2);
  check_same(g, row({0, 0, 0, 0}), 2);
}
