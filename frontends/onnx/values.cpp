#include "frontends/onnx/values.h"

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <set>

#include "dlc/io/file.h"
#include "frontends/onnx/names.h"
#include "frontends/onnx/tensor_proto.h"
#include "onnx_data.pb.h"

namespace dlc {

namespace {

OnnxPort port_of(const onnx::ValueInfoProto& v) {
  OnnxPort p{v.name(), OnnxKind::other, false};
  const onnx::TypeProto& t = v.type();
  if (t.has_tensor_type()) p.kind = OnnxKind::tensor;
  if (t.has_sequence_type()) p.kind = OnnxKind::sequence;
  if (t.has_optional_type()) {
    p.kind = OnnxKind::optional;
    p.of_sequence = t.optional_type().elem_type().has_sequence_type();
  }
  return p;
}

template <class Message>
Result<Message> parsed(const std::string& path, std::string_view what) {
  DLC_TRY(const MappedFile f, map_file(path));
  Message m;
  if (f.bytes.size() > INT32_MAX || !m.ParseFromArray(f.bytes.data(), static_cast<int>(f.bytes.size())))
    return fail({path, 0, 0, {}}, fmt::format("is not an ONNX {} file", what));
  return m;
}

Result<OnnxValue> sequence_value(const onnx_data::Sequence& proto, const Loc& where) {
  if (proto.sequences_size() > 0 || proto.optionals_size() > 0)
    return fail(where, "sequences of anything but tensors are not supported");
  OnnxValue v{true, true, {}};
  for (const auto& t : proto.tensors()) {
    DLC_TRY(Tensor tensor, onnx_frontend::to_tensor(t, {}, where));
    v.tensors.push_back(std::move(tensor));
  }
  return v;
}

}  // namespace

Result<OnnxSignature> read_onnx_signature(const std::string& path) {
  DLC_TRY(auto model, parsed<onnx::ModelProto>(path, "model"));
  onnx_frontend::clean_names(model);
  std::set<std::string> given;
  for (const auto& t : model.graph().initializer()) given.insert(t.name());
  OnnxSignature s;
  for (const auto& v : model.graph().input())
    if (!given.contains(v.name())) s.inputs.push_back(port_of(v));
  for (const auto& v : model.graph().output()) s.outputs.push_back(port_of(v));
  return s;
}

std::string sequence_element(const std::string& name, size_t index) { return fmt::format("{}[{}]", name, index); }

Result<Tensor> read_tensor_pb(const std::string& path) {
  DLC_TRY(const auto proto, parsed<onnx::TensorProto>(path, "tensor"));
  return onnx_frontend::to_tensor(proto, {}, {path, 0, 0, {}});
}

Result<OnnxValue> read_onnx_value(const std::string& path, const OnnxPort& port) {
  const Loc where{path, 0, 0, {}};
  if (port.kind == OnnxKind::other)
    return fail(where, fmt::format("'{}' is no tensor, sequence or optional", port.name));
  if (port.kind == OnnxKind::tensor) {
    DLC_TRY(Tensor t, read_tensor_pb(path));
    return OnnxValue::of(std::move(t));
  }
  if (port.kind == OnnxKind::sequence) {
    DLC_TRY(const auto proto, parsed<onnx_data::Sequence>(path, "sequence"));
    return sequence_value(proto, where);
  }
  DLC_TRY(const auto proto, parsed<onnx_data::Optional>(path, "optional value"));
  if (proto.has_sequence()) return sequence_value(proto.sequence(), where);
  if (!proto.has_tensor()) return OnnxValue{false, false, {}};
  DLC_TRY(Tensor t, onnx_frontend::to_tensor(proto.tensor(), {}, where));
  return OnnxValue::of(std::move(t));
}

}  // namespace dlc
