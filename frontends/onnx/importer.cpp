#include "frontends/onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "dlc/kernel/names.h"
#include "frontends/onnx/external_data.h"
#include "frontends/onnx/raw_data.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc {
namespace onnx_frontend {

namespace {

constexpr int kMinOpset = 7;
constexpr int kMaxOpset = 22;
constexpr int kRecursionLimit = 64;  // of protobuf messages: subgraphs in attributes nest four messages a level

bool is_default_domain(const std::string& d) { return d.empty() || d == "ai.onnx"; }

// Symbols in Exprs are letters, digits, '_' and '.', and no word of the texts; a model's dim_param may be any text.
std::string symbol_name(const std::string& dim_param) {
  std::string s;
  for (const char c : dim_param) s += (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0])) != 0 || is_reserved_word(s)) s = "d_" + s;
  return s;
}

// Every dim that was asked for is one of the model's, and of a size it may have. `symbols`: the model's names of dims.
Result<> check_dims(const OnnxOptions& options, const std::map<std::string, std::string>& symbols,
                    const std::string& file) {
  std::vector<std::string> names;
  for (const auto& [name, symbol] : symbols) names.push_back(name);
  for (const auto& [name, range] : options.dims) {
    const bool known = std::ranges::any_of(symbols, [&](const auto& d) { return d.first == name || d.second == name; });
    if (!known) {
      const std::string near = nearest(name, names);
      return fail({file, 0, 0, {}},
                  names.empty()
                      ? fmt::format("--dim {}: the model has no symbolic dims", name)
                      : fmt::format("--dim {}: the model has no such dim, but {}", name, fmt::join(names, ", ")),
                  near.empty() ? "" : fmt::format("did you mean {}?", near));
    }
    if (range.lo < options.default_range.lo || range.lo > range.hi)
      return fail({file, 0, 0, {}},
                  fmt::format("--dim {}={}: a dim is at least {}", name, range.lo, options.default_range.lo));
  }
  return {};
}

}  // namespace

Importer::Importer(Graph& graph, std::string file, std::string folder, const OnnxOptions& options)
    : graph_(graph), known_(graph), file_(std::move(file)), folder_(std::move(folder)), options_(options) {}

int Importer::opset_of(const std::string& domain) const {
  const auto it = opsets_.find(is_default_domain(domain) ? std::string() : domain);
  return it == opsets_.end() ? 0 : it->second;
}

Result<> Importer::import_opsets(const onnx::ModelProto& model) {
  for (const auto& o : model.opset_import()) {
    const std::string domain = is_default_domain(o.domain()) ? std::string() : o.domain();
    const int64_t v = o.version();
    if (domain.empty() && (v < kMinOpset || v > kMaxOpset))
      return fail({file_, 0, 0, {}}, fmt::format("opset {} is not supported", v),
                  fmt::format("convert the model to an opset from {} to {}", kMinOpset, kMaxOpset));
    opsets_[domain] = static_cast<int>(std::min<int64_t>(v, INT32_MAX));
  }
  if (!opsets_.contains("") && model.graph().node_size() > 0)
    return fail({file_, 0, 0, {}}, "the model imports no opset of the default domain",
                "it may be damaged; export it again");
  return {};
}

const OpEntry* Importer::find_op(const onnx::NodeProto& node) const {
  const std::string domain = is_default_domain(node.domain()) ? std::string() : node.domain();
  const int opset = opset_of(node.domain());
  for (const auto& table : op_tables())
    for (const auto& e : table)
      if (e.domain == domain && e.op == node.op_type() && (e.max_opset == 0 || opset <= e.max_opset)) return &e;
  return nullptr;
}

// All unsupported nodes in one answer: a user should not find them one run at a time.
Result<> Importer::check_supported(const onnx::GraphProto& g) const {
  Error all;
  std::vector<std::string> known;
  for (const auto& table : op_tables())
    for (const auto& e : table) known.emplace_back(e.op);
  for (const auto& node : g.node()) {
    if (find_op(node) != nullptr) continue;
    const std::string name = !node.name().empty()     ? node.name()
                             : node.output_size() > 0 ? node.output(0)
                                                      : std::string();
    const std::string op = is_default_domain(node.domain()) ? node.op_type() : node.domain() + "." + node.op_type();
    const std::string near = nearest(node.op_type(), known);
    all.add(Error({file_, 0, 0, name}, fmt::format("op {} is not supported", op),
                  near.empty() || near == node.op_type() ? std::string() : fmt::format("did you mean {}?", near)));
  }
  if (!all.empty()) return std::unexpected(std::move(all));
  return {};
}

