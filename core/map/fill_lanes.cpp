#include "dlc/map/fill_lanes.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/map/pattern.h"
#include "dlc/base/checked.h"
#include "dlc/kernel/access.h"
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

// A convolution whose numbers are known, and which of its node's inputs are what.
struct Conv {
  NodeId node = kNoNode;
  size_t data = 0, weight = 0;
  std::optional<size_t> zero;  // what stands for 0 in the data
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

// The node's input that a tensor of its kernel is.
std::optional<size_t> input_of(const Kernel& k, int tensor) {
  const auto it = std::ranges::find(k.inputs, tensor);
  return tensor < 0 || it == k.inputs.end() ? std::nullopt : std::optional<size_t>(it - k.inputs.begin());
}

// Z of `(X[...] - Z[]) ?: 0`, where elements outside of X are as good as Z; -1 of `X[...] ?: 0`. Other text: nullopt.
std::optional<int> zero_tensor(const Factor& data) {
  Val v = data.factor;
  if (v->kind == ValKind::orelse && v->args[1]->kind == ValKind::integer && v->args[1]->integer == 0) v = v->args[0];
  if (v == data.read) return -1;
  if (v->kind != ValKind::binary || v->binary_op() != BinaryOp::sub || v->args[0] != data.read) return std::nullopt;
  const Val& z = v->args[1];
  return z->kind == ValKind::read && z->args.empty() ? std::optional<int>(z->tensor) : std::nullopt;
}

// The one sum of products of integers that the kernel's only statement stores, with something added or not. Of
// integers, since a sum with more zeros in it must stay the same.
struct Sum {
  Contraction of;
  std::vector<Loop> loops;
};
std::optional<Sum> integer_sum(const Kernel& k) {
  if (k.body.size() != 1 || k.body[0].kind != Stmt::Kind::assign) return std::nullopt;
  const Val& v = k.body[0].value;
  Val sum = v;
  if (v->kind == ValKind::binary && v->binary_op() == BinaryOp::add)
    sum = v->args[v->args[0]->kind == ValKind::reduce ? 0 : 1];
  if (sum->kind != ValKind::reduce || !sum->to.is_int()) return std::nullopt;
  const auto c = contraction(sum);
  if (!c || !c->scales.empty() || !c->conditions.empty()) return std::nullopt;
  int uses = 0;
  walk(v, [&](const ValNode& n) {
    uses += n.kind == ValKind::read && (n.tensor == c->lhs.read->tensor || n.tensor == c->rhs.read->tensor);
  });
  return uses == 2 ? std::optional(Sum{*c, sum->loops}) : std::nullopt;
}

// Whether the loops meet every element of w[o] once.
bool walks_all(const std::vector<Loop>& loops, const AccessMap& w, const std::vector<int64_t>& shape) {
  int64_t left = 1;
  for (const Loop& l : loops) left *= l.extent.constant().value_or(0);
  for (size_t d = 1; d < w.size(); ++d) {
    const auto walks = [&](const Loop& l) { return w[d]->as_symbol() == l.var && l.extent.is(shape[d]); };
    if (!std::ranges::any_of(loops, walks) && !(shape[d] == 1 && w[d]->is(0))) return false;
    if (shape[d] < 1 || left % shape[d] != 0) return false;
    left /= shape[d];
  }
  return left == 1;
}

// The node, when its text is this, with what it calls stride, dilation and pad_lo; that is all that is asked of an op:
//   Y[n, o, y...] = sum[c, k...] (X[n, c, y*stride + k*dilation - pad_lo...] - Z[] ?: 0) * W[o, c, k...]
std::optional<Conv> conv_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const Record* record = g.record_set().find(n.op);
  if (record == nullptr || n.outputs.size() != 1 || g.is_extern(id)) return std::nullopt;
  const auto& to = g.value(n.outputs[0]).type.shape;
  if (to.size() < 3) return std::nullopt;
  const size_t rank = to.size() - 2;
  const Attributes attrs(*record, n.attrs);
  const auto stride = attrs.list("stride", rank), dilation = attrs.list("dilation", rank);
  const auto lo = attrs.list("pad_lo", rank), hi = attrs.list("pad_hi", rank);
  if (!stride || !dilation || !lo || !hi) return std::nullopt;
  const auto kernel = g.kernel(id);
  if (!kernel) return std::nullopt;
  const auto sum = integer_sum(*kernel);
  if (!sum) return std::nullopt;
  const auto constant = [&](std::optional<size_t> input) { return input && g.value(n.inputs[*input]).constant; };
  const bool weight_last = constant(input_of(*kernel, sum->of.rhs.read->tensor));
  const Factor& data = weight_last ? sum->of.lhs : sum->of.rhs;
  const Factor& weight = weight_last ? sum->of.rhs : sum->of.lhs;
  const auto data_input = input_of(*kernel, data.read->tensor), weight_input = input_of(*kernel, weight.read->tensor);
  const auto zero = zero_tensor(data);
  if (!data_input || !constant(weight_input) || !zero || weight.factor != weight.read) return std::nullopt;
  Conv c{id, *data_input, *weight_input, input_of(*kernel, *zero), 1, {}};
  if (*zero >= 0 && !constant(c.zero)) return std::nullopt;

