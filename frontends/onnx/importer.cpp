#include "frontends/onnx/importer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx_newer.pb.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "dlc/kernel/names.h"
#include "frontends/onnx/external_data.h"
#include "frontends/onnx/names.h"
#include "frontends/onnx/raw_data.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc {
namespace onnx_frontend {

namespace {

constexpr int kMinOpset = 1;         // before kFirstOpset only ops that did not change
constexpr int kMaxTries = 32;        // to import a model with other choices
constexpr int kRecursionLimit = 64;  // of protobuf messages: subgraphs in attributes nest four messages a level

// What messages call a node.
std::string name_of(const onnx::NodeProto& node, int index) {
  if (!node.name().empty()) return node.name();
  if (node.output_size() > 0 && !node.output(0).empty()) return node.output(0);
  return fmt::format("#{}", index);
}

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
    if (range.lo < 0 || range.lo > range.hi)  // 0 only where it is asked for: an empty cache
      return fail({file, 0, 0, {}}, fmt::format("--dim {}={}: a dim is at least 0", name, range.lo));
  }
  return {};
}

}  // namespace

Importer::Importer(Graph& graph, std::string file, std::string folder, const OnnxOptions& options)
    : file_(std::move(file)), folder_(std::move(folder)), options_(options) {
  levels_.emplace_back(graph);
  scopes_.emplace_back();
}

int Importer::opset_of(const std::string& domain) const {
  const auto it = opsets_.find(is_default_domain(domain) ? std::string() : domain);
  return it == opsets_.end() ? 0 : it->second;
}

Result<> Importer::import_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& sets) {
  for (const auto& o : sets) {
    const std::string domain = is_default_domain(o.domain()) ? std::string() : o.domain();
    const int64_t v = o.version();
    if (domain.empty() && (v < kMinOpset || v > kMaxOpset))
      return fail({file_, 0, 0, {}}, fmt::format("opset {} is not supported", v),
                  fmt::format("convert the model to an opset from {} to {}", kFirstOpset, kMaxOpset));
    opsets_[domain] = static_cast<int>(std::min<int64_t>(v, INT32_MAX));
  }
  return {};
}

Result<> Importer::import_functions(const onnx::ModelProto& model) {
  for (const auto& f : model.functions()) {
    const std::string domain = is_default_domain(f.domain()) ? std::string() : f.domain();
    onnx_newer::Function newer;
    if (!newer.ParsePartialFromString(f.SerializePartialAsString()))
      return fail({file_, 0, 0, f.name()}, fmt::format("function '{}' cannot be read", f.name()));
    Function function{&f, {newer.attribute_proto().begin(), newer.attribute_proto().end()}};
    if (!functions_.emplace(std::tuple(domain, f.name(), newer.overload()), std::move(function)).second)
      return fail({file_, 0, 0, f.name()}, fmt::format("function '{}' is defined twice", f.name()),
                  "functions of one name need different overloads");
  }
  return {};
}

const OpEntry* Importer::find_op(const onnx::NodeProto& node) const {
  const std::string domain = is_default_domain(node.domain()) ? std::string() : node.domain();
  const int opset = opset_of(node.domain());
  if (domain.empty() && opset > 0 && opset < kFirstOpset && !unchanged_since_first(node.op_type())) return nullptr;
  for (const auto& table : op_tables())
    for (const auto& e : table)
      if (e.domain == domain && e.op == node.op_type() && (e.max_opset == 0 || opset <= e.max_opset)) return &e;
  return nullptr;
}

const Importer::Function* Importer::find_function(const onnx::NodeProto& node) const {
  const std::string domain = is_default_domain(node.domain()) ? std::string() : node.domain();
  const auto first = functions_.lower_bound({domain, node.op_type(), ""});
  if (first == functions_.end() || std::get<0>(first->first) != domain || std::get<1>(first->first) != node.op_type())
    return nullptr;
  onnx_newer::Node newer;
  if (!newer.ParsePartialFromString(node.SerializePartialAsString())) return nullptr;
  const auto it = functions_.find({domain, node.op_type(), newer.overload()});
  return it == functions_.end() ? nullptr : &it->second;
}

