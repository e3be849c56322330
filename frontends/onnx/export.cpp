// Names, types, constants, and the nodes in order; export_ops.cpp says what each becomes.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/export_onnx.h"
#include "frontends/onnx/exporter.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc {

namespace onnx_frontend {

namespace {

// Ops of the tables that are newer than the opset that is written.
constexpr std::string_view kNewer[] = {"Mish", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "Gelu"};

// The op whose operands and attributes are the record's own; "" if there is none.
std::string_view same_op(std::string_view record) {
  for (const auto& table : op_tables())
    for (const OpEntry& e : table)
      if (e.record == record && e.domain.empty() && e.max_opset == 0 && std::ranges::count(kNewer, e.op) == 0)
        return e.op;
  return {};
}

// Attributes that the node has, under their own names.
Result<> copy_attributes(NodeWriter& w, onnx::NodeProto& to) {
  for (const auto& [name, value] : w.node().attrs) {
    if (const auto* s = std::get_if<std::string>(&value)) {
      NodeWriter::set(to, name, *s);
    } else if (const auto* d = std::get_if<double>(&value)) {
      NodeWriter::set(to, name, *d);
    } else if (std::holds_alternative<Expr>(value)) {
      DLC_TRY(const int64_t i, w.integer(name));
      NodeWriter::set(to, name, i);
    } else if (const auto* list = std::get_if<std::vector<Expr>>(&value)) {
      DLC_TRY(const auto values, w.integers(name, list->size()));
      NodeWriter::set(to, name, values);
    } else {
      return fail({}, fmt::format("its attribute '{}' has no form in ONNX", name));
    }
  }
  return {};
}

Result<> write(NodeWriter& w) {
  const std::string& record = w.node().op;
  if (const WriteOp handler = writer_of(record)) return handler(w);
  const std::string_view op = same_op(record);
  if (op.empty() || !w.node().bodies.empty())
    return fail({}, fmt::format("dlc's writer has no form of {} in opset {}", record, kWrittenOpset));
  return copy_attributes(w, w.emit(std::string(op)));
}

}  // namespace

Result<int> onnx_type(DType t) {
  for (int number = 1; number <= 16; ++number)
    if (const auto type = element_type(number, {}); type && *type == t) return number;
  return fail({}, fmt::format("elements of {} have no type in opset {}", to_string(t), kWrittenOpset));
}

std::string Exporter::unique(const std::string& wish) {
  std::string name = wish;
  for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", wish, i);
  return name;
}

// Inputs and outputs are called as they are; an output that is no node's result, or one of several, is a copy.
void Exporter::name_all() {
  for (const ValueId v : g_.inputs) names_[v] = unique(g_.value(v).name);
  for (const std::string& name : g_.output_names) taken_.insert(name);
  for (size_t i = 0; i < g_.outputs.size(); ++i) {
    const ValueId v = g_.outputs[i];
    if (g_.value(v).producer != kNoNode && !names_.contains(v)) names_[v] = g_.output_names[i];
  }
}

const std::string& Exporter::name(ValueId v) {
  static const std::string none;
  if (v == kNoValue) return none;
  const auto it = names_.find(v);
  const std::string& name = it != names_.end() ? it->second : names_[v] = unique(g_.value(v).name);
  if (const auto& c = g_.value(v).constant; c && written_.insert(name).second) {
    auto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx_type(c->dtype()).value_or(0));
    for (const int64_t d : c->shape()) tensor.add_dims(d);
    if (with_values_) tensor.set_raw_data(c->bytes(), c->byte_size());
  }
  return name;
}

std::string Exporter::constant(const Tensor& t, const std::string& wish) {
  auto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(unique(wish));
  tensor.set_data_type(onnx_type(t.dtype()).value_or(0));
  for (const int64_t d : t.shape()) tensor.add_dims(d);
  tensor.set_raw_data(t.bytes(), t.byte_size());
  return tensor.name();
}

std::string Exporter::integers(const std::vector<int64_t>& values, const std::string& wish) {
  auto& tensor = *model_.mutable_graph()->add_initializer();
  tensor.set_name(unique(wish));
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  tensor.set_raw_data(values.data(), values.size() * sizeof(int64_t));
  return tensor.name();
}

onnx::NodeProto& Exporter::add_node(const std::string& op, const std::vector<std::string>& inputs, const Node& from) {
  auto& node = *model_.mutable_graph()->add_node();
  node.set_op_type(op);
  const std::string wish = from.locations.empty() ? from.op : from.locations.front();
  std::string name = wish;
  for (int i = 1; !node_names_.insert(name).second; ++i) name = fmt::format("{}_{}", wish, i);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  return node;
}