  const AccessMap x = access_map(data.read->args), w = access_map(weight.read->args);
  const AccessMap y = access_map(kernel->body[0].indices);
  const auto& from = g.value(n.inputs[c.data]).type.shape;
  const std::vector<int64_t>& taps = g.value(n.inputs[c.weight]).constant->shape();
  for (const AccessMap* map : {&x, &w, &y})
    if (map->size() != rank + 2 || !std::ranges::all_of(*map, [](const auto& e) { return e.has_value(); }))
      return std::nullopt;
  if (x[0] != y[0] || w[0] != y[1] || x[1] != w[1] || !walks_all(sum->loops, w, taps)) return std::nullopt;
  c.channels = taps[1];
  for (size_t i = 0; i < rank; ++i) {
    Axis a;
    a.taps = taps[i + 2];
    for (const auto& [e, number] : {std::pair{(*stride)[i], &a.stride},
                                    {(*lo)[i], &a.pad_lo},
                                    {(*hi)[i], &a.pad_hi},
                                    {from[i + 2], &a.in},
                                    {to[i + 2], &a.out}}) {
      if (!e.constant()) return std::nullopt;
      *number = *e.constant();
    }
    if (a.taps > 1 && !(*dilation)[i].is(1)) return std::nullopt;
    if (*x[i + 2] != *y[i + 2] * (*stride)[i] + *w[i + 2] * (*dilation)[i] - (*lo)[i]) return std::nullopt;
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
  ValueId x = old.inputs[c.data];
  std::vector<Expr> stride, dilation, pad_lo, pad_hi;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    const Axis& a = c.axes[i];
    stride.emplace_back(a.stays() ? a.stride : 1);
    dilation.emplace_back(a.dilation());
    pad_lo.emplace_back(a.stays() ? a.pad_lo : 0);
    pad_hi.emplace_back(a.stays() ? a.pad_hi : 0);
    if (a.stays()) continue;
    std::vector<ValueId> from = {x};
    if (c.zero) from.push_back(old.inputs[*c.zero]);
    DLC_TRY(x, add("windows", std::move(from),
                   {{"axis", Expr(static_cast<int64_t>(i) + 2)},
                    {"window", Expr(a.window)},
                    {"stride", Expr(a.stride)},
                    {"pad_lo", Expr(a.pad_lo)},
                    {"count", Expr(a.count())}}));
  }
  const Value& w = g.value(old.inputs[c.weight]);
  DLC_TRY(Tensor laid, weights(*w.constant, c));
  std::vector<ValueId> inputs = old.inputs;
  inputs[c.data] = x;
  inputs[c.weight] = g.add_constant(g.unique_name(w.name), std::move(laid));
  Attrs attrs = old.attrs;
  attrs["stride"] = stride;
  attrs["dilation"] = dilation;
  attrs["pad_lo"] = pad_lo;
  attrs["pad_hi"] = pad_hi;
  DLC_TRY(const ValueId y, add(old.op, std::move(inputs), std::move(attrs)));
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
    if (!conv || !comes_from_outside(g, g.node(id).inputs[conv->data])) continue;
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