// Different names of the model stay different symbols, though "a b" and "a-b" both would be a_b.
std::string Importer::symbol_of(const std::string& model_name) {
  const auto [known, fresh] = dim_symbols_.try_emplace(model_name);
  if (!fresh) return known->second;
  const std::string wish = symbol_name(model_name);
  std::string name = wish;
  for (int64_t& i = used_["dim " + wish]; !taken_symbols_.insert(name).second;) name = fmt::format("{}_{}", wish, ++i);
  return known->second = name;
}

Result<TensorType> Importer::input_type(const std::string& name, const onnx::TypeProto& proto, const Tensor* given) {
  const Loc where{file_, 0, 0, name};
  if (!proto.has_tensor_type()) return fail(where, fmt::format("input '{}' is not a tensor", name));
  const auto& t = proto.tensor_type();
  TensorType type;
  DLC_TRY(type.dtype, element_type(t.elem_type(), where));
  if (!t.has_shape()) {
    if (given == nullptr)
      return fail(where, fmt::format("input '{}' has no shape", name), "export the model with input shapes");
    type.shape.assign(given->shape().begin(), given->shape().end());
    return type;
  }
  for (int i = 0; i < t.shape().dim_size(); ++i) {
    const auto& d = t.shape().dim(i);
    if (d.has_dim_value() && d.dim_value() > 1 && options_.symbolic_dims) {
      const std::string symbol = symbol_of(fmt::format("d{}", d.dim_value()));
      graph().symbols[symbol] = Range(options_.default_range.lo, options_.default_range.hi);
      type.shape.push_back(Expr::symbol(symbol));
      continue;
    }
    if (d.has_dim_value() && d.dim_value() >= 0) {
      type.shape.emplace_back(d.dim_value());
      continue;
    }
    // A dim without a name, and the -1 some exporters write, is a symbol of its own.
    const bool named = d.has_dim_param() && !d.dim_param().empty();
    const std::string model_name = named ? d.dim_param() : fmt::format("{}_{}", name, i);
    const std::string symbol = symbol_of(model_name);
    const auto bound = options_.dims.contains(model_name) ? options_.dims.find(model_name) : options_.dims.find(symbol);
    const Interval range = bound == options_.dims.end() ? options_.default_range : bound->second;
    const bool fixed = range.lo == range.hi;
    if (!fixed) graph().symbols[symbol] = Range(range.lo, range.hi);
    type.shape.push_back(fixed ? Expr(range.lo) : Expr::symbol(symbol));
    if (named) scopes_.back().dims.emplace(model_name, type.shape.back());
  }
  return type;
}

Result<> Importer::import_initializers(const onnx::GraphProto& g) {
  if (g.sparse_initializer_size() > 0) return fail({file_, 0, 0, {}}, "sparse initializers are not supported");
  for (const auto& t : g.initializer()) {
    const Loc where{file_, 0, 0, t.name()};
    if (scopes_.back().values.contains(t.name()))
      return fail(where, fmt::format("initializer '{}' is defined twice", t.name()));
    DLC_TRY(Tensor tensor, to_tensor(t, folder_, where, &model_));
    DLC_CHECK(define(t.name(), graph().add_constant(unique_name(t.name()), std::move(tensor)), where));
  }
  return {};
}

// A tensor input for each element of a sequence: as many as it is given. Their shapes may differ.
Result<ValueId> Importer::import_elements(const onnx::ValueInfoProto& v, const onnx::TypeProto& element) {
  const auto given = options_.given.find(v.name());
  if (given == options_.given.end())
    return fail({file_, 0, 0, v.name()},
                fmt::format("the length of sequence '{}' must be known when compiling", v.name()),
                "give the model tensors instead of a sequence");
  Bundle b{given->second.present, {}};
  for (size_t i = 0; i < given->second.tensors.size(); ++i) {
    const Tensor& t = given->second.tensors[i];
    const std::string name = sequence_element(v.name(), i);
    onnx::TypeProto type = element;
    for (auto& d : *type.mutable_tensor_type()->mutable_shape()->mutable_dim()) d.clear_dim_param();
    if (!element.tensor_type().has_shape() || element.tensor_type().shape().dim_size() != t.rank())
      type.mutable_tensor_type()->clear_shape();
    DLC_TRY(TensorType tensor, input_type(name, type, &t));
    b.elements.push_back(graph().add_input(name, std::move(tensor)));
  }
  return add_bundle(std::move(b));
}

