// The host's side without any plugin: manifests, compiled models as files, sessions on the interpreter, inputs.
#include <filesystem>

#include "dlc/io/file.h"
#include "dlc/plugin/compiled.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

constexpr const char* kGraph = R"(dlc.graph 1
graph @scale (N in 1..8 by 2) {
  in    %x: f32[N,3]
  const @w: f32[3] = [1, 2, 3]
  %0: f32[N,3] = mul(%x, @w) loc "scale"
  out   %0 "y"
}
)";

// y = x * w, then z = y * w: two host partitions that share a weight.
CompiledModel two_parts() {
  REQUIRE_OK(const Graph g, parse_graph(kGraph));
  REQUIRE_OK(Program p, lower_to_program(g));
  CompiledModel m;
  m.name = "scale";
  m.hardware_name = "none";
  m.arch_hash = hash_text(7);
  m.hardware_text = "dlc_hw: 1\n";
  m.symbols = g.symbols;
  m.inputs = {{"x", g.value(g.inputs[0]).type}};
  m.outputs = {{"z", g.value(g.outputs[0]).type}};
  for (int i = 0; i < 2; ++i) {
    Program part = p;
    for (ProgramBuffer& b : part.buffers) {
      if (b.kind == BufferKind::input) b.external_name = i == 0 ? "x" : "y";
      if (b.kind == BufferKind::output) b.external_name = i == 0 ? "y" : "z";
    }
    REQUIRE_OK(CompiledPartition c, compile_partition("host", nullptr, std::move(part), Hardware{}, "{}"));
    m.partitions.push_back(std::move(c));
  }
  return m;
}

Tensor ramp(std::vector<int64_t> shape, DType dtype = kF32) {
  REQUIRE_OK(Tensor t, Tensor::make(dtype, std::move(shape)));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_double(i, static_cast<double>(i));
  return t;
}

void check_squares(const CompiledModel& m) {
  PluginRegistry none({.defaults = false});
  REQUIRE_OK(Session s, Session::open(m, none, {.device = "interp:"}));
  const Tensor x = ramp({2, 3});
  REQUIRE_OK(const auto out, s.run(std::span(&x, 1)));
  REQUIRE(out.size() == 1);
  for (int64_t i = 0; i < 6; ++i) {
    const auto w = static_cast<double>(i % 3 + 1);
    CHECK(out[0].get_double(i) == static_cast<double>(i) * w * w);
  }
}

}  // namespace

TEST_CASE("manifests", "[plugin]") {
  REQUIRE_OK(const auto m,
             parse_plugin_manifest("dlc_plugin: 1\nname: npu\nversion: 0.2.0\nabi: 1\nschemes: [npu, npu2]\n", "f"));
  CHECK(m.name == "npu");
  CHECK(m.abi == 1);
  CHECK(m.schemes == std::vector<std::string>{"npu", "npu2"});
  REQUIRE_ERROR(parse_plugin_manifest("dlc_plugin: 2\nname: a\nabi: 1\nschemes: [a]\n", "f"), "f:1:");
  REQUIRE_ERROR(parse_plugin_manifest("dlc_plugin: 1\nabi: 1\nschemes: [a]\n", "f"), "name");
  REQUIRE_ERROR(parse_plugin_manifest("[]", "f"), "f:1:");
}

TEST_CASE("compiled models run in memory and from a file, and are the same bytes each time", "[plugin]") {
  const CompiledModel m = two_parts();
  check_squares(m);
  const auto folder = std::filesystem::temp_directory_path() / "dlc_plugin_test";
  std::filesystem::create_directories(folder);
  const std::string a = folder / "a.dlca", b = folder / "b.dlca";
  REQUIRE(m.write(a).has_value());
  REQUIRE_OK(const CompiledModel back, CompiledModel::read(a));
  CHECK(back.name == "scale");
  CHECK(back.arch_hash == hash_text(7));
  CHECK(back.symbols.at("N").divisible_by == 2);
  CHECK(back.symbols.at("N").bounds == Interval{1, 8});
  CHECK(to_string(back.inputs[0].type) == "f32[N,3]");
  check_squares(back);
  REQUIRE(back.write(b).has_value());
  REQUIRE_OK(const MappedFile first, map_file(a));
  REQUIRE_OK(const MappedFile second, map_file(b));
  CHECK(first.text() == second.text());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a result may be called as an input is", "[plugin]") {
  CompiledModel m = two_parts();
  m.outputs[0].name = "x";
  m.partitions[1].outputs = {"x"};
  check_squares(m);
  // Also when a later part reads the input of that name: x * w twice is no x * w * w.
  m.partitions[0].outputs = {"x"};
  m.partitions[1].inputs = {"x"};
  m.partitions[1].outputs = {"z"};
  m.outputs = {{"x", m.outputs[0].type}, {"z", m.outputs[0].type}};
  PluginRegistry none({.defaults = false});
  REQUIRE_OK(Session s, Session::open(m, none, {.device = "interp:"}));
  const Tensor x = ramp({2, 3});
  REQUIRE_OK(const auto out, s.run(std::span(&x, 1)));
  for (int64_t i = 0; i < 6; ++i) CHECK(out[0].get_double(i) == out[1].get_double(i));
}

