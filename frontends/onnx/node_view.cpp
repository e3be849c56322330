#include <fmt/format.h>

#include <array>

#include "core/ops/domains.h"
#include "dlc/base/checked.h"
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
TensorType NodeView::type(size_t input) const { return graph().value(inputs_[input]).type; }
Result<> NodeView::check_tensors(std::span<const ValueId> values) const {
  for (const ValueId v : values)
    if (const auto kind = importer_.other_kind(v); !kind.empty())
      return error(fmt::format("a tensor is needed where {} is given", kind));
  return {};
}
Result<> NodeView::spend(int64_t steps) const { return importer_.spend(steps, loc()); }
Expr NodeView::fresh_symbol(const std::string& wish, int64_t most) const { return importer_.fresh_symbol(wish, most); }

std::string NodeView::unread_attribute(std::string_view idle) const {
  const auto is_idle = [&](const std::string& name) {
    for (size_t at = 0; at < idle.size();) {
      const size_t end = std::min(idle.find(' ', at), idle.size());
      if (idle.substr(at, end - at) == name) return true;
      at = end + 1;
    }
    return opset_ < 7 && name == "consumed_inputs";  // of optimisers before opset 6
  };
  for (const auto& a : proto_.attribute())
    if (!read_.contains(a.name()) && !is_idle(a.name())) return a.name();
  return {};
}

std::string NodeView::asked_like(std::string_view attribute) const {
  return nearest(attribute, {read_.begin(), read_.end()});
}

std::unexpected<Error> NodeView::error(std::string message, std::string hint) const {
  return fail(loc(), fmt::format("{}: {}", op(), message), std::move(hint));
}