Result<> Exporter::add_type(onnx::ValueInfoProto& to, const std::string& name, const TensorType& type) const {
  to.set_name(name);
  auto& tensor = *to.mutable_type()->mutable_tensor_type();
  DLC_TRY(const int number, onnx_type(type.dtype));
  tensor.set_elem_type(number);
  tensor.mutable_shape();
  for (const Expr& e : type.shape) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (const auto c = e.constant())
      dim.set_dim_value(*c);
    else if (const auto symbol = e.as_symbol())
      dim.set_dim_param(std::string(*symbol));
  }
  return {};
}

Result<> Exporter::run() {
  model_.set_ir_version(8);
  model_.set_producer_name("dlc");
  model_.add_opset_import()->set_version(kWrittenOpset);
  auto& graph = *model_.mutable_graph();
  graph.set_name(g_.name);
  name_all();
  for (const ValueId v : g_.inputs) DLC_CHECK(add_type(*graph.add_input(), names_.at(v), g_.value(v).type));
  Error errors;
  for (const NodeId id : g_.order()) {
    const Node& n = g_.node(id);
    NodeWriter w(*this, n);
    for (const ValueId v : n.inputs)
      if (v != kNoValue && g_.value(v).constant) DLC_CHECK(onnx_type(g_.value(v).constant->dtype()));
    if (auto ok = write(w); !ok)
      errors.diagnostics.push_back({Severity::error,
                                    {{}, 0, 0, n.locations.empty() ? n.op : n.locations.front()},
                                    "cannot be written as ONNX: " + std::string(ok.error().message()),
                                    ok.error().diagnostics.front().hint});
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  for (size_t i = 0; i < g_.outputs.size(); ++i) {
    const std::string& made = name(g_.outputs[i]);
    if (made != g_.output_names[i]) {
      Node copy;
      copy.op = "Identity";
      add_node("Identity", {made}, copy).add_output(g_.output_names[i]);
    }
    DLC_CHECK(add_type(*graph.add_output(), g_.output_names[i], g_.value(g_.outputs[i]).type));
  }
  return {};
}

onnx::NodeProto& NodeWriter::emit(const std::string& op) {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < n_.inputs.size(); ++i) inputs.push_back(in(i));
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  return emit(op, inputs);
}

onnx::NodeProto& NodeWriter::emit(const std::string& op, const std::vector<std::string>& inputs) {
  auto& node = e_.add_node(op, inputs, n_);
  for (const ValueId v : n_.outputs) node.add_output(e_.name(v));
  return node;
}

Result<int64_t> NodeWriter::integer(std::string_view name) const {
  const auto v = attrs_.integer(name);
  if (!v) return fail({}, fmt::format("its attribute '{}' is known only to a run", name));
  return *v;
}

Result<std::vector<int64_t>> NodeWriter::integers(std::string_view name, size_t size) const {
  const auto list = attrs_.list(name, size);
  if (!list) return fail({}, fmt::format("its attribute '{}' is no list", name));
  std::vector<int64_t> out;
  for (const Expr& e : *list) {
    const auto c = e.constant();
    if (!c)
      return fail({}, fmt::format("its attribute '{}' holds {}", name, to_string(e)),
                  "bind the symbol: --dim NAME=VALUE");
    out.push_back(*c);
  }
  return out;
}

void NodeWriter::set(onnx::NodeProto& to, const std::string& name, int64_t v) {
  auto& a = *to.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INT);
  a.set_i(v);
}
void NodeWriter::set(onnx::NodeProto& to, const std::string& name, double v) {
  auto& a = *to.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::FLOAT);
  a.set_f(static_cast<float>(v));
}
void NodeWriter::set(onnx::NodeProto& to, const std::string& name, const std::string& v) {
  auto& a = *to.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::STRING);
  a.set_s(v);
}
void NodeWriter::set(onnx::NodeProto& to, const std::string& name, const std::vector<int64_t>& v) {
  auto& a = *to.add_attribute();
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INTS);
  for (const int64_t i : v) a.add_ints(i);
}

}  // namespace onnx_frontend

Result<> check_export(const Graph& g) {
  onnx::ModelProto model;
  return onnx_frontend::Exporter(g, model, false).run();
}

Result<std::vector<std::byte>> export_onnx(const Graph& g) {
  onnx::ModelProto model;
  DLC_CHECK(onnx_frontend::Exporter(g, model).run());
  const size_t size = model.ByteSizeLong();
  std::vector<std::byte> bytes(size);
  if (size > INT32_MAX || !model.SerializeToArray(bytes.data(), static_cast<int>(size)))
    return fail({}, fmt::format("the model has {} bytes, a file of ONNX at most 2 GiB", size));
  return bytes;
}

}  // namespace dlc
