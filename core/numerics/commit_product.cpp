// Convolutions and matrix products: an accumulator, then one scale per output channel.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "core/numerics/rewriter.h"
#include "dlc/base/checked.h"

namespace dlc::numerics {

namespace {

// Bias in units of the accumulator: round(b / (sx * sw)). Exporters store exactly that, so it rounds to itself.
Result<Attempt<std::vector<int64_t>>> integer_bias(const std::vector<double>& bias, double sx,
                                                   const std::vector<double>& sw) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < bias.size(); ++i) {
    const double b = std::nearbyint(bias[i] / (sx * sw[sw.size() == 1 ? 0 : i]));
    if (!(std::abs(b) <= static_cast<double>(kS32.max_value())))
      return Refused{fmt::format("bias {} does not fit 32 bits at this scale", i)};
    out.push_back(static_cast<int64_t>(b));
  }
  return out;
}

// The largest value of each channel's accumulator, whatever the input: weight and bias are constants; or that one may
// wrap. `channel_of` says which output channel an element of the weight adds to.
template <class ChannelOf>
Result<Attempt<std::vector<int64_t>>> largest(const Rewriter& r, const Quantized& x, const Tensor& weight,
                                              const std::vector<int64_t>& bias, int64_t channels,
                                              ChannelOf channel_of) {
  if (const auto no = r.without({"requantize"})) return *no;
  DLC_TRY(const DType accumulator, r.operand_type("requantize", "A"));
  std::vector<int64_t> most(static_cast<size_t>(channels), 0);
  for (int64_t i = 0; i < weight.elements(); ++i)
    most[static_cast<size_t>(channel_of(i))] += std::abs(weight.get_int(i)) * x.reach();
  for (size_t c = 0; c < most.size(); ++c) {
    if (!bias.empty()) most[c] += std::abs(bias[c]);
    if (most[c] > accumulator.max_value())
      return Refused{fmt::format("channel {}: |bias| + sum of |weight| * {} is {}, and an accumulator of {} may wrap",
                                 c, x.reach(), most[c], to_string(accumulator))};
  }
  return most;
}

// Multiplier and shift per channel, whose accumulator is `most` at most, and the node that applies them along `axis`.
RuleResult scale_channels(Rewriter& r, const Site& s, ValueId acc, double sx, const std::vector<double>& sw,
                          const std::vector<int64_t>& most, int64_t axis) {
  std::vector<Ratio> ratios;
  for (size_t c = 0; c < most.size(); ++c)
    ratios.push_back({sx * sw[sw.size() == 1 ? 0 : c] / s.scale, static_cast<double>(most[c])});
  DLC_TRY(const auto scale, r.scale_channels("requantize", ratios, s));
  if (!scale) return Refused{scale.why()};
  Attrs attrs = r.output_attrs(s);
  attrs["axis"] = Expr(axis);
  DLC_TRY(const ValueId y, r.add("requantize", {acc, (*scale)[0], (*scale)[1]}, std::move(attrs), s));
  return y;
}

bool has(const Node& n, size_t i) { return i < n.inputs.size() && n.inputs[i] != kNoValue; }

}  // namespace

RuleResult commit_conv(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto x, r.dequantized(n.inputs[0]));
  if (!x) return Refused{"the input is not quantised per tensor"};
  const auto w = r.dequantized_weight(n.inputs[1]);
  if (!w) return Refused{"the weight is not a quantised constant with zero point 0"};
  if (w->axis > 0) return Refused{"the weight is not quantised per output channel"};
  const int64_t channels = w->q.shape()[0];

  const std::string name = s.locations.empty() ? std::string("conv") : s.locations.front();
  ValueId bias = kNoValue;
  std::vector<int64_t> biases;
  if (has(n, 2)) {
    const auto values = r.constant_values(n.inputs[2]);
    if (!values) return Refused{"the bias is not constant"};
    DLC_TRY(const auto integers, integer_bias(*values, x->scale, w->scales));
    if (!integers) return Refused{integers.why()};
    biases = *integers;
    DLC_TRY(bias, r.vector(kS32, biases, name + ".bias"));
  }
  const int64_t per_channel = w->q.elements() / std::max<int64_t>(channels, 1);
  DLC_TRY(const auto most, largest(r, *x, w->q, biases, channels, [&](int64_t i) { return i / per_channel; }));
  if (!most) return Refused{most.why()};
  DLC_TRY(const ValueId zero, r.scalar(kS8, x->zero, name + ".zero"));
  const ValueId weight = r.constant(w->q, name + ".weight");
  DLC_TRY(const ValueId acc, r.add("int_conv", {x->value, weight, bias, zero}, n.attrs, s));
  return scale_channels(r, s, acc, x->scale, w->scales, *most, 1);
}

