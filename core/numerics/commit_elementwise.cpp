// Sums, products, changes of scale, concatenations and tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/numerics/rewriter.h"
#include "dlc/kernel/access.h"

namespace dlc::numerics {

namespace {

std::string name_of(const Site& s) { return s.locations.empty() ? std::string("layer") : s.locations.front(); }

// Both operands quantised and of the result's shape.
Result<Attempt<std::pair<Quantized, Quantized>>> operands(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto a, r.dequantized(n.inputs[0]));
  DLC_TRY(const auto b, r.dequantized(n.inputs[1]));
  if (!a || !b) return Refused{"an operand is not quantised per tensor"};
  const Graph& g = r.graph();
  const auto& shape = g.value(n.outputs[0]).type.shape;
  if (g.value(a->value).type.shape != shape || g.value(b->value).type.shape != shape)
    return Refused{"an operand is broadcast"};
  return std::pair{*a, *b};
}

// q at the site's scale; q itself when it has it already.
RuleResult at_scale(Rewriter& r, const Site& s, const Quantized& q) {
  if (q.scale == s.scale && q.zero == s.zero && s.clamp.lo == -128 && s.clamp.hi == 127) return q.value;
  DLC_TRY(const DType m_type, r.operand_type("requantize_s8", 1));
  DLC_TRY(const DType s_type, r.operand_type("requantize_s8", 2));
  const auto k = choose_multiplier(q.scale / s.scale, m_type, s_type);
  if (!k) return Refused{fmt::format("the scale ratio {} has no multiplier", q.scale / s.scale)};
  DLC_TRY(const ValueId m, r.scalar(m_type, k->m, name_of(s) + ".mul"));
  DLC_TRY(const ValueId shift, r.scalar(s_type, k->s, name_of(s) + ".shift"));
  Attrs attrs = r.output_attrs(s);
  attrs["from"] = Expr(q.zero);
  DLC_TRY(const ValueId y, r.add("requantize_s8", {q.value, m, shift}, std::move(attrs), s));
  return y;
}

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

// Why the kernel does not compute the same function of its one tensor at every element; empty if it does.
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

}  // namespace

RuleResult commit_sum(Rewriter& r, const Site& s) {
  DLC_TRY(const auto both, operands(r, s));
  if (!both) return Refused{both.why()};
  const auto& [a, b] = *both;
  DLC_TRY(const DType a_type, r.operand_type("add_s8", 2));
  DLC_TRY(const DType b_type, r.operand_type("add_s8", 3));
  DLC_TRY(const DType s_type, r.operand_type("add_s8", 4));
  const auto k = choose_multipliers(a.scale / s.scale, b.scale / s.scale, a_type, b_type, s_type);
  if (!k) return Refused{"the scales have no common multiplier"};
  DLC_TRY(const ValueId ma, r.scalar(a_type, k->a, name_of(s) + ".mul_a"));
  DLC_TRY(const ValueId mb, r.scalar(b_type, k->b, name_of(s) + ".mul_b"));
  DLC_TRY(const ValueId shift, r.scalar(s_type, k->s, name_of(s) + ".shift"));
  Attrs attrs = r.output_attrs(s);
  attrs["a_zero"] = Expr(a.zero);
  attrs["b_zero"] = Expr(b.zero);
  DLC_TRY(const ValueId y, r.add("add_s8", {a.value, b.value, ma, mb, shift}, std::move(attrs), s));
  return y;
}

RuleResult commit_mul(Rewriter& r, const Site& s) {
  DLC_TRY(const auto both, operands(r, s));
  if (!both) return Refused{both.why()};
  const auto& [a, b] = *both;
  DLC_TRY(const DType m_type, r.operand_type("mul_s8", 2));
  DLC_TRY(const DType s_type, r.operand_type("mul_s8", 3));
  const auto k = choose_multiplier(a.scale * b.scale / s.scale, m_type, s_type, 40);
  if (!k) return Refused{"the scales have no multiplier"};
  DLC_TRY(const ValueId m, r.scalar(m_type, k->m, name_of(s) + ".mul"));
  DLC_TRY(const ValueId shift, r.scalar(s_type, k->s, name_of(s) + ".shift"));
  Attrs attrs = r.output_attrs(s);
  attrs["a_zero"] = Expr(a.zero);
  attrs["b_zero"] = Expr(b.zero);
  DLC_TRY(const ValueId y, r.add("mul_s8", {a.value, b.value, m, shift}, std::move(attrs), s));
  return y;
}

