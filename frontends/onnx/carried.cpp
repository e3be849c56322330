#include "frontends/onnx/carried.h"

#include <algorithm>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc {

namespace {

// Of the types that carry others.
int onnx_type_of(DType carrier) {
  using P = onnx::TensorProto;
  return carrier == kF32 ? P::FLOAT : carrier == kS8 ? P::INT8 : P::UINT8;
}

void make_cast(onnx::NodeProto& n, const std::string& from, const std::string& result, int type) {
  n.set_op_type("Cast");
  n.add_input(from);
  n.add_output(result);
  onnx::AttributeProto& to = *n.add_attribute();
  to.set_name("to");
  to.set_type(onnx::AttributeProto::INT);
  to.set_i(type);
}

}  // namespace

DType carrier_type(DType type) {
  if (type.is_int() && type.bits < 8) return type.is_signed() ? kS8 : kU8;
  if (type.is_float() && (type.kind != DType::Kind::floating || type.bits < 16)) return kF32;
  return type;
}

std::string carried_name(const std::string& output) { return output + "/carried"; }

Result<std::vector<std::byte>> onnx_for_numpy(const std::string& path, const std::vector<WantedValue>& values) {
  std::vector<std::string> names;
  for (const WantedValue& v : values) names.push_back(v.name);
  DLC_TRY(std::vector<std::byte> bytes, onnx_with_outputs(path, names));
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail({path, 0, 0, {}}, "cannot be read with further outputs");
  onnx::GraphProto& g = *model.mutable_graph();
  for (auto& output : *g.mutable_output()) {
    const auto v = std::ranges::find(values, output.name(), &WantedValue::name);
    if (v == values.end() || carrier_type(v->type) == v->type) continue;
    make_cast(*g.add_node(), v->name, carried_name(v->name), onnx_type_of(carrier_type(v->type)));
    output.Clear();
    output.set_name(carried_name(v->name));
  }
  google::protobuf::RepeatedPtrField<onnx::NodeProto> first;
  for (auto& input : *g.mutable_input()) {
    const int given = input.type().tensor_type().elem_type();
    const auto type = onnx_frontend::element_type(given, {});
    const bool is_constant =
        std::ranges::any_of(g.initializer(), [&](const auto& i) { return i.name() == input.name(); });
    if (!type || is_constant || carrier_type(*type) == *type) continue;
    const std::string name = input.name() + "/given";
    make_cast(*first.Add(), name, input.name(), given);
    input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx_type_of(carrier_type(*type)));
    input.set_name(name);
  }
  first.MergeFrom(g.node());
  g.mutable_node()->Swap(&first);
  bytes.resize(model.ByteSizeLong());
  if (!model.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail({path, 0, 0, {}}, "cannot be written with casts");
  return bytes;
}

}  // namespace dlc
