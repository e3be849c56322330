// Reductions, softmax and normalisations.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// Reduced axes: an attribute, or an input from some opset on (13 for ReduceSum, 18 for the others).
Result<std::vector<int64_t>> reduced_axes(const NodeView& n, bool& nothing) {
  const int64_t rank = n.rank(0);
  std::vector<int64_t> axes;
  bool given = false;
  if (n.has(1)) {
    DLC_TRY(const auto known, n.known_ints(1, "axes"));
    for (const Expr& e : known) {
      const auto c = e.constant();
      if (!c) return n.error("the axes are symbolic");
      axes.push_back(*c);
    }
    given = !axes.empty();
  } else if (n.has_attr("axes")) {
    DLC_TRY(axes, n.attr_ints("axes", {}));
    given = !axes.empty();
  }
  DLC_TRY(const int64_t noop, n.attr_int("noop_with_empty_axes", 0));
  nothing = !given && noop != 0;
  if (!given && noop == 0)
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  for (auto& a : axes) {
    DLC_TRY(a, checked_axis(n, a, rank));
  }
  return axes;
}

template <const char* Record>
Result<Values> reduce(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  bool nothing = false;
  DLC_TRY(const auto axes, reduced_axes(n, nothing));
  if (nothing) return Values{n.in(0)};
  DLC_TRY(const int64_t keepdims, n.attr_int("keepdims", 1));
  return n.emit_all(Record, {n.in(0)}, {{"axes", to_exprs(axes)}, {"keepdims", Expr(keepdims != 0)}});
}

template <const char* Record>
Result<Values> arg_reduce(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const int64_t attr, n.attr_int("axis", 0));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const int64_t keepdims, n.attr_int("keepdims", 1));
  DLC_TRY(const int64_t last, n.attr_int("select_last_index", 0));
  return n.emit_all(Record, {n.in(0)},
                    {{"axis", std::vector<Expr>{Expr(axis)}},
                     {"keepdims", Expr(keepdims != 0)},
                     {"select_last_index", Expr(last != 0)}});
}

// Before opset 13 softmax works on the input flattened to two dims at `axis`, whose default is 1.
template <const char* Record>
Result<Values> softmax(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const int64_t attr, n.attr_int("axis", n.opset() >= 13 ? -1 : 1));
  const int64_t rank = n.rank(0);
  if (n.opset() >= 13 || rank == attr + 1 || attr == -1) {
    DLC_TRY(const int64_t axis, checked_axis(n, attr, rank));
    return n.emit_all(Record, {n.in(0)}, {{"axis", Expr(axis)}});
  }
  const int64_t axis = attr < 0 ? attr + rank : attr;
  if (axis < 0 || axis > rank) return n.error(fmt::format("axis {} is out of range for rank {}", attr, rank));
  const auto& shape = n.type(0).shape;
  Expr outer(1);
  Expr inner(1);
  for (int64_t i = 0; i < rank; ++i)
    (i < axis ? outer : inner) = (i < axis ? outer : inner) * shape[static_cast<size_t>(i)];
  DLC_TRY(const ValueId flat, n.emit("reshape", {n.in(0)}, {{"shape", std::vector<Expr>{outer, inner}}}));
  DLC_TRY(const ValueId y, n.emit(Record, {flat}, {{"axis", Expr(1)}}));
  return n.emit_all("reshape", {y}, {{"shape", shape}});
}

Result<Values> layer_norm(const NodeView& n) {
  if (!n.has(0) || !n.has(1)) return n.error("data or scale is missing");
  DLC_TRY(const int64_t attr, n.attr_int("axis", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  return n.emit_all("layer_norm", {n.in(0), n.in(1), n.in(2)}, {{"axis", Expr(axis)}, {"epsilon", epsilon}});
}

Result<Values> batch_norm(const NodeView& n) {
  DLC_TRY(const int64_t training, n.attr_int("training_mode", 0));
  if (training != 0 || n.wants(1)) return n.error("training is not supported", "export the model for inference");
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  return n.emit_all("batch_norm", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)}, {{"epsilon", epsilon}});
}

Result<Values> instance_norm(const NodeView& n) {
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  return n.emit_all("instance_norm", {n.in(0), n.in(1), n.in(2)}, {{"epsilon", epsilon}});
}

constexpr char kSum[] = "reduce_sum";
constexpr char kMean[] = "reduce_mean";
constexpr char kMax[] = "reduce_max";
constexpr char kMin[] = "reduce_min";
constexpr char kProd[] = "reduce_prod";
constexpr char kL1[] = "reduce_l1";
constexpr char kL2[] = "reduce_l2";
constexpr char kLogSum[] = "reduce_log_sum";
constexpr char kLogSumExp[] = "reduce_log_sum_exp";
constexpr char kSumSquare[] = "reduce_sum_square";
constexpr char kArgMax[] = "arg_max";
constexpr char kArgMin[] = "arg_min";
constexpr char kSoftmax[] = "softmax";
constexpr char kLogSoftmax[] = "log_softmax";

constexpr OpEntry kTable[] = {
    {"", "ReduceSum", reduce<kSum>},
    {"", "ReduceMean", reduce<kMean>},
    {"", "ReduceMax", reduce<kMax>},
    {"", "ReduceMin", reduce<kMin>},
    {"", "ReduceProd", reduce<kProd>},
    {"", "ReduceL1", reduce<kL1>},
    {"", "ReduceL2", reduce<kL2>},
    {"", "ReduceLogSum", reduce<kLogSum>},
    {"", "ReduceLogSumExp", reduce<kLogSumExp>},
    {"", "ReduceSumSquare", reduce<kSumSquare>},
    {"", "ArgMax", arg_reduce<kArgMax>},
    {"", "ArgMin", arg_reduce<kArgMin>},
    {"", "Softmax", softmax<kSoftmax>},
    {"", "LogSoftmax", softmax<kLogSoftmax>},
    {"", "LayerNormalization", layer_norm},
    {"", "BatchNormalization", batch_norm},
    {"", "InstanceNormalization", instance_norm},
};

}  // namespace

std::span<const OpEntry> reduction_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