RuleResult commit_concat(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  std::vector<ValueId> parts;
  for (const ValueId v : n.inputs) {
    DLC_TRY(const auto q, r.dequantized(v));
    if (!q) return Refused{"an input is not quantised per tensor"};
    DLC_TRY(const auto part, at_scale(r, s, *q));
    if (!part) return Refused{part.why()};
    parts.push_back(*part);
  }
  DLC_TRY(const ValueId y, r.add("concat", std::move(parts), n.attrs, s));
  return y;
}

RuleResult commit_requantize(Rewriter& r, const Site& s) {
  DLC_TRY(const auto q, r.dequantized(r.graph().node(s.root).outputs[0]));
  if (!q) return Refused{"the value is not quantised per tensor"};
  return at_scale(r, s, *q);
}

// The chain from a dequantize_linear to the quantize_linear, run on all 256 values.
RuleResult commit_table(Rewriter& r, const Site& s) {
  Graph& g = r.graph();
  std::vector<NodeId> chain;  // from the result back to the source
  NodeId at = s.root;
  std::optional<Quantized> source;
  while (!source) {
    const Node& n = g.node(at);
    chain.push_back(at);
    ValueId data = kNoValue;
    for (const ValueId v : n.inputs) {
      if (v == kNoValue || g.value(v).constant) continue;
      if (data != kNoValue && data != v) return Refused{"it has more than one input that is not constant"};
      data = v;
    }
    if (data == kNoValue || n.outputs.size() != 1) return Refused{"it is not a function of one value"};
    for (const ValueId v : n.inputs)
      if (v != kNoValue && g.value(v).constant && g.value(v).constant->elements() != 1)
        return Refused{"a constant beside the data is not a scalar"};
    const Record* record = g.record_set().find(n.op);
    if (record == nullptr || record->is_extern()) return Refused{"it is not a function of one value"};
    DLC_TRY(const Kernel k, g.kernel(at));
    if (const auto why = not_pointwise(k); !why.empty()) return Refused{std::string(why)};
    if (g.value(n.outputs[0]).type.shape != g.value(data).type.shape) return Refused{"it changes the shape"};
    DLC_TRY(source, r.dequantized(data));
    if (source) break;
    if (g.value(data).producer == kNoNode || !r.used_once(data))
      return Refused{"its input is not quantised per tensor"};
    at = g.value(data).producer;
  }
  // A graph of its own: 256 values through dequantisation, chain and quantisation.
  Graph t;
  t.records = g.records;
  DLC_TRY(Tensor x, Tensor::make(kF32, {256}));
  for (int64_t q = -128; q < 128; ++q)
    x.set_double(q + 128, static_cast<float>((static_cast<double>(q - source->zero)) * source->scale));
  std::map<ValueId, ValueId> map;
  ValueId data = t.add_constant("x", std::move(x));
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    const Node& n = g.node(*it);
    std::vector<ValueId> inputs;
    for (const ValueId v : n.inputs) {
      if (v == kNoValue)
        inputs.push_back(kNoValue);
      else if (g.value(v).constant)
        inputs.push_back(t.add_constant(t.unique_name(g.value(v).name), *g.value(v).constant));
      else
        inputs.push_back(data);
    }
    // What works on tensors of some sizes only, or differently on each size, is no function of the value.
    const auto copy = t.add_node(n.op, std::move(inputs), n.attrs, n.locations);
    if (!copy) return Refused{"it does not work on a list of values"};
    DLC_TRY(const Kernel here, g.kernel(*it));
    DLC_TRY(const Kernel there, t.kernel(*copy));
    if (!std::ranges::equal(here.body, there.body, [](const Stmt& a, const Stmt& b) {
          return a.kind == b.kind && val::structurally_equal(placeless(a.value), placeless(b.value));
        }))
      return Refused{"its value depends on the size of the tensor"};
    data = t.node(*copy).outputs[0];
  }
  t.outputs = {data};
  t.output_names = {"y"};
  DLC_TRY(const auto y, run_graph(t, {}));
  std::vector<int64_t> table;
  for (int64_t i = 0; i < 256; ++i) {
    const double q = std::nearbyint(static_cast<float>(y[0].get_double(i)) / static_cast<float>(s.scale)) +
                     static_cast<double>(s.zero);
    if (std::isnan(q)) return Refused{"it is not a number somewhere on the 256 values"};
    table.push_back(
        static_cast<int64_t>(std::min(std::max(q, static_cast<double>(s.clamp.lo)), static_cast<double>(s.clamp.hi))));
  }
  DLC_TRY(const DType entry, r.operand_type("lookup", 1));
  DLC_TRY(const ValueId v, r.vector(entry, table, name_of(s) + ".table"));
  DLC_TRY(const ValueId result, r.add("lookup", {source->value, v}, {}, s));
  return result;
}

}  // namespace dlc::numerics
