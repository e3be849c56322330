#include "tests/unit/asic/support.h"

#include <algorithm>
#include <map>

#include "dlc/io/file.h"

namespace dlc::asic {

TestMachine make_machine(const std::string& params, const std::function<void(std::string&)>& edit,
                         const std::string& file) {
  TestMachine m;
  const std::string path = std::string(DLC_SOURCE_DIR) + "/hwdesc/" + file;
  const MappedFile f = need(map_file(path));
  m.text = {std::string(f.text()), path, params};
  if (edit) edit(m.text.text);
  m.hw = std::make_shared<HwDescription>(need(read_hardware(m.text)));
  m.recipes = need(load_recipes(*m.hw));
  return m;
}

const TestMachine& machine(int size) {
  static std::map<int, TestMachine> machines;
  const auto [it, fresh] = machines.try_emplace(size);
  if (fresh) it->second = make_machine("R=" + std::to_string(size));
  return it->second;
}

AskDevice ask(const TestMachine& m) {
  const auto compiler = std::make_shared<AcceleratorCompiler>(need(AcceleratorCompiler::make(m.hw)));
  return [compiler](const Program& p) { return Result<std::vector<Refusal>>(compiler->refused(p)); };
}

std::vector<Expr> list(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

ValueId LayerBuilder::input(std::vector<int64_t> shape) {
  TensorType type{kS8, {}};
  for (const int64_t n : shape) type.shape.emplace_back(n);
  return graph_.add_input("x" + std::to_string(named_++), std::move(type));
}

ValueId LayerBuilder::constant(DType t, std::vector<int64_t> shape, int64_t lo, int64_t hi) {
  Tensor x = need(Tensor::make(t, std::move(shape)));
  for (int64_t i = 0; i < x.elements(); ++i) x.set_int(i, in(lo, hi));
  return graph_.add_constant("c" + std::to_string(named_++), std::move(x));
}

ValueId LayerBuilder::node(std::string op, std::vector<ValueId> inputs, Attrs attrs) {
  const std::string name = op + std::to_string(named_++);
  const NodeId n = need(graph_.add_node(std::move(op), std::move(inputs), std::move(attrs), {name}));
  return graph_.node(n).outputs[0];
}

ValueId LayerBuilder::conv(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t pad, bool depthwise) {
  const int64_t c = dim(x, 1), group = depthwise ? c : 1;
  if (depthwise) out = c;
  const ValueId w = constant(kS8, {out, depthwise ? 1 : c, kernel, kernel}, -128, 127);
  const ValueId b = constant(kS32, {out}, -3000, 3000);
  const ValueId acc = node("int_conv", {x, w, b, scalar(kS8, in(-20, 20))},
                           {{"stride", list({stride, stride})},
                            {"pad_lo", list({pad, pad})},
                            {"pad_hi", list({pad, pad})},
                            {"group", Expr(group)}});
  const DType u31{DType::Kind::unsigned_int, 31}, u6{DType::Kind::unsigned_int, 6};
  const ValueId m = constant(u31, {out}, int64_t{1} << 30, (int64_t{1} << 31) - 1);
  const ValueId s = constant(u6, {out}, 38, 41);
  const int64_t zero = in(-30, 30);
  return node("requantize", {acc, m, s}, {{"axis", Expr(1)}, {"zero", Expr(zero)}, {"lo", Expr(zero)}});
}

ValueId LayerBuilder::add(ValueId a, ValueId b) {
  const DType u24{DType::Kind::unsigned_int, 24}, s24{DType::Kind::signed_int, 24}, u6{DType::Kind::unsigned_int, 6};
  return node("add_s8", {a, b, scalar(u24, in(3000000, 8000000)), scalar(s24, in(-8000000, 8000000)), scalar(u6, 23)},
              {{"a_zero", Expr(in(-9, 9))}, {"b_zero", Expr(in(-9, 9))}, {"zero", Expr(in(-9, 9))}});
}

Graph LayerBuilder::finish(std::vector<ValueId> outputs) {
  graph_.outputs = std::move(outputs);
  for (const ValueId v : graph_.outputs) graph_.output_names.push_back(graph_.value(v).name);
  return graph_;
}

std::vector<Tensor> LayerBuilder::inputs() {
  std::vector<Tensor> out;
  for (const ValueId v : graph_.inputs) {
    std::vector<int64_t> shape;
    for (const Expr& e : graph_.value(v).type.shape) shape.push_back(*e.constant());
    Tensor x = need(Tensor::make(kS8, shape));
    for (int64_t i = 0; i < x.elements(); ++i) x.set_int(i, in(-128, 127));
    out.push_back(std::move(x));
  }
  return out;
}

RunCounts check_layers(const TestMachine& m, const Graph& g, const std::vector<Tensor>& inputs,
                       const std::string& uri) {
  return check_layers(m, need(lower_to_program(g)), inputs, uri);
}

RunCounts check_layers(const TestMachine& m, const Program& program, const std::vector<Tensor>& inputs,
                       const std::string& uri) {
  const AcceleratorImage image = need(compile_for(*m.hw, program));
  auto loaded = std::make_shared<const Loaded>(need(read_container(need(write_container(*m.hw, m.text, image)))));
  CHECK(loaded->image.program == image.program);
  const DeviceUri device = need(parse_device_uri(uri));
  Driver driver = need(Driver::make(loaded, need(open_port(device, *loaded))));
  const auto want = need(run_program(program, inputs));
  need(driver.run(inputs));
  const auto have = need(driver.run(inputs));  // twice: a run leaves the device ready for the next one
  REQUIRE(have.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    REQUIRE(have[i].shape() == want[i].shape());
    int64_t wrong = 0;
    bool varied = false;
    for (int64_t e = 0; e < want[i].elements(); ++e) {
      wrong += have[i].get_int(e) != want[i].get_int(e);
      varied |= want[i].get_int(e) != want[i].get_int(0);
    }
    INFO("output " << i << " of " << want[i].elements() << ", plan " << image.layers.back().plan << ", tile "
                   << image.layers.back().tile);
    CHECK(wrong == 0);
    if (want[i].elements() > 8) CHECK(varied);  // a constant result would compare equal too easily
  }
  return driver.counts();
}

}  // namespace dlc::asic
