// Recurrent layers.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// An activation of ONNX: the records' name, and what its parameters are unless they are given.
struct Activation {
  std::string_view onnx, name;
  std::optional<double> alpha = {}, beta = {};
};
constexpr Activation kActivations[] = {
    {"Sigmoid", "sigmoid"},
    {"Tanh", "tanh"},
    {"Relu", "relu"},
    {"Affine", "affine", 1.0, 0.0},
    {"LeakyRelu", "leaky_relu", 0.01},
    {"ThresholdedRelu", "thresholded_relu", 1.0},
    {"ScaledTanh", "scaled_tanh", 1.0, 1.0},
    {"HardSigmoid", "hard_sigmoid", 0.2, 0.5},
    {"Elu", "elu", 1.0},
    {"Softsign", "softsign"},
    {"Softplus", "softplus"},
};

// Of the gates that the record calls `gates`, for one direction. Those functions that have parameters take the next
// ones.
Result<> add_activations(const NodeView& n, const std::vector<const char*>& gates, Attrs& attrs) {
  DLC_TRY(const auto given, n.attr_strings("activations", std::vector<std::string>{}));
  DLC_TRY(const auto alphas, n.attr_floats("activation_alpha", std::vector<double>{}));
  DLC_TRY(const auto betas, n.attr_floats("activation_beta", std::vector<double>{}));
  if (given.empty()) return {};
  if (given.size() != gates.size() && given.size() != 2 * gates.size())
    return n.error(fmt::format("{} activations are given, {} are needed", given.size(), gates.size()));
  struct Gate {
    std::string_view name;
    double alpha, beta;
    bool operator==(const Gate&) const = default;
  };
  std::vector<Gate> chosen;
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < given.size(); ++i) {
    const auto same = [&](const Activation& a) {
      return std::ranges::equal(a.onnx, given[i], {}, ::tolower, ::tolower);
    };
    const auto* const a = std::ranges::find_if(kActivations, same);
    if (a == std::end(kActivations)) return n.error(fmt::format("activation '{}' is not supported", given[i]));
    const auto next = [](const std::optional<double>& otherwise, const std::vector<double>& from, size_t& at) {
      return !otherwise ? 0.0 : at < from.size() ? from[at++] : *otherwise;
    };
    chosen.push_back({a->name, next(a->alpha, alphas, alpha), next(a->beta, betas, beta)});
    if (i >= gates.size() && chosen[i] != chosen[i - gates.size()])
      return n.error("activations that differ between the directions are not supported");
  }
  for (size_t i = 0; i < gates.size(); ++i) {
    const std::string gate = gates[i];
    attrs[gate] = std::string(chosen[i].name);
    attrs[gate + "_alpha"] = chosen[i].alpha;
    attrs[gate + "_beta"] = chosen[i].beta;
  }
  return {};
}

// What every layer has: direction, size, cutting.
Result<> check_common(const NodeView& n, Attrs& attrs, bool hidden_last = true) {
  DLC_TRY(const double clip, n.attr_float("clip", 0.0));
  if (clip < 0) return n.error(fmt::format("attribute 'clip' is {}", clip));
  attrs["clip"] = clip;
  DLC_TRY(const std::string direction, n.attr_string("direction", "forward"));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.error(fmt::format("attribute 'direction' is '{}'", direction));
  DLC_TRY(const int64_t hidden, n.attr_int("hidden_size", 0));
  const TensorType recurrence = n.type(2);
  const auto size = recurrence.shape.size() < 2 ? std::nullopt
                    : hidden_last               ? recurrence.shape.back().constant()
                                                : recurrence.shape[1].constant();
  if (n.has_attr("hidden_size") && size && *size != hidden)
    return n.error(fmt::format("attribute 'hidden_size' is {}, the weights are {}", hidden, to_string(recurrence)));
  return {};
}

Result<ValueId> transposed(const NodeView& n, ValueId v, std::vector<Expr> perm) {
  if (v == kNoValue) return v;
  return n.emit("transpose", {v}, {{"perm", std::move(perm)}});
}

