// onnxruntime as a reference, where a Python has it: $DLC_PYTHON, or python3.
//
//   DLC_TRY(const NamedTensors values, run_onnxruntime("m.onnx", inputs, {{"conv1_out", kF32}}));
//
// The model runs as it is, with its optimisations off; the named values between its nodes become outputs as well.
#pragma once

#include <string>
#include <vector>

#include "dlc/io/numpy.h"
#include "frontends/onnx/carried.h"

namespace dlc::cli {

inline constexpr const char* kOnnxruntime = "onnxruntime";

// Every output of the model and every value asked for that is a tensor. Those of types that numpy has not (bf16, s4,
// ...) have to be among `values`: they travel as wider ones.
Result<NamedTensors> run_onnxruntime(const std::string& model, const NamedTensors& inputs,
                                     const std::vector<WantedValue>& values);

}  // namespace dlc::cli
