// Reductions, softmax and normalisations.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/axes.h"
#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// Reduced axes: an attribute, or an input from some opset on (13 for ReduceSum, 18 for the others).
Result<std::vector<Expr>> reduced_axes(const NodeView& n, bool& nothing) {
  const int64_t rank = n.rank(0);
  std::vector<Expr> axes;
  if (n.has(1)) {
    DLC_TRY(axes, axes_input(n, 1, rank));
  } else if (n.has_attr("axes")) {
    DLC_TRY(auto list, n.attr_ints("axes", {}));
    for (auto& a : list) {
      DLC_TRY(a, checked_axis(n, a, rank));
    }
    axes = to_exprs(list);
  }
  DLC_TRY(const int64_t noop, n.attr_int("noop_with_empty_axes", 0));
  nothing = axes.empty() && noop != 0;
  if (axes.empty() && noop == 0)
    for (int64_t i = 0; i < rank; ++i) axes.emplace_back(i);
  return axes;
}

// Of no axes, a sum is the element itself; a sum of squares is still its square.
template <const char* Record>
Result<Values> reduce(const NodeView& n) {
  bool nothing = false;
  DLC_TRY(const auto axes, reduced_axes(n, nothing));
  DLC_TRY(const int64_t keepdims, n.attr_int("keepdims", 1));
  constexpr std::string_view kPlain[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"};
  if (nothing && std::ranges::find(kPlain, std::string_view(Record)) != std::end(kPlain)) return Values{n.in(0)};
  if (constants(axes)) return n.emit_all(Record, {n.in(0)}, {{"axes", axes}, {"keepdims", Expr(keepdims != 0)}});
  DLC_TRY(const ValueId y, reduce_over(n, Record, 1, keepdims != 0));
  return Values{y};
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
  const auto shape = n.type(0).shape;
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
  DLC_TRY(auto results,
          n.emit_all("layer_norm", {n.in(0), n.in(1), n.in(2)}, {{"axis", Expr(axis)}, {"epsilon", epsilon}}));
  DLC_TRY(const int64_t stash, n.attr_int("stash_type", 1));
  for (int i = 1; i < 3; ++i) {  // ONNX keeps the reduced dims of Mean and InvStdDev, which are f32 of f64 too
    if (!n.wants(i)) continue;
    std::vector<Expr> axes;
    for (int64_t d = axis; d < n.rank(0); ++d) axes.emplace_back(d);
    auto& statistic = results[static_cast<size_t>(i)];
    DLC_TRY(statistic, n.emit("unsqueeze", {statistic}, {{"axes", axes}}));
    if (stash == 1 && n.type(0).dtype == kF64) {
      DLC_TRY(statistic, n.emit("cast", {statistic}, {{"to", kF32}}));
    }
  }
  return results;
}

Result<Values> batch_norm(const NodeView& n) {
  DLC_TRY(const int64_t spatial, n.attr_int("spatial", 1));
  if (spatial == 0) return n.error("attribute 'spatial' is 0: statistics of each element are not supported");
  DLC_TRY(const int64_t training, n.attr_int("training_mode", 0));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  if (training != 0) {
    DLC_TRY(const double momentum, n.attr_float("momentum", 0.9));
    return n.emit_all("batch_norm_training", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(4)},
                      {{"epsilon", epsilon}, {"momentum", momentum}});
  }
  if (n.wants(1)) return n.error("training is not supported before opset 14", "export the model for inference");
  Values in = n.inputs();
  if (n.rank(0) != 1) return n.emit_all("batch_norm", in, {{"epsilon", epsilon}});
  // A row of numbers has one channel.
  const Attrs channel{{"axes", std::vector<Expr>{Expr(1)}}};
  DLC_TRY(in[0], n.emit("unsqueeze", {in[0]}, channel));
  DLC_TRY(const ValueId y, n.emit("batch_norm", in, {{"epsilon", epsilon}}));
  return n.emit_all("squeeze", {y}, channel);
}

Result<Values> instance_norm(const NodeView& n) {
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  return n.emit_all("instance_norm", {n.in(0), n.in(1), n.in(2)}, {{"epsilon", epsilon}});
}

// Before opset 21 there is a scale and a bias for each group, from then on for each channel, as the record has it.
Result<Values> group_norm(const NodeView& n) {
  if (!n.has(0) || !n.has(1) || !n.has(2) || n.rank(0) < 2) return n.error("needs data, scale and bias");
  DLC_TRY(const int64_t groups, n.attr_int("num_groups", {}));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-5));
  Values in = n.inputs();
  if (n.opset() < 21) {
    const auto channels = n.type(0).shape[1].constant();
    if (!channels || groups < 1 || *channels % groups != 0)
      return n.error(fmt::format("{} channels cannot be split into {} groups", to_string(n.type(0).shape[1]), groups));
    for (const size_t i : {1, 2}) {  // [groups] -> [groups, channels / groups] -> [channels]
      DLC_TRY(const ValueId column, n.emit("unsqueeze", {in[i]}, {{"axes", std::vector<Expr>{Expr(1)}}}));
      DLC_TRY(const ValueId wide,
              n.emit("expand", {column}, {{"shape", std::vector<Expr>{groups, *channels / groups}}}));
      DLC_TRY(in[i], n.emit("reshape", {wide}, {{"shape", std::vector<Expr>{*channels}}}));
    }
  }
  return n.emit_all("group_norm", in, {{"groups", Expr(groups)}, {"epsilon", epsilon}});
}

