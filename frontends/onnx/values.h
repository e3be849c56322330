// What goes into a model and comes out of it: tensors, sequences of tensors, and optional ones.
//
// A dlc graph has tensors only. A sequence `s` is one tensor for each of its elements, named `s[0]`, `s[1]`, ...; an
// optional value is the value itself or nothing. So the number of elements, and whether an optional value is there, is
// known when a model is compiled.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"

namespace dlc {

struct OnnxValue {
  bool present = true;  // false: an optional value that is absent
  bool sequence = false;
  std::vector<Tensor> tensors;  // one, unless it is a sequence

  static OnnxValue of(Tensor t) { return {true, false, {std::move(t)}}; }
};

// The kinds of values, as the model declares them.
enum class OnnxKind : uint8_t { tensor, sequence, optional, other };

struct OnnxPort {
  std::string name;
  OnnxKind kind = OnnxKind::tensor;
  bool of_sequence = false;  // optional: of a sequence
};

struct OnnxSignature {
  std::vector<OnnxPort> inputs;  // those that no initializer gives a value
  std::vector<OnnxPort> outputs;
};

// Reads what a model declares, without importing it.
Result<OnnxSignature> read_onnx_signature(const std::string& path);

// The name of element `index` of sequence `name` among a graph's inputs and outputs.
std::string sequence_element(const std::string& name, size_t index);

// A file of ONNX's test data (input_0.pb): a TensorProto, SequenceProto or OptionalProto, as the port says.
Result<OnnxValue> read_onnx_value(const std::string& path, const OnnxPort& port);

}  // namespace dlc
