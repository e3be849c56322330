// Ops that make tensors from a few numbers, and ops whose result's size depends on data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// The number of elements of start, start + delta, ... below (or above) limit.
Result<Expr> range_count(const NodeView& n) {
  if (n.type(0).dtype.is_float()) {
    ValueId bounds[3];
    double known[3] = {};
    bool all_known = true;
    for (size_t i = 0; i < 3; ++i) {
      DLC_TRY(bounds[i], scalar_input(n, i));
      const auto t = n.constant(i, "bound");
      all_known = all_known && t;
      if (t) known[i] = t->get_double(0);
    }
    if (all_known) {
      const double count = std::ceil((known[1] - known[0]) / known[2]);
      if (!(count < 1e12)) return n.error("delta is 0, or the range too long");  // NaN too
      return Expr(static_cast<int64_t>(std::max(count, 0.0)));
    }
    DLC_TRY(const ValueId length, n.emit("sub", {bounds[1], bounds[0]}));
    DLC_TRY(const ValueId steps, n.emit("div", {length, bounds[2]}));
    DLC_TRY(const ValueId whole, n.emit("ceil", {steps}));
    DLC_TRY(const ValueId count, n.emit("cast", {whole}, {{"to", kS64}}));
    DLC_TRY(const auto counted, n.bounds_of(count, "count"));
    return max(Expr(0), counted[0]);
  }
  DLC_TRY(const Expr start, known_scalar(n, 0, "start"));
  DLC_TRY(const Expr limit, known_scalar(n, 1, "limit"));
  DLC_TRY(const Expr delta, known_scalar(n, 2, "delta"));
  if (delta.is(0)) return n.error("delta is 0");
  return max(Expr(0), select_nonneg(delta, ceil_div(limit - start, delta), ceil_div(start - limit, -delta)));
}

Result<Values> range(const NodeView& n) {
  if (!n.has(0) || !n.has(1) || !n.has(2)) return n.error("needs start, limit and delta");
  DLC_TRY(const Expr count, range_count(n));
  DLC_TRY(const ValueId start, scalar_input(n, 0));
  DLC_TRY(const ValueId delta, scalar_input(n, 2));
  return n.emit_all("range", {start, delta}, {{"count", count}});
}

Result<Values> eye_like(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const int64_t k, n.attr_int("k", 0));
  DType to = n.type(0).dtype;
  if (n.has_attr("dtype")) {
    DLC_TRY(const int64_t wanted, n.attr_int("dtype", {}));
    DLC_TRY(to, element_type(static_cast<int>(std::clamp<int64_t>(wanted, 0, 1000)), n.loc()));
  }
  return n.emit_all("eye_like", {n.in(0)}, {{"k", Expr(k)}, {"to", to}});
}

Result<Values> one_hot(const NodeView& n) {
  if (!n.has(0) || !n.has(1) || !n.has(2)) return n.error("needs indices, depth and values");
  DLC_TRY(const Expr depth, known_scalar(n, 1, "depth"));
  DLC_TRY(const int64_t attr, n.attr_int("axis", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0) + 1));
  ValueId indices = n.in(0);
  if (!n.type(0).dtype.is_int()) {
    DLC_TRY(indices, n.emit("cast", {indices}, {{"to", kS64}}));
  }
  return n.emit_all("one_hot", {indices, n.in(2)}, {{"depth", depth}, {"axis", Expr(axis)}});
}

// k is an attribute before opset 10.
Result<Values> top_k(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  Expr k;
  if (n.opset() < 10) {
    DLC_TRY(const int64_t v, n.attr_int("k", {}));
    k = v;
  } else {
    DLC_TRY(k, known_scalar(n, 1, "k"));
  }
  DLC_TRY(const int64_t attr, n.attr_int("axis", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const int64_t largest, n.attr_int("largest", 1));
  return n.emit_all("top_k", {n.in(0)}, {{"k", k}, {"axis", Expr(axis)}, {"largest", Expr(largest != 0)}});
}

constexpr int64_t kMostFound = int64_t{1} << 30;

Result<ValueId> in_one_row(const NodeView& n, ValueId x) {
  Expr count(1);
  for (const Expr& d : n.graph().value(x).type.shape) count = count * d;
  return n.emit("reshape", {x}, {{"shape", std::vector<Expr>{count}}});
}

Result<Values> non_zero(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  return n.emit_all("non_zero", {n.in(0)}, {{"count", n.fresh_symbol("non_zero", kMostFound)}});
}

Result<Values> non_max_suppression(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("needs boxes and scores");
  DLC_TRY(const int64_t center, n.attr_int("center_point_box", 0));
  Values in{n.in(0), n.in(1)};
  for (size_t i = 2; i < 5; ++i) {
    DLC_TRY(const ValueId v, scalar_input(n, i));
    in.push_back(v);
  }
  return n.emit_all("non_max_suppression", in,
                    {{"count", n.fresh_symbol("selected", kMostFound)}, {"center_point_box", Expr(center != 0)}});
}

// Input 0 and the axis that is asked for. Without an axis the elements stand in one row.
struct AlongAxis {
  ValueId x;
  int64_t axis = 0;
};
Result<AlongAxis> along_axis(const NodeView& n) {
  if (!n.has_attr("axis")) {
    DLC_TRY(const ValueId row, in_one_row(n, n.in(0)));
    return AlongAxis{row};
  }
  DLC_TRY(const int64_t attr, n.attr_int("axis", {}));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  return AlongAxis{n.in(0), axis};
}

Result<Values> compress(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("needs data and a condition");
  DLC_TRY(const AlongAxis along, along_axis(n));
  return n.emit_all("compress", {along.x, n.in(1)},
                    {{"count", n.fresh_symbol("kept", kMostFound)}, {"axis", Expr(along.axis)}});
}

Result<Values> unique(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const AlongAxis along, along_axis(n));
  DLC_TRY(const int64_t sorted, n.attr_int("sorted", 1));
  return n.emit_all(
      "unique", {along.x},
      {{"count", n.fresh_symbol("unique", kMostFound)}, {"axis", Expr(along.axis)}, {"sorted", Expr(sorted != 0)}});
}

constexpr OpEntry kTable[] = {
    {"", "Compress", compress, "tt"},
    {"", "Unique", unique, "t"},
    {"", "Range", range, "ttt", "stash_type"},
    {"", "EyeLike", eye_like, "t"},
    {"", "OneHot", one_hot, "ttt"},
    {"", "TopK", top_k, "t", "sorted", 9},
    {"", "TopK", top_k, "tT", "sorted"},
    {"", "NonZero", non_zero, "t"},
    {"", "NonMaxSuppression", non_max_suppression, "ttTTT"},
};

}  // namespace

std::span<const OpEntry> generate_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
