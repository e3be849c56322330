// Reading models: ONNX, graph and program text, artifacts. Which one it is says the content.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "dlc/graph/read.h"
#include "dlc/graph/state.h"
#include "dlc/io/file.h"
#include "frontends/onnx/onnx.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"

namespace dlc::cli {

namespace {

// --dim of an artifact or program.
Result<> check_fixed_dims(const ModelOptions& o, const Ranges& symbols, const char* what) {
  DLC_CHECK(check_dims(o.dims, symbols, o.file));
  for (const auto& [name, r] : o.dims) {
    if (!o.dims_of_inputs)
      return fail({o.file, 0, 0, {}}, fmt::format("--dim {}: {} has its dims already", name, what),
                  "they are the inputs' when it runs; --dim is for models and graph text, and for the inputs that "
                  "bench and compare make");
    if (r.lo != r.hi)
      return fail({o.file, 0, 0, {}},
                  fmt::format("--dim {}: {} has its ranges already, one size is wanted", name, what),
                  fmt::format("--dim {}={}", name, r.lo));
  }
  return {};
}

Result<> check_no_states(const ModelOptions& o, const char* what) {
  if (o.states.empty()) return {};
  return fail({o.file, 0, 0, {}}, fmt::format("--state {}: {} says its states itself", o.states.front(), what),
              "--state is for models and graph text");
}

Result<> add_states(Graph& g, const ModelOptions& o) {
  auto done = declare_states(g, o.states);
  if (!done)
    for (Diagnostic& d : done.error().diagnostics) d.loc.file = o.file;
  return done;
}

// Texts may begin with comments.
std::string_view beyond_comments(std::string_view text) {
  while (text.starts_with("#") || text.starts_with("\n")) {
    const size_t end = text.find('\n');
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return text;
}

}  // namespace

void add_model_options(CLI::App& sub, ModelOptions& o) {
  sub.add_option("model", o.file, "The model: .onnx, graph or program text, .dlca")->required()->check(file_name());
  sub.add_option("--hw", o.hw, "The machine: native (the default), or a description, with params: asic.yaml,R=8")
      ->check(hw_argument());
  sub.add_option("--dim", o.dims_given, "A symbolic dim of the model: N=1, or a range S=1..512")
      ->allow_extra_args(false);
  sub.add_option("--state", o.states, "An output that is an input of the next run: past=present, or 'past.*=present.*'")
      ->allow_extra_args(false);
  sub.add_option("--weights", o.weights, "Constants of graph or program text (.npz); by default FILE.weights.npz")
      ->check(file_name());
  sub.parse_complete_callback([&o] {
    auto dims = parse_dims(o.dims_given);
    if (!dims) throw CLI::ValidationError(std::string(dims.error().message()), CLI::ExitCodes::ValidationError);
    o.dims = *std::move(dims);
  });
}

std::vector<std::string> files_of(const ModelOptions& o, const std::vector<std::string>& tensors) {
  std::vector<std::string> files = tensors;
  files.push_back(o.file);
  if (const auto file = map_file(o.file); file && !level_of(file->text()).empty())
    files.push_back(o.weights.empty() ? weights_beside(o.file) : o.weights);
  if (!o.hw.empty()) files.push_back(o.hw.substr(0, o.hw.find(',')));
  return files;
}

std::string level_of(std::string_view text) {
  const std::string_view head = beyond_comments(text);
  for (const char* level : {"graph", "kernel", "program"})
    if (head.starts_with(std::string("dlc.") + level)) return level;
  return "";
}

std::vector<std::string_view> split_texts(std::string_view text) {
  const std::string start = "dlc." + level_of(text) + " ";
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1)) {
    if (at == 0 || text[at - 1] != '\n') continue;
    if (beyond_comments(text.substr(begin, at - begin)).empty()) continue;  // comments before the first
    out.push_back(text.substr(begin, at - begin));
    begin = at;
  }
  out.push_back(text.substr(begin));
  return out;
}

Result<NamedTensors> weights_of(const std::string& weights, const std::string& text_file) {
  const std::string file = weights.empty() ? weights_beside(text_file) : weights;
  std::error_code ec;
  if (weights.empty() && !std::filesystem::exists(file, ec)) return NamedTensors{};
  return read_tensors(file);
}

Result<Graph> read_graph(std::string_view text, const std::string& file, const NamedTensors& weights,
                         std::shared_ptr<const RecordSet> records) {
  GraphReader reader{.file = file, .records = std::move(records)};
  reader.weights = [&](std::string_view name, const TensorType& type) -> std::optional<Tensor> {
    for (const auto& [n, t] : weights)
      if (n == name) return unpacked(t, type.dtype);
    return std::nullopt;
  };
  auto graph = reader.read(text);
  if (!graph) {
    Error e = std::move(graph).error();
    if (e.message().starts_with("the weight table has no") && e.diagnostics.front().hint.empty())
      e.diagnostics.front().hint = fmt::format("--weights FILE.npz, or {} beside the text", weights_beside(file));
    return std::unexpected(std::move(e));
  }
  DLC_CHECK(verify(*graph));
  return graph;
}

