// Layers and whole networks on os8: integer interpreter == functional simulator == RTL, bit for bit, write by write.
#include "tests/cosim_layers/networks.h"

#include <filesystem>

#include "dlc_test/skip.h"
#include "tests/cosim_os8/bench.h"

using namespace dlc;
using namespace dlc::asic;

TEST_CASE("os8: random convolutions and sums on the RTL") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    LayerBuilder b(os8(), seed + 300);
    const int64_t kernel = b.in(1, 3);
    const ValueId x = b.input({1, b.in(1, 36), b.in(kernel, 14), b.in(kernel, 14)});
    const ValueId y = b.conv(x, b.in(1, 36), kernel, b.in(1, 2), b.in(0, kernel / 2), seed % 3 == 0);
    const ValueId z = b.conv(y, b.dim(y, 1), 1, 1, 0);
    const Graph g = b.finish({b.add(z, y)});
    cosim(os8(), g, b.inputs(), seed);
  }
}

// Constants that an instruction reads need not be the first of the record that its field points at.
TEST_CASE("os8: a record of parameters in another order") {
  const TestMachine m = make_machine(
      "",
      [](std::string& yaml) {
        for (const auto& [from, to] :
             {std::pair("zp: \"s8[C] @+0", "zp: \"s8[C] @+9"), std::pair("lo: \"s8[C] @+1", "lo: \"s8[C] @+10"),
              std::pair("hi: \"s8[C] @+2", "hi: \"s8[C] @+11"), std::pair("sh: \"u6[C] @+3", "sh: \"u6[C] @+8"),
              std::pair("bias: \"s32[C] @+8", "bias: \"s32[C] @+0")})
          yaml.replace(yaml.find(from), std::string_view(from).size(), to);
      },
      "os8.yaml");
  LayerBuilder b(m, 5);
  const ValueId x = b.input({1, 11, 8, 8});
  const ValueId y = b.node("max_pool", {b.conv(x, 20, 3, 1, 1)}, {{"kernel", list({2, 2})}, {"stride", list({2, 2})}});
  check_layers(m, b.finish({y}), b.inputs(), "asic:func");
}

namespace {
const std::string kFashion = std::string(DLC_SOURCE_DIR) + "/tests/models/fashion_mnist/fashion_int8.onnx";
}

TEST_CASE("os8: the project's fashion network on the RTL") { check_network(os8(), kFashion); }

TEST_CASE("os8: predicted cycles are within the description's budget") { check_prediction(os8(), kFashion); }

TEST_CASE("os8: networks of other people on the RTL", "[.networks]") {
  const std::string folder = std::string(DLC_SOURCE_DIR) + "/../shared/models/real/mlperf_onnx/";
  if (!std::filesystem::exists(folder)) DLC_SKIP("there is no " << folder);
  for (const char* name : {"resnet8", "kws", "vww", "ad"}) {
    INFO(name);
    check_network(os8(), folder + name + "_qdq.onnx");
    check_prediction(os8(), folder + name + "_qdq.onnx");
  }
}
