// Recurrent layers.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// What the records do not say is refused by name: peepholes, sequence lengths, other activations, clipping.
Result<> check_common(const NodeView& n, const std::vector<std::string>& defaults) {
  if (n.has(4)) return n.error("input 4 (sequence_lens) is not supported");
  if (n.has_attr("clip")) return n.error("attribute 'clip' is not supported");
  DLC_TRY(const int64_t layout, n.attr_int("layout", 0));
  if (layout != 0) return n.error("layout 1 is not supported");
  DLC_TRY(const std::string direction, n.attr_string("direction", "forward"));
  DLC_TRY(const auto activations, n.attr_strings("activations", std::vector<std::string>{}));
  for (size_t i = 0; i < activations.size(); ++i)  // a bidirectional layer lists them twice
    if (activations[i] != defaults[i % defaults.size()])
      return n.error(
          fmt::format("activation '{}' is not supported, only {}", activations[i], fmt::join(defaults, ", ")));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.error(fmt::format("attribute 'direction' is '{}'", direction));
  return {};
}

Result<Values> lstm(const NodeView& n) {
  DLC_CHECK(check_common(n, {"Sigmoid", "Tanh", "Tanh"}));
  if (n.has(7)) return n.error("input 7 (peephole weights) is not supported");
  DLC_TRY(const int64_t forget, n.attr_int("input_forget", 0));
  if (forget != 0) return n.error("attribute 'input_forget' is not supported");
  DLC_TRY(const std::string direction, n.attr_string("direction", "forward"));
  return n.emit_all("lstm", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5), n.in(6)},
                    {{"backward", Expr(direction == "reverse")}});
}

Result<Values> gru(const NodeView& n) {
  DLC_CHECK(check_common(n, {"Sigmoid", "Tanh"}));
  DLC_TRY(const std::string direction, n.attr_string("direction", "forward"));
  DLC_TRY(const int64_t linear, n.attr_int("linear_before_reset", 0));
  return n.emit_all("gru", {n.in(0), n.in(1), n.in(2), n.in(3), n.in(5)},
                    {{"backward", Expr(direction == "reverse")}, {"linear_before_reset", Expr(linear != 0)}});
}

constexpr OpEntry kTable[] = {{"", "LSTM", lstm}, {"", "GRU", gru}};

}  // namespace

std::span<const OpEntry> recurrent_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
