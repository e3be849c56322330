// Average pools: the sum over the window, then one scale that holds the division.
#include <fmt/format.h>

#include <algorithm>

#include "core/numerics/rewriter.h"

namespace dlc::numerics {

namespace {

struct Window {
  std::vector<Expr> kernel, stride, pad_lo, pad_hi;
};

bool all_are(const std::vector<Expr>& v, int64_t c) {
  return std::ranges::all_of(v, [&](const Expr& e) { return e.is(c); });
}

// A mean over all axes from 2 on is a pool whose window is the whole map.
std::optional<Window> whole_map(const Graph& g, const Node& n) {
  const auto& shape = g.value(n.inputs[0]).type.shape;
  const auto it = n.attrs.find("axes");
  const auto* axes = it == n.attrs.end() ? nullptr : std::get_if<std::vector<Expr>>(&it->second);
  if (axes == nullptr || shape.size() < 3 || axes->size() != shape.size() - 2) return std::nullopt;
  std::vector<bool> reduced(shape.size(), false);
  for (const Expr& a : *axes) {
    const auto c = a.constant();
    if (!c) return std::nullopt;
    reduced[static_cast<size_t>(*c < 0 ? *c + static_cast<int64_t>(shape.size()) : *c)] = true;
  }
  if (reduced[0] || reduced[1] || std::ranges::count(reduced, true) != std::ssize(*axes)) return std::nullopt;
  Window w;
  w.kernel.assign(shape.begin() + 2, shape.end());
  w.stride.assign(w.kernel.size(), Expr(1));
  w.pad_lo.assign(w.kernel.size(), Expr(0));
  w.pad_hi = w.pad_lo;
  return w;
}

Attempt<Window> window_of(const Graph& g, const Node& n, const Attributes& attrs) {
  if (n.op == "reduce_mean") {
    const auto w = whole_map(g, n);
    if (!w) return Refused{"it is a mean over other axes than the spatial ones"};
    return *w;
  }
  const size_t rank = g.value(n.inputs[0]).type.shape.size() - 2;
  const auto kernel = attrs.list("kernel", rank), stride = attrs.list("stride", rank);
  const auto lo = attrs.list("pad_lo", rank), hi = attrs.list("pad_hi", rank), dilation = attrs.list("dilation", rank);
  if (!kernel || !stride || !lo || !hi || !dilation)
    return Refused{"the window has not one size for each spatial axis"};
  if (!all_are(*dilation, 1)) return Refused{"the window is dilated"};
  if (attrs.integer("ceil_mode") != 0) return Refused{"ceil_mode is set"};
  if (attrs.integer("count_include_pad") != 1 && !(all_are(*lo, 0) && all_are(*hi, 0)))
    return Refused{"the divisor differs at the border (padding is not counted)"};
  const Window w{*kernel, *stride, *lo, *hi};
  return w;
}

}  // namespace

RuleResult commit_pool(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto x, r.dequantized(n.inputs[0]));
  if (!x) return Refused{"the input is not quantised per tensor"};
  const auto w = window_of(r.graph(), n, r.attributes(n));
  if (!w) return Refused{w.why()};
  Expr count(1);
  for (const Expr& k : w->kernel) count = count * k;
  const auto divisor = count.constant();
  if (!divisor || *divisor < 1) return Refused{"the window's size is symbolic"};
  if (const auto no = r.without({"window_sum", "rescale"})) return *no;
  DLC_TRY(const DType accumulator, r.operand_type("rescale", "A"));
  if (*divisor > accumulator.max_value() / x->reach())
    return Refused{fmt::format("the sum of {} elements of at most {} may wrap in an accumulator of {}", *divisor,
                               x->reach(), to_string(accumulator))};

  const auto reach = static_cast<double>(*divisor * x->reach());
  DLC_TRY(const auto scale, r.scale("rescale", {{x->scale / s.scale / static_cast<double>(*divisor), reach}}, s));
  if (!scale) return Refused{scale.why()};
  DLC_TRY(const ValueId sum, r.add("window_sum", {x->value},
                                   {{"zero", Expr(x->zero)},
                                    {"kernel", w->kernel},
                                    {"stride", w->stride},
                                    {"pad_lo", w->pad_lo},
                                    {"pad_hi", w->pad_hi}},
                                   s));
  DLC_TRY(ValueId y, r.add("rescale", {sum, (*scale)[0], (*scale)[1]}, r.output_attrs(s), s));
  const auto& shape = r.graph().value(n.outputs[0]).type.shape;
  if (r.graph().value(y).type.shape != shape) {  // a reduction that drops its axes
    DLC_TRY(y, r.add("reshape", {y}, {{"shape", shape}}, s));
  }
  return y;
}

}  // namespace dlc::numerics
