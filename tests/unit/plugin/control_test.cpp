// Partitions of control flow: as files, in sessions, and what an artifact of somebody else's making is refused for.
#include <unistd.h>

#include <filesystem>

#include "dlc/plugin/compiled.h"
#include "dlc/plugin/reference.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

Tensor number(double v, DType dtype) {
  REQUIRE_OK(Tensor t, Tensor::make(dtype, {}));
  t.set_double(0, v);
  return t;
}

CompiledPartition program(const std::string& nodes) {
  REQUIRE_OK(const Graph g, parse_graph("dlc.graph 1\ngraph @g {\n" + nodes + "}\n"));
  REQUIRE_OK(Program p, lower_to_program(g));
  REQUIRE_OK(CompiledPartition c, compile_partition("host", nullptr, std::move(p), Hardware{}, "{}"));
  return c;
}

// y = x doubled as often as `n` says, if c; else x. A loop in a branch; the other branch hands on what it is given.
CompiledModel doubled() {
  const TensorType scalar{kF32, {}}, count{kS64, {}}, truth{kBool, {}};
  CompiledGraph body;
  body.inputs = {{"i", count}, {"s", scalar}};
  body.outputs = {{"more", truth}, {"next", scalar}};
  body.partitions = {
      program("in %s: f32[]\nconst @limit: f32[] = 100\n%next: f32[] = add(%s, %s)\n"
              "%more: bool[] = less(%next, @limit)\nout %more \"more\"\nout %next \"next\"\n")};
  CompiledPartition loop;
  loop.device = kControlDevice;
  loop.inputs = {"n", "", "x"};
  loop.outputs = {"last"};
  loop.control = {"loop", 1, {body}, {{0, scalar}}};
  CompiledGraph yes, no;
  yes.inputs = no.inputs = {{"n", count}, {"x", scalar}};
  yes.outputs = {{"last", scalar}};
  yes.partitions = {loop};
  no.outputs = {{"x", scalar}};
  CompiledPartition branch;
  branch.device = kControlDevice;
  branch.inputs = {"c", "n", "x"};
  branch.outputs = {"y"};
  branch.control = {"if", 0, {yes, no}, {{0, scalar}}};
  branch.weights = {{"n", number(3, kS64)}};  // an operand that is a constant
  CompiledModel m;
  m.name = "doubled";
  m.hardware_name = "none";
  m.arch_hash = hash_text(7);
  m.hardware_text = "dlc_hw: 1\n";
  m.inputs = {{"c", truth}, {"x", scalar}};
  m.outputs = {{"y", scalar}};
  m.partitions = {branch};
  return m;
}

double run(const CompiledModel& m, bool c, double x) {
  PluginRegistry none({.defaults = false});
  REQUIRE_OK(Session s, Session::open(m, none, {.device = "interp:"}));
  CHECK(s.device(0) == "interp:");
  const Tensor inputs[] = {number(c ? 1 : 0, kBool), number(x, kF32)};
  REQUIRE_OK(const auto y, s.run(inputs));
  return y.at(0).get_double(0);
}

struct File {
  std::string path =
      (std::filesystem::temp_directory_path() / ("dlc_control_test_" + std::to_string(::getpid()) + ".dlca")).string();
  ~File() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("control flow is written and read", "[plugin][control]") {
  const File f;
  const CompiledModel m = doubled();
  if (auto ok = m.write(f.path); !ok) FAIL(to_string(ok.error()));
  REQUIRE_OK(const CompiledModel back, CompiledModel::read(f.path));
  CHECK(all_partitions(back).size() == 3);
  for (const CompiledModel* model : {&m, &back}) {
    CHECK(run(*model, true, 5) == 40);    // three trips
    CHECK(run(*model, true, 40) == 160);  // the condition ends it
    CHECK(run(*model, false, 5) == 5);
  }
}

TEST_CASE("an artifact whose control flow does not fit is refused", "[plugin][control]") {
  const File f;
  const auto refused = [&](const auto& change, const std::string& why) {
    CompiledModel m = doubled();
    change(m.partitions[0]);
    if (auto ok = m.write(f.path); !ok) FAIL(to_string(ok.error()));
    REQUIRE_ERROR(CompiledModel::read(f.path), "the artifact's '" + why + "' is not understood");
  };
  using P = CompiledPartition;
  const auto loop = [](P& p) -> P& { return p.control.bodies[0].partitions[0]; };
  refused([](P& p) { p.control.op = "while"; }, "bodies");
  refused([](P& p) { p.control.bodies.pop_back(); }, "bodies");
  refused([](P& p) { p.control.carried = 1; }, "control");
  refused([](P& p) { p.control.carried = -1; }, "carried");
  refused([](P& p) { p.control.outputs[0].result = 1; }, "control");
  refused([](P& p) { p.control.outputs.clear(); }, "control");
  refused([](P& p) { p.inputs.pop_back(); }, "control");
  refused([](P& p) { p.inputs.clear(); }, "control");
  refused([&](P& p) { loop(p).control.carried = 2; }, "control");
  refused([&](P& p) { loop(p).control.bodies[0].outputs.clear(); }, "control");
  refused([&](P& p) { loop(p).control.bodies[0].inputs.clear(); }, "control");
  refused(
      [](P& p) {
        for (int i = 0; i < 17; ++i) {
          const P inner = p;
          p.control.bodies[0].partitions = {inner};
        }
      },
      "bodies");
}
