// The machine is what its text says: another instruction is used, a smaller memory refused, a rule obeyed, without a
// line of C++ that knows it.
#include "dlc/map/partition.h"
#include "tests/unit/asic/support.h"

using namespace dlc;
using namespace dlc::asic;

namespace {

// Adds instructions before `st`.
void add_instruction(std::string& yaml, const std::string& text) {
  const size_t at = yaml.find("    st:\n      op: 4");
  REQUIRE(at != std::string::npos);
  yaml.insert(at, text);
}

Graph larger_of_two(const TestMachine& m) {
  LayerBuilder b(m, 4);
  const ValueId x = b.input({1, 13, 6, 7}), y = b.input({1, 13, 6, 7});
  return b.finish({b.node("max_n", {x, y}, {})});
}

}  // namespace

TEST_CASE("an instruction that is added to the description is used") {
  const TestMachine plain = make_machine("R=8");
  const Program refused = need(lower_to_program(larger_of_two(plain)));
  const auto no = compile_for(*plain.hw, refused);
  REQUIRE_FALSE(no.has_value());
  CHECK(no.error().message().starts_with("no instruction computes this"));

  const TestMachine more = make_machine("R=8", [](std::string& yaml) {
    add_instruction(yaml, R"yaml(    larger:
      op: 9
      queue: vec
      fields: {a_at: u14@40, b_at: u14@54, d_at: u14@68, rows: {at: u11@82, plus: 1}, cols: {at: u11@93, plus: 1}}
      loops: {i: rows, j: cols, c: C}
      does: "out[d_at + i*cols + j, c] = max(out[a_at + i*cols + j, c], in[b_at + i*cols + j, c])"
      cycles: "9 + rows*cols"
)yaml");
  });
  const Graph g = larger_of_two(more);
  LayerBuilder values(more, 8);
  values.input({1, 13, 6, 7});
  values.input({1, 13, 6, 7});
  check_layers(more, g, values.inputs(), "asic:func");
  const AcceleratorImage image = need(compile_for(*more.hw, need(lower_to_program(g))));
  CHECK(image.layers[0].plan == "larger");
}

TEST_CASE("what does not fit is said in bytes") {
  const TestMachine small = make_machine("R=8,W_W=4");
  LayerBuilder b(small, 2);
  const ValueId x = b.input({1, 8, 6, 6});
  const Graph g = b.finish({b.conv(x, 8, 3, 1, 1)});
  const auto image = compile_for(*small.hw, need(lower_to_program(g)));
  REQUIRE_FALSE(image.has_value());
  INFO(to_string(image.error()));
  // one tap of one block of channels: 8 words of 8 bytes
  CHECK(image.error().message() ==
        "does not fit: its smallest tile needs 64 bytes of memory w, which has 32, 32 short "
        "(its constant c1: s8[8,8,3,3] 64)");
  const Diagnostic& d = image.error().diagnostics[0];
  CHECK(d.loc.node.starts_with("int_conv"));
  CHECK(d.loc.file.ends_with("asic.yaml"));
  CHECK(d.loc.line == small.hw->state[static_cast<size_t>(small.hw->find_state("w"))].loc.line);
  CHECK(d.hint.starts_with("give w at least 8 words"));
}

TEST_CASE("sums are split where a memory is small") {
  for (const char* params : {"R=8,W_W=64", "R=8,IN_W=192", "R=8,ACC_W=16,OUT_W=64", "R=8,W_W=128,IN_W=256,ACC_W=32"}) {
    INFO(params);
    const TestMachine small = make_machine(params);
    LayerBuilder b(small, 2);
    const ValueId x = b.input({1, 20, 9, 11});
    const Graph g = b.finish({b.conv(x, 21, 3, 1, 1)});
    check_layers(small, g, b.inputs(), "asic:func");
  }
}

