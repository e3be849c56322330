// Program text: what is valid prints, reads back as the same text, and its memory plan can be checked.
#include <cstdlib>

#include "dlc/program/program.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto p = dlc::parse_program(dlc::fuzz::text(data, size));
  if (!p || !dlc::verify(*p)) return 0;
  (void)dlc::check_memory_plan(*p);
  const std::string text = dlc::print(*p);
  const auto back = dlc::parse_program(text);
  if (!back || dlc::print(*back) != text) std::abort();
  return 0;
}
