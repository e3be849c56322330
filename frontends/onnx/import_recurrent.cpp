// Recurrent layers.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// What the records do not say is refused by name: other activations, clipping. A
// bidirectional layer lists its activations twice.
Result<> check_common(const NodeView& n, const std::vector<std::vector<std::string>>& activations,
                      bool hidden_last = true) {
  if (n.has_attr("clip")) return n.error("attribute 'clip' is not supported");
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
  DLC_TRY(const auto given, n.attr_strings("activations", std::vector<std::string>{}));
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& one = activations[i % activations.size()];
    const bool same = i < activations.size() || given[i] == given[i - activations.size()];
    if (std::find(one.begin(), one.end(), given[i]) == one.end() || !same)
      return n.error(fmt::format("activation '{}' is not supported, only {}", given[i], fmt::join(one, ", ")));
  }
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
  DLC_CHECK(check_common(n, {{"Tanh", "Relu", "Sigmoid"}}));
  DLC_TRY(const auto activations, n.attr_strings("activations", std::vector<std::string>{"Tanh"}));
  std::string activation = activations.empty() ? "Tanh" : activations[0];
  activation[0] = static_cast<char>(activation[0] - 'A' + 'a');
  return emit_layer(n, "rnn", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5), n.in(4)}, {{"activation", activation}});
}

Result<Values> lstm(const NodeView& n) {
  DLC_CHECK(check_common(n, {{"Sigmoid"}, {"Tanh"}, {"Tanh"}}));
  DLC_TRY(const int64_t forget, n.attr_int("input_forget", 0));
  if (forget != 0) return n.error("attribute 'input_forget' is not supported");
  return emit_layer(n, "lstm", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5), n.in(6), n.in(4), n.in(7)}, {});
}

Result<Values> gru(const NodeView& n) {
  DLC_CHECK(check_common(n, {{"Sigmoid"}, {"Tanh"}}));
  DLC_TRY(const int64_t linear, n.attr_int("linear_before_reset", 0));
  return emit_layer(n, "gru", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5), n.in(4)},
                    {{"linear_before_reset", Expr(linear != 0)}});
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
  DLC_CHECK(check_common(n, {{"Sigmoid"}, {"Tanh"}, {"Tanh"}}, false));
  DLC_TRY(const int64_t forget, n.attr_int("input_forget", 0));
  if (forget != 0) return n.error("attribute 'input_forget' is not supported");
  if (n.rank(1) != 3 || n.rank(2) != 3) return n.error("the weights need rank 3");
  DLC_TRY(const ValueId w, float_weights(n, 1, 8));
  DLC_TRY(const ValueId r, float_weights(n, 2, 10));
  return emit_layer(n, "lstm", {n.in(0), w, r, n.in(3), n.in(5), n.in(6), n.in(4), n.in(7)}, {});
}

constexpr OpEntry kTable[] = {
    {"com.microsoft", "DynamicQuantizeLSTM", dynamic_quantize_lstm, "tttTTTTTtttt", "activation_alpha activation_beta"},
    {"", "RNN", rnn, "tttTTT", "activation_alpha activation_beta output_sequence"},
    {"", "LSTM", lstm, "tttTTTTT", "activation_alpha activation_beta output_sequence"},
    {"", "GRU", gru, "tttTTT", "activation_alpha activation_beta output_sequence"},
};

}  // namespace

std::span<const OpEntry> recurrent_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
