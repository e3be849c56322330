// What every rule of commit_numerics works with: the graph, the quantised values in it, and nodes to put in place.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/numerics/contract.h"
#include "core/numerics/multiplier.h"
#include "core/passes/copy.h"
#include "dlc/numerics/commit.h"
#include "dlc/ops/attributes.h"

namespace dlc::numerics {

// What a (de)quantize_linear with one constant scale says.
struct PerTensor {
  double scale = 1;
  int64_t zero = 0;
};
// nullopt: not constant, several, or no usable scale.
std::optional<PerTensor> per_tensor(const Graph& g, const Node& n);

// A per-tensor quantised value: real = (q - zero) * scale, q of type s8.
struct Quantized {
  ValueId value = kNoValue;
  double scale = 1;
  int64_t zero = 0;
  int64_t reach() const { return std::max<int64_t>(127 - zero, zero + 128); }  // the largest |q - zero|
};

// How an activation between an op and its quantize_linear bounds the result.
struct Clamp {
  int64_t lo = -128;
  int64_t hi = 127;
};

// One quantize_linear being rewritten: the op that makes its input, and what the result must look like.
struct Site {
  NodeId root = kNoNode;  // the op whose result is quantised
  NodeId quantize = kNoNode;
  double scale = 1;
  int64_t zero = 0;
  Clamp clamp;
  std::vector<std::string> locations;  // of every node the rewrite replaces
};

// A rule gives its result, or says why it does not apply; the reason is shown when the node stays in float.
struct Refused {
  std::string why;
};
template <class T>
class Attempt {
 public:
  Attempt(T value) : value_(std::move(value)) {}              // NOLINT(google-explicit-constructor)
  Attempt(Refused refused) : why_(std::move(refused.why)) {}  // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return value_.has_value(); }
  const T& operator*() const { return *value_; }
  const T* operator->() const { return &*value_; }
  const std::string& why() const { return why_; }

 private:
  std::optional<T> value_;
  std::string why_;
};

class Rewriter {
 public:
  explicit Rewriter(Graph& g) : g_(g) {}

  Graph& graph() { return g_; }
  const RecordSet& records() const { return g_.record_set(); }
  // Of a node whose op has a record: every node that add_node made.
  Attributes attributes(const Node& n) const { return {*g_.record_set().find(n.op), n.attrs}; }
  // Whether only one node uses v, as the graph was when the rules began: what they add uses integers alone.
  bool used_once(ValueId v) const {
    return static_cast<size_t>(v) < uses_.size() && uses_[static_cast<size_t>(v)] == 1;
  }
  void count_uses();
  // v as an s8 per-tensor quantised value when a dequantize_linear makes it; u8 is shifted to s8.
  Result<std::optional<Quantized>> dequantized(ValueId v);
  // The s8 weight and its scales (one, or one per index of `axis`) when v is a dequantised constant with zero point 0.
  struct Weight {
    Tensor q;
    std::vector<double> scales;
    int64_t axis = -1;  // -1: one scale
  };
  std::optional<Weight> dequantized_weight(ValueId v) const;
  // Real values of a constant, through a dequantize_linear if there is one.
  std::optional<std::vector<double>> constant_values(ValueId v) const;

  // The quantize_linear's scale and zero point as for an s8 result.
  std::optional<Site> site(NodeId quantize) const;

  Result<ValueId> add(std::string op, std::vector<ValueId> inputs, Attrs attrs, const Site& site);
  ValueId constant(Tensor t, std::string_view wish);
  Result<ValueId> scalar(DType type, int64_t value, std::string_view wish);
  Result<ValueId> vector(DType type, const std::vector<int64_t>& values, std::string_view wish);
  // Why nothing can be done: a recipe of these that the machine does not have.
  std::optional<Refused> without(std::initializer_list<std::string_view> recipes) const;
  // The declared type of an operand of a recipe.
  Result<DType> operand_type(std::string_view recipe, std::string_view operand) const;
  // The operands M.. and S of a recipe: one ratio for each multiplier; or one multiplier with a ratio for each channel.
  Result<Attempt<std::vector<ValueId>>> scale(std::string_view recipe, std::vector<Ratio> ratios, const Site& s);
  Result<Attempt<std::vector<ValueId>>> scale_channels(std::string_view recipe, const std::vector<Ratio>& ratios,
                                                       const Site& s);
  Attrs output_attrs(const Site& s) const;
  // The u8 value `u8` is `s8` shifted by 128: rules take s8 instead.
  void remember(ValueId u8, ValueId s8) { shifted_[u8] = s8; }

