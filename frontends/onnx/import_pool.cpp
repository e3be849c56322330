// Pools and resampling.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<Attrs> pool_attrs(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  if (n.rank(0) < 3) return n.error(fmt::format("the input has rank {}, at least 3 is needed", n.rank(0)));
  if (!n.has_attr("kernel_shape")) return n.error("attribute 'kernel_shape' is required");
  DLC_TRY(const Window w, read_window(n, {}, std::span<const Expr>(n.type(0).shape).subspan(2)));
  DLC_TRY(const int64_t ceil_mode, n.attr_int("ceil_mode", 0));
  Attrs a = window_attrs(w, true);
  a["ceil_mode"] = Expr(ceil_mode != 0);
  return a;
}

Result<Values> max_pool(const NodeView& n) {
  if (n.wants(1)) return n.error("output 1 (Indices) is not supported");
  DLC_TRY(Attrs a, pool_attrs(n));
  return n.emit_all("max_pool", {n.in(0)}, std::move(a));
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
    {"", "MaxPool", max_pool},
    {"", "AveragePool", average_pool},
    {"", "LpPool", lp_pool},
    {"", "GlobalLpPool", global_lp_pool},
    {"", "GlobalAveragePool", global_pool<kMean>},
    {"", "GlobalMaxPool", global_pool<kMax>},
};

}  // namespace

std::span<const OpEntry> pool_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
