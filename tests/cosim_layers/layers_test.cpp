// Whole layers and networks: integer interpreter == functional simulator == RTL, bit for bit, write by write.
#include <cstdlib>
#include <filesystem>

#include "dlc/map/fill_lanes.h"
#include "dlc_test/skip.h"
#include "tests/cosim_layers/networks.h"

using namespace dlc;
using namespace dlc::asic;

namespace {

const bool kFound = [] {
  setenv("DLC_RTL_PATH", (std::string(DLC_BINARY_DIR) + "/lib/dlc/rtl").c_str(), 0);
  return true;
}();

std::span<const std::byte> bytes_of(const Tensor& t) { return {t.bytes(), t.byte_size()}; }

// A device whose memory cannot be read: a cable, not a machine.
class Unreadable : public DlcPort {
 public:
  explicit Unreadable(std::unique_ptr<DlcPort> port) : port_(std::move(port)) {}
  Result<uint32_t> rd32(uint32_t offset) override { return port_->rd32(offset); }
  Result<> wr32(uint32_t offset, uint32_t value) override { return port_->wr32(offset, value); }
  Result<> mem_rd(uint64_t, std::span<std::byte>) override { return fail({}, "no answer"); }
  Result<> mem_wr(uint64_t at, std::span<const std::byte> data) override { return port_->mem_wr(at, data); }
  Result<> wait_irq(uint64_t most) override { return port_->wait_irq(most); }
  uint64_t now() const override { return port_->now(); }
  Result<> reset() override { return port_->reset(); }
  uint64_t memory_bytes() const override { return port_->memory_bytes(); }
  void observe(PortObserver* observer) override { port_->observe(observer); }

 private:
  std::unique_ptr<DlcPort> port_;
};

}  // namespace

TEST_CASE("random convolutions on the RTL") {
  for (const int size : {8, 16})
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      INFO("array " << size << ", seed " << seed);
      LayerBuilder b(machine(size), seed + 100);
      const int64_t kernel = b.in(1, 3);
      const ValueId x = b.input({1, b.in(1, 36), b.in(kernel, 14), b.in(kernel, 14)});
      const ValueId y = b.conv(x, b.in(1, 36), kernel, b.in(1, 2), b.in(0, kernel / 2), seed % 3 == 0);
      const Graph g = b.finish({b.add(y, y)});
      cosim(machine(size), g, b.inputs(), seed);
    }
}

// Convolutions of few channels, in the form that fills vectors: the same numbers, in fewer steps.
TEST_CASE("taps in empty lanes on the RTL") {
  for (const int size : {8, 16})
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      INFO("array " << size << ", seed " << seed);
      LayerBuilder b(machine(size), seed + 200);
      const int64_t kernel = b.in(2, 7);
      const ValueId x = b.input({1, b.in(1, 4), b.in(kernel, 19), b.in(kernel, 19)});
      const Graph plain = b.finish({b.conv(x, b.in(1, 20), kernel, b.in(1, 3), b.in(0, kernel / 2))});
      Graph laid = plain;
      REQUIRE(need(fill_lanes(laid, size)) == 1);
      const std::vector<Tensor> inputs = b.inputs();
      const auto want = need(run_graph(plain, inputs)), got = need(run_graph(laid, inputs));
      REQUIRE(std::ranges::equal(bytes_of(want[0]), bytes_of(got[0])));
      const Partitioning parts = need(partition(laid, *machine(size).hw, "asic", ask(machine(size))));
      REQUIRE(parts.partitions.size() == 2);
      const auto windows = need(run_graph(parts.partitions[0].graph, inputs));
      const CosimReport r = cosim(machine(size), parts.partitions[1].graph, windows, seed);
      CHECK(std::ranges::equal(bytes_of(r.outputs[0]), bytes_of(want[0])));
      // Work is what the model has, not what fills the vectors.
      const auto macs = [&](const Graph& g) {
        return need(compile_for(*machine(size).hw, need(lower_to_program(g)))).layers.front().macs;
      };
      CHECK(macs(parts.partitions[1].graph) == macs(plain));
    }
}

TEST_CASE("the project's fashion network on the RTL") {
  for (const int size : {8, 16})
    check_network(machine(size), std::string(DLC_SOURCE_DIR) + "/tests/models/fashion_mnist/fashion_int8.onnx");
}