Result<Program> read_program(std::string_view text, const std::string& file, const NamedTensors& weights) {
  DLC_TRY(Program p, parse_program(text, file));
  for (const ProgramBuffer& b : p.buffers) {
    if (b.kind != BufferKind::constant || b.alias) continue;
    const auto it = std::ranges::find(weights, b.name, &NamedTensors::value_type::first);
    if (it == weights.end())
      return fail({file, 0, 0, {}}, fmt::format("constant {} has no value", b.name),
                  fmt::format("--weights FILE.npz, or {} beside the text", weights_beside(file)));
    p.weights.emplace_back(b.name, unpacked(it->second, b.type.dtype));
    if (type_of(p.weights.back().second) != b.type)
      return fail({file, 0, 0, {}}, fmt::format("constant {} is {} in the text and {} in the weight table", b.name,
                                                to_string(b.type), to_string(type_of(it->second))));
  }
  DLC_CHECK(verify(p));
  return p;
}

Result<std::shared_ptr<const RecordSet>> records_for(const HwDescription& hw) {
  if (hw.recipes.empty()) return nullptr;
  return load_recipes(hw);
}

Result<Source> read_source(const ModelOptions& o, std::shared_ptr<const RecordSet> records) {
  Source s;
  s.name = std::filesystem::path(o.file).stem().string();
  DLC_TRY(const MappedFile file, map_file(o.file));
  const std::string_view text = file.text();
  const std::string level = level_of(text);
  if (level.empty() && !o.weights.empty())
    return fail({o.file, 0, 0, {}}, "--weights is for graph and program text: this file has its own constants");
  if (text.empty())
    return fail({o.file, 0, 0, {}}, "the file is empty", "a model is .onnx, graph or program text, .dlca");
  if (text.starts_with("DLCA") || o.file.ends_with(".dlca")) {
    DLC_TRY(s.compiled, CompiledModel::read(o.file));
    DLC_CHECK(check_fixed_dims(o, s.compiled->symbols, "an artifact"));
    DLC_CHECK(check_no_states(o, "an artifact"));
    return s;
  }
  if (level == "kernel") return fail({o.file, 0, 0, {}}, "is kernel text: a kernel is no model", "dlc opt reads it");
  if (level.empty()) {
    OnnxOptions onnx;
    onnx.dims = o.dims;
    onnx.control_flow = o.format == "dlca";
    DLC_TRY(s.graph, import_onnx(o.file, onnx, &s.nodes));
    DLC_CHECK(add_states(*s.graph, o));
    return s;
  }
  DLC_TRY(const NamedTensors weights, weights_of(o.weights, o.file));
  if (level == "graph") {
    DLC_TRY(s.graph, read_graph(text, o.file, weights, std::move(records)));
    DLC_CHECK(bind_dims(*s.graph, o.dims, o.file));
    DLC_CHECK(add_states(*s.graph, o));
    return s;
  }
  if (const auto texts = split_texts(text); texts.size() > 1)
    return fail({o.file, 0, 0, {}}, fmt::format("holds {} programs, one for each partition", texts.size()),
                "give one of them, or the model it was made from");
  DLC_TRY(s.program, read_program(text, o.file, weights));
  DLC_CHECK(check_fixed_dims(o, s.program->symbols, "a program"));
  DLC_CHECK(check_no_states(o, "a program"));
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
    if (file != given && file.ends_with(".npz"))
      return fail({file, 0, 0, {}}, fmt::format("'{}': a .npz has its names inside", given), "--input " + file);
    DLC_TRY(NamedTensors tensors, read_tensors(file));
    for (auto& [n, t] : tensors) out.emplace_back(n.empty() ? name : n, std::move(t));
  }
  return out;
}

Result<std::vector<Tensor>> inputs_for(const std::vector<Port>& ports, const Ranges& symbols, const ModelOptions& o,
                                       const std::vector<std::string>& files, uint64_t seed) {
  if (files.empty()) return seeded_inputs(ports, symbols, single_values(o.dims), seed);
  DLC_TRY(const NamedTensors given, read_inputs(files));
  return bind_inputs(ports, symbols, given);
}

Json ports_json(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& p : ports) list.push_back({{"name", p.name}, {"type", to_string(p.type)}});
  return list;
}

Json shape_json(const Tensor& t) { return Json(t.shape()); }

}  // namespace dlc::cli
