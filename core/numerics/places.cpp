// Where the elements of a value lie. The accelerator walks vectors of channels, and a vector is 16 channels in a row of
// dim 1. Tokens [b..., s, d] have their channels last, so what multiplies them works on their columns [b, d, s], and
// says so with a transposition behind it. One rule's transposition back and the next one's forth are no copy together:
//
//   transpose(reshape(transpose(y: [1,192,197]): [1,197,192]): [1,3,197,64], ...)  ->  y itself, read at other indices
#include <ranges>

#include "core/numerics/rewriter.h"

namespace dlc::numerics {

namespace {

Expr product(std::span<const Expr> shape) {
  Expr n = 1;
  for (const Expr& e : shape) n = n * e;
  return n;
}

std::vector<Expr> unflat(const Expr& flat, std::span<const Expr> shape, const Ranges& ranges) {
  std::vector<Expr> at(shape.size(), Expr(0));
  Expr stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (!shape[d].is(1)) at[d] = simplify(mod(floor_div(flat, stride), shape[d]), ranges);
    stride = stride * shape[d];
  }
  return at;
}

// A copy from a value of this shape whose result has other dims, without its index.
Copy unfilled(ValueId from, const std::vector<Expr>& from_shape, std::vector<Expr> result) {
  Copy c;
  c.from = from;
  c.from_shape = from_shape;
  c.result_shape = std::move(result);
  for (size_t d = 0; d < c.result_shape.size(); ++d) {
    c.loops.push_back("p" + std::to_string(d));
    c.ranges.emplace(c.loops.back(), Range(0, std::max<int64_t>(c.result_shape[d].constant().value_or(1) - 1, 0)));
  }
  return c;
}

}  // namespace

Copy Rewriter::from_origin(const Copy& last) const {
  Copy c = last;
  while (true) {
    const Value& v = g_.value(c.from);
    if (v.constant || v.producer == kNoNode) return c;
    const auto above = as_copy(g_, v.producer);
    if (!above || g_.value(above->from).constant) return c;
    c = compose(*above, c);
  }
}

Copy Rewriter::matrices(ValueId v, bool columns) const {
  const auto& shape = g_.value(v).type.shape;
  const auto lead = std::span(shape).first(shape.size() - 2);
  const Expr rows = shape[shape.size() - 2], depth = shape.back();
  Copy c = unfilled(v, shape, {product(lead), columns ? depth : rows, columns ? rows : depth});
  const auto loop = [&](size_t d) { return c.result_shape[d].is(1) ? Expr(0) : Expr::symbol(c.loops[d]); };
  c.index = unflat(loop(0), lead, c.ranges);
  c.index.push_back(loop(columns ? 2 : 1));
  c.index.push_back(loop(columns ? 1 : 2));
  return c;
}

std::optional<ValueId> Rewriter::known_columns(ValueId v) const {
  if (g_.value(v).type.shape.size() < 2) return std::nullopt;
  const Copy c = from_origin(matrices(v, true));
  if (!columns_.contains(c.from) || !is_reshape(c) || c.from_shape != c.result_shape) return std::nullopt;
  return c.from;
}

std::vector<NodeId> Rewriter::copies_of_columns(ValueId v) const {
  std::vector<NodeId> copies;
  while (!columns_.contains(v)) {
    const NodeId producer = g_.value(v).producer;
    const auto copy = producer == kNoNode ? std::nullopt : as_copy(g_, producer);
    if (!copy || copy->from != g_.node(producer).inputs[0] || g_.value(copy->from).constant) return {};
    copies.push_back(producer);
    v = copy->from;
  }
  return copies;
}

Result<ValueId> Rewriter::columns(ValueId v, const Site& s) {
  const Copy wanted = matrices(v, true);
  const Copy c = from_origin(wanted);
  ValueId y = c.from;
  if (is_reshape(c)) {
    if (c.from_shape != c.result_shape) {
      DLC_TRY(y, add("reshape", {y}, {{"shape", c.result_shape}}, s));
    }
  } else {
    y = v;
    const std::vector<Expr> rows{wanted.result_shape[0], wanted.result_shape[2], wanted.result_shape[1]};
    if (g_.value(y).type.shape != rows) {
      DLC_TRY(y, add("reshape", {y}, {{"shape", rows}}, s));
    }
    DLC_TRY(y, add("transpose", {y}, {{"perm", std::vector<Expr>{0, 2, 1}}}, s));
  }
  columns_.insert(y);
  return y;
}

Result<ValueId> Rewriter::rows(ValueId y, const std::vector<Expr>& shape, const Site& s) {
  columns_.insert(y);
  DLC_TRY(ValueId v, add("transpose", {y}, {{"perm", std::vector<Expr>{0, 2, 1}}}, s));
  if (g_.value(v).type.shape != shape) {
    DLC_TRY(v, add("reshape", {v}, {{"shape", shape}}, s));
  }
  return v;
}

namespace {

// Whether the matrices of what is broadcast to `whole` are one for all of its matrices, or one for each.
bool has_matrices(const std::vector<Expr>& shape, const std::vector<Expr>& whole) {
  if (shape.size() != whole.size()) return false;
  const auto lead = [](const std::vector<Expr>& s) { return product(std::span(s).first(s.size() - 2)); };
  return lead(shape).is(1) || lead(shape) == lead(whole);
}

}  // namespace

Result<ValueId> on_elements(Rewriter& r, const Site& s, std::string op, std::vector<ValueId> operands,
                            const std::vector<ValueId>& more, Attrs attrs) {
  const auto shape = r.graph().value(operands.front()).type.shape;
  const auto shape_of = [&](ValueId v) { return r.graph().value(v).type.shape; };
  bool columns =
      std::ranges::any_of(operands, [&](ValueId v) { return shape_of(v) == shape && r.known_columns(v).has_value(); });
  for (const ValueId v : operands) columns = columns && has_matrices(shape_of(v), shape);
  if (columns)
    for (ValueId& v : operands) {
      DLC_TRY(v, r.columns(v, s));
    }
  // What is done to each element of a part, such as one of Q, K and V, is done to the whole, and its part is taken
  // then.
  if (const auto copies = r.copies_of_columns(operands.front()); !columns && operands.size() == 1 && !copies.empty()) {
    std::vector<ValueId> inputs{r.graph().node(copies.back()).inputs[0]};
    inputs.insert(inputs.end(), more.begin(), more.end());
    DLC_TRY(ValueId y, r.add(std::move(op), std::move(inputs), std::move(attrs), s));
    r.remember_columns(y);
    for (const NodeId id : copies | std::views::reverse) {
      const Node n = r.graph().node(id);
      std::vector<ValueId> again = n.inputs;
      again[0] = y;
      DLC_TRY(y, r.add(n.op, std::move(again), n.attrs, s));
    }
    return y;
  }
  operands.insert(operands.end(), more.begin(), more.end());
  DLC_TRY(const ValueId y, r.add(std::move(op), std::move(operands), std::move(attrs), s));
  return columns ? r.rows(y, shape, s) : Result<ValueId>(y);
}

}  // namespace dlc::numerics
