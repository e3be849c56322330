// What the forms of attention share: heads in and out of the last dim, what is added to the scores, and the product.
//
//   Bias bias(n, type, queries, keys);
//   DLC_CHECK(bias.add_causal(past));
//   DLC_TRY(const Values y, attend(n, q, k, v, bias.sum(), {.scale = 0.125}));
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontends/onnx/importer.h"

namespace dlc::onnx_frontend {

using Exprs = std::vector<Expr>;

const TensorType& type_of(const NodeView& n, ValueId v);
Result<ValueId> reshaped(const NodeView& n, ValueId v, Exprs shape);
// Elements from .. to - 1 along an axis.
Result<ValueId> sliced(const NodeView& n, ValueId v, size_t axis, const Expr& from, const Expr& to);

// [batch, sequence, heads * size] as [batch, heads, sequence, size], and back.
Result<ValueId> split_heads(const NodeView& n, ValueId v, int64_t heads);
Result<ValueId> join_heads(const NodeView& n, ValueId v);

// The positions 0 .. count - 1, from `first` on.
Result<ValueId> positions(const NodeView& n, const Expr& count, ValueId first = kNoValue);

// What is added to the scores [batch, heads, queries, keys]: masks, where the past ends, where a sequence ends.
// kNoValue for nothing.
class Bias {
 public:
  Bias(const NodeView& n, DType type, Expr queries, Expr keys);

  Result<> add(ValueId v);
  // `otherwise` where a condition does not hold.
  Result<> add_condition(ValueId v, double otherwise);
  Result<> add_condition(ValueId v);
  // [.., queries, keys]; what it has not for the last keys hides them.
  Result<> add_mask(ValueId mask);
  // A query sees the past and what is not after itself.
  Result<> add_causal(const Expr& past);
  // Each sequence of the batch has its own number of keys.
  Result<> add_lengths(ValueId lengths);
  Result<> add_lengths(ValueId lengths, double otherwise);

  ValueId sum() const { return sum_; }

 private:
  const NodeView& n_;
  DType type_;
  Expr queries_, keys_;
  ValueId sum_ = kNoValue;
};

struct Scores {
  std::optional<double> scale;  // otherwise by the root of a head's size
  double cap = 0;               // scores are kept within it, smoothly; 0 for no cap
  bool wanted = false;          // as a second result: those of `stage`
  int64_t stage = 0;            // products, capped, with the bias, weights
  ValueId sink = kNoValue;      // one more score for each head [heads], whose weight goes nowhere
  // What a model does to the scores and to the weights itself.
  std::function<Result<ValueId>(ValueId)> change_scores = {}, change_weights = {};
};

// The result, and the scores or kNoValue. All of rank 4: batch, heads, sequence, size.
Result<std::vector<ValueId>> attend(const NodeView& n, ValueId q, ValueId k, ValueId v, ValueId bias,
                                    const Scores& scores);

// Turns pairs of the first `part` elements of each head by the angles at the positions [batch, sequence].
Result<ValueId> turned(const NodeView& n, ValueId x, ValueId cos, ValueId sin, ValueId positions, const Expr& part,
                       bool interleaved);

}  // namespace dlc::onnx_frontend
