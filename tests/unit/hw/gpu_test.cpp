// Section `gpu`: what it says, and what it cannot say.
#include "dlc/hw/gpu.h"

#include "dlc/io/file.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

const std::string kFolder = std::string(DLC_SOURCE_DIR) + "/hwdesc";

Result<HwGpu> shipped(const std::string& name) {
  DLC_TRY(const MappedFile file, map_file(kFolder + "/" + name + ".yaml"));
  return parse_hw_gpu(file.text(), kFolder + "/" + name + ".yaml");
}

Result<HwGpu> with(const std::string& text) {
  return parse_hw_gpu("like: nvidia-sm80.yaml\nname: mine\n" + text, kFolder + "/mine.yaml");
}

}  // namespace

TEST_CASE("the shipped GPUs have their figures, and say which were not measured") {
  for (const char* name : {"nvidia-sm80", "nvidia-a100", "nvidia-l4", "nvidia-h200", "cuda-emu"}) {
    INFO(name);
    REQUIRE_OK(const HwDescription hw, load_hw(name, {{kFolder}}));
    CHECK(hw.plugin == "cuda");
    REQUIRE_OK(const HwGpu gpu, shipped(name));
    CHECK(gpu.warp == 32);
    CHECK(gpu.limit("threads_per_block") == 1024);
    CHECK(gpu.rate("dram").value_or(0) > 1e11);
    CHECK_FALSE(gpu.mma.empty());
    CHECK_FALSE(gpu.unmeasured.empty());
  }
  REQUIRE_OK(const HwGpu h200, shipped("nvidia-h200"));
  CHECK(h200.arch == "sm_90a");
  CHECK(h200.fallback == "compute_80");
  CHECK(h200.limit("shared_per_block") == 227 * 1024);
  CHECK(h200.cost("kernel_in_graph") == 1.3e-6);
}

TEST_CASE("a machine has no more than its architecture") {
  REQUIRE_ERROR(with("gpu:\n  limits: {shared_per_block: 200KiB}\n"),
                "'shared_per_block' is 204800, and sm_80 has at most 166912");
  const auto hw = with("gpu:\n  limits:\n    shared_per_block: 200KiB\n");
  REQUIRE_FALSE(hw);
  CHECK(hw.error().diagnostics.front().loc.line == 5);
  CHECK(hw.error().diagnostics.front().hint.contains("nvidia-sm80.yaml"));
  CHECK(with("gpu:\n  limits: {shared_per_block: 100KiB}\n"));
}

TEST_CASE("figures of a GPU that are not understood") {
  REQUIRE_ERROR(with("gpu: {sms: 3}\n"), "sms");
  REQUIRE_ERROR(with("gpu: {rates: {dram: 3 parsecs}}\n"), "parsecs");
  REQUIRE_ERROR(with("gpu: {costs: {launch: 12}}\n"), "a time in us or ns is wanted");
  REQUIRE_ERROR(with("gpu: {unmeasured: [rates.sram]}\n"), "names 'rates.sram', which is no figure of 'gpu'");
  REQUIRE_ERROR(with("gpu: {tensor_core: [{op: mma.sync, shape: [16, 8], in: f16, acc: f32}]}\n"),
                "'shape' is three numbers");
}
