#include "core/passes/copy.h"

#include <algorithm>

#include "core/kernel/fit.h"
#include "dlc/kernel/access.h"

namespace dlc {

namespace {

// Which of the graph's values a tensor of the node's kernel is; kNoValue for others.
ValueId operand_value(const Node& n, const Kernel& k, int tensor) {
  for (size_t i = 0; i < k.inputs.size() && i < n.inputs.size(); ++i)
    if (k.inputs[i] == tensor) return n.inputs[i];
  return kNoValue;
}

bool in_bounds(const std::vector<Expr>& index, const std::vector<Expr>& shape, const Ranges& ranges) {
  for (size_t d = 0; d < index.size(); ++d)
    if (!provably_le(0, index[d], ranges) || !provably_lt(index[d], shape[d], ranges)) return false;
  return true;
}

// The row-major position of an element.
Expr linear(const std::vector<Expr>& index, const std::vector<Expr>& shape) {
  Expr at = 0;
  for (size_t d = 0; d < index.size(); ++d) at = at * shape[d] + index[d];
  return at;
}

Expr product(const std::vector<Expr>& shape) {
  Expr p = 1;
  for (const Expr& d : shape) p = p * d;
  return p;
}

std::vector<Expr> loop_vars(const Copy& c) {
  std::vector<Expr> vars;
  for (const auto& l : c.loops) vars.push_back(Expr::symbol(l));
  return vars;
}

}  // namespace

Val repeated_value(const Tensor& t) {
  if (t.elements() == 0 || t.elements() > (int64_t{1} << 20)) return nullptr;
  const auto size = static_cast<size_t>(t.dtype().bytes());
  for (int64_t i = 1; i < t.elements(); ++i)
    if (!std::equal(t.bytes(), t.bytes() + size, t.bytes() + static_cast<size_t>(i) * size)) return nullptr;
  const DType type = compute_type(t.dtype());
  if (type.is_bool()) return val::boolean(t.get_int(0) != 0);
  return type.is_float() ? val::real(t.get_double(0), type) : val::integer(t.get_int(0), type);
}

Val known_element(const Tensor& t, const std::vector<Val>& index) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    const auto e = val::as_expr(index[d]);
    const auto i = e ? e->constant() : std::nullopt;
    if (!i || *i < 0 || *i >= t.shape()[d]) return repeated_value(t);
    flat = flat * t.shape()[d] + *i;
  }
  const DType type = compute_type(t.dtype());
  if (type.is_bool()) return val::boolean(t.get_int(flat) != 0);
  return type.is_float() ? val::real(t.get_double(flat), type) : val::integer(t.get_int(flat), type);
}

std::optional<Copy> as_copy(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  if (n.outputs.size() != 1) return std::nullopt;
  auto kernel = g.kernel(id);
  if (!kernel || kernel->body.size() != 1 || kernel->outputs.size() != 1) return std::nullopt;
  const Kernel& k = *kernel;
  const Stmt& s = k.body[0];
  if (s.kind != Stmt::Kind::assign || s.tensor != k.outputs[0]) return std::nullopt;

  Copy c;
  c.result_shape = g.value(n.outputs[0]).type.shape;
  c.ranges = g.symbols;
  add_loop_ranges(s.loops, c.ranges);
  for (size_t d = 0; d < s.indices.size(); ++d) {
    auto index = val::as_expr(s.indices[d]);
    if (!index) return std::nullopt;
    if (auto var = index->as_symbol(); var && std::ranges::find(c.loops, *var) == c.loops.end()) {
      c.loops.emplace_back(*var);
    } else if (index->is(0) && c.result_shape[d].is(1)) {  // a dim of one element needs no loop
      c.loops.push_back("unit." + std::to_string(d));
      c.ranges.emplace(c.loops.back(), Range(0, 0));
    } else {
      return std::nullopt;
    }
  }

  Val value = rewrite(s.value, [&](const Val& v) -> Val {
    if (v->kind != ValKind::read) return nullptr;
    const ValueId from = operand_value(n, k, v->tensor);
    if (from == kNoValue || !g.value(from).constant) return nullptr;
    if (!provably_in_bounds(access_map(v->args), g.value(from).type.shape, {c.ranges, {}})) return nullptr;
    return known_element(*g.value(from).constant, v->args);
  });
  const DType type = g.value(n.outputs[0]).type.dtype;
  while (true) {
    if (value->kind == ValKind::cast && value->to == type)
      value = value->args[0];
    else if (value->kind == ValKind::orelse)
      value = value->args[0];  // right only if the read is in bounds, which is proved below
    else
      break;
  }
  if (value->kind != ValKind::read || k.tensors[static_cast<size_t>(value->tensor)].dtype != type) return std::nullopt;
  c.from = operand_value(n, k, value->tensor);
  if (c.from == kNoValue) return std::nullopt;
  c.from_shape = g.value(c.from).type.shape;
  for (const Val& a : value->args) {
    auto e = fit_index(a, c.ranges);
    if (!e) return std::nullopt;
    c.index.push_back(simplify(*e, c.ranges));
  }
  if (!in_bounds(c.index, c.from_shape, c.ranges)) return std::nullopt;
  return c;
}

Copy compose(const Copy& first, const Copy& second) {
  Copy c = second;
  c.from = first.from;
  c.from_shape = first.from_shape;
  std::map<std::string, Expr, std::less<>> at;
  for (size_t d = 0; d < first.loops.size(); ++d) at.emplace(first.loops[d], second.index[d]);
  c.index.clear();
  for (const Expr& e : first.index) c.index.push_back(simplify(substitute(e, at), c.ranges));
  return c;
}

bool is_identity(const Copy& c) {
  if (c.from_shape != c.result_shape) return false;
  for (size_t d = 0; d < c.loops.size(); ++d)
    if (!simplify(c.index[d] - Expr::symbol(c.loops[d]), c.ranges).is(0)) return false;
  return true;
}

bool is_reshape(const Copy& c) {
  if (product(c.from_shape) != product(c.result_shape)) return false;
  return simplify(linear(c.index, c.from_shape) - linear(loop_vars(c), c.result_shape), c.ranges).is(0);
}

std::optional<std::vector<int64_t>> as_transpose(const Copy& c) {
  if (c.from_shape.size() != c.result_shape.size()) return std::nullopt;
  std::vector<int64_t> perm(c.loops.size(), -1);
  for (size_t from = 0; from < c.index.size(); ++from) {
    auto symbol = c.index[from].as_symbol();
    if (!symbol) return std::nullopt;  // also a dim of extent 1, whose index is 0: a reshape says more than that
    auto loop = std::ranges::find(c.loops, *symbol);
    if (loop == c.loops.end()) return std::nullopt;
    const auto d = static_cast<size_t>(loop - c.loops.begin());
    if (perm[d] >= 0 || c.from_shape[from] != c.result_shape[d]) return std::nullopt;
    perm[d] = static_cast<int64_t>(from);
  }
  return perm;
}

}  // namespace dlc
