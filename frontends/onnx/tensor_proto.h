// TensorProto to Tensor.
#pragma once

#include <string>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"

namespace onnx {
class TensorProto;
}

namespace dlc::onnx_frontend {

// The dlc type of an ONNX TensorProto.DataType, or an error that names the type.
Result<DType> element_type(int onnx_type, const Loc& where);

Result<Tensor> to_tensor(const onnx::TensorProto& proto, const std::string& folder, const Loc& where);

}  // namespace dlc::onnx_frontend
