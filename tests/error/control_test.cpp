// Control flow through the command: compiled, stored, run on each device, explained, compared; and what is refused.
#include <fmt/format.h>

#include "dlc/io/numpy.h"
#include "dlc_test/tensors.h"
#include "tests/error/run.h"

using namespace dlc;
using namespace dlc::test;
using Catch::Matchers::Contains;

namespace {

// As long as the sum is below a limit: either one more row or, where the sum is small, a longer jump through a branch
// whose index is out of range for short rows.
constexpr const char* kModel = R"(dlc.graph 1
graph @g (N in 1..8, m in 0.., t in 0.., n in 0..) {
  in    %c: bool[]
  in    %trips: s64[]
  in    %x: f32[N]
  const @w: f32[20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
  %last: f32[m], %sums: f32[t] = loop(%trips, _, %x, %c) {carried = 1} loc "Loop" body (K in 0.., k in 0..) {
    in    %i: s64[]
    in    %state: f32[K]
    in    %c: bool[]
    const @limit: f32[] = 30
    %next: f32[k] = if(%c, %state, %i) loc "Branch" then (K in 0..) {
      in    %state: f32[K]
      in    %i: s64[]
      const @v: f32[20] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
      %e: f32[] = gather(@v, %i) {axis = 0}
      %one: f32[1] = reshape(%e) {shape = [1]}
      %r: f32[K + 1] = concat(%state, %one) {axis = 0} loc "grow"
      out   %r
    } else (K in 0..) {
      in    %state: f32[K]
      in    %i: s64[]
      %r: f32[K] = add(%state, %state) loc "double"
      out   %r
    }
    %sum: f32[] = reduce_sum(%next) {axes = [0]} loc "sum"
    %more: bool[] = less(%sum, @limit)
    out   %more
    out   %next
    out   %sum
  }
  %y: f32[m] = neg(%last) loc "neg"
  out   %y "y"
  out   %sums "sums"
}
)";

void inputs(const Folder& f, bool c, int64_t trips) {
  REQUIRE_OK(Tensor condition, Tensor::make(kBool, {}));
  condition.set_int(0, c ? 1 : 0);
  REQUIRE_OK(Tensor number, Tensor::make(kS64, {}));
  number.set_int(0, trips);
  REQUIRE_OK(const auto bytes, to_npz({{"c", condition}, {"trips", number}, {"x", dlc_test::floats({2}, {1, 2})}}));
  f.write("x.npz", std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

TEST_CASE("control flow runs on every device, from the model and from the artifact", "[error][control]") {
  const Folder f("control");
  f.write("m.dlct", kModel);
  must_succeed(f, "m.dlct -o m.dlca");
  must_succeed(f, "m.dlct -o again.dlca");
  CHECK(read_file(f / "m.dlca") == read_file(f / "again.dlca"));
  for (const char* run : {"m.dlct --device interp:", "m.dlca --device interp:", "m.dlca --device cpu:", "m.dlct"}) {
    INFO(run);
    const auto out = [&](bool c, int64_t trips) {
      inputs(f, c, trips);
      return must_succeed(f, fmt::format("run {} --input x.npz", run)).out;
    };
    const std::string grown = out(true, 9);  // 1 2 | 1 2 3 ...: until the sum is 30 or more
    CHECK_THAT(grown, Contains("y: f32[9] = -1 -2 -1 -2 -3 -4 -5 -6"));
    CHECK_THAT(grown, Contains("sums: f32[7] = 4 6 9 13 18 24 31"));
    CHECK_THAT(out(false, 9), Contains("sums: f32[4] = 6 12 24 48"));
    CHECK_THAT(out(false, 2), Contains("y: f32[2] = -4 -8"));
    CHECK_THAT(out(true, 0), Contains("sums: f32[0]"));
  }
}

TEST_CASE("what control flow stands beside is handed on as it is", "[error][control]") {
  // Inputs and constants that are outputs, of the model and of a body whose only node is control flow.
  const Folder f("control");
  const std::string branch = R"( = if(%c, %x) loc "If" then {
    in    %x: f32[2]
    %r: f32[2] = neg(%x)
    out   %r
  } else {
    in    %x: f32[2]
    out   %x
  }
)";
  const std::string outer = R"(  %l: f32[2], %n: s64[] = loop(%trips, _, %x, %trips, %c) {carried = 2} loc "Loop" body {
    in    %i: s64[]
    in    %x: f32[2]
    in    %n: s64[]
    in    %c: bool[]
    const @yes: bool[] = 1
    %y: f32[2])" + branch + R"(    out   @yes
    out   %y
    out   %i
  }
)";
  f.write("m.dlct",
          "dlc.graph 1\ngraph @g {\n  in    %c: bool[]\n  in    %trips: s64[]\n  in    %x: f32[2]\n  const @k: s64[] = "
          "7\n  %y: f32[2]" +
              branch + outer +
              "  out   %x \"z\"\n  out   %y \"y\"\n  out   @k \"k\"\n  out   %l \"l\"\n  out   %n \"n\"\n}\n");
  must_succeed(f, "m.dlct -o m.dlca");
  inputs(f, true, 3);
  for (const char* run : {"m.dlct --device interp:", "m.dlca --device interp:", "m.dlca --device cpu:"}) {
    INFO(run);
    const std::string out = must_succeed(f, fmt::format("run {} --input x.npz", run)).out;
    for (const char* value :
         {"z: f32[2] = 1 2", "y: f32[2] = -1 -2", "k: s64[] = 7", "l: f32[2] = -1 -2", "n: s64[] = 2"})
      CHECK_THAT(out, Contains(value));
  }
}

