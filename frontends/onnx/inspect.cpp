// Models as files, and the tables of ops: what can be said without importing.
#include <algorithm>
#include <tuple>

#include "dlc/io/file.h"
#include "frontends/onnx/importer.h"

namespace dlc {

namespace {

Result<onnx::ModelProto> parsed(const std::string& path) {
  DLC_TRY(const MappedFile file, map_file(path));
  onnx::ModelProto model;
  if (file.bytes.size() > INT32_MAX || !model.ParseFromArray(file.bytes.data(), static_cast<int>(file.bytes.size())))
    return fail({path, 0, 0, {}}, "is not an ONNX model, or is larger than 2 GiB");
  return model;
}

}  // namespace

std::vector<OnnxOp> onnx_ops() {
  using namespace onnx_frontend;
  std::vector<OnnxOp> out;
  for (const auto& table : op_tables())
    for (const OpEntry& e : table) {
      const int newest = e.max_opset == 0 ? kMaxOpset : e.max_opset;
      const int oldest = !e.domain.empty() || unchanged_since_first(e.op) ? 1 : kFirstOpset;
      out.push_back({std::string(e.domain), std::string(e.op), oldest, e.domain.empty() ? newest : e.max_opset,
                     std::string(e.record)});
    }
  std::ranges::sort(out, {}, [](const OnnxOp& o) { return std::tie(o.domain, o.name, o.max_opset); });
  return out;
}

Result<std::vector<std::string>> read_onnx_ops(const std::string& path) {
  DLC_TRY(const onnx::ModelProto model, parsed(path));
  std::vector<std::string> out;
  for (const auto& n : model.graph().node()) out.push_back(onnx_frontend::spelt(n.domain(), n.op_type()));
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

Result<std::vector<std::byte>> onnx_with_outputs(const std::string& path, const std::vector<std::string>& values) {
  DLC_TRY(onnx::ModelProto model, parsed(path));
  auto& outputs = *model.mutable_graph()->mutable_output();
  for (const std::string& v : values)
    if (std::ranges::none_of(outputs, [&](const auto& o) { return o.name() == v; })) outputs.Add()->set_name(v);
  std::vector<std::byte> bytes(model.ByteSizeLong());
  if (!model.SerializeToArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail({path, 0, 0, {}}, "cannot be written with further outputs");
  return bytes;
}

}  // namespace dlc
