// Any function of one 8-bit value is a table. What is between the value and the quantize_linear is run on all 256
// values:
//
//   mul(x, sigmoid(x))            x = dequantize_linear(q)
//   mul(x, add(erf(div(x, 1.41)), 1))
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>

#include "core/numerics/kinds.h"
#include "core/numerics/rewriter.h"
#include "dlc/kernel/access.h"

namespace dlc::numerics {

namespace {

// The value without what its reads point at; nullptr where it depends on its place in the tensor.
Val placeless(const Val& v) {
  bool depends = false;
  const Val out = rewrite(v, [&](const Val& x) -> Val {
    depends |= x->kind == ValKind::reduce;
    return x->kind == ValKind::read ? val::read(x->tensor, x->type, {}) : nullptr;
  });
  depends |= !free_symbols(out).empty();
  return depends ? nullptr : out;
}

}  // namespace

std::string_view not_pointwise(const Kernel& k) {
  for (const Stmt& s : k.body) {
    if (s.kind != Stmt::Kind::assign) return "it is not a function of one value";
    if (!placeless(s.value)) return "its value depends on the place in the tensor";
    for (const ReadSite& site : reads(s.value, {})) {
      const auto& shape = k.tensors[static_cast<size_t>(site.read->tensor)].shape;
      const AccessMap store = access_map(s.indices);
      for (size_t d = 0; d < shape.size(); ++d)
        if (!shape[d].is(1) && (d >= store.size() || !store[d] || site.access[d] != store[d]))
          return "it is not element-wise";
    }
  }
  return {};
}

namespace {

// The nodes between one 8-bit value and a result that is a function of it.
class Cone {
 public:
  explicit Cone(Rewriter& r) : r_(r), g_(r.graph()) {}

  // nullopt: it is one. Through quantize_linear and dequantize_linear in between, where `through` is set.
  Result<std::optional<Refused>> grow(ValueId v, bool through) {
    if (found_.seen.contains(v)) return std::nullopt;
    if (is_number(v)) return std::nullopt;
    const NodeId producer = g_.value(v).producer;
    if (producer == kNoNode) return Refused{"its input is not quantised per tensor"};
    if (through && g_.node(producer).op == "dequantize_linear" && per_tensor(g_, g_.node(producer))) {
      const NodeId above = g_.value(g_.node(producer).inputs[0]).producer;
      if (above != kNoNode && same_scale(g_.node(above), g_.node(producer)) && r_.site(above)) {
        const Found before = found_;
        DLC_TRY(const auto no, grow(g_.node(above).inputs[0], through));
        if (!no) {
          found_.inner[v] = g_.node(above).inputs[0];
          found_.seen.insert(v);
          return std::nullopt;
        }
        found_ = before;
      }
    }
    if (const auto q = quantized(g_.node(producer))) {
      if (found_.source && found_.source->value != q->value)
        return Refused{"it has more than one input that is not constant"};
      found_.source = *q;
      found_.leaves[v] = *q;
      found_.seen.insert(v);
      return std::nullopt;
    }
    const Node& n = g_.node(producer);
    const Record* record = g_.record_set().find(n.op);
    if (n.outputs.size() != 1 || record == nullptr || record->is_extern())
      return Refused{"it is not a function of one value"};
    ValueId data = kNoValue;
    for (const ValueId i : n.inputs) {
      if (i == kNoValue || is_number(i)) continue;
      if (g_.value(i).constant) return Refused{"a constant beside the data is not a scalar"};
      if (data != kNoValue && g_.value(i).type.shape != g_.value(data).type.shape)
        return Refused{"an operand is broadcast"};
      data = i;
    }
    if (data == kNoValue) return Refused{"it is not a function of one value"};
    DLC_TRY(const Kernel k, g_.kernel(producer));
    if (const auto why = not_pointwise(k); !why.empty()) return Refused{std::string(why)};
    if (g_.value(v).type.shape != g_.value(data).type.shape) return Refused{"it changes the shape"};
    for (const ValueId i : n.inputs) {
      if (i == kNoValue) continue;
      DLC_TRY(const auto no, grow(i, through));
      if (no) return no;
    }
    found_.nodes.push_back(producer);
    found_.seen.insert(v);
    return std::nullopt;
  }

