// ONNX models: what imports prints, and reads back.
#include "frontends/onnx/onnx.h"

#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (const auto g = dlc::import_onnx_bytes(dlc::fuzz::bytes(data, size), "model.onnx")) (void)dlc::print(*g);
  return 0;
}
