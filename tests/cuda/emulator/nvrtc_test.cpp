// The device's bodies of the primitives go through NVRTC for every architecture, without a warning and without a spill.
#include "dlc_test/catch.h"
#include "dlc_test/skip.h"
#include "emu.h"
#include "plugins/cuda/compile/compile.h"

namespace dlc::test {

TEST_CASE("every primitive compiles for the device", "[.nvrtc]") {
  if (const auto r = cuda::nvrtc_available(); !r) DLC_SKIP(to_string(r.error()));
  const char* architecture = GENERATE("sm_80", "sm_89", "sm_90a");
  const std::string file = GENERATE("kernels/primitives.cu", "kernels/planted.cu");
  CAPTURE(architecture, file);
  REQUIRE_OK(const cuda::DeviceCode code, cuda::compile_for_device(text_of(file), architecture));
  CHECK(code.warnings == std::vector<std::string>{});
  CHECK(code.kernels.size() > 30);
  for (const cuda::KernelFacts& k : code.kernels) {
    CAPTURE(k.name);
    CHECK(k.spill_bytes == 0);
  }
}

}  // namespace dlc::test