// Different names of the model stay different symbols, though "a b" and "a-b" both would be a_b.
std::string Importer::symbol_of(const std::string& model_name) {
  const auto [known, fresh] = dim_symbols_.try_emplace(model_name);
  if (!fresh) return known->second;
  const auto taken = [&](const std::string& name) {
    return std::ranges::any_of(dim_symbols_, [&](const auto& s) { return s.second == name; });
  };
  const std::string wish = symbol_name(model_name);
  std::string name = wish;
  for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", wish, i);
  return known->second = name;
}

Result<TensorType> Importer::input_type(const onnx::ValueInfoProto& v) {
  const Loc where{file_, 0, 0, v.name()};
  if (!v.type().has_tensor_type()) return fail(where, fmt::format("input '{}' is not a tensor", v.name()));
  const auto& t = v.type().tensor_type();
  TensorType type;
  DLC_TRY(type.dtype, element_type(t.elem_type(), where));
  if (!t.has_shape())
    return fail(where, fmt::format("input '{}' has no shape", v.name()), "export the model with input shapes");
  for (int i = 0; i < t.shape().dim_size(); ++i) {
    const auto& d = t.shape().dim(i);
    if (d.has_dim_value() && d.dim_value() >= 0) {
      type.shape.emplace_back(d.dim_value());
      continue;
    }
    // A dim without a name, and the -1 some exporters write, is a symbol of its own.
    const bool named = d.has_dim_param() && !d.dim_param().empty();
    const std::string model_name = named ? d.dim_param() : fmt::format("{}_{}", v.name(), i);
    const std::string name = symbol_of(model_name);
    const auto bound = options_.dims.contains(model_name) ? options_.dims.find(model_name) : options_.dims.find(name);
    const Interval range = bound == options_.dims.end() ? options_.default_range : bound->second;
    if (range.lo == range.hi) {
      type.shape.emplace_back(range.lo);
    } else {
      graph_.symbols[name] = Range(range.lo, range.hi);
      type.shape.push_back(Expr::symbol(name));
    }
  }
  return type;
}

Result<> Importer::import_initializers(const onnx::GraphProto& g) {
  if (g.sparse_initializer_size() > 0) return fail({file_, 0, 0, {}}, "sparse initializers are not supported");
  for (const auto& t : g.initializer()) {
    const Loc where{file_, 0, 0, t.name()};
    if (values_.contains(t.name())) return fail(where, fmt::format("initializer '{}' is defined twice", t.name()));
    DLC_TRY(Tensor tensor, to_tensor(t, folder_, where, &model_));
    values_[t.name()] = graph_.add_constant(graph_.unique_name(t.name()), std::move(tensor));
  }
  return {};
}

Result<> Importer::import_inputs(const onnx::GraphProto& g) {
  std::set<std::string> seen;
  for (const auto& v : g.input()) {
    if (!seen.insert(v.name()).second)
      return fail({file_, 0, 0, v.name()}, fmt::format("input '{}' is declared twice", v.name()));
    if (values_.contains(v.name())) continue;  // an initializer with a declaration: IR version 3 lists them as inputs
    DLC_TRY(TensorType type, input_type(v));
    values_[v.name()] = graph_.add_input(v.name(), std::move(type));
  }
  return check_dims(options_, dim_symbols_, file_);
}

Result<ValueId> Importer::lookup(const std::string& name, const Loc& where) const {
  const auto it = values_.find(name);
  if (it == values_.end())
    return fail(where, fmt::format("value '{}' is used before it is made", name),
                "the model's nodes are not in order, or the model is damaged");
  return it->second;
}