Result<Values> lrn(const NodeView& n) {
  DLC_TRY(const int64_t size, n.attr_int("size", {}));
  DLC_TRY(const double alpha, n.attr_float("alpha", 1e-4));
  DLC_TRY(const double beta, n.attr_float("beta", 0.75));
  DLC_TRY(const double bias, n.attr_float("bias", 1.0));
  return n.emit_all("lrn", {n.in(0)}, {{"size", Expr(size)}, {"alpha", alpha}, {"beta", beta}, {"bias", bias}});
}

Result<Values> lp_normalization(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const int64_t attr, n.attr_int("axis", -1));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const int64_t p, n.attr_int("p", 2));
  return n.emit_all("lp_norm", {n.in(0)}, {{"axis", Expr(axis)}, {"p", Expr(p)}});
}

// (x - mean) / (standard deviation + 1e-9)
Result<Values> mean_variance(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(auto axes, n.attr_ints("axes", std::vector<int64_t>{0, 2, 3}));
  for (auto& a : axes) {
    DLC_TRY(a, checked_axis(n, a, n.rank(0)));
  }
  const Attrs over{{"axes", to_exprs(axes)}, {"keepdims", Expr(1)}};
  DLC_TRY(const ValueId mean, n.emit("reduce_mean", {n.in(0)}, over));
  DLC_TRY(const ValueId centred, n.emit("sub", {n.in(0), mean}));
  DLC_TRY(const ValueId square, n.emit("mul", {centred, centred}));
  DLC_TRY(const ValueId variance, n.emit("reduce_mean", {square}, over));
  DLC_TRY(const ValueId deviation, n.emit("sqrt", {variance}));
  DLC_TRY(const ValueId epsilon, n.scalar(n.type(0).dtype, 1e-9));
  DLC_TRY(const ValueId divisor, n.emit("add", {deviation, epsilon}));
  return n.emit_all("div", {centred, divisor});
}

// How far each row of A is from each row of B.
Result<Values> distances(const NodeView& n) {
  DLC_TRY(const std::string metric, n.attr_string("metric", "sqeuclidean"));
  if (metric != "euclidean" && metric != "sqeuclidean")
    return n.error(fmt::format("attribute 'metric' is '{}'", metric), "euclidean and sqeuclidean are supported");
  if (n.rank(0) != 2 || n.rank(1) != 2) return n.error("both operands need rank 2");
  DLC_TRY(const ValueId a, n.emit("unsqueeze", {n.in(0)}, {{"axes", std::vector<Expr>{1}}}));
  DLC_TRY(const ValueId b, n.emit("unsqueeze", {n.in(1)}, {{"axes", std::vector<Expr>{0}}}));
  DLC_TRY(const ValueId apart, n.emit("sub", {a, b}));
  DLC_TRY(const ValueId y, n.emit("reduce_sum_square", {apart}, {{"axes", std::vector<Expr>{2}}}));
  if (metric == "sqeuclidean") return Values{y};
  return n.emit_all("sqrt", {y});
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
constexpr char kHardmax[] = "hardmax";

constexpr OpEntry kTable[] = {
    {"", "ReduceSum", reduce<kSum>, "t", "", 12},
    {"", "ReduceSum", reduce<kSum>, "tT"},
    {"", "ReduceMean", reduce<kMean>, "t", "", 17},
    {"", "ReduceMean", reduce<kMean>, "tT"},
    {"", "ReduceMax", reduce<kMax>, "t", "", 17},
    {"", "ReduceMax", reduce<kMax>, "tT"},
    {"", "ReduceMin", reduce<kMin>, "t", "", 17},
    {"", "ReduceMin", reduce<kMin>, "tT"},
    {"", "ReduceProd", reduce<kProd>, "t", "", 17},
    {"", "ReduceProd", reduce<kProd>, "tT"},
    {"", "ReduceL1", reduce<kL1>, "t", "", 17},
    {"", "ReduceL1", reduce<kL1>, "tT"},
    {"", "ReduceL2", reduce<kL2>, "t", "", 17},
    {"", "ReduceL2", reduce<kL2>, "tT"},
    {"", "ReduceLogSum", reduce<kLogSum>, "t", "", 17},
    {"", "ReduceLogSum", reduce<kLogSum>, "tT"},
    {"", "ReduceLogSumExp", reduce<kLogSumExp>, "t", "", 17},
    {"", "ReduceLogSumExp", reduce<kLogSumExp>, "tT"},
    {"", "ReduceSumSquare", reduce<kSumSquare>, "t", "", 17},
    {"", "ReduceSumSquare", reduce<kSumSquare>, "tT"},
    {"", "ArgMax", arg_reduce<kArgMax>, "t"},
    {"", "ArgMin", arg_reduce<kArgMin>, "t"},
    {"", "Softmax", softmax<kSoftmax>, "t"},
    {"", "LogSoftmax", softmax<kLogSoftmax>, "t"},
    {"", "Hardmax", softmax<kHardmax>, "t"},
    {"", "LayerNormalization", layer_norm, "ttT"},
    {"", "GroupNormalization", group_norm, "ttt", "stash_type"},
    {"com.microsoft", "CDist", distances, "tt"},
    {"", "LRN", lrn, "t"},
    {"", "LpNormalization", lp_normalization, "t"},
    {"", "MeanVarianceNormalization", mean_variance, "t"},
    {"", "BatchNormalization", batch_norm, "ttttt", "momentum"},
    {"", "InstanceNormalization", instance_norm, "ttt"},
};

}  // namespace

std::span<const OpEntry> reduction_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
