// If, Loop and Scan where only a run knows the condition, the number of trips or the length: `if` and `loop` of the
// graph.
#pragma once

#include <vector>

#include "frontends/onnx/importer.h"

namespace dlc::onnx_frontend {

Result<std::vector<ValueId>> run_time_if(const NodeView& n);

// The last `carried` inputs of the node are carried values. `never_ends`: that is why it is refused.
Result<std::vector<ValueId>> run_time_loop(const NodeView& n, const onnx::GraphProto& body, size_t carried,
                                           bool& never_ends);

// How a Scan walks one of its inputs or outputs.
struct Walk {
  int64_t axis = 0;
  bool backward = false;
};

// One pass over the scanned inputs, whose axes are checked, from this state.
Result<std::vector<ValueId>> run_time_scan(const NodeView& n, const onnx::GraphProto& body,
                                           const std::vector<ValueId>& state, const std::vector<ValueId>& scanned,
                                           const std::vector<Walk>& in, const std::vector<Walk>& out);

}  // namespace dlc::onnx_frontend
