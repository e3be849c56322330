// onnxruntime as a reference, where a Python has it: $DLC_PYTHON, or python3.
//
//   DLC_TRY(const NamedTensors values, run_onnxruntime("m.onnx", inputs, {"conv1_out"}));
//
// The model runs as it is, with its optimisations off; the named values between its nodes become outputs as well.
#pragma once

#include <string>
#include <vector>

#include "dlc/io/numpy.h"

namespace dlc::cli {

inline constexpr const char* kOnnxruntime = "onnxruntime";

// Every output of the model and every value asked for that is a tensor which numpy can hold.
Result<NamedTensors> run_onnxruntime(const std::string& model, const NamedTensors& inputs,
                                     const std::vector<std::string>& values);

}  // namespace dlc::cli
