// Losses, and the optimisers of ai.onnx.preview.training: one step of each is a function like any other.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<ValueId> total(const NodeView& n, ValueId v) {
  std::vector<Expr> axes;
  for (size_t i = 0; i < n.graph().value(v).type.shape.size(); ++i) axes.emplace_back(static_cast<int64_t>(i));
  return n.emit("reduce_sum", {v}, {{"axes", axes}});
}

// The mean is over the weights of the elements that count.
Result<ValueId> loss(const NodeView& n, ValueId log_probabilities) {
  if (!n.has(1)) return n.error("the classes are missing");
  Attrs a;
  if (n.has_attr("ignore_index")) {
    DLC_TRY(const int64_t ignored, n.attr_int("ignore_index", {}));
    a = {{"ignoring", Expr(1)}, {"ignored", Expr(ignored)}};
  }
  DLC_TRY(const std::string reduction, n.attr_string("reduction", "mean"));
  DLC_TRY(const Values each, n.emit_all("nll_loss", {log_probabilities, n.in(1), n.in(2)}, std::move(a)));
  if (reduction == "none") return each[0];
  DLC_TRY(const ValueId sum, total(n, each[0]));
  if (reduction == "sum") return sum;
  if (reduction != "mean") return n.error(fmt::format("attribute 'reduction' is '{}'", reduction));
  DLC_TRY(const ValueId weight, total(n, each[1]));
  return n.emit("div", {sum, weight});
}

Result<Values> negative_log_likelihood(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  DLC_TRY(const ValueId y, loss(n, n.in(0)));
  return Values{y};
}

Result<Values> softmax_cross_entropy(const NodeView& n) {
  if (!n.has(0) || n.rank(0) < 2) return n.error("the scores need rank 2 or more");
  DLC_TRY(const ValueId log_probabilities, n.emit("log_softmax", {n.in(0)}, {{"axis", Expr(1)}}));
  DLC_TRY(const ValueId y, loss(n, log_probabilities));
  return Values{y, log_probabilities};
}

// Inputs: the rate, the step, then each tensor, each gradient, and each of the states. Results: the tensors, then the
// states.
Result<Values> optimiser(const NodeView& n, const char* record, size_t states, const Attrs& attrs) {
  const size_t groups = states + 2;
  if (n.input_count() < 2 + groups || (n.input_count() - 2) % groups != 0)
    return n.error("the number of inputs is wrong");
  const size_t tensors = (n.input_count() - 2) / groups;
  DLC_TRY(const ValueId rate, scalar_input(n, 0));
  DLC_TRY(const ValueId step, scalar_input(n, 1));
  Values results((states + 1) * tensors);
  for (size_t t = 0; t < tensors; ++t) {
    Values in{rate, step};
    for (size_t g = 0; g < groups; ++g) in.push_back(n.in(2 + g * tensors + t));
    DLC_TRY(const Values out, n.emit_all(record, in, attrs));
    for (size_t s = 0; s <= states; ++s) results[s * tensors + t] = out[s];
  }
  return results;
}

Result<Values> adagrad(const NodeView& n) {
  DLC_TRY(const double decay, n.attr_float("decay_factor", 0.0));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-6));
  DLC_TRY(const double norm, n.attr_float("norm_coefficient", 0.0));
  return optimiser(n, "adagrad", 1, {{"decay", decay}, {"epsilon", epsilon}, {"norm", norm}});
}

Result<Values> adam(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", 0.9));
  DLC_TRY(const double beta, n.attr_float("beta", 0.999));
  DLC_TRY(const double epsilon, n.attr_float("epsilon", 1e-6));
  DLC_TRY(const double norm, n.attr_float("norm_coefficient", 0.0));
  DLC_TRY(const double post, n.attr_float("norm_coefficient_post", 0.0));
  return optimiser(n, "adam", 2,
                   {{"alpha", alpha}, {"beta", beta}, {"epsilon", epsilon}, {"norm", norm}, {"norm_post", post}});
}

Result<Values> momentum(const NodeView& n) {
  DLC_TRY(const double alpha, n.attr_float("alpha", {}));
  DLC_TRY(const double beta, n.attr_float("beta", {}));
  DLC_TRY(const double norm, n.attr_float("norm_coefficient", {}));
  DLC_TRY(const std::string mode, n.attr_string("mode", {}));
  return optimiser(n, "momentum", 1, {{"alpha", alpha}, {"beta", beta}, {"norm", norm}, {"mode", mode}});
}

constexpr OpEntry kTable[] = {
    {"", "NegativeLogLikelihoodLoss", negative_log_likelihood, "ttT"},
    {"", "SoftmaxCrossEntropyLoss", softmax_cross_entropy, "ttT"},
    {"ai.onnx.preview.training", "Adagrad", adagrad, "t*"},
    {"ai.onnx.preview.training", "Adam", adam, "t*"},
    {"ai.onnx.preview.training", "Momentum", momentum, "t*"},
};

}  // namespace

std::span<const OpEntry> loss_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