  ValueId leaf() const { return found_.leaves.begin()->first; }  // a dequantize_linear's result
  bool has_inner() const { return !found_.inner.empty(); }

  // The same nodes without the roundings in between.
  Result<ValueId> without_inner(ValueId v) {
    std::map<ValueId, ValueId> made;
    const auto at = [&](ValueId i) {
      while (found_.inner.contains(i)) i = found_.inner.at(i);
      const auto it = made.find(i);
      return it == made.end() ? i : it->second;
    };
    for (const NodeId id : found_.nodes) {
      const Node n = g_.node(id);
      std::vector<ValueId> inputs;
      for (const ValueId i : n.inputs) inputs.push_back(i == kNoValue ? kNoValue : at(i));
      DLC_TRY(const NodeId copy, g_.add_node(n.op, std::move(inputs), n.attrs, n.locations));
      made[n.outputs[0]] = g_.node(copy).outputs[0];
    }
    return at(v);
  }

  // The result for each of the 256 values.
  Result<Attempt<Tensor>> run(ValueId v) {
    Graph t;
    t.records = g_.records;
    std::map<ValueId, ValueId> map;
    const std::vector<Expr> values = {256};
    for (const auto& [leaf, q] : found_.leaves) {
      DLC_TRY(Tensor x, Tensor::make(kF32, {256}));
      for (int64_t i = -128; i < 128; ++i)
        x.set_double(i + 128, static_cast<float>(static_cast<double>(i - q.zero) * q.scale));
      map[leaf] = t.add_constant(t.unique_name("x"), std::move(x));
    }
    for (const NodeId id : found_.nodes) {
      const Node& n = g_.node(id);
      std::vector<ValueId> inputs;
      for (const ValueId i : n.inputs) {
        if (i != kNoValue && is_number(i) && !map.contains(i)) {
          DLC_TRY(map[i], number(t, i));
        }
        inputs.push_back(i == kNoValue ? kNoValue : map.at(i));
      }
      // What works on tensors of some sizes only, or differently on each size, is no function of the value.
      const auto copy = t.add_node(n.op, std::move(inputs), n.attrs, n.locations);
      if (!copy) return Refused{"it does not work on a list of values"};
      if (t.value(t.node(*copy).outputs[0]).type.shape != values) return Refused{"its result has a size of its own"};
      DLC_TRY(const Kernel here, g_.kernel(id));
      DLC_TRY(const Kernel there, t.kernel(*copy));
      if (!std::ranges::equal(here.body, there.body, [](const Stmt& a, const Stmt& b) {
            return a.kind == b.kind && val::structurally_equal(placeless(a.value), placeless(b.value));
          }))
        return Refused{"its value depends on the size of the tensor"};
      map[n.outputs[0]] = t.node(*copy).outputs[0];
    }
    t.outputs = {map.at(v)};
    t.output_names = {"y"};
    DLC_TRY(auto y, run_graph(t, {}));
    return std::move(y[0]);
  }