TEST_CASE("predicted cycles of the fashion network are within the description's budget") {
  for (const int size : {8, 16})
    check_prediction(machine(size), std::string(DLC_SOURCE_DIR) + "/tests/models/fashion_mnist/fashion_int8.onnx");
}

TEST_CASE("networks of other people on the RTL", "[.networks]") {
  const std::string folder = std::string(DLC_SOURCE_DIR) + "/../shared/models/real/mlperf_onnx/";
  if (!std::filesystem::exists(folder)) DLC_SKIP("there is no " << folder);
  for (const char* name : {"resnet8", "kws", "vww", "ad"}) {
    INFO(name);
    check_network(machine(16), folder + name + "_qdq.onnx");
    check_prediction(machine(16), folder + name + "_qdq.onnx");
  }
}

TEST_CASE("a changed byte of the weights is found and named") {
  REQUIRE(kFound);
  const auto& m = machine(8);
  LayerBuilder b(m, 3);
  const ValueId x = b.input({1, 9, 6, 6});
  const Graph g = b.finish({b.conv(x, 9, 3, 1, 1)});
  const Program program = need(lower_to_program(g));
  const AcceleratorImage image = need(compile_for(*m.hw, program));
  auto good = std::make_shared<Loaded>(need(read_container(need(write_container(*m.hw, m.text, image)))));
  auto bad = std::make_shared<Loaded>(*good);
  bad->image.weights[0] ^= std::byte{1};
  Driver rtl = need(Driver::make(bad, need(open_port(need(parse_device_uri("asic:rtl")), *bad))));
  const CosimReport r = need(cosimulate(*good, rtl, b.inputs()));
  CHECK_FALSE(r.bit_exact);
  REQUIRE(r.first.has_value());
  CHECK(r.first->queue == "ld");
  CHECK(r.first->layer.starts_with("int_conv"));
  CHECK(r.first->rtl != r.first->simulator);
}

TEST_CASE("an RTL that stops is reported with what it wrote until then") {
  REQUIRE(kFound);
  const auto& m = machine(8);
  LayerBuilder b(m, 3);
  const ValueId x = b.input({1, 9, 6, 6});
  const Graph g = b.finish({b.conv(x, 9, 3, 1, 1)});
  const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
  auto loaded = std::make_shared<const Loaded>(need(read_container(need(write_container(*m.hw, m.text, image)))));
  DeviceUri uri = need(parse_device_uri("asic:rtl"));
  uri.options.error_begin = 4096;  // everything behind the program's page answers with an error
  uri.options.error_end = uint64_t{1} << 26;
  Driver rtl = need(Driver::make(loaded, need(open_port(uri, *loaded))));
  const CosimReport r = need(cosimulate(*loaded, rtl, b.inputs()));
  CHECK_FALSE(r.bit_exact);
  CHECK(r.stopped.find("the device reports axi in queue ld") != std::string::npos);
  CHECK(r.outputs.size() == 1);  // the simulator's
}

TEST_CASE("an error beside the device is an error, no verdict on the RTL") {
  REQUIRE(kFound);
  const auto& m = machine(8);
  LayerBuilder b(m, 3);
  const ValueId x = b.input({1, 9, 6, 6});
  const Graph g = b.finish({b.conv(x, 9, 3, 1, 1)});
  const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
  auto loaded = std::make_shared<const Loaded>(need(read_container(need(write_container(*m.hw, m.text, image)))));
  const DeviceUri uri = need(parse_device_uri("asic:rtl"));
  Driver rtl = need(Driver::make(loaded, need(open_port(uri, *loaded))));
  const auto said = [&](const std::vector<Tensor>& inputs) {
    const auto r = cosimulate(*loaded, rtl, inputs);
    return r ? to_json(*r) : std::string(r.error().message());
  };
  const std::vector<Tensor> good = b.inputs();
  CHECK(said({need(Tensor::make(kF32, {1, 9, 6, 6}))}) == "input x0 is f32[1,9,6,6], it must be s8[1,9,6,6]");
  CHECK(said({need(Tensor::make(kS8, {1, 9, 6, 7}))}) == "input x0 is s8[1,9,6,7], it must be s8[1,9,6,6]");
  CHECK(said({good[0], good[0], good[0], good[0]}) == "4 inputs are given, the program has 1");
  CHECK(said({}) == "0 inputs are given, the program has 1");
  Driver cut = need(Driver::make(loaded, std::make_unique<Unreadable>(need(open_port(uri, *loaded)))));
  const auto r = cosimulate(*loaded, cut, good);
  REQUIRE_FALSE(r.has_value());
  CHECK(r.error().message() == "no answer");
}

