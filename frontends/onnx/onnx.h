// The ONNX frontend: a model file to a dlc graph.
//
// Opsets 7 to 22 of the default domain, QDQ and QLinear forms, external data confined to the model's folder, symbolic
// dims. Every unsupported node is reported at once, with its name. Each ONNX op is mapped to records in one table
// (import_*.cpp); what an op means is never stated here.
#pragma once

#include <map>
#include <span>
#include <string>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/graph/graph.h"

namespace dlc {

struct OnnxOptions {
  // Bindings of symbolic dims, by the model's names: a value ({4, 4}) or a range ({1, 512}).
  std::map<std::string, Interval, std::less<>> dims;
  // What an unbound symbolic dim may be.
  Interval default_range{1, int64_t{1} << 20};
};

// Reads and imports. The path's folder is where external data must lie.
Result<Graph> import_onnx(const std::string& path, const OnnxOptions& options = {});
// The same from memory; external data is refused unless `folder` is given.
Result<Graph> import_onnx_bytes(std::span<const std::byte> bytes, const std::string& file_name,
                                const std::string& folder = {}, const OnnxOptions& options = {});

// A TensorProto file, as in ONNX's test data (input_0.pb).
Result<Tensor> read_tensor_pb(const std::string& path);

}  // namespace dlc
