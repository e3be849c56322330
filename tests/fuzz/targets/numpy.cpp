// .npy and .npz files.
#include "dlc/io/numpy.h"

#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)dlc::parse_npy(dlc::fuzz::bytes(data, size), "x.npy");
  const dlc::fuzz::MemoryFile file(data, size);
  (void)dlc::read_npz(file.path());
  return 0;
}