Result<> Importer::import_node(const onnx::NodeProto& node, int index) {
  std::string name = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : std::string();
  if (name.empty()) name = fmt::format("#{}", index);
  const Loc where{file_, 0, 0, name};
  std::vector<ValueId> inputs;
  for (const auto& in : node.input()) {
    if (in.empty()) {
      inputs.push_back(kNoValue);
      continue;
    }
    DLC_TRY(const ValueId v, lookup(in, where));
    inputs.push_back(v);
  }
  const OpEntry* entry = find_op(node);
  if (entry == nullptr) return fail(where, fmt::format("op {} is not supported", node.op_type()));
  const NodeView view(*this, node, std::move(inputs), opset_of(node.domain()));
  auto results =
      entry->handler != nullptr ? entry->handler(view) : view.emit_all(std::string(entry->record), view.inputs());
  if (!results) return std::unexpected(std::move(results).error());
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    if (static_cast<size_t>(i) >= results->size() || (*results)[static_cast<size_t>(i)] == kNoValue)
      return fail(where, fmt::format("{}: output {} ('{}') is not supported", node.op_type(), i, node.output(i)));
    if (!values_.emplace(node.output(i), (*results)[static_cast<size_t>(i)]).second)
      return fail(where, fmt::format("value '{}' is made twice", node.output(i)));
  }
  return {};
}

Result<> Importer::import_outputs(const onnx::GraphProto& g) {
  if (g.output_size() == 0) return fail({file_, 0, 0, {}}, "the model has no output");
  for (const auto& v : g.output()) {
    DLC_TRY(const ValueId id, lookup(v.name(), {file_, 0, 0, v.name()}));
    graph_.outputs.push_back(id);
    graph_.output_names.push_back(v.name());
  }
  return {};
}

Result<> Importer::import(const onnx::ModelProto& model) {
  if (model.functions_size() > 0)
    return fail({file_, 0, 0, {}}, "models with functions are not supported", "inline them first");
  const auto& g = model.graph();
  if (!g.name().empty()) graph_.name = symbol_name(g.name());
  DLC_CHECK(import_opsets(model));
  DLC_CHECK(check_supported(g));
  DLC_CHECK(import_initializers(g));
  DLC_CHECK(import_inputs(g));
  for (int i = 0; i < g.node_size(); ++i) DLC_CHECK(import_node(g.node(i), i));
  return import_outputs(g);
}

}  // namespace onnx_frontend

namespace {

// Tensors view `file` where it has an owner; other bytes are the caller's, and copied.
Result<Graph> import_model(const MappedFile& file, const std::string& file_name, const std::string& folder,
                           const OnnxOptions& options) {
  const Loc where{file_name, 0, 0, {}};
  const auto message = file.bytes.size() > INT32_MAX
                           ? std::nullopt
                           : onnx_frontend::without_raw_data(file.bytes, onnx_frontend::kRecursionLimit);
  if (file.bytes.size() > INT32_MAX || (message && message->size() > INT32_MAX))
    return fail(where, "the model is larger than 2 GiB", "keep its weights in external data");
  const auto damaged = [&] { return fail(where, "is not an ONNX model, or is damaged or nested too deeply"); };
  if (!message) return damaged();
  google::protobuf::io::ArrayInputStream stream(message->data(), static_cast<int>(message->size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(onnx_frontend::kRecursionLimit);
  onnx::ModelProto model;
  if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) return damaged();
  if (!model.has_graph() || !model.has_ir_version()) return fail(where, "is not an ONNX model: it has no graph");
  Graph graph;
  onnx_frontend::Importer importer(graph, file_name, folder, options);
  importer.set_model(file);
  DLC_CHECK(importer.import(model));
  DLC_CHECK(verify(graph));
  return graph;
}

}  // namespace

Result<Graph> import_onnx_bytes(std::span<const std::byte> bytes, const std::string& file_name,
                                const std::string& folder, const OnnxOptions& options) {
  return import_model({bytes, nullptr}, file_name, folder, options);
}

Result<Graph> import_onnx(const std::string& path, const OnnxOptions& options) {
  DLC_TRY(const MappedFile f, map_file(path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  return import_model(f, path, folder.empty() ? "." : folder, options);
}

}  // namespace dlc