TEST_CASE("control flow is explained and compared like the rest", "[error][control]") {
  const Folder f("control");
  f.write("m.dlct", kModel);
  const std::string said = must_succeed(f, "explain m.dlct").out;
  for (const char* node : {"Loop ", "Branch ", "grow ", "double ", "sum ", "neg "}) CHECK_THAT(said, Contains(node));
  CHECK_THAT(said, Contains("a run decides how often its body runs"));
  inputs(f, true, 5);
  CHECK_THAT(must_succeed(f, "compare m.dlct --device cpu: --input x.npz").out, Contains("agree with interp:"));
  const std::string text = must_succeed(f, "m.dlct --emit=program").out;
  CHECK_THAT(text, Contains("# then loop; its bodies follow"));
  must_succeed(f, "m.dlct --emit=graph -o g.dlct");
  CHECK_THAT(must_succeed(f, "run g.dlct --input x.npz").out, Contains("sums: f32[5] = 4 6 9 13 18"));
}

TEST_CASE("what control flow cannot be is refused", "[error][control]") {
  const Folder f("control");
  f.write("m.dlct", kModel);
  must_fail(f, "m.dlct -o m.so", {"a library cannot hold control flow that only a run decides (loop) (node Loop)"});
  std::string deep = "out   %x\n", close;
  for (int i = 0; i < 500; ++i)
    deep = "%y: f32[2] = if(%c, %c, %x) then {\nin %c: bool[]\nin %x: f32[2]\n" + deep +
           "} else {\nin %c: bool[]\nin %x: f32[2]\nout %x\n}\nout %y\n";
  f.write("deep.dlct", "dlc.graph 1\ngraph @g {\nin %c: bool[]\nin %x: f32[2]\n" + deep + "}\n");
  must_fail(f, "deep.dlct -o m.dlca", {"deep.dlct:", "bodies are nested more than 16 deep"});
  inputs(f, true, 5);
  std::string wrong = kModel;  // rows of different shapes
  wrong.replace(wrong.find("out   %sum\n"), 10, "out   %next");
  wrong.replace(wrong.find("%sums: f32[t]"), 13, "%sums: f32[t,n]");
  f.write("wrong.dlct", wrong);
  for (const char* device : {"interp:", "cpu:"})
    must_fail(f, fmt::format("run wrong.dlct --device {} --input x.npz", device),
              {"loop: output 2 of the body is f32[3] in the first trip and f32[4] in trip 1"});
}

TEST_CASE("a hint names no dim that only a run finds out", "[error][control]") {
  const Folder f("control");
  f.write("m.dlct", R"(dlc.graph 1
graph @g (N in 1..8, n in 0..16) {
  in    %c: bool[]
  in    %x: f32[N]
  in    %trips: s64[]
  %r: f32[n] = if(%c, %x) loc "If" then (N in 1..8) {
    in    %x: f32[N]
    %two: f32[2*N] = concat(%x, %x) {axis = 0}
    out   %two
  } else (N in 1..8) {
    in    %x: f32[N]
    out   %x
  }
  %y: f32[N] = add(%x, %r) loc "sum"
  out   %y "y"
  out   %trips "t"
}
)");
  must_succeed(f, "m.dlct -o m.dlca");
  inputs(f, false, 1);
  CHECK_THAT(must_succeed(f, "run m.dlca --input x.npz").out, Contains("y: f32[2] = 2 4"));
  inputs(f, true, 1);
  must_fail(f, "run m.dlca --input x.npz", {"N = 2, n = 4 is not supported", "n is a size that only a run finds out"});
}

TEST_CASE("a branch that was not compiled says how it can be", "[error][control]") {
  const Folder f("control");
  f.write("m.dlct", R"(dlc.graph 1
graph @g (N in 1..8) {
  in    %c: bool[]
  in    %x: f32[N]
  in    %trips: s64[]
  %r: f32[N] = assumed(%x, %c) {holds = 0} loc "If"
  out   %r "y"
  out   %trips "t"
}
)");
  must_succeed(f, "m.dlct -o m.dlca");
  inputs(f, true, 1);
  for (const char* device : {"interp:", "cpu:"})
    must_fail(f, fmt::format("run m.dlca --device {} --input x.npz", device),
              {"compiled for inputs that make this condition false", "(node If)", "sizes bound with --dim"});
  inputs(f, false, 1);
  must_succeed(f, "run m.dlca --input x.npz");
}

TEST_CASE("a weight that both branches lay out is stored once", "[error][control]") {
  const Folder f("control");
  auto m = model();
  input(m, "c", {}, onnx::TensorProto::BOOL);
  input(m, "x", {4, 256});
  output(m, "y", {4, 256});
  weight(m, "w", {256, 256});
  auto* n = node(m, "If", "choice", {"c"}, "y");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto* a = n->add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::GRAPH);
    a->mutable_g()->set_name(name);
    auto* product = a->mutable_g()->add_node();
    product->set_op_type("MatMul");
    product->add_input("x");
    product->add_input("w");
    product->add_output(name);
    a->mutable_g()->add_output()->set_name(name);
  }
  f.write("m.onnx", m);
  must_succeed(f, "m.onnx -o m.dlca");
  CHECK(read_file(f / "m.dlca").size() < size_t{3} * 256 * 256 * 4 / 2);
}
