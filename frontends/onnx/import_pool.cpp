// Pools and resampling.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<Attrs> pool_attrs(const NodeView& n, bool channels_come_last = false) {
  if (!n.has(0)) return n.error("input 0 is missing");
  if (n.rank(0) < 3) return n.error(fmt::format("the input has rank {}, at least 3 is needed", n.rank(0)));
  if (!n.has_attr("kernel_shape")) return n.error("attribute 'kernel_shape' is required");
  const auto shape = n.type(0).shape;
  DLC_TRY(const Window w, read_window(n, {}, std::span(shape).subspan(channels_come_last ? 1 : 2, shape.size() - 2)));
  DLC_TRY(const int64_t ceil_mode, n.attr_int("ceil_mode", 0));
  Attrs a = window_attrs(w, true);
  a["ceil_mode"] = Expr(ceil_mode != 0);
  return a;
}

Result<Values> max_pool(const NodeView& n) {
  DLC_TRY(Attrs a, pool_attrs(n));
  DLC_TRY(const ValueId y, n.emit("max_pool", {n.in(0)}, a));
  if (!n.wants(1)) return Values{y};
  // How far an index of each spatial dim goes in the data: row-major, or column-major.
  DLC_TRY(const int64_t column_major, n.attr_int("storage_order", 0));
  const auto shape = n.type(0).shape;
  const std::span<const Expr> spatial = std::span(shape).subspan(2);
  std::vector<Expr> step(spatial.size(), Expr(1));
  if (column_major != 0)
    for (size_t i = 1; i < step.size(); ++i) step[i] = step[i - 1] * spatial[i - 1];
  else
    for (size_t i = step.size() - 1; i-- > 0;) step[i] = step[i + 1] * spatial[i + 1];
  a["step"] = step;
  a.erase("pad_hi");
  a.erase("ceil_mode");
  DLC_TRY(const ValueId index, n.emit("max_pool_index", {n.in(0), y}, std::move(a)));
  return Values{y, index};
}

Result<Values> max_pool_channels_last(const NodeView& n) {
  DLC_TRY(Attrs a, pool_attrs(n, true));
  DLC_TRY(const ValueId x, channels_first(n, n.in(0)));
  DLC_TRY(ValueId y, n.emit("max_pool", {x}, std::move(a)));
  DLC_TRY(y, channels_last(n, y));
  return Values{y};
}

// The indices count in the shape that a max pool with this window had; a given larger shape is filled up with zeros.
Result<Values> max_unpool(const NodeView& n) {
  if (!n.has(0) || !n.has(1) || n.rank(0) < 3) return n.error("needs data of rank 3 or more, and indices");
  const auto in = n.type(0).shape;
  const size_t rank = in.size() - 2;
  DLC_TRY(const auto kernel, n.attr_ints("kernel_shape", {}));
  DLC_TRY(const auto stride, n.attr_ints("strides", std::vector<int64_t>(rank, 1)));
  DLC_TRY(const auto pads, n.attr_ints("pads", std::vector<int64_t>(2 * rank, 0)));
  if (kernel.size() != rank || stride.size() != rank || pads.size() != 2 * rank)
    return n.error("'kernel_shape', 'strides' or 'pads' has the wrong length");
  std::vector<Expr> shape(in.begin(), in.begin() + 2);
  for (size_t i = 0; i < rank; ++i) shape.push_back((in[i + 2] - 1) * stride[i] + kernel[i] - pads[i] - pads[i + rank]);
  DLC_TRY(const ValueId y, n.emit("max_unpool", {n.in(0), n.in(1)}, {{"shape", shape}}));
  if (!n.has(2)) return Values{y};
  DLC_TRY(const auto wanted, n.sizes(2, "output_shape"));
  if (wanted.size() != shape.size()) return n.error("'output_shape' has the wrong length");
  std::vector<Expr> hi;
  for (size_t i = 0; i < shape.size(); ++i) hi.push_back(wanted[i] - shape[i]);
  return n.emit_all("pad", {y}, {{"lo", std::vector<Expr>(shape.size(), Expr(0))}, {"hi", hi}});
}

Result<Values> average_pool(const NodeView& n) {
  DLC_TRY(Attrs a, pool_attrs(n));
  DLC_TRY(const int64_t include, n.attr_int("count_include_pad", 0));
  a["count_include_pad"] = Expr(include != 0);
  return n.emit_all("avg_pool", {n.in(0)}, std::move(a));
}

Result<Values> lp_pool(const NodeView& n) {
  DLC_TRY(Attrs a, pool_attrs(n));
  DLC_TRY(const int64_t p, n.attr_int("p", 2));
  a["p"] = Expr(p);
  return n.emit_all("lp_pool", {n.in(0)}, std::move(a));
}

// Global pools are reductions over the spatial axes that keep them.
template <const char* Record>
Result<Values> global_pool(const NodeView& n) {
  if (!n.has(0) || n.rank(0) < 3) return n.error("the input needs rank 3 or more");
  std::vector<Expr> axes;
  for (int64_t i = 2; i < n.rank(0); ++i) axes.emplace_back(i);
  return n.emit_all(Record, {n.in(0)}, {{"axes", axes}, {"keepdims", Expr(1)}});
}
constexpr char kMean[] = "reduce_mean";
constexpr char kMax[] = "reduce_max";
constexpr char kL1[] = "reduce_l1";
constexpr char kL2[] = "reduce_l2";

Result<Values> global_lp_pool(const NodeView& n) {
  DLC_TRY(const int64_t p, n.attr_int("p", 2));
  if (p == 1) return global_pool<kL1>(n);
  if (p == 2) return global_pool<kL2>(n);
  return n.error(fmt::format("p = {} is not supported, only 1 and 2", p));
}

constexpr OpEntry kTable[] = {
    {"", "MaxPool", max_pool, "t", "pads storage_order"},
    {"com.microsoft", "NhwcMaxPool", max_pool_channels_last, "t", "pads"},
    {"", "AveragePool", average_pool, "t", "pads"},
    {"", "MaxUnpool", max_unpool, "ttT"},
    {"", "LpPool", lp_pool, "t", "pads"},
    {"", "GlobalLpPool", global_lp_pool, "t"},
    {"", "GlobalAveragePool", global_pool<kMean>, "t"},
    {"", "GlobalMaxPool", global_pool<kMax>, "t"},
};

}  // namespace

std::span<const OpEntry> pool_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
