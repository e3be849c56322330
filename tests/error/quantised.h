// Quantised models as onnxruntime writes them.
#pragma once

#include <functional>

#include "tests/error/run.h"

namespace dlc::test {

inline void scalar(onnx::ModelProto& m, const std::string& name, float value) {
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(onnx::TensorProto::FLOAT);
  t->add_float_data(value);
}
inline void integers(onnx::ModelProto& m, const std::string& name, const std::vector<int64_t>& shape, int type) {
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(type);
  int64_t n = 1;
  for (const int64_t d : shape) {
    t->add_dims(d);
    n *= d;
  }
  for (int64_t i = 0; i < n; ++i) t->add_int32_data(static_cast<int32_t>(i % 5));
}

// x -> QDQ -> `op` -> QDQ -> y: quantised as onnxruntime writes it. The first two nodes are `in_q`, `in_dq`.
inline onnx::ModelProto quantised(const std::vector<int64_t>& shape, const std::vector<int64_t>& result,
                                  const std::function<void(onnx::ModelProto&)>& op) {
  auto m = model();
  input(m, "x", shape);
  scalar(m, "s", 0.05F);
  integers(m, "z", {}, onnx::TensorProto::INT8);
  node(m, "QuantizeLinear", "in_q", {"x", "s", "z"}, "xq");
  node(m, "DequantizeLinear", "in_dq", {"xq", "s", "z"}, "xf");
  op(m);
  node(m, "QuantizeLinear", "out_q", {"yf", "s", "z"}, "yq");
  node(m, "DequantizeLinear", "out_dq", {"yq", "s", "z"}, "y");
  output(m, "y", result);
  return m;
}

// A convolution of 8 x 8 pixels, in groups.
inline onnx::ModelProto convolution(int64_t channels = 16, int64_t results = 32, int64_t group = 1) {
  return quantised({1, channels, 8, 8}, {1, results, 6, 6}, [&](onnx::ModelProto& m) {
    integers(m, "w", {results, channels / group, 3, 3}, onnx::TensorProto::INT8);
    node(m, "DequantizeLinear", "w_dq", {"w", "s", "z"}, "wf");
    auto* g = node(m, "Conv", "conv", {"xf", "wf"}, "yf")->add_attribute();
    g->set_name("group");
    g->set_type(onnx::AttributeProto::INT);
    g->set_i(group);
  });
}

}  // namespace dlc::test
