// Layer norm in integers: what a row is in units of its deviation, by the sums of its elements and of their squares,
// then a gain and a shift for each channel, rounded once. Both are 16 bits wide and in units of the result:
//
//   y = standard * G + B * Mb, of which S bits are shifted away;   G = gain/scale * 2^(S - unit), B * Mb = shift/scale
//   * 2^S
#include <fmt/format.h>

#include <cmath>

#include "core/numerics/rewriter.h"
#include "core/numerics/unit.h"

namespace dlc::numerics {

namespace {

// The types of what `normalize` takes.
struct Types {
  DType x, gain, shift, epsilon, v, mb, s;
};
Result<Types> types_of(const Rewriter& r) {
  Types t;
  DType* const all[] = {&t.x, &t.gain, &t.shift, &t.epsilon, &t.v, &t.mb, &t.s};
  constexpr std::string_view kNames[] = {"X", "G", "B", "E", "V", "Mb", "S"};
  for (size_t i = 0; i < std::size(all); ++i) {
    DLC_TRY(*all[i], r.operand_type("normalize", kNames[i]));
  }
  return t;
}

// What it shifts away for units of the deviation: the S for which the larger of two elements, times a gain, is the
// gain.
Result<int64_t> unit_of_deviation(const Rewriter& r, const Types& t) {
  constexpr int64_t kGain = 64;
  DLC_TRY(Tensor x, Tensor::make(t.x, {1, 2, 1}));
  DLC_TRY(Tensor gain, Tensor::make(t.gain, {2}));
  DLC_TRY(Tensor shift, Tensor::make(t.shift, {2}));
  DLC_TRY(Tensor epsilon, Tensor::make(t.epsilon, {}));
  DLC_TRY(Tensor v, Tensor::make(t.v, {}));
  DLC_TRY(Tensor mb, Tensor::make(t.mb, {}));
  DLC_TRY(Tensor s, Tensor::make(t.s, {}));
  for (const int64_t i : {0, 1}) {
    x.set_int(i, i == 0 ? t.x.max_value() : -t.x.max_value());
    gain.set_int(i, kGain);
    shift.set_int(i, 0);
  }
  epsilon.set_int(0, 0);
  v.set_int(0, 0);
  mb.set_int(0, 0);
  return unit_shift(
      r.records(), "normalize",
      {std::move(x), std::move(gain), std::move(shift), std::move(epsilon), std::move(v), std::move(mb), std::move(s)},
      kGain);
}

double largest(const std::vector<double>& v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

// The most bits behind the point, up to `most`, with which all numbers up to `value` fit the type.
int64_t bits_behind(double value, DType type, int64_t most) {
  while (most > 0 && std::nearbyint(std::ldexp(value, static_cast<int>(most))) > static_cast<double>(type.max_value()))
    --most;
  return most;
}

std::vector<int64_t> fixed(const std::vector<double>& v, int64_t bits) {
  std::vector<int64_t> out;
  for (const double x : v) out.push_back(std::llrint(std::ldexp(x, static_cast<int>(bits))));
  return out;
}

// A constant for each channel, in units of the result.
std::optional<std::vector<double>> per_channel(const Rewriter& r, ValueId v, int64_t channels, double scale) {
  auto values = r.constant_values(v);
  if (!values || (values->size() != 1 && std::ssize(*values) != channels)) return std::nullopt;
  values->resize(static_cast<size_t>(channels), values->front());
  for (double& x : *values) {
    x /= scale;
    if (!std::isfinite(x)) return std::nullopt;
  }
  return values;
}

}  // namespace

RuleResult commit_layer_norm(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto x, r.dequantized(n.inputs[0]));
  if (!x) return Refused{"the input is not quantised per tensor"};
  const std::vector<Expr> shape = r.graph().value(x->value).type.shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto axis = r.attributes(n).integer("axis");
  const auto epsilon = r.attributes(n).real("epsilon");
  if (rank < 2 || !axis || (*axis != -1 && *axis != rank - 1))
    return Refused{"it is not along the last of several axes"};
  const auto channels = shape.back().constant();
  if (!channels) return Refused{"the length of its rows is symbolic"};
  if (const auto no = r.without({"normalize"})) return *no;
  DLC_TRY(const Types t, types_of(r));
  if (*channels > kS32.max_value() / (x->reach() * x->reach()))
    return Refused{fmt::format("the sum of {} squares of at most {} may wrap", *channels, x->reach())};