const onnx::AttributeProto* NodeView::find(std::string_view name) const {
  read_.emplace(name);
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

Result<const onnx::GraphProto*> NodeView::attr_graph(std::string_view name) const {
  const auto* a = find(name);
  if (a == nullptr || a->type() != onnx::AttributeProto::GRAPH)
    return error(fmt::format("attribute '{}' must be a graph", name));
  return &a->g();
}

bool NodeView::is_sequence(size_t input) const {
  const Bundle* b = has(input) ? importer_.bundle(inputs_[input]) : nullptr;
  return b != nullptr && b->present;
}

bool NodeView::is_nothing(size_t input) const {
  const Bundle* b = has(input) ? importer_.bundle(inputs_[input]) : nullptr;
  return b != nullptr && !b->present;
}

const std::vector<ValueId>& NodeView::sequence(size_t input) const {
  return importer_.bundle(inputs_[input])->elements;
}

ValueId NodeView::make_sequence(std::vector<ValueId> elements) const {
  return importer_.add_bundle({true, std::move(elements)});
}

ValueId NodeView::make_nothing() const { return importer_.add_bundle({false, {}}); }

Result<std::vector<ValueId>> NodeView::inlined(const onnx::GraphProto& body, std::vector<ValueId> arguments) const {
  return importer_.inlined(body, std::move(arguments), loc());
}

Result<std::vector<ValueId>> NodeView::inlined_under(const Assumption& assumption, const onnx::GraphProto& body) const {
  return importer_.inlined(body, {}, loc(), assumption);
}

Result<Body> NodeView::body(std::string name, const std::function<Result<std::vector<ValueId>>()>& make) const {
  return importer_.body(std::move(name), make, loc());
}

ValueId NodeView::captured(ValueId v) const { return importer_.captured(v, importer_.level() - 1); }

const std::vector<ValueId>* NodeView::elements_of(ValueId v) const {
  const Bundle* b = importer_.bundle(v);
  return b != nullptr && b->present ? &b->elements : nullptr;
}

std::string_view NodeView::other_kind(ValueId v) const { return importer_.other_kind(v); }

Result<std::vector<ValueId>> NodeView::control(std::string op, std::vector<ValueId> operands, std::vector<Body> bodies,
                                               std::vector<TensorType> results, Attrs attrs) const {
  DLC_CHECK(importer_.check_nodes(loc()));
  const auto captured = Importer::align(bodies, graph());
  operands.insert(operands.end(), captured.begin(), captured.end());
  Node node{std::move(op), std::move(operands), {}, std::move(attrs), {name_}};
  for (Body& b : bodies) node.bodies.push_back(std::make_shared<const Graph>(std::move(b.graph)));
  DLC_TRY(const NodeId id, graph().add_control(std::move(node), std::move(results)));
  return graph().node(id).outputs;
}

std::optional<std::vector<Expr>> NodeView::settled_ints(ValueId v) const {
  if (!other_kind(v).empty()) return std::nullopt;
  if (auto known = importer_.values().known(v)) return known;
  if (!importer_.is_fixed(v)) return std::nullopt;
  const auto known = known_ints_of(v, "value");
  return known ? std::optional(*known) : std::nullopt;
}

bool NodeView::has_control_flow() const { return importer_.has_control_flow(); }

bool NodeView::choose() const { return importer_.choose(); }

bool NodeView::can_settle(ValueId v) const { return other_kind(v).empty() && importer_.can_fix(v); }

Result<std::vector<Expr>> NodeView::known_ints(size_t input, std::string_view what) const {
  if (!has(input)) return error(fmt::format("input {} ({}) is missing", input, what));
  return known_ints_of(inputs_[input], fmt::format("input {} ({})", input, what));
}

Result<std::vector<Expr>> NodeView::known_ints_of(ValueId v, std::string_view what) const {
  if (const auto kind = importer_.other_kind(v); !kind.empty())
    return error(fmt::format("{} must be a tensor, but it is {}", what, kind));
  if (auto known = importer_.values().known(v)) return *known;
  auto fixed = importer_.fixed_value(v, loc());
  if (!fixed)
    return error(fmt::format("{} must be known when compiling, but {}", what, fixed.error().message()),
                 "make it a constant, or bind the symbolic dims it comes from with --dim NAME=VALUE");
  std::vector<Expr> values;
  for (int64_t i = 0; i < fixed->elements(); ++i) values.emplace_back(fixed->get_int(i));
  return values;
}

Result<std::vector<Expr>> NodeView::sizes(size_t input, std::string_view what) const {
  return bounds(input, what, {0, kAnyBound.hi});
}

Result<std::vector<Expr>> NodeView::bounds(size_t input, std::string_view what, Interval range) const {
  if (!has(input)) return error(fmt::format("input {} ({}) is missing", input, what));
  return bounds_of(inputs_[input], what, range);
}

// A value is the difference of two symbols, of which one is 0: sizes, which a run binds, are not negative.
Result<std::vector<Expr>> NodeView::bounds_of(ValueId v, std::string_view what, Interval range) const {
  if (const auto kind = importer_.other_kind(v); !kind.empty())
    return error(fmt::format("{} must be a tensor, but it is {}", what, kind));
  auto elements = importer_.values().elements(v);
  const TensorType type = graph().value(v).type;
  std::optional<int64_t> count = 1;
  for (const Expr& d : type.shape) count = count && d.constant() ? checked_mul(*count, *d.constant()) : std::nullopt;
  const bool counted = count && *count <= ValueInference::kMaxElements && type.dtype.is_int();
  const bool fixed = importer_.can_fix(v) && !importer_.keeps_inputs();
  if (importer_.values().known(v) || fixed || !counted) return known_ints_of(v, what);
  elements.resize(static_cast<size_t>(*count));
  std::vector<Expr> positive, below, values;
  const auto symbol = [&](const std::string& part, int64_t most) {
    std::string name = "v";
    for (const char c : name_ + part) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return importer_.fresh_symbol(name, std::max<int64_t>(most, 0));
  };
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto known = elements[i];
    const std::string part = fmt::format("_{}{}", what, i);
    positive.push_back(known && known->constant() ? Expr(std::max<int64_t>(*known->constant(), 0))
                                                  : symbol(part, range.hi));
    if (known && known->constant())
      below.emplace_back(std::max<int64_t>(-*known->constant(), 0));
    else
      below.push_back(range.lo < 0 ? symbol(part + "_neg", -range.lo) : Expr(0));
    values.push_back(known && known->constant() ? *known : positive.back() - below.back());
  }
  DLC_CHECK(emit("bind_values", {v}, {{"positive", positive}, {"negative", below}}));
  return values;
}

bool NodeView::is_known(size_t input) const { return has(input) && importer_.values().known(inputs_[input]); }

Result<Tensor> NodeView::constant(size_t input, std::string_view what) const {
  if (!has(input)) return error(fmt::format("input {} ({}) is missing", input, what));
  if (const auto kind = importer_.other_kind(inputs_[input]); !kind.empty())
    return error(fmt::format("input {} ({}) must be a tensor, but it is {}", input, what, kind));
  auto fixed = importer_.fixed_value(inputs_[input], loc());
  if (!fixed)
    return error(fmt::format("input {} ({}) must be a constant, but {}", input, what, fixed.error().message()));
  return fixed;
}