 private:
  bool same_scale(const Node& q, const Node& dq) const {
    const auto a = q.op == "quantize_linear" ? per_tensor(g_, q) : std::nullopt, b = per_tensor(g_, dq);
    return a && b && a->scale == b->scale && a->zero == b->zero;
  }
  // What a dequantize_linear reads, 8 bits that are no constant; its zero point as for s8.
  std::optional<Quantized> quantized(const Node& n) const {
    if (n.op != "dequantize_linear") return std::nullopt;
    const Value& q = g_.value(n.inputs[0]);
    const auto p = per_tensor(g_, n);
    if (!p || q.constant || (q.type.dtype != kS8 && q.type.dtype != kU8)) return std::nullopt;
    return Quantized{n.inputs[0], p->scale, p->zero - (q.type.dtype == kU8 ? 128 : 0)};
  }
  // A constant of one element, also a quantised one.
  bool is_number(ValueId v) const {
    if (const auto& c = g_.value(v).constant) return c->elements() == 1;
    const auto values = r_.constant_values(v);
    return values && values->size() == 1;
  }
  Result<ValueId> number(Graph& t, ValueId v) const {
    const Value& value = g_.value(v);
    if (value.constant) return t.add_constant(t.unique_name(value.name), *value.constant);
    std::vector<int64_t> ones(value.type.shape.size(), 1);
    DLC_TRY(Tensor c, Tensor::make(value.type.dtype, ones));
    c.set_double(0, r_.constant_values(v)->front());
    return t.add_constant(t.unique_name(value.name), std::move(c));
  }

  struct Found {
    std::optional<Quantized> source;
    std::map<ValueId, Quantized> leaves;  // what dequantizes the source
    std::map<ValueId, ValueId> inner;     // a dequantize_linear's result -> what was quantised
    std::vector<NodeId> nodes;            // in order
    std::set<ValueId> seen;
  };
  Rewriter& r_;
  Graph& g_;
  Found found_;
};

}  // namespace

Result<bool> join_functions(Rewriter& r) {
  Graph& g = r.graph();
  bool any = false;
  auto order = g.order();
  for (const NodeId id : order | std::views::reverse) {
    if (g.node(id).erased || g.node(id).op != "quantize_linear" || !r.site(id)) continue;
    const Node n = g.node(id);
    Cone cone(r);
    DLC_TRY(const auto no, cone.grow(n.inputs[0], true));
    if (no || !cone.has_inner()) continue;
    std::vector<ValueId> inputs = n.inputs;
    DLC_TRY(inputs[0], cone.without_inner(n.inputs[0]));
    if (inputs[0] == n.inputs[0]) continue;
    DLC_TRY(const NodeId made, g.add_node(n.op, std::move(inputs), n.attrs, n.locations));
    g.replace_uses(n.outputs[0], g.node(made).outputs[0]);
    g.erase(id);
    any = true;
  }
  return any;
}

RuleResult commit_table(Rewriter& r, const Site& s) {
  Graph& g = r.graph();
  if (const auto no = r.without({"lookup"})) return *no;
  const ValueId result = g.node(s.root).outputs[0];
  if (g.node(s.root).outputs.size() != 1) return Refused{"it is not a function of one value"};
  Cone cone(r);
  DLC_TRY(const auto no, cone.grow(result, false));
  if (no) return *no;
  DLC_TRY(const auto y, cone.run(result));
  if (!y) return Refused{y.why()};
  std::vector<int64_t> table;
  for (int64_t i = 0; i < 256; ++i) {
    const double q = std::nearbyint(static_cast<float>(y->get_double(i)) / static_cast<float>(s.scale)) +
                     static_cast<double>(s.zero);
    if (std::isnan(q)) return Refused{"it is not a number somewhere on the 256 values"};
    table.push_back(
        static_cast<int64_t>(std::min(std::max(q, static_cast<double>(s.clamp.lo)), static_cast<double>(s.clamp.hi))));
  }
  DLC_TRY(const DType entry, r.operand_type("lookup", "T"));
  const std::string name = s.locations.empty() ? std::string("layer") : s.locations.front();
  DLC_TRY(const ValueId v, r.vector(entry, table, name + ".table"));
  DLC_TRY(const auto source, r.dequantized(cone.leaf()));
  DLC_TRY(const ValueId looked_up, on_elements(r, s, "lookup", {source->value}, {v}, {}));
  return looked_up;
}

}  // namespace dlc::numerics