// Layout 1 has the batch first in data, states and results: [b, t, i], [b, dir, h], [b, t, dir, h].
Result<Values> emit_layer(const NodeView& n, const char* record, Values in, Attrs attrs) {
  DLC_TRY(const std::string direction, n.attr_string("direction", "forward"));
  attrs["backward"] = Expr(direction == "reverse");
  DLC_TRY(const int64_t layout, n.attr_int("layout", 0));
  if (layout == 0) return n.emit_all(record, std::move(in), std::move(attrs));
  if (layout != 1) return n.error(fmt::format("layout {} is not supported", layout));
  const std::vector<Expr> swap{1, 0, 2};
  DLC_TRY(in[0], transposed(n, in[0], swap));
  for (size_t i = 4; i < in.size(); ++i) {
    if (in[i] != kNoValue && n.graph().value(in[i]).type.shape.size() != 3) continue;  // lengths, peepholes
    DLC_TRY(in[i], transposed(n, in[i], swap));
  }
  DLC_TRY(Values results, n.emit_all(record, std::move(in), std::move(attrs)));
  for (size_t i = 0; i < results.size(); ++i) {
    if (!n.wants(static_cast<int>(i))) continue;
    DLC_TRY(results[i], transposed(n, results[i], i == 0 ? std::vector<Expr>{2, 0, 1, 3} : swap));
  }
  return results;
}

Result<Values> rnn(const NodeView& n) {
  Attrs attrs;
  DLC_CHECK(check_common(n, attrs));
  DLC_CHECK(add_activations(n, {"cell"}, attrs));
  return emit_layer(n, "rnn", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5), n.in(4)}, std::move(attrs));
}

Result<Attrs> lstm_attrs(const NodeView& n, bool hidden_last) {
  Attrs attrs;
  DLC_CHECK(check_common(n, attrs, hidden_last));
  DLC_CHECK(add_activations(n, {"gates", "cell", "state"}, attrs));
  DLC_TRY(const int64_t forget, n.attr_int("input_forget", 0));
  attrs["input_forget"] = Expr(forget != 0);
  return attrs;
}

Result<Values> lstm(const NodeView& n) {
  DLC_TRY(Attrs attrs, lstm_attrs(n, true));
  return emit_layer(n, "lstm", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5), n.in(6), n.in(4), n.in(7)},
                    std::move(attrs));
}

Result<Values> gru(const NodeView& n) {
  Attrs attrs;
  DLC_CHECK(check_common(n, attrs));
  DLC_CHECK(add_activations(n, {"gates", "cell"}, attrs));
  DLC_TRY(const int64_t linear, n.attr_int("linear_before_reset", 0));
  attrs["linear_before_reset"] = Expr(linear != 0);
  return emit_layer(n, "gru", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5), n.in(4)}, std::move(attrs));
}

// Weights [dir, in, gates] as integers with a scale, for each direction or for each of its gates; as the record has
// them, [dir, gates, in], in floats.
Result<ValueId> float_weights(const NodeView& n, size_t weights, size_t scale) {
  const auto spread = [&](ValueId v) -> Result<ValueId> {
    const auto shape = n.graph().value(v).type.shape;
    if (shape.size() > 2) return n.error("a scale or zero point of the weights needs rank 2 or less");
    if (shape.size() == 2) return n.emit("unsqueeze", {v}, {{"axes", std::vector<Expr>{1}}});
    if (shape.empty()) return v;
    return n.emit("reshape", {v}, {{"shape", std::vector<Expr>{shape[0], 1, 1}}});
  };
  const auto as_float = [&](ValueId v) { return n.emit("cast", {v}, {{"to", kF32}}); };
  DLC_TRY(ValueId w, as_float(n.in(weights)));
  DLC_TRY(ValueId zero, as_float(n.in(scale + 1)));
  DLC_TRY(zero, spread(zero));
  DLC_TRY(const ValueId factor, spread(n.in(scale)));
  DLC_TRY(w, n.emit("sub", {w, zero}));
  DLC_TRY(w, n.emit("mul", {w, factor}));
  return transposed(n, w, {0, 2, 1});
}

// onnxruntime quantises the data and the state at every step too; here they stay what they are.
Result<Values> dynamic_quantize_lstm(const NodeView& n) {
  DLC_TRY(Attrs attrs, lstm_attrs(n, false));
  if (n.rank(1) != 3 || n.rank(2) != 3) return n.error("the weights need rank 3");
  DLC_TRY(const ValueId w, float_weights(n, 1, 8));
  DLC_TRY(const ValueId r, float_weights(n, 2, 10));
  return emit_layer(n, "lstm", {n.in(0), w, r, n.in(3), n.in(5), n.in(6), n.in(4), n.in(7)}, std::move(attrs));
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "DynamicQuantizeLSTM", dynamic_quantize_lstm, "tttTTTTTtttt"},
    {"", "RNN", rnn, "tttTTT", "output_sequence"},
    {"", "LSTM", lstm, "tttTTTTT", "output_sequence"},
    {"", "GRU", gru, "tttTTT", "output_sequence"},
};

}  // namespace

std::span<const OpEntry> recurrent_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