// As many dims as a value may have. What the work on a value costs grows faster than its rank.
constexpr size_t kMaxRank = 64;

static std::unexpected<Error> too_many_dims(const NodeView& n, size_t rank) {
  return n.error(fmt::format("a tensor of rank {} is not supported, only up to {}", rank, kMaxRank));
}

// Shapes and axes are as long as a rank: refused before anything is made of them.
static Result<> check_rank(const NodeView& n, const Attrs& attrs) {
  for (const char* name : {"shape", "axes", "perm"}) {
    const auto it = attrs.find(name);
    const auto* list = it == attrs.end() ? nullptr : std::get_if<std::vector<Expr>>(&it->second);
    if (list != nullptr && list->size() > kMaxRank) return too_many_dims(n, list->size());
  }
  return {};
}

// A real constant is one its operand may be: a scale of 0 is no run's fault. An index out of range is the run's to
// report, which may never read there.
// A constant that reshaped() made is the model's under another name.
constexpr std::string_view kReshaped = ".reshaped";

static std::string name_in_model(const Graph& g, ValueId v) {
  const std::string& name = g.value(v).name;
  const size_t at = name.rfind(kReshaped);
  const std::string wish = name.substr(0, at);
  return at != std::string::npos && g.find(wish) != kNoValue ? wish : name;
}

static Result<> check_constants(const Graph& g, NodeId id, const Loc& where) {
  const Node& n = g.node(id);
  const Record* record = g.record_set().find(n.op);
  std::vector<detail::ConstantOperand> constants;
  for (size_t i = 0; i < std::min(n.inputs.size(), record->operands().size()); ++i) {
    if (record->operands()[i].variadic) break;
    const ValueId v = n.inputs[i];
    if (v != kNoValue && g.value(v).constant && g.value(v).type.dtype.is_float() && detail::has_domain(*record, i))
      constants.push_back({i, name_in_model(g, v), &*g.value(v).constant});
  }
  if (constants.empty()) return {};
  DLC_TRY(const auto operands, g.operands(id));
  return detail::check_elements(g.record_set(), *record, operands, n.attrs, g.symbols, constants, where);
}

Result<std::vector<ValueId>> NodeView::emit_all(std::string op, std::vector<ValueId> inputs, Attrs attrs) const {
  for (const ValueId v : inputs) {
    if (v == kNoValue) continue;
    DLC_CHECK(check_tensors(std::array{v}));
    if (const size_t rank = graph().value(v).type.shape.size(); rank > kMaxRank) return too_many_dims(*this, rank);
  }
  DLC_CHECK(check_rank(*this, attrs));
  DLC_CHECK(importer_.check_nodes(loc()));
  auto id = graph().add_node(std::move(op), std::move(inputs), std::move(attrs), {name_});
  if (!id) {
    for (auto& d : id.error().diagnostics) {
      if (d.loc.file.empty()) d.loc.file = importer_.file();
      if (d.loc.node.empty()) d.loc.node = name_;
    }
    return std::unexpected(std::move(id).error());
  }
  DLC_CHECK(check_constants(graph(), *id, loc()));
  return graph().node(*id).outputs;
}

Result<ValueId> NodeView::emit(std::string op, std::vector<ValueId> inputs, Attrs attrs) const {
  DLC_TRY(auto outputs, emit_all(std::move(op), std::move(inputs), std::move(attrs)));
  return outputs[0];
}

ValueId NodeView::add_constant(Tensor t) const {
  return graph().add_constant(importer_.unique_name(name_ + ".const"), std::move(t));
}

Result<ValueId> NodeView::reshaped(ValueId v, std::vector<int64_t> shape) const {
  const Value& value = graph().value(v);
  if (value.constant) {
    DLC_TRY(Tensor t, value.constant->reshaped(std::move(shape)));
    return graph().add_constant(importer_.unique_name(value.name + std::string(kReshaped)), std::move(t));
  }
  return emit("reshape", {v}, {{"shape", std::vector<Expr>(shape.begin(), shape.end())}});
}

Result<ValueId> NodeView::scalar(DType dtype, double value) const {
  DLC_TRY(Tensor t, Tensor::make(dtype, {}));
  t.set_double(0, value);
  return add_constant(std::move(t));
}

}  // namespace dlc::onnx_frontend