TEST_CASE("sums are split where a field is small") {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"n_ci:     {at: u10@140", "n_ci:     {at: u1@140"}, {"n_kw:     {at: u5@128", "n_kw:     {at: u1@128"}}) {
    INFO(to);
    const TestMachine small = make_machine("R=8", [&](std::string& yaml) {
      REQUIRE(yaml.find(from) != std::string::npos);
      yaml.replace(yaml.find(from), from.size(), to);
    });
    LayerBuilder b(small, 9);
    const ValueId x = b.input({1, 36, 7, 7});
    check_layers(small, b.finish({b.conv(x, 12, 3, 1, 1)}), b.inputs(), "asic:func");
  }
}

TEST_CASE("each step of a tile has the memories to itself where they are nearly full") {
  // In the second tile what is left of the first one would stand in the way; a stride that is never taken is what the
  // instruction's `require` wants.
  for (const char* params : {"R=8,IN_W=12", "R=8,IN_W=20", "R=8,IN_W=30", "R=8,OUT_W=2", "R=8,ACC_W=2,OUT_W=3"}) {
    INFO(params);
    const TestMachine small = make_machine(params);
    LayerBuilder b(small, 5);
    const ValueId x = b.input({1, 24, 7, 9});
    const ValueId d = b.conv(x, 24, 3, 1, 1, true);
    const Graph g = b.finish({b.add(b.conv(d, 24, 3, 1, 1), x)});
    check_layers(small, g, b.inputs(), "asic:func");
  }
}

TEST_CASE("a rule of the description sends a node to the host, with its reason and line") {
  const TestMachine m = make_machine("R=8", [](std::string& yaml) {
    const size_t at = yaml.find("ops:\n");
    REQUIRE(at != std::string::npos);
    yaml.insert(at + 5, "  - {op: max_pool, place: host, why: \"the test says so\"}\n");
  });
  LayerBuilder b(m, 6);
  const ValueId x = b.input({1, 8, 8, 8});
  const ValueId y = b.conv(x, 8, 3, 1, 1);
  const ValueId p = b.node("max_pool", {y}, {{"kernel", list({2, 2})}, {"stride", list({2, 2})}});
  const Graph g = b.finish({b.conv(p, 8, 3, 1, 1)});
  const Partitioning parts = need(partition(g, *m.hw, "asic", ask(m)));
  REQUIRE(parts.partitions.size() == 3);
  CHECK(parts.partitions[0].device == "asic");
  CHECK(parts.partitions[1].device == "host");
  CHECK(parts.partitions[1].graph.order().size() == 1);
  CHECK(parts.partitions[2].device == "asic");
  for (const NodePlacement& n : parts.nodes) {
    if (n.op != "max_pool") {
      CHECK(n.device == "asic");
      continue;
    }
    CHECK(n.device == "host");
    CHECK(n.rule == "ops");
    CHECK(n.why == "the test says so");
    CHECK(n.yaml_line > 200);
  }
  // Run one after the other they are the graph.
  const auto inputs = b.inputs();
  const auto want = need(run_graph(g, inputs));
  std::vector<Tensor> value = inputs;
  for (const Partition& part : parts.partitions) value = need(run_graph(part.graph, value));
  for (int64_t i = 0; i < want[0].elements(); ++i) CHECK(value[0].get_int(i) == want[0].get_int(i));
}

TEST_CASE("a damaged executable is refused") {
  const auto& m = machine(8);
  LayerBuilder b(m, 2);
  const ValueId x = b.input({1, 8, 6, 6});
  const Graph g = b.finish({b.conv(x, 8, 3, 1, 1)});
  const auto bytes = need(write_container(*m.hw, m.text, need(compile_for(*m.hw, need(lower_to_program(g))))));
  REQUIRE(read_container(bytes).has_value());
  for (const size_t size : {size_t{0}, size_t{12}, size_t{100}, bytes.size() - 1})
    CHECK_FALSE(read_container(std::span(bytes).first(size)).has_value());
  auto other = bytes;
  other[16 + std::string("{\"arch_hash\":\"0x").size()] ^= std::byte{1};  // another architecture
  CHECK_FALSE(read_container(other).has_value());
}