Result<> Importer::import_input(const onnx::ValueInfoProto& v) {
  const Loc where{file_, 0, 0, v.name()};
  const onnx::TypeProto* type = &v.type();
  const auto given = options_.given.find(v.name());
  if (type->has_optional_type()) {
    if (given == options_.given.end())
      return fail(where, fmt::format("whether the optional input '{}' is there must be known when compiling", v.name()),
                  "give the model a tensor instead of an optional one");
    if (!given->second.present) return define(v.name(), add_bundle({false, {}}), where);
    type = &type->optional_type().elem_type();
  }
  if (type->has_sequence_type()) {
    if (!type->sequence_type().elem_type().has_tensor_type())
      return fail(where, fmt::format("input '{}' is no sequence of tensors", v.name()));
    DLC_TRY(const ValueId elements, import_elements(v, type->sequence_type().elem_type()));
    return define(v.name(), elements, where);
  }
  const bool known = given != options_.given.end() && given->second.tensors.size() == 1;
  DLC_TRY(TensorType tensor, input_type(v.name(), *type, known ? given->second.tensors.data() : nullptr));
  const ValueId input = graph().add_input(v.name(), std::move(tensor));
  if (options_.fold_given && given_tensor(input) != nullptr) DLC_CHECK(fix_input(input, where));
  return define(v.name(), input, where);
}

Result<> Importer::import_inputs(const onnx::GraphProto& g) {
  std::set<std::string> seen;
  for (const auto& v : g.input()) {
    if (!seen.insert(v.name()).second)
      return fail({file_, 0, 0, v.name()}, fmt::format("input '{}' is declared twice", v.name()));
    // An initializer with a declaration is none: IR version 3 lists them as inputs.
    if (scopes_.back().values.contains(v.name())) continue;
    if (auto made = import_input(v); !made) refuse(std::move(made).error(), {v.name()});
  }
  if (!refused_.empty()) return {};  // an input that is missing may have the dim
  return check_dims(options_, dim_symbols_, file_);
}

Result<> Importer::define(const std::string& name, ValueId v, const Loc& where) {
  if (!scopes_.back().values.emplace(name, v).second) return fail(where, fmt::format("value '{}' is made twice", name));
  return check_declared(name, v, where);
}

Result<ValueId> Importer::lookup(const std::string& name, const Loc& where) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (const auto it = scopes_[i].values.find(name); it != scopes_[i].values.end()) {
      ValueId v = captured(it->second, scopes_[i].level);
      for (size_t in = i + 1; in < scopes_.size(); ++in) {
        DLC_TRY(v, assumed(v, scopes_[in]));
      }
      return v;
    }
    if (scopes_[i].sealed) break;
  }
  return fail(where, fmt::format("value '{}' is used before it is made", name),
              "the model's nodes are not in order, or the model is damaged");
}

template <class Nodes>
Result<> Importer::import_nodes(const Nodes& nodes) {
  for (int i = 0; i < nodes.size(); ++i) DLC_CHECK(import_node(nodes.Get(i), i));
  return {};
}
template Result<> Importer::import_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes);