  // The same elements out of the value that they were first in, before any copy.
  Copy from_origin(const Copy& last) const;
  // v: [b..., s, d] as [b, s, d], or as its columns [b, d, s]; b is one dim. A copy that no node makes yet.
  Copy matrices(ValueId v, bool columns) const;
  // The columns of v where some rule has worked on them already: v is only another view of them.
  std::optional<ValueId> known_columns(ValueId v) const;
  Result<ValueId> columns(ValueId v, const Site& s);
  void remember_columns(ValueId y) { columns_.insert(y); }
  // What v is a part of, or another view: columns, by the copies between, the last one first. Empty: there are none.
  std::vector<NodeId> copies_of_columns(ValueId v) const;
  // Of columns y: [b, d, s] the value of this shape [b..., s, d].
  Result<ValueId> rows(ValueId y, const std::vector<Expr>& shape, const Site& s);

 private:
  Result<ValueId> as_s8(ValueId v, int64_t& zero);
  Graph& g_;
  std::vector<int> uses_;               // by value
  std::map<ValueId, ValueId> shifted_;  // u8 value -> its s8 form
  std::set<ValueId> columns_;           // values [b, d, s] that rules work on
};

// An op on each element of `operands`, of which the first has the result's shape and others may be broadcast: on their
// columns, where one of that shape has these already.
Result<ValueId> on_elements(Rewriter& r, const Site& s, std::string op, std::vector<ValueId> operands,
                            const std::vector<ValueId>& more, Attrs attrs);

// The rules, each in a file of its own. They return the integer result, or a reason.
using RuleResult = Result<Attempt<ValueId>>;
using Rule = RuleResult (*)(Rewriter&, const Site&);
RuleResult commit_conv(Rewriter& r, const Site& s);
RuleResult commit_conv_transpose(Rewriter& r, const Site& s);
RuleResult commit_product(Rewriter& r, const Site& s);    // matmul, gemm
RuleResult commit_biased(Rewriter& r, const Site& s);     // add of a matmul and a constant per column
RuleResult commit_attention(Rewriter& r, const Site& s);  // matmul of two activations, by heads
RuleResult commit_softmax(Rewriter& r, const Site& s);
RuleResult commit_layer_norm(Rewriter& r, const Site& s);
RuleResult commit_sum(Rewriter& r, const Site& s);  // add
RuleResult commit_mul(Rewriter& r, const Site& s);
RuleResult commit_pool(Rewriter& r, const Site& s);  // avg_pool, reduce_mean over the spatial axes
RuleResult commit_concat(Rewriter& r, const Site& s);
RuleResult commit_requantize(Rewriter& r, const Site& s);  // the root is itself a dequantize_linear
RuleResult commit_table(Rewriter& r, const Site& s);       // any function of one value

// Moves dequantize_linear below and quantize_linear above ops that only move or select elements.
Result<> commute_with_movement(Rewriter& r);
// What is linear needs no rounding of its own: a constant factor goes into the scale of what it multiplies, and a
// matrix product is not rounded before its bias is added.
Result<bool> fold_linear(Rewriter& r);  // whether it left nodes that nothing uses
// A function of one 8-bit value, rounded to 8 bits on its way, is rounded once: it is one table.
Result<bool> join_functions(Rewriter& r);  // whether there was any

}  // namespace dlc::numerics