namespace {

// The kernel of a transposed convolution [c, o, k...] with taps of 0 before and behind those it has.
Result<Tensor> with_taps(const Tensor& w, const std::vector<int64_t>& before, const std::vector<int64_t>& behind) {
  std::vector<int64_t> shape = w.shape();
  for (size_t d = 0; d < before.size(); ++d) shape[d + 2] += before[d] + behind[d];
  DLC_TRY(Tensor out, Tensor::make(kS8, shape));
  for (int64_t i = 0; i < out.elements(); ++i) out.set_int(i, 0);
  for (int64_t i = 0; i < w.elements(); ++i) {
    int64_t at = 0, rest = i, stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      at += (rest % w.shape()[d] + (d < 2 ? 0 : before[d - 2])) * stride;
      rest /= w.shape()[d];
    }
    out.set_int(at, w.get_int(i));
  }
  return out;
}

}  // namespace

RuleResult commit_conv_transpose(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  const Attributes given = r.attributes(n);
  DLC_TRY(const auto x, r.dequantized(n.inputs[0]));
  if (!x) return Refused{"the input is not quantised per tensor"};
  const auto w = r.dequantized_weight(n.inputs[1]);
  if (!w) return Refused{"the weight is not a quantised constant with zero point 0"};
  if (w->axis >= 0 && w->axis != 1) return Refused{"the weight is not quantised per output channel"};
  if (given.integer("group") != 1) return Refused{"it has groups"};
  const auto rank = static_cast<size_t>(w->q.rank()) - 2;
  const auto stride = given.list("stride", rank), dilation = given.list("dilation", rank);
  const auto lo = given.list("pad_lo", rank), hi = given.list("pad_hi", rank), more = given.list("out_pad", rank);
  if (!stride || !dilation || !lo || !hi || !more) return Refused{"the window has not one size for each spatial axis"};
  std::vector<int64_t> before, behind;
  std::vector<Expr> pad_lo, pad_hi;
  for (size_t d = 0; d < rank; ++d) {
    const auto by = (*stride)[d].constant(), pad = (*lo)[d].constant();
    if (!by || !pad || *by < 1 || !(*dilation)[d].is(1))
      return Refused{"the window is dilated, or its stride symbolic"};
    const int64_t taps = w->q.shape()[d + 2];
    before.push_back(ceil_div(*pad, *by) * *by - *pad);
    behind.push_back(ceil_div(taps + before[d], *by) * *by - taps - before[d]);
    pad_lo.push_back((*lo)[d] + before[d]);
    pad_hi.push_back((*hi)[d] + behind[d] - (*more)[d]);
  }
  const int64_t channels = w->q.shape()[1];
  const std::string name = s.locations.empty() ? std::string("conv") : s.locations.front();
  ValueId bias = kNoValue;
  std::vector<int64_t> biases;
  if (has(n, 2)) {
    const auto values = r.constant_values(n.inputs[2]);
    if (!values) return Refused{"the bias is not constant"};
    DLC_TRY(const auto integers, integer_bias(*values, x->scale, w->scales));
    if (!integers) return Refused{integers.why()};
    biases = *integers;
  }
  const int64_t window = w->q.elements() / std::max<int64_t>(w->q.shape()[0] * channels, 1);
  if (const auto no = r.without({"int_conv_transpose"})) return *no;
  DLC_TRY(const auto most, largest(r, *x, w->q, biases, channels, [&](int64_t i) { return i / window % channels; }));
  if (!most) return Refused{most.why()};
  if (has(n, 2)) {
    DLC_TRY(bias, r.vector(kS32, biases, name + ".bias"));
  }
  DLC_TRY(Tensor taps, with_taps(w->q, before, behind));
  const ValueId weight = r.constant(std::move(taps), name + ".weight");
  DLC_TRY(const ValueId acc,
          r.add("int_conv_transpose", {x->value, weight, bias},
                {{"zero", Expr(x->zero)}, {"stride", *stride}, {"pad_lo", pad_lo}, {"pad_hi", pad_hi}}, s));
  return scale_channels(r, s, acc, x->scale, w->scales, *most, 1);
}

