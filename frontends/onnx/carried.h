// A model for a runtime that hands its tensors over as numpy's: types that numpy has not travel as wider ones that hold
// each of their values.
//
//   DLC_TRY(const auto bytes, onnx_for_numpy("m.onnx", {{"h", kBF16}}));   // an output "h/carried", which is f32
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/dtype.h"

namespace dlc {

struct WantedValue {
  std::string name;
  DType type;
};

// The type that travels: f32 of bf16, s8 of s4, every type of numpy itself.
DType carrier_type(DType type);
// What an output that is carried is called.
std::string carried_name(const std::string& output);

// onnx_with_outputs() of these values. The model casts what is carried: inputs on the way in, `values` on the way out.
Result<std::vector<std::byte>> onnx_for_numpy(const std::string& path, const std::vector<WantedValue>& values);

}  // namespace dlc
