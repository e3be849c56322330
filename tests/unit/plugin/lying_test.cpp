// A plugin that breaks the promises of its interface is an error of that plugin, and nothing else.
#include "dlc/plugin/compiled.h"
#include "dlc_test/tensors.h"

using namespace dlc;
using dlc_test::floats;

namespace {

constexpr const char* kGraph = R"(dlc.graph 1
graph @g {
  in    %x: f32[4]
  %0: f32[4] = neg(%x)
  out   %0 "y"
}
)";

struct Lying {
  PluginRegistry plugins{{.paths = {DLC_BINARY_DIR "/tests/lying"}, .defaults = false}};
  Backend* backend = nullptr;
  CompiledModel model;

  Lying() {
    REQUIRE_OK(backend, plugins.find("lying"));
    REQUIRE_OK(const Graph g, parse_graph(kGraph));
    REQUIRE_OK(CompiledPartition part, compiled(""));
    model.inputs = {{"x", g.value(g.inputs[0]).type}};
    model.outputs = {{"y", g.value(g.outputs[0]).type}};
    model.partitions.push_back(std::move(part));
  }
  Program program() const {
    REQUIRE_OK(const Graph g, parse_graph(kGraph));
    REQUIRE_OK(Program p, lower_to_program(g));
    return p;
  }
  Result<CompiledPartition> compiled(const std::string& how, EmitResult* files = nullptr) {
    Hardware hardware;
    hardware.text = how;
    return compile_partition("lying", backend, program(), hardware, "{}", files);
  }
  Result<Session> session(const std::string& how) { return Session::open(model, plugins, {.device = "lying:" + how}); }
  Result<std::vector<Tensor>> run(const std::string& how) {
    DLC_TRY(Session s, session(how));
    const Tensor x = floats({4}, {1, 2, 3, 4});
    return s.run(std::span(&x, 1));
  }
};

}  // namespace

TEST_CASE("what no memory can hold is not taken from a plugin", "[plugin]") {
  Lying lying;
  REQUIRE_ERROR(lying.compiled("huge_emit"),
                "plugin lying: 'report.json' of 4611686018427387904 bytes cannot be taken");
  REQUIRE_ERROR(lying.compiled("null_emit"), "plugin lying: 'report.json' of 8 bytes is null");
  const Program p = lying.program();
  REQUIRE_ERROR(lying.backend->match({p, "huge_match", "", "", "{}"}), "plugin lying: 'match.json' of");
  REQUIRE_OK(Session s, lying.session("huge_counters"));
  CHECK(s.counters(0) == "{}");
  REQUIRE_ERROR(lying.run("huge_rank"), "plugin lying: result 0 of rank 4611686018427387904 cannot be taken");
}

TEST_CASE("a plugin's file in pieces has no gaps", "[plugin]") {
  Lying lying;
  EmitResult files;
  REQUIRE(lying.compiled("piece", &files).has_value());
  const auto* weights = files.find("weights");
  REQUIRE(weights != nullptr);
  CHECK(std::string(reinterpret_cast<const char*>(weights->data()), weights->size()) == "abCDEFgh");
  for (const auto& [how, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"far_piece", "plugin lying: a piece 'weights' of 1 bytes at 4611686018427387904, where 4 are known"},
           {"gap_piece", "plugin lying: a piece 'weights' of 1 bytes at 5, where 4 are known"},
           {"wide_piece", "plugin lying: a piece 'weights' of 3 bytes at 2, where 4 are known"},
           {"huge_piece", "plugin lying: 'weights' of 4611686018427387904 bytes cannot be taken"},
           {"round_piece", "plugin lying: 'weights' of 18446744073709551612 bytes cannot be taken"},
           {"null_piece", "plugin lying: 'weights' of 1 bytes is null"}}) {
    INFO(how);
    REQUIRE_ERROR(lying.compiled(how), message);
  }
}

TEST_CASE("a plugin's results are what its program says", "[plugin]") {
  Lying lying;
  CHECK(lying.run("").has_value());
  REQUIRE_ERROR(lying.run("wrong_type"), "partition on lying:wrong_type gave 'y' as s64[4], f32[4] is expected");
  REQUIRE_ERROR(lying.run("wrong_shape"), "gave 'y' as f32[7,1], f32[4] is expected");
  REQUIRE_ERROR(lying.run("no_type"), "plugin lying: result 0 has the unknown dtype 'f33'");
  REQUIRE_ERROR(lying.run("no_shape"), "plugin lying: result 0 has no shape");
  REQUIRE_ERROR(lying.run("wrong_place"), "plugin lying: result 1 came where 0 was expected");
  REQUIRE_ERROR(lying.run("goes_on"), "overflow");
}

TEST_CASE("results that other partitions read are checked too", "[plugin]") {
  Lying lying;
  CompiledPartition second = lying.model.partitions[0];
  lying.model.partitions[0].outputs = {"between"};
  second.inputs = {"between"};
  lying.model.partitions.push_back(std::move(second));
  CHECK(lying.run("").has_value());
  REQUIRE_ERROR(lying.run("wrong_type"), "gave 'between' as s64[4], f32[4] is expected");
}

TEST_CASE("a session is given what the model takes", "[plugin]") {
  Lying lying;
  REQUIRE_OK(Session s, lying.session(""));
  const Tensor x = floats({2}, {1, 2});
  REQUIRE_ERROR(s.run(std::span(&x, 1)), "input 'x' is f32[2], the model takes f32[4]");
}
