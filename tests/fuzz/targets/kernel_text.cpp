// Kernel text: what is valid prints, and reads back as the same text.
#include <cstdlib>

#include "dlc/kernel/kernel.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto k = dlc::parse_kernel(dlc::fuzz::text(data, size));
  if (!k || !dlc::verify(*k)) return 0;
  const std::string text = dlc::print(*k);
  const auto back = dlc::parse_kernel(text);
  if (!back || dlc::print(*back) != text) std::abort();
  return 0;
}
