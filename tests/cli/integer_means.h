// A quantised model whose integers are others than its floats say.
#pragma once

#include "tests/error/run.h"

namespace dlc::test {

// Means of four: many lie half between two integers, where the floats of 0.1 round either way.
inline onnx::ModelProto integer_means() {
  auto m = model();
  input(m, "x", {1, 16, 16, 16}, onnx::TensorProto::INT8);
  auto* scale = m.mutable_graph()->add_initializer();
  scale->set_name("scale");
  scale->set_data_type(onnx::TensorProto::FLOAT);
  scale->add_float_data(0.1F);
  auto* zero = m.mutable_graph()->add_initializer();
  zero->set_name("zero");
  zero->set_data_type(onnx::TensorProto::INT8);
  zero->add_int32_data(0);
  node(m, "DequantizeLinear", "from", {"x", "scale", "zero"}, "f");
  auto* pool = node(m, "AveragePool", "pool", {"f"}, "p");
  for (const char* name : {"kernel_shape", "strides"}) {
    auto* a = pool->add_attribute();
    a->set_name(name);
    a->set_type(onnx::AttributeProto::INTS);
    for (int i = 0; i < 2; ++i) a->add_ints(2);
  }
  node(m, "QuantizeLinear", "to", {"p", "scale", "zero"}, "y");
  output(m, "y", {1, 16, 8, 8}, onnx::TensorProto::INT8);
  return m;
}

}  // namespace dlc::test