TEST_CASE("the RTL comes back from a fault") {
  REQUIRE(kFound);
  const auto& m = machine(8);
  LayerBuilder b(m, 3);
  const ValueId x = b.input({1, 9, 6, 6});
  const Graph g = b.finish({b.conv(x, 9, 3, 1, 1)});
  const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
  auto loaded = std::make_shared<const Loaded>(need(read_container(need(write_container(*m.hw, m.text, image)))));
  Driver rtl = need(Driver::make(loaded, need(open_port(need(parse_device_uri("asic:rtl")), *loaded))));
  const std::vector<Tensor> inputs = b.inputs();
  size_t code = 0;
  while (!m.hw->spaces[code].name.ends_with(".code")) ++code;
  need(rtl.port().mem_wr(rtl.bases()[code], std::vector<std::byte>(64, std::byte{0xff})));
  const CosimReport faulty = need(cosimulate(*loaded, rtl, inputs));
  CHECK_FALSE(faulty.bit_exact);
  CHECK(faulty.stopped.find("the device reports illegal") != std::string::npos);
  CHECK(need(cosimulate(*loaded, rtl, inputs)).bit_exact);
}

TEST_CASE("layer norm on the RTL") {
  const DType u16{DType::Kind::unsigned_int, 16}, u6{DType::Kind::unsigned_int, 6}, u24{DType::Kind::unsigned_int, 24},
      s16{DType::Kind::signed_int, 16};
  for (const int size : {8, 16}) {
    INFO("array " << size);
    const auto& m = machine(size);
    LayerBuilder b(m, 12);
    const auto norm = [&](ValueId x) {
      return b.node("normalize",
                    {x, b.constant(s16, {96}, -30000, 30000), b.constant(s16, {96}, -2000, 2000), b.scalar(u16, 40),
                     b.scalar(u6, 2), b.scalar(u24, 1 << 16), b.scalar(u6, 23)},
                    {{"from", Expr(-5)}, {"zero", Expr(3)}});
    };
    const Graph g = b.finish({norm(norm(b.input({1, 96, 100})))});
    cosim(m, g, b.inputs(), 4);
  }
}

TEST_CASE("attention with its softmax on the RTL") {
  const DType u31{DType::Kind::unsigned_int, 31}, u16{DType::Kind::unsigned_int, 16}, u6{DType::Kind::unsigned_int, 6};
  for (const int size : {8, 16}) {
    INFO("array " << size);
    const auto& m = machine(size);
    LayerBuilder b(m, 11);
    const int64_t heads = 2, depth = 16;
    const ValueId x = b.input({1, 3 * heads * depth, 21});
    const auto scaled = [&](ValueId acc, int64_t by) {
      return b.node("rescale", {acc, b.scalar(u31, (int64_t{1} << 30) / by), b.scalar(u6, 36)}, {{"zero", Expr(5)}});
    };
    const ValueId a = scaled(b.node("scores", {x, x},
                                    {{"heads", Expr(heads)},
                                     {"depth", Expr(depth)},
                                     {"b_at", Expr(heads * depth)},
                                     {"a_zero", Expr(-7)},
                                     {"b_zero", Expr(90)}}),
                             9);
    const ValueId e = b.node("exp_rows", {a, b.constant(kS8, {256}, -128, 127)}, {});
    const ValueId p = b.node("quotient", {e, b.scalar(u16, 40000), b.scalar(u6, 38)}, {{"zero", Expr(-128)}});
    const ValueId y = scaled(
        b.node(
            "mix", {p, x},
            {{"depth", Expr(depth)}, {"b_at", Expr(2 * heads * depth)}, {"a_zero", Expr(-128)}, {"b_zero", Expr(-33)}}),
        20);
    cosim(m, b.finish({y}), b.inputs(), 4);
  }
}
