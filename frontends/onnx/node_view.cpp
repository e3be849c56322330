#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

NodeView::NodeView(Importer& importer, const onnx::NodeProto& proto, std::vector<ValueId> inputs, int opset)
    : importer_(importer), proto_(proto), inputs_(std::move(inputs)), opset_(opset) {
  while (!inputs_.empty() && inputs_.back() == kNoValue) inputs_.pop_back();
  name_ = !proto.name().empty() ? proto.name() : proto.output_size() > 0 ? proto.output(0) : proto.op_type();
}

Graph& NodeView::graph() const { return importer_.graph(); }
Loc NodeView::loc() const { return {importer_.file(), 0, 0, name_}; }
const TensorType& NodeView::type(size_t input) const { return graph().value(inputs_[input]).type; }

std::unexpected<Error> NodeView::error(std::string message, std::string hint) const {
  return fail(loc(), fmt::format("{}: {}", op(), message), std::move(hint));
}

const onnx::AttributeProto* NodeView::find(std::string_view name) const {
  for (const auto& a : proto_.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

// One getter's frame: absent gives the fallback or an error, a wrong type gives an error.
#define DLC_ATTRIBUTE(kind, type_name)                             \
  const auto* a = find(name);                                      \
  if (a == nullptr) {                                              \
    if (fallback) return *fallback;                                \
    return error(fmt::format("attribute '{}' is required", name)); \
  }                                                                \
  if (a->type() != onnx::AttributeProto::kind) return error(fmt::format("attribute '{}' is not {}", name, type_name))

Result<int64_t> NodeView::attr_int(std::string_view name, std::optional<int64_t> fallback) const {
  DLC_ATTRIBUTE(INT, "an integer");
  return a->i();
}

Result<double> NodeView::attr_float(std::string_view name, std::optional<double> fallback) const {
  DLC_ATTRIBUTE(FLOAT, "a float");
  return static_cast<double>(a->f());
}

Result<std::string> NodeView::attr_string(std::string_view name, std::optional<std::string> fallback) const {
  DLC_ATTRIBUTE(STRING, "a string");
  return a->s();
}

Result<std::vector<int64_t>> NodeView::attr_ints(std::string_view name,
                                                 std::optional<std::vector<int64_t>> fallback) const {
  DLC_ATTRIBUTE(INTS, "a list of integers");
  return std::vector<int64_t>(a->ints().begin(), a->ints().end());
}

Result<std::vector<double>> NodeView::attr_floats(std::string_view name,
                                                  std::optional<std::vector<double>> fallback) const {
  DLC_ATTRIBUTE(FLOATS, "a list of floats");
  return std::vector<double>(a->floats().begin(), a->floats().end());
}

Result<std::vector<std::string>> NodeView::attr_strings(std::string_view name,
                                                        std::optional<std::vector<std::string>> fallback) const {
  DLC_ATTRIBUTE(STRINGS, "a list of strings");
  return std::vector<std::string>(a->strings().begin(), a->strings().end());
}

#undef DLC_ATTRIBUTE

Result<Tensor> NodeView::attr_tensor(std::string_view name) const {
  const auto* a = find(name);
  if (a == nullptr) return error(fmt::format("attribute '{}' is required", name));
  if (a->type() != onnx::AttributeProto::TENSOR) return error(fmt::format("attribute '{}' is not a tensor", name));
  return to_tensor(a->t(), importer_.folder(), loc(), &importer_.model());
}

Result<std::vector<Expr>> NodeView::known_ints(size_t input, std::string_view what) const {
  if (!has(input)) return error(fmt::format("input {} ({}) is missing", input, what));
  auto known = importer_.values().known(inputs_[input]);
  if (!known)
    return error(fmt::format("input {} ({}) must be known when compiling, but '{}' depends on the input data", input,
                             what, graph().value(inputs_[input]).name),
                 "make it a constant, or bind the symbolic dims it comes from with --dim NAME=VALUE");
  return *known;
}

Result<Tensor> NodeView::constant(size_t input, std::string_view what) const {
  if (!has(input)) return error(fmt::format("input {} ({}) is missing", input, what));
  const auto& c = graph().value(inputs_[input]).constant;
  if (!c) return error(fmt::format("input {} ({}) must be a constant", input, what));
  return *c;
}

Result<std::vector<ValueId>> NodeView::emit_all(std::string op, std::vector<ValueId> inputs, Attrs attrs) const {
  auto id = graph().add_node(std::move(op), std::move(inputs), std::move(attrs), {name_});
  if (!id) {
    for (auto& d : id.error().diagnostics) {
      if (d.loc.file.empty()) d.loc.file = importer_.file();
      if (d.loc.node.empty()) d.loc.node = name_;
    }
    return std::unexpected(std::move(id).error());
  }
  return graph().node(*id).outputs;
}

Result<ValueId> NodeView::emit(std::string op, std::vector<ValueId> inputs, Attrs attrs) const {
  DLC_TRY(auto outputs, emit_all(std::move(op), std::move(inputs), std::move(attrs)));
  return outputs[0];
}

ValueId NodeView::add_constant(Tensor t) const {
  return graph().add_constant(graph().unique_name(name_ + ".const"), std::move(t));
}

Result<ValueId> NodeView::reshaped(ValueId v, std::vector<int64_t> shape) const {
  const Value& value = graph().value(v);
  if (value.constant) {
    DLC_TRY(Tensor t, value.constant->reshaped(std::move(shape)));
    return add_constant(std::move(t));
  }
  return emit("reshape", {v}, {{"shape", std::vector<Expr>(shape.begin(), shape.end())}});
}

Result<ValueId> NodeView::scalar(DType dtype, double value) const {
  DLC_TRY(Tensor t, Tensor::make(dtype, {}));
  t.set_double(0, value);
  return add_constant(std::move(t));
}

}  // namespace dlc::onnx_frontend