  const auto gain = per_channel(r, n.inputs[1], *channels, s.scale);
  auto shift = std::optional(std::vector<double>(static_cast<size_t>(*channels), 0.0));
  if (n.inputs.size() > 2 && n.inputs[2] != kNoValue) shift = per_channel(r, n.inputs[2], *channels, s.scale);
  if (!gain || !shift) return Refused{"gain or shift is not a constant for each channel"};
  const double e = std::nearbyint(static_cast<double>(*channels) * epsilon.value_or(0) / (x->scale * x->scale));
  if (!(e >= 0 && e <= static_cast<double>(t.epsilon.max_value())))
    return Refused{fmt::format("its epsilon, {} in units of the input, does not fit {}", e, to_string(t.epsilon))};

  // n*n times the variance of n elements: half of their range, squared, is the most.
  const double n2 = static_cast<double>(*channels) * static_cast<double>(*channels);
  const double most_variance = n2 * 127.5 * 127.5 + static_cast<double>(*channels) * e;
  int64_t away = 0;
  while (std::ldexp(most_variance, static_cast<int>(-away)) > static_cast<double>(kS32.max_value())) away += 2;
  if (away > t.v.max_value()) return Refused{fmt::format("the variance of {} elements does not fit", *channels)};

  // Bits behind the point, of the gain and of the shift: the second's are made up for by a power of two.
  DLC_TRY(const int64_t deviation, unit_of_deviation(r, t));
  const int64_t unit = deviation + away / 2;
  const double most_gain = largest(*gain), most_shift = largest(*shift);
  if (most_gain > static_cast<double>(t.gain.max_value()) || most_shift > static_cast<double>(t.shift.max_value()))
    return Refused{"gain or shift is too large for the scale of the result"};
  int64_t gain_bits = bits_behind(most_gain, t.gain, t.s.max_value() - unit);
  int64_t shift_bits = bits_behind(most_shift, t.shift, unit + gain_bits);
  const int64_t most_up = t.mb.bits - 1;
  gain_bits = std::min(gain_bits, shift_bits + most_up - unit);
  if (gain_bits < 0) return Refused{"its shift is too large beside its gain"};
  shift_bits = std::min(shift_bits, unit + gain_bits);

  const std::string name = s.locations.empty() ? std::string("layer_norm") : s.locations.front();
  DLC_TRY(const ValueId g, r.vector(t.gain, fixed(*gain, gain_bits), name + ".gain"));
  DLC_TRY(const ValueId b, r.vector(t.shift, fixed(*shift, shift_bits), name + ".shift"));
  DLC_TRY(const ValueId eps, r.scalar(t.epsilon, static_cast<int64_t>(e), name + ".epsilon"));
  DLC_TRY(const ValueId v, r.scalar(t.v, away, name + ".away"));
  DLC_TRY(const ValueId mb, r.scalar(t.mb, int64_t{1} << (unit + gain_bits - shift_bits), name + ".up"));
  DLC_TRY(const ValueId down, r.scalar(t.s, unit + gain_bits, name + ".down"));
  DLC_TRY(const ValueId columns, r.columns(x->value, s));
  Attrs attrs = r.output_attrs(s);
  attrs["from"] = Expr(x->zero);
  DLC_TRY(const ValueId y, r.add("normalize", {columns, g, b, eps, v, mb, down}, std::move(attrs), s));
  DLC_TRY(const ValueId rows, r.rows(y, shape, s));
  return rows;
}

}  // namespace dlc::numerics