TEST_CASE("numbers of an artifact that cannot be are refused", "[plugin]") {
  const auto folder = std::filesystem::temp_directory_path() / "dlc_plugin_numbers_test";
  std::filesystem::create_directories(folder);
  const std::string path = folder / "m.dlca";
  const auto read = [&](Ranges symbols, Expr dim) {
    CompiledModel m = two_parts();
    m.symbols = std::move(symbols);
    m.inputs[0].type.shape[1] = dim;
    if (auto ok = m.write(path); !ok) FAIL(to_string(ok.error()));
    return CompiledModel::read(path);
  };
  const auto range = [](int64_t lo, int64_t hi, int64_t by) {
    Range r(lo, hi);
    r.divisible_by = by;
    return Ranges{{"N", r}};
  };
  CHECK(read(range(1, 8, 2), 3).has_value());
  for (const int64_t by : {0, -2}) REQUIRE_ERROR(read(range(1, 8, by), 3), "'divisible_by' is not understood");
  REQUIRE_ERROR(read(range(-1, 8, 1), 3), "'min' is not understood");
  REQUIRE_ERROR(read(range(8, 1, 1), 3), "'max' is not understood");
  REQUIRE_ERROR(read(range(1, 8, 1), -3), "'shape' is not understood");
  const Ranges far = range(Interval::kPosInf - 1, Interval::kPosInf, 4);
  REQUIRE_ERROR(seeded_inputs(two_parts().inputs, far, {}, 1), "dim N has no value");
  std::filesystem::remove_all(folder);
}

TEST_CASE("inputs are checked", "[plugin]") {
  const CompiledModel m = two_parts();
  const auto bind = [&](NamedTensors given) { return bind_inputs(m.inputs, m.symbols, given); };
  CHECK(bind({{"x", ramp({2, 3})}}).has_value());
  CHECK(bind({{"", ramp({2, 3})}}).has_value());
  REQUIRE_ERROR(bind({}), "input 'x' is missing: the model takes x: f32[N,3]");
  REQUIRE_ERROR(bind({{"x", ramp({2, 3})}, {"q", ramp({1})}}), "the model has no input 'q'");
  REQUIRE_ERROR(bind({{"x", ramp({2, 4})}}), "input 'x' is f32[2,4], the model takes f32[N,3]");
  REQUIRE_ERROR(bind({{"x", ramp({2, 3}, kF64)}}), "input 'x' is f64[2,3]");
  REQUIRE_ERROR(bind({{"x", ramp({10, 3})}}), "dim N is 10, the model takes 1 to 8");
  REQUIRE_ERROR(bind({{"x", ramp({3, 3})}}), "dim N is 3, the model takes multiples of 2");
}

TEST_CASE("seeded inputs are the same each time", "[plugin]") {
  const CompiledModel m = two_parts();
  REQUIRE_OK(const auto a, seeded_inputs(m.inputs, m.symbols, {}, 1));
  REQUIRE_OK(const auto b, seeded_inputs(m.inputs, m.symbols, {}, 1));
  REQUIRE_OK(const auto c, seeded_inputs(m.inputs, m.symbols, {{"N", 4}}, 2));
  CHECK(a[0].shape() == std::vector<int64_t>{2, 3});
  CHECK(c[0].shape() == std::vector<int64_t>{4, 3});
  CHECK(a[0].get_double(5) == b[0].get_double(5));
  CHECK(a[0].get_double(0) != c[0].get_double(0));
  for (int64_t i = 0; i < 6; ++i) CHECK(std::abs(a[0].get_double(i)) <= 1);
}

TEST_CASE("devices", "[plugin]") {
  const CompiledModel m = two_parts();
  PluginRegistry none({.defaults = false});
  REQUIRE_ERROR(Session::open(m, none, {.device = "npu:"}), "no plugin opens devices 'npu:'");
  REQUIRE_ERROR(Session::open(m, none, {.device = "interp"}), "'interp' is not a device URI");
  REQUIRE_ERROR(Session::open(m, none, {.device = "interp:?x=1"}), "takes no options");
}
