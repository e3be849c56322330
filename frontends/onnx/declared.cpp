// What a model declares of its values (its outputs, value_info, and the types of inputs that initializers fill) against
// what its nodes give.
//
// A declaration must be possible. A number stands for itself; a name for one extent, wherever it is declared, and for
// the input's dim of that name where there is one; no name and no number for anything. An extent that depends on
// symbols contradicts only what it can never be: exporters that make a batch symbolic may leave an old number behind.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

std::string element_name(int type) {
  if (const auto known = element_type(type, {})) return to_string(*known);
  return onnx::TensorProto::DataType_IsValid(type)
             ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(type))
             : std::to_string(type);
}

std::string to_string(const onnx::TypeProto::Tensor& t) {
  std::string s = element_name(t.elem_type());
  if (!t.has_shape()) return s;
  std::string dims;
  for (const auto& d : t.shape().dim()) {
    if (!dims.empty()) dims += ',';
    dims += d.has_dim_value() ? std::to_string(d.dim_value()) : d.dim_param().empty() ? "?" : d.dim_param();
  }
  return s + "[" + dims + "]";
}

std::string kind_of(const onnx::TypeProto& t) {
  if (t.has_tensor_type()) return "a tensor";
  if (t.has_sequence_type()) return "a sequence";
  if (t.has_optional_type()) return "optional";
  return "neither a tensor nor a sequence";
}

bool same_element(const onnx::TypeProto::Tensor& declared, DType given) {
  if (declared.elem_type() == onnx::TensorProto::UNDEFINED) return true;
  const auto known = element_type(declared.elem_type(), {});
  return known && *known == given;
}

bool can_be_equal(const Expr& a, const Expr& b, const Ranges& ranges) {
  if (a.constant() && b.constant()) return a == b;
  return !provably_lt(a, b, ranges) && !provably_lt(b, a, ranges);
}

}  // namespace

void Importer::declare(const onnx::GraphProto& g) {
  auto& declared = scopes_.back().declared;
  std::set<std::string_view> filled;
  for (const auto& t : g.initializer()) filled.insert(t.name());
  for (const auto& v : g.input())
    if (filled.contains(v.name())) declared.emplace(v.name(), Declaration{&v.type(), "an input"});
  for (const auto& v : g.output()) declared.emplace(v.name(), Declaration{&v.type(), "an output"});
  for (const auto& v : g.value_info()) declared.emplace(v.name(), Declaration{&v.type(), "a value_info"});
}

// A declared name stands for the first extent that it meets, unless an input has a dim of that name.
bool Importer::fits(const onnx::TypeProto::Tensor& declared, const TensorType& given) {
  if (!same_element(declared, given.dtype)) return false;
  if (!declared.has_shape()) return true;
  if (static_cast<size_t>(declared.shape().dim_size()) != given.shape.size()) return false;
  for (size_t i = 0; i < given.shape.size(); ++i) {
    const auto& d = declared.shape().dim(static_cast<int>(i));
    if (d.has_dim_value()) {
      if (d.dim_value() >= 0 && !can_be_equal(Expr(d.dim_value()), given.shape[i], graph().symbols)) return false;
    } else if (!d.dim_param().empty()) {
      const auto [known, fresh] = scopes_.back().dims.emplace(d.dim_param(), given.shape[i]);
      if (!fresh && !can_be_equal(known->second, given.shape[i], graph().symbols)) return false;
    }
  }
  return true;
}

Result<> Importer::check_declared(const std::string& name, ValueId v, const Loc& where) {
  const auto [begin, end] = scopes_.back().declared.equal_range(name);
  for (auto it = begin; it != end && v != kNoValue; ++it) {
    const auto& [type_proto, kind] = it->second;
    const onnx::TypeProto* type = type_proto;
    const Bundle* b = bundle(v);
    const auto contradiction = [&](const std::string& declared, const std::string& given) {
      return fail(where, fmt::format("'{}' is declared {} as {}, but it is {}", name, declared, kind, given),
                  "correct or remove the declaration, or export the model again");
    };
    if (type->has_optional_type()) {
      if (b != nullptr && !b->present) continue;
      type = &type->optional_type().elem_type();
    }
    if (type->value_case() == onnx::TypeProto::VALUE_NOT_SET) continue;
    if (b != nullptr) {
      if (!b->present || !type->has_sequence_type())
        return contradiction(kind_of(*type), b->present ? "a sequence" : "an absent optional value");
      const auto& element = type->sequence_type().elem_type();
      for (const ValueId e : b->elements)
        if (element.has_tensor_type() && !same_element(element.tensor_type(), graph().value(e).type.dtype))
          return contradiction("a sequence of " + to_string(element.tensor_type()),
                               "one of " + dlc::to_string(graph().value(e).type.dtype));
      continue;
    }
    if (!type->has_tensor_type()) return contradiction(kind_of(*type), "a tensor");
    if (!fits(type->tensor_type(), graph().value(v).type))
      return contradiction(to_string(type->tensor_type()), dlc::to_string(graph().value(v).type));
  }
  return {};
}

}  // namespace dlc::onnx_frontend
