// Reading models: ONNX, graph and program text, artifacts. Which one it is says the content.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "dlc/io/file.h"
#include "frontends/onnx/onnx.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

Result<int64_t> integer(std::string_view text, const std::string& option) {
  int64_t v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size() || v < 0)
    return fail({}, fmt::format("--dim {}: '{}' is not a size", option, text), "--dim N=1 or --dim S=1..512");
  return v;
}

Result<std::map<std::string, Interval, std::less<>>> parse_dims(const std::vector<std::string>& dims) {
  std::map<std::string, Interval, std::less<>> out;
  for (const std::string& d : dims) {
    const size_t equals = d.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail({}, fmt::format("--dim {}: a name and a size are wanted", d), "--dim N=1 or --dim S=1..512");
    const std::string value = d.substr(equals + 1);
    const size_t dots = value.find("..");
    Interval r;
    DLC_TRY(r.lo, integer(value.substr(0, dots), d));
    r.hi = r.lo;
    if (dots != std::string::npos) {
      DLC_TRY(r.hi, integer(value.substr(dots + 2), d));
    }
    if (r.hi < r.lo) return fail({}, fmt::format("--dim {}: the range is empty", d));
    if (!out.emplace(d.substr(0, equals), r).second) return fail({}, fmt::format("--dim {} is given twice", d));
  }
  return out;
}

std::string beyond_comments(std::string_view text) {
  while (text.starts_with("#") || text.starts_with("\n")) {
    const size_t end = text.find('\n');
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return std::string(text.substr(0, 16));
}

Result<NamedTensors> weights_of(const ModelOptions& o) {
  if (o.weights.empty()) return NamedTensors{};
  return read_tensors(o.weights);
}

}  // namespace

void add_model_options(CLI::App& sub, ModelOptions& o) {
  sub.add_option("model", o.file, "The model: .onnx, graph or program text, .dlca")->required();
  sub.add_option("--hw", o.hw, "The machine: native (the default), or a description, with params: asic.yaml,R=8");
  sub.add_option("--dim", o.dims, "A symbolic dim of the model: N=1, or a range S=1..512")->allow_extra_args(false);
  sub.add_option("--weights", o.weights, "Constants of graph or program text (.npz)");
}

Result<Bindings> dim_values(const ModelOptions& o) {
  DLC_TRY(const auto dims, parse_dims(o.dims));
  Bindings out;
  for (const auto& [name, r] : dims)
    if (r.lo == r.hi) out.emplace(name, r.lo);
  return out;
}

Result<Source> read_source(const ModelOptions& o) {
  Source s;
  s.name = std::filesystem::path(o.file).stem().string();
  DLC_TRY(const MappedFile file, map_file(o.file));
  const std::string_view text = file.text();
  if (text.starts_with("DLCA")) {
    DLC_TRY(s.compiled, CompiledModel::read(o.file));
    return s;
  }
  const std::string head = beyond_comments(text);
  if (head.starts_with("dlc.graph")) {
    DLC_TRY(const NamedTensors weights, weights_of(o));
    DLC_TRY(s.graph, parse_graph(text, o.file, [&](std::string_view name) -> std::optional<Tensor> {
              for (const auto& [n, t] : weights)
                if (n == name) return t;
              return std::nullopt;
            }));
    DLC_CHECK(verify(*s.graph));
    return s;
  }
  if (head.starts_with("dlc.program")) {
    DLC_TRY(s.program, parse_program(text, o.file));
    DLC_TRY(s.program->weights, weights_of(o));
    for (const ProgramBuffer& b : s.program->buffers)
      if (b.kind == BufferKind::constant && !b.alias && s.program->weight(b.name) == nullptr)
        return fail({o.file, 0, 0, {}}, fmt::format("constant {} has no value", b.name), "--weights FILE.npz");
    return s;
  }
  if (!o.weights.empty())
    return fail({o.file, 0, 0, {}}, "--weights is for graph and program text: this file has its own constants");
  OnnxOptions onnx;
  DLC_TRY(onnx.dims, parse_dims(o.dims));
  DLC_TRY(s.graph, import_onnx(o.file, onnx));
  return s;
}

Result<NamedTensors> read_inputs(const std::vector<std::string>& files) {
  NamedTensors out;
  for (const std::string& given : files) {
    std::string name, file = given;
    std::error_code ec;
    if (const size_t equals = given.find('='); equals != std::string::npos && !std::filesystem::exists(given, ec)) {
      name = given.substr(0, equals);
      file = given.substr(equals + 1);
    }
    if (file.ends_with(".pb")) {
      DLC_TRY(Tensor t, read_tensor_pb(file));
      out.emplace_back(name, std::move(t));
      continue;
    }
    DLC_TRY(NamedTensors tensors, read_tensors(file));
    for (auto& [n, t] : tensors) out.emplace_back(n.empty() ? name : n, std::move(t));
  }
  return out;
}

Json ports_json(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& p : ports) list.push_back({{"name", p.name}, {"type", to_string(p.type)}});
  return list;
}

Json shape_json(const Tensor& t) { return Json(t.shape()); }

}  // namespace dlc::cli
