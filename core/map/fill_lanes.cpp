#include "dlc/map/fill_lanes.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/map/pattern.h"
#include "dlc/base/checked.h"
#include "dlc/ops/attributes.h"

namespace dlc {

namespace {

// A spatial axis: its numbers, and how many taps go into channels. With a stride of s, tap g * window + j of result y
// is element j of the window that begins at y * s + g * window: window y + g * window / s, when s divides `window`.
struct Axis {
  int64_t taps = 1, stride = 1, pad_lo = 0, pad_hi = 0, in = 1, out = 1;
  int64_t window = 1;  // 1: the axis stays as it is

  bool stays() const { return window == 1; }
  int64_t groups() const { return ceil_div(taps, window); }
  int64_t dilation() const { return stays() || groups() == 1 ? 1 : window / stride; }
  int64_t count() const { return stays() ? in : out + (groups() - 1) * dilation(); }
};

// A convolution whose numbers are known.
struct Conv {
  NodeId node = kNoNode;
  int64_t channels = 1;
  std::vector<Axis> axes;

  int64_t steps() const {
    int64_t n = 1;
    for (const Axis& a : axes) n *= a.groups();
    return n;
  }
  int64_t taps_in_lanes() const {
    int64_t n = 1;
    for (const Axis& a : axes) n *= a.window;
    return n;
  }
  int64_t vectors() const {
    int64_t n = 1;
    for (const Axis& a : axes) n *= a.count();
    return n;
  }
};

// Made by the host whatever the machine does: an input of the model, or what a node makes of another type.
bool comes_from_outside(const Graph& g, ValueId v) {
  const NodeId producer = g.value(v).producer;
  if (g.value(v).constant) return false;
  if (producer == kNoNode) return true;
  return std::ranges::none_of(g.node(producer).inputs, [&](ValueId in) {
    return in != kNoValue && !g.value(in).constant && g.value(in).type.dtype == g.value(v).type.dtype;
  });
}

std::optional<Conv> conv_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const auto has = [&](size_t i) { return i < n.inputs.size() && n.inputs[i] != kNoValue; };
  if (n.op != "int_conv" || has(4) || !g.value(n.inputs[1]).constant) return std::nullopt;
  if (has(3) && !g.value(n.inputs[3]).constant) return std::nullopt;
  const Tensor& w = *g.value(n.inputs[1]).constant;
  const size_t rank = w.shape().size() - 2;
  const Attributes attrs(*g.record_set().find(n.op), n.attrs);
  if (attrs.integer("group") != 1 || rank == 0) return std::nullopt;
  const auto& from = g.value(n.inputs[0]).type.shape;
  const auto& to = g.value(n.outputs[0]).type.shape;
  const auto stride = attrs.list("stride", rank), dilation = attrs.list("dilation", rank);
  const auto lo = attrs.list("pad_lo", rank), hi = attrs.list("pad_hi", rank);
  if (!stride || !dilation || !lo || !hi) return std::nullopt;
  Conv c{id, w.shape()[1], {}};
  for (size_t i = 0; i < rank; ++i) {
    Axis a;
    a.taps = w.shape()[i + 2];
    for (const auto& [e, number] : {std::pair{(*stride)[i], &a.stride},
                                    {(*lo)[i], &a.pad_lo},
                                    {(*hi)[i], &a.pad_hi},
                                    {from[i + 2], &a.in},
                                    {to[i + 2], &a.out}}) {
      if (!e.constant()) return std::nullopt;
      *number = *e.constant();
    }
    if (a.taps > 1 && !(*dilation)[i].is(1)) return std::nullopt;
    c.axes.push_back(a);
  }
  return c;
}

// The windows that leave the fewest steps; of those the fewest vectors.
void choose(const Conv& c, size_t axis, int64_t lanes, Conv& best) {
  if (axis == c.axes.size()) {
    if (std::pair(c.steps(), c.vectors()) < std::pair(best.steps(), best.vectors())) best = c;
    return;
  }
  const Axis& a = c.axes[axis];
  for (int64_t window = 1; window <= a.taps && c.channels * c.taps_in_lanes() * window <= lanes; ++window) {
    if (window > 1 && window < a.taps && window % a.stride != 0) continue;
    Conv next = c;
    next.axes[axis].window = window;
    choose(next, axis + 1, lanes, best);
  }
}

// [o, c, taps...] -> [o, c * windows..., groups...]; taps behind the last one are 0.
Result<Tensor> weights(const Tensor& from, const Conv& c) {
  std::vector<int64_t> shape = {from.shape()[0], c.channels * c.taps_in_lanes()};
  for (const Axis& a : c.axes) shape.push_back(a.groups());
  DLC_TRY(Tensor to, Tensor::make(from.dtype(), shape));
  const auto size = static_cast<size_t>(from.dtype().bytes());
  int64_t taps = 1;
  for (const Axis& a : c.axes) taps *= a.taps;
  for (int64_t e = 0; e < from.elements(); ++e) {
    int64_t lane = e / taps % c.channels, group = 0, rest = e % taps, below = taps;
    for (const Axis& a : c.axes) {
      below /= a.taps;
      const int64_t tap = rest / below;
      rest %= below;
      lane = lane * a.window + tap % a.window;
      group = group * a.groups() + tap / a.window;
    }
    const int64_t o = e / (taps * c.channels);
    std::memcpy(to.mutable_bytes() + static_cast<size_t>((o * shape[1] + lane) * c.steps() + group) * size,
                from.bytes() + static_cast<size_t>(e) * size, size);
  }
  return to;
}

Result<> lay(Graph& g, const Conv& c) {
  const Node old = g.node(c.node);
  const auto add = [&](const std::string& op, std::vector<ValueId> inputs, Attrs attrs) -> Result<ValueId> {
    DLC_TRY(const NodeId made, g.add_node(op, std::move(inputs), std::move(attrs), old.locations));
    return g.node(made).outputs[0];
  };
  ValueId x = old.inputs[0];
  std::vector<Expr> stride, dilation, pad_lo, pad_hi;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    const Axis& a = c.axes[i];
    stride.emplace_back(a.stays() ? a.stride : 1);
    dilation.emplace_back(a.dilation());
    pad_lo.emplace_back(a.stays() ? a.pad_lo : 0);
    pad_hi.emplace_back(a.stays() ? a.pad_hi : 0);
    if (a.stays()) continue;
    std::vector<ValueId> from = {x};
    if (old.inputs.size() > 3 && old.inputs[3] != kNoValue) from.push_back(old.inputs[3]);
    DLC_TRY(x, add("windows", std::move(from),
                   {{"axis", Expr(static_cast<int64_t>(i) + 2)},
                    {"window", Expr(a.window)},
                    {"stride", Expr(a.stride)},
                    {"pad_lo", Expr(a.pad_lo)},
                    {"count", Expr(a.count())}}));
  }
  const Value& w = g.value(old.inputs[1]);
  DLC_TRY(Tensor laid, weights(*w.constant, c));
  std::vector<ValueId> inputs = old.inputs;
  inputs[0] = x;
  inputs[1] = g.add_constant(g.unique_name(w.name), std::move(laid));
  DLC_TRY(const ValueId y, add("int_conv", std::move(inputs),
                               {{"stride", stride}, {"dilation", dilation}, {"pad_lo", pad_lo}, {"pad_hi", pad_hi}}));
  const std::string name = g.value(old.outputs[0]).name;
  g.replace_uses(old.outputs[0], y);
  g.erase(c.node);
  g.rename(y, name);
  return {};
}

}  // namespace

Result<int64_t> fill_lanes(Graph& g, int64_t lanes) {
  int64_t changed = 0;
  for (const NodeId id : g.order()) {
    const auto conv = conv_of(g, id);
    if (!conv || !comes_from_outside(g, g.node(id).inputs[0])) continue;
    Conv best = *conv;
    choose(*conv, 0, lanes, best);
    if (best.taps_in_lanes() == 1) continue;
    DLC_CHECK(lay(g, best));
    ++changed;
  }
  if (changed > 0) DLC_CHECK(verify(g));
  return changed;
}

Result<int64_t> fill_lanes(Graph& g, const HwDescription& hw) {
  if (hw.isa.word_bits == 0) return 0;
  const auto machine = map::read_machine(hw);  // what is wrong with it, its plugin says
  return machine ? fill_lanes(g, machine->lanes) : Result<int64_t>(0);
}

}  // namespace dlc
