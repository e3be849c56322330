// What onnxruntime's forms of attention share (com.microsoft).
#pragma once

#include <optional>

#include "frontends/onnx/attention.h"

namespace dlc::onnx_frontend {

// Attributes above `most`, and inputs from `from` on, that are given.
Result<> refuse_attribute(const NodeView& n, const char* name, int64_t most);
Result<> refuse_inputs(const NodeView& n, size_t from);

// Attribute 'scale'; 0 is by the size of a head.
Result<std::optional<double>> scale_of(const NodeView& n);

// Tensors side by side in the last dim, of these sizes.
Result<std::vector<ValueId>> split_last(const NodeView& n, ValueId v, const Exprs& sizes);

}  // namespace dlc::onnx_frontend
