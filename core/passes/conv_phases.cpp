// A transposed convolution becomes convolutions: the elements of its result that lie `stride` apart, one phase, are a
// convolution with every stride-th tap; phases of as many taps are one with more output channels.
//
//   %y = conv_transpose(%x, @w) {stride = [2, 2]}       ->  %p = conv(%x, @w')        4 times the channels, a quarter
//   @w: [c, o, 2, 2]                                        %y = reshape, transpose, reshape of %p         of the taps
//
// Along an axis with 3 taps and stride 2 the even phase has two taps and the odd one has one: these are convolutions of
// their own, whose results are put together before they are interleaved. (Taps of zeros would be wrong beside
// infinities.)
#include <algorithm>
#include <cstring>
#include <optional>

#include "core/passes/passes.h"
#include "dlc/base/checked.h"
#include "dlc/ops/attributes.h"

namespace dlc {

namespace {

// Phases that follow each other and have as many taps.
struct Part {
  int64_t first = 0, count = 1, taps = 1;
};

// A spatial axis. Element q of phase r is element (q + skipped) * stride + r of the result before it is cut.
struct Axis {
  int64_t stride = 1, dilation = 1;
  std::vector<Part> parts;
  int64_t skipped = 0;
  int64_t cut = 0;     // elements of the phases before the first of the result
  int64_t pad_hi = 0;  // of the convolutions

  int64_t pad_lo(const Part& p) const { return (p.taps - 1) * dilation - skipped; }
};

std::optional<Axis> axis_of(int64_t kernel, int64_t stride, int64_t dilation, int64_t lo, int64_t hi, int64_t more) {
  if (lo < 0 || kernel < stride || (stride > 1 && dilation > 1)) return std::nullopt;
  const int64_t taps = kernel / stride, longer = kernel % stride, reach = (taps - 1) * dilation;
  Axis a{.stride = stride, .dilation = dilation, .parts = {}};
  if (longer > 0) a.parts.push_back({0, longer, taps + 1});
  a.parts.push_back({longer, stride - longer, taps});
  a.skipped = std::min(lo / stride, reach);
  a.cut = lo - a.skipped * stride;
  const int64_t span = (kernel - 1) * dilation + 1;
  a.pad_hi = std::max<int64_t>(0, ceil_div(span + more - hi, stride) - 1);
  return a;
}

class Splitter {
 public:
  // `old` is the op to split; its operands are constants.
  Splitter(Graph& g, Node old, std::vector<Axis> axes, int64_t group)
      : g_(g), old_(std::move(old)), axes_(std::move(axes)), group_(group), chosen_(axes_.size()) {}

  Result<ValueId> run() {
    DLC_TRY(ValueId v, phases(0));
    if (std::ranges::any_of(axes_, [](const Axis& a) { return a.stride > 1; })) {
      DLC_TRY(v, interleaved(v));
    }
    return cut(v);
  }

 private:
  const Tensor& constant(size_t i) const { return *g_.value(old_.inputs[i]).constant; }
  bool has_bias() const { return old_.inputs.size() > 2 && old_.inputs[2] != kNoValue; }
  const std::vector<Expr>& result_shape() const { return g_.value(old_.outputs[0]).type.shape; }

  Result<ValueId> add(const std::string& op, std::vector<ValueId> inputs, Attrs attrs) {
    DLC_TRY(const NodeId made, g_.add_node(op, std::move(inputs), std::move(attrs), old_.locations));
    return g_.node(made).outputs[0];
  }

  // [n, o, phases..., elements...] with all parts of the axes from `axis` on, and the chosen ones of those before.
  Result<ValueId> phases(size_t axis) {
    if (axis == axes_.size()) return convolution();
    std::vector<ValueId> parts;
    for (const Part& p : axes_[axis].parts) {
      chosen_[axis] = p;
      DLC_TRY(const ValueId v, phases(axis + 1));
      parts.push_back(v);
    }
    if (parts.size() == 1) return parts[0];
    return add("concat", std::move(parts), {{"axis", Expr(static_cast<int64_t>(2 + axis))}});
  }

  Result<ValueId> convolution() {
    int64_t count = 1;
    std::vector<Expr> dilation, pad_lo, pad_hi;
    for (size_t i = 0; i < axes_.size(); ++i) {
      count *= chosen_[i].count;
      dilation.emplace_back(axes_[i].dilation);
      pad_lo.emplace_back(axes_[i].pad_lo(chosen_[i]));
      pad_hi.emplace_back(axes_[i].pad_hi);
    }
    DLC_TRY(Tensor w, weights(count));
    std::vector<ValueId> inputs = {old_.inputs[0], g_.add_constant(g_.value(old_.inputs[1]).name, std::move(w))};
    if (has_bias()) {
      DLC_TRY(Tensor b, bias(count));
      inputs.push_back(g_.add_constant(g_.value(old_.inputs[2]).name, std::move(b)));
    }
    DLC_TRY(const ValueId v,
            add("conv", std::move(inputs),
                {{"dilation", dilation}, {"pad_lo", pad_lo}, {"pad_hi", pad_hi}, {"group", Expr(group_)}}));
    if (std::ranges::all_of(axes_, [](const Axis& a) { return a.stride == 1; })) return v;
    const std::vector<Expr> from = g_.value(v).type.shape;
    std::vector<Expr> apart = {from[0], result_shape()[1]};
    for (const Part& p : chosen_) apart.emplace_back(p.count);
    apart.insert(apart.end(), from.begin() + 2, from.end());
    return add("reshape", {v}, {{"shape", apart}});
  }

