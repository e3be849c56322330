// The ONNX writer: a graph as a model that this frontend and onnxruntime read.
//
//   DLC_TRY(const auto bytes, export_onnx(g));      // opset 17; write_file(path, bytes)
//
// Every record that an op of ONNX means is written as that op, found in the frontend's tables where operands and
// attributes are the record's own, and by a handler of export_ops.cpp otherwise. Inputs and outputs keep their names,
// nodes have the model's. Sizes may be symbols, as far as a Reshape of ONNX can say them. What cannot be written is an
// error that names every such node.
#pragma once

#include <cstddef>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

Result<std::vector<std::byte>> export_onnx(const Graph& g);
// Whether every node can be written: asked before long work on the graph, whose result would be lost otherwise.
Result<> check_export(const Graph& g);

}  // namespace dlc
