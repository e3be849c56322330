// Small ONNX models made in the test, and their runs.
#pragma once

#include <onnx/onnx.pb.h>

#include <string>
#include <vector>

#include "dlc_test/catch.h"
#include "dlc_test/tensors.h"
#include "frontends/onnx/onnx.h"

namespace dlc_test {

inline onnx::ModelProto model(int opset = 17) {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(opset);
  m.mutable_graph()->set_name("test");
  return m;
}

inline void declare(onnx::ValueInfoProto* v, const std::string& name, std::vector<int64_t> shape,
                    int type = onnx::TensorProto::FLOAT) {
  v->set_name(name);
  auto* t = v->mutable_type()->mutable_tensor_type();
  t->set_elem_type(type);
  auto* s = t->mutable_shape();
  for (const int64_t d : shape) {
    auto* dim = s->add_dim();
    if (d >= 0)
      dim->set_dim_value(d);
    else
      dim->set_dim_param("N");
  }
}

inline onnx::NodeProto* node(onnx::ModelProto& m, const std::string& op, std::vector<std::string> in,
                             std::vector<std::string> out, const std::string& name = {}) {
  auto* n = m.mutable_graph()->add_node();
  n->set_op_type(op);
  n->set_name(name);
  for (const auto& s : in) n->add_input(s);
  for (const auto& s : out) n->add_output(s);
  return n;
}

inline dlc::Result<dlc::Graph> import(const onnx::ModelProto& m, const std::string& folder = {},
                                      const dlc::OnnxOptions& options = {}) {
  const std::string bytes = m.SerializeAsString();
  return dlc::import_onnx_bytes(std::as_bytes(std::span(bytes.data(), bytes.size())), "test.onnx", folder, options);
}

inline onnx::TensorProto* initializer(onnx::ModelProto& m, const std::string& name, std::vector<int64_t> dims,
                                      std::vector<float> values) {
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t d : dims) t->add_dims(d);
  for (const float v : values) t->add_float_data(v);
  return t;
}

inline onnx::TensorProto* integers(onnx::ModelProto& m, const std::string& name, std::vector<int64_t> dims,
                                   std::vector<int64_t> values, int type = onnx::TensorProto::INT64) {
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(type);
  for (const int64_t d : dims) t->add_dims(d);
  for (const int64_t v : values)
    if (type == onnx::TensorProto::INT64)
      t->add_int64_data(v);
    else
      t->add_int32_data(static_cast<int32_t>(v));
  return t;
}

inline onnx::AttributeProto* attribute(onnx::NodeProto* n, const std::string& name,
                                       onnx::AttributeProto::AttributeType type) {
  auto* a = n->add_attribute();
  a->set_name(name);
  a->set_type(type);
  return a;
}
inline void set_int(onnx::NodeProto* n, const std::string& name, int64_t v) {
  attribute(n, name, onnx::AttributeProto::INT)->set_i(v);
}
inline void set_float(onnx::NodeProto* n, const std::string& name, float v) {
  attribute(n, name, onnx::AttributeProto::FLOAT)->set_f(v);
}
inline void set_string(onnx::NodeProto* n, const std::string& name, const std::string& v) {
  attribute(n, name, onnx::AttributeProto::STRING)->set_s(v);
}
inline void set_ints(onnx::NodeProto* n, const std::string& name, std::vector<int64_t> v) {
  auto* a = attribute(n, name, onnx::AttributeProto::INTS);
  for (const int64_t i : v) a->add_ints(i);
}
inline void set_floats(onnx::NodeProto* n, const std::string& name, std::vector<float> v) {
  auto* a = attribute(n, name, onnx::AttributeProto::FLOATS);
  for (const float i : v) a->add_floats(i);
}

// Input 0 of the model with these elements; what the first output is then.
inline dlc::Tensor run(const onnx::ModelProto& m, const std::vector<double>& x) {
  using namespace dlc;
  auto g = import(m);
  if (!g) FAIL(to_string(g.error()));
  std::vector<int64_t> shape;
  const TensorType& type = g->value(g->inputs.at(0)).type;
  for (const Expr& d : type.shape) shape.push_back(*d.constant());
  REQUIRE_OK(Tensor t, Tensor::make(type.dtype, shape));
  REQUIRE(t.elements() == static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) t.set_double(static_cast<int64_t>(i), x[i]);
  const Tensor inputs[] = {t};
  auto y = run_graph(*g, inputs);
  if (!y) FAIL(to_string(y.error()));
  return (*y)[0];
}

// A model of one node: x is its first input, y its first output; the test adds what else it has.
struct OneNode {
  onnx::ModelProto m;
  onnx::NodeProto* n;
  OneNode(const std::string& op, int opset, std::vector<int64_t> shape, std::vector<std::string> inputs = {"x"},
          int type = onnx::TensorProto::FLOAT)
      : m(model(opset)), n(node(m, op, std::move(inputs), {"y"}, "node")) {
    declare(m.mutable_graph()->add_input(), "x", std::move(shape), type);
    m.mutable_graph()->add_output()->set_name("y");
  }
};

}  // namespace dlc_test