  // [n, o, phases..., elements...] -> [n, o, elements * phases...]
  Result<ValueId> interleaved(ValueId v) {
    const std::vector<Expr> from = g_.value(v).type.shape;
    std::vector<Expr> perm = {Expr(0), Expr(1)}, together = {from[0], from[1]};
    for (size_t i = 0; i < axes_.size(); ++i) {
      const size_t phase = 2 + i, element = phase + axes_.size();
      perm.emplace_back(static_cast<int64_t>(element));
      perm.emplace_back(static_cast<int64_t>(phase));
      together.push_back(from[element] * from[phase]);
    }
    DLC_TRY(v, add("transpose", {v}, {{"perm", perm}}));
    return add("reshape", {v}, {{"shape", together}});
  }

  Result<ValueId> cut(ValueId v) {
    const std::vector<Expr>& to = result_shape();
    if (g_.value(v).type.shape == to) return v;
    std::vector<Expr> start = {Expr(0), Expr(0)}, stop = {to[0], to[1]};
    for (size_t i = 0; i < axes_.size(); ++i) {
      start.emplace_back(axes_[i].cut);
      stop.push_back(to[i + 2] + axes_[i].cut);
    }
    return add("slice", {v}, {{"start", start}, {"stop", stop}});
  }

  // [group * c, o, kernel...] -> [group * o * count, c, taps...]: tap t of phase r was tap r + stride * (taps - 1 - t).
  Result<Tensor> weights(int64_t count) const {
    const Tensor& from = constant(1);
    const int64_t in = from.shape()[0] / group_, out = from.shape()[1];
    std::vector<int64_t> shape = {group_ * out * count, in};
    for (const Part& p : chosen_) shape.push_back(p.taps);
    DLC_TRY(Tensor to, Tensor::make(from.dtype(), shape));
    const auto size = static_cast<size_t>(from.dtype().bytes());
    std::byte* next = to.mutable_bytes();
    std::vector<int64_t> tap(axes_.size());
    for (int64_t o = 0; o < shape[0]; ++o)
      for (int64_t c = 0; c < in; ++c)
        for (std::ranges::fill(tap, 0); tap[0] < chosen_[0].taps; advance(tap)) {
          int64_t at = (o / (out * count) * in + c) * out + o / count % out;
          int64_t phase = o % count, below = count;
          for (size_t i = 0; i < axes_.size(); ++i) {
            below /= chosen_[i].count;
            const int64_t r = chosen_[i].first + phase / below;
            at = at * from.shape()[i + 2] + r + axes_[i].stride * (chosen_[i].taps - 1 - tap[i]);
            phase %= below;
          }
          std::memcpy(next, from.bytes() + static_cast<size_t>(at) * size, size);
          next += size;
        }
    return to;
  }

  // The next tap in row-major order; the first index runs over at the end.
  void advance(std::vector<int64_t>& tap) const {
    size_t i = tap.size() - 1;
    while (++tap[i] == chosen_[i].taps && i > 0) tap[i--] = 0;
  }

  Result<Tensor> bias(int64_t count) const {
    const Tensor& from = constant(2);
    DLC_TRY(Tensor to, Tensor::make(from.dtype(), {from.elements() * count}));
    const auto size = static_cast<size_t>(from.dtype().bytes());
    for (int64_t i = 0; i < to.elements(); ++i)
      std::memcpy(to.mutable_bytes() + static_cast<size_t>(i) * size,
                  from.bytes() + static_cast<size_t>(i / count) * size, size);
    return to;
  }

  Graph& g_;
  const Node old_;
  const std::vector<Axis> axes_;
  const int64_t group_;
  std::vector<Part> chosen_;  // of each axis
};

// The axes of a transposed convolution that can be split: its numbers and operands are known.
std::optional<std::vector<Axis>> axes_of(const Graph& g, const Node& n) {
  for (size_t i = 1; i < n.inputs.size(); ++i)
    if (n.inputs[i] != kNoValue && !g.value(n.inputs[i]).constant) return std::nullopt;
  const Tensor& weights = *g.value(n.inputs[1]).constant;
  if (!weights.dtype().is_float() || weights.shape().size() < 3) return std::nullopt;
  const size_t rank = weights.shape().size() - 2;
  const Attributes attrs(*g.record_set().find(n.op), n.attrs);
  std::vector<std::vector<int64_t>> numbers;
  for (const char* name : {"stride", "dilation", "pad_lo", "pad_hi", "out_pad"}) {
    const auto list = attrs.list(name, rank);
    if (!list) return std::nullopt;
    numbers.emplace_back();
    for (const Expr& e : *list) {
      if (!e.constant()) return std::nullopt;
      numbers.back().push_back(*e.constant());
    }
  }
  std::vector<Axis> axes;
  for (size_t i = 0; i < rank; ++i) {
    const auto a =
        axis_of(weights.shape()[i + 2], numbers[0][i], numbers[1][i], numbers[2][i], numbers[3][i], numbers[4][i]);
    if (!a) return std::nullopt;
    axes.push_back(*a);
  }
  return axes;
}

}  // namespace

Result<> conv_phases(Graph& g, PassContext& context) {
  for (const NodeId id : g.order()) {
    const Node old = g.node(id);
    if (old.op != "conv_transpose") continue;
    auto axes = axes_of(g, old);
    const auto group = Attributes(*g.record_set().find(old.op), old.attrs).integer("group");
    if (!axes || !group) continue;
    DLC_TRY(const ValueId v, Splitter(g, old, *std::move(axes), *group).run());
    const std::string name = g.value(old.outputs[0]).name;
    g.replace_uses(old.outputs[0], v);
    g.erase(id);
    g.rename(v, name);
    ++context.counts["split"];
  }
  return dce(g, context);
}

}  // namespace dlc
