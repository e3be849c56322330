// Hardware descriptions in YAML.
#include "dlc/hw/load.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)dlc::parse_hw(dlc::fuzz::text(data, size), "machine.yaml");
  return 0;
}