namespace {

// x times a constant matrix, plus a constant per column (or nothing). Columns of more than one matrix of x are pixels.
RuleResult product(Rewriter& r, const Site& s, const Quantized& x, const Rewriter::Weight& w, bool transposed,
                   ValueId bias_value) {
  if (w.q.rank() != 2) return Refused{"the right operand is not a matrix"};
  if (w.axis >= 0 && w.axis != (transposed ? 0 : 1)) return Refused{"the right operand is not quantised per column"};
  const int64_t columns = w.q.shape()[transposed ? 0 : 1];
  const int64_t depth = w.q.shape()[transposed ? 1 : 0];
  std::vector<Expr> shape = r.graph().value(x.value).type.shape;
  if (shape.size() < 2) return Refused{"the left operand is not a matrix"};
  std::vector<int64_t> bias;
  if (bias_value != kNoValue) {
    const auto& of = r.graph().value(bias_value).type.shape;
    const bool one = std::ranges::all_of(of, [](const Expr& e) { return e.is(1); });
    const bool row =
        !of.empty() && std::ranges::all_of(std::span(of).first(of.size() - 1), [](const Expr& e) { return e.is(1); });
    const auto values = r.constant_values(bias_value);
    if (!values || !(one || (row && of.back().is(columns)))) return Refused{"the bias is not a constant per column"};
    std::vector<double> spread = *values;
    if (one) spread.assign(static_cast<size_t>(columns), values->front());
    DLC_TRY(const auto integers, integer_bias(spread, x.scale, w.scales));
    if (!integers) return Refused{integers.why()};
    bias = *integers;
  }

  const std::string name = s.locations.empty() ? std::string("matmul") : s.locations.front();
  const bool pixels = shape.size() > 2;
  DLC_TRY(Tensor b, pixels ? Tensor::make(kS8, {columns, depth, 1}) : Tensor::make(kS8, {depth, columns}));
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t c = 0; c < columns; ++c)
      b.set_int(pixels ? c * depth + k : k * columns + c, w.q.get_int(transposed ? c * depth + k : k * columns + c));
  const auto channel_of = [&](int64_t i) { return pixels ? i / depth : i % columns; };
  DLC_TRY(const auto most, largest(r, x, b, bias, columns, channel_of));
  if (!most) return Refused{most.why()};
  if (pixels) {
    DLC_TRY(const ValueId of, r.columns(x.value, s));
    DLC_TRY(const ValueId zero, r.scalar(kS8, x.zero, name + ".zero"));
    ValueId added = kNoValue;
    if (!bias.empty()) {
      DLC_TRY(added, r.vector(kS32, bias, name + ".bias"));
    }
    const ValueId weight = r.constant(std::move(b), name + ".weight");
    DLC_TRY(const ValueId acc, r.add("int_conv", {of, weight, added, zero}, {}, s));
    DLC_TRY(const auto y, scale_channels(r, s, acc, x.scale, w.scales, *most, 1));
    if (!y) return y;
    shape.back() = Expr(columns);
    DLC_TRY(const ValueId rows, r.rows(*y, shape, s));
    return rows;
  }
  DLC_TRY(const ValueId zero, r.vector(kS8, {x.zero}, name + ".zero"));
  DLC_TRY(ValueId acc, r.add("int_matmul", {x.value, r.constant(std::move(b), name + ".weight"), zero}, {}, s));
  if (!bias.empty()) {
    DLC_TRY(const ValueId added, r.vector(kS32, bias, name + ".bias"));
    DLC_TRY(acc, r.add("add", {acc, added}, {}, s));
  }
  const auto rank = static_cast<int64_t>(r.graph().value(acc).type.shape.size());
  return scale_channels(r, s, acc, x.scale, w.scales, *most, rank - 1);
}

}  // namespace

RuleResult commit_product(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  const bool gemm = n.op == "gemm";
  const Attributes attrs = r.attributes(n);
  if (gemm && (attrs.real("alpha") != 1 || (has(n, 2) && attrs.real("beta") != 1) || attrs.integer("trans_a") != 0))
    return Refused{"alpha, beta or trans_a is not the default"};
  const bool transposed = gemm && attrs.integer("trans_b") != 0;
  DLC_TRY(const auto x, r.dequantized(n.inputs[0]));
  if (!x) return Refused{"the left operand is not quantised per tensor"};
  const auto w = r.dequantized_weight(n.inputs[1]);
  if (w) return product(r, s, *x, *w, transposed, has(n, 2) ? n.inputs[2] : kNoValue);
  if (!gemm) return commit_attention(r, s);
  return Refused{"the right operand is not a quantised constant with zero point 0"};
}

// add(matmul(x, w), b)
RuleResult commit_biased(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  for (size_t i = 0; i < 2; ++i) {
    const NodeId producer = r.graph().value(n.inputs[i]).producer;
    if (producer == kNoNode || r.graph().node(producer).op != "matmul" || !r.used_once(n.inputs[i])) continue;
    const Node matmul = r.graph().node(producer);
    if (r.graph().value(n.inputs[i]).type != r.graph().value(n.outputs[0]).type) continue;
    DLC_TRY(const auto x, r.dequantized(matmul.inputs[0]));
    const auto w = r.dequantized_weight(matmul.inputs[1]);
    if (!x || !w) continue;
    Site site = s;
    site.locations.insert(site.locations.begin(), matmul.locations.begin(), matmul.locations.end());
    return product(r, site, *x, *w, false, n.inputs[1 - i]);
  }
  return Refused{"an operand is not a matrix product"};
}

}  // namespace dlc::numerics