Result<std::vector<ValueId>> Importer::import_op(const OpEntry& entry, const onnx::NodeProto& node,
                                                 std::vector<ValueId> inputs, const Loc& where) {
  const NodeView view(*this, node, std::move(inputs), opset_of(node.domain()));
  std::string_view pattern = entry.inputs;
  char kind = 0;
  for (size_t i = 0; i < std::max(view.input_count(), entry.inputs.size()); ++i) {
    if (pattern.empty()) {
      if (i < view.input_count())
        return fail(where, fmt::format("{}: {} inputs are given, it takes {} in this opset", node.op_type(),
                                       view.input_count(), i));
      break;
    }
    const bool again = pattern[0] == '*';
    if (again && i >= view.input_count()) break;
    if (!again) {
      kind = pattern[0];
      pattern.remove_prefix(1);
    }
    const bool needed = std::islower(static_cast<unsigned char>(kind)) != 0;
    if (!view.has(i)) {
      if (needed) return fail(where, fmt::format("{}: input {} is missing", node.op_type(), i));
      continue;
    }
    const Bundle* b = bundle(view.in(i));
    const char wanted = static_cast<char>(std::tolower(static_cast<unsigned char>(kind)));
    if (wanted == 't' && b != nullptr)
      return fail(where,
                  fmt::format("{}: input {} is {}, a tensor is needed", node.op_type(), i, other_kind(view.in(i))));
    if (wanted == 's' && (b == nullptr || !b->present))
      return fail(where, fmt::format("{}: input {} is {}, a sequence is needed", node.op_type(), i,
                                     b == nullptr ? "a tensor" : other_kind(view.in(i))));
  }
  DLC_TRY(auto results,
          entry.handler != nullptr ? entry.handler(view) : view.emit_all(std::string(entry.record), view.inputs()));
  if (const std::string unread = view.unread_attribute(entry.idle); !unread.empty()) {
    const std::string near = view.asked_like(unread);
    return fail(where, fmt::format("{}: attribute '{}' is not supported here", node.op_type(), unread),
                near.empty() ? "remove it if it has no effect; otherwise export the model without it"
                             : fmt::format("did you mean {}?", near));
  }
  return results;
}

Result<> Importer::import_model_nodes(const onnx::GraphProto& g) {
  for (int i = 0; i < g.node_size(); ++i) {
    const onnx::NodeProto& node = g.node(i);
    const auto first = static_cast<NodeId>(graph().node_count());
    Error why;
    check_supported(node, why);
    const bool is_lost = needs_missing(node);
    if (why.empty() && !is_lost)
      if (auto made = import_node(node, i); !made) why = std::move(made).error();
    if (is_lost || !why.empty()) {
      refuse(std::move(why), {node.output().begin(), node.output().end()});
      if (is_spent()) break;
      continue;
    }
    OnnxNode made{name_of(node, i),
                  spelt(node.domain(), node.op_type()),
                  first,
                  static_cast<NodeId>(graph().node_count()),
                  {},
                  {}};
    for (const std::string& result : node.output())
      if (const auto v = scopes_.back().values.find(result); v != scopes_.back().values.end()) {
        made.results.push_back(v->second);
        made.result_names.push_back(result);
      }
    nodes_.push_back(std::move(made));
  }
  return {};
}

Result<> Importer::import_node(const onnx::NodeProto& node, int index) {
  const Loc where{file_, 0, 0, name_of(node, index)};
  DLC_CHECK(spend(1, where));
  std::set<std::string_view> attributes;
  for (const auto& a : node.attribute())
    if (!attributes.insert(a.name()).second)
      return fail(where, fmt::format("{}: attribute '{}' is given twice", node.op_type(), a.name()));
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
  const Function* function = entry == nullptr ? find_function(node) : nullptr;
  Result<std::vector<ValueId>> results;
  if (function != nullptr) {
    results = call(*function, node, std::move(inputs), where);
  } else if (entry == nullptr) {
    return fail(where, fmt::format("op {} is not supported", node.op_type()));
  } else {
    results = import_op(*entry, node, std::move(inputs), where);
  }
  if (!results) return std::unexpected(std::move(results).error());
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    if (static_cast<size_t>(i) >= results->size() || (*results)[static_cast<size_t>(i)] == kNoValue)
      return fail(where, fmt::format("{}: output {} ('{}') is not supported", node.op_type(), i, node.output(i)));
    DLC_CHECK(define(node.output(i), (*results)[static_cast<size_t>(i)], where));
  }
  return {};
}

