// TensorProto to Tensor.
#pragma once

#include <string>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/io/file.h"

namespace onnx {
class TensorProto;
}

namespace dlc::onnx_frontend {

// The dlc type of an ONNX TensorProto.DataType, or an error that names the type.
Result<DType> element_type(int onnx_type, const Loc& where);

// `model`: where the tensor's raw data lies, when the tensor was parsed without it (raw_data.h). The result views it
// there if the mapping has an owner that can keep it.
Result<Tensor> to_tensor(const onnx::TensorProto& proto, const std::string& folder, const Loc& where,
                         const MappedFile* model = nullptr);

}  // namespace dlc::onnx_frontend