// A sequence gives one output for each of its elements, an absent optional value none.
Result<> Importer::import_outputs(const onnx::GraphProto& g) {
  if (g.output_size() == 0) return fail({file_, 0, 0, {}}, "the model has no output");
  std::set<std::string> seen;
  for (const auto& v : g.output()) {
    if (!seen.insert(v.name()).second)
      return fail({file_, 0, 0, v.name()}, fmt::format("output '{}' is declared twice", v.name()),
                  "give each output a name of its own (an Identity node renames a value)");
    DLC_TRY(const ValueId id, lookup(v.name(), {file_, 0, 0, v.name()}));
    const Bundle* b = bundle(id);
    if (b == nullptr) {
      graph().outputs.push_back(id);
      graph().output_names.push_back(v.name());
      continue;
    }
    for (size_t i = 0; i < b->elements.size(); ++i) {
      graph().outputs.push_back(b->elements[i]);
      graph().output_names.push_back(sequence_element(v.name(), i));
    }
  }
  return {};
}

Result<> Importer::import(const onnx::ModelProto& model) {
  const auto& g = model.graph();
  if (!g.name().empty()) graph().name = symbol_name(g.name());
  DLC_CHECK(import_opsets(model.opset_import()));
  const bool standard = std::ranges::any_of(g.node(), [](const auto& n) { return is_default_domain(n.domain()); });
  if (!opsets_.contains("") && standard)
    return fail({file_, 0, 0, {}}, "the model imports no opset of the default domain",
                "it may be damaged; export it again");
  DLC_CHECK(import_functions(model));
  for (const auto& f : model.functions())
    for (const auto& node : f.node()) check_supported(node, refused_);
  if (!refused_.empty()) {  // every call would say it again
    for (const auto& node : g.node()) check_supported(node, refused_);
    return std::unexpected(std::move(refused_));
  }
  declare(g);
  DLC_CHECK(import_initializers(g));
  DLC_CHECK(import_inputs(g));
  DLC_CHECK(import_model_nodes(g));
  if (!refused_.empty()) return std::unexpected(std::move(refused_));
  return import_outputs(g);
}

}  // namespace onnx_frontend

namespace {

// Tensors view `file` where it has an owner; other bytes are the caller's, and copied.
Result<Graph> import_model(const MappedFile& file, const std::string& file_name, const std::string& folder,
                           const OnnxOptions& options, std::vector<OnnxNode>* nodes = nullptr) {
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
  onnx_frontend::clean_names(model);
  onnx_frontend::tell_nodes_apart(model);
  // Choices are tried in order until the whole model can be imported; of none what the first try said is told.
  Error first;
  std::vector<bool> choices;
  for (int tries = 1;; ++tries) {
    Graph graph;
    onnx_frontend::Importer importer(graph, file_name, folder, options);
    importer.set_model(file);
    importer.set_choices(choices);
    auto imported = importer.import(model);
    if (imported) {
      DLC_CHECK(verify(graph));
      if (nodes != nullptr) *nodes = std::move(importer.nodes());
      return graph;
    }
    if (tries == 1) first = std::move(imported).error();
    choices = importer.choices();
    while (!choices.empty() && choices.back()) choices.pop_back();
    if (choices.empty() || tries == onnx_frontend::kMaxTries) return std::unexpected(std::move(first));
    choices.back() = true;
  }
}

}  // namespace

Result<Graph> import_onnx_bytes(std::span<const std::byte> bytes, const std::string& file_name,
                                const std::string& folder, const OnnxOptions& options) {
  return import_model({bytes, nullptr}, file_name, folder, options);
}

Result<Graph> import_onnx(const std::string& path, const OnnxOptions& options, std::vector<OnnxNode>* nodes) {
  DLC_TRY(const MappedFile f, map_file(path));
  std::string folder = std::filesystem::path(path).parent_path().string();
  return import_model(f, path, folder.empty() ? "." : folder, options, nodes);
}

}  // namespace dlc
