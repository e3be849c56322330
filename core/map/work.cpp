#include "core/map/work.h"

#include <algorithm>

#include "dlc/kernel/access.h"

namespace dlc::map {

namespace {

// Dims of the read that the loops of its sum walk.
std::vector<bool> summed_dims(const Target& t, const ValNode& read) {
  std::vector<bool> summed;
  for (const Val& a : read.args) {
    const auto e = val::as_expr(a);
    summed.push_back(
        e && std::ranges::any_of(t.loops, [&](const TargetLoop& l) { return l.reduction && e->mentions(l.var); }));
  }
  return summed;
}

}  // namespace

int64_t used_macs(const Target& t, int64_t macs) {
  const ValNode* weights = nullptr;
  walk(t.value, [&](const ValNode& n) {
    if (n.kind != ValKind::reduce || n.reduce_op() != ReduceOp::sum) return;
    walk(n.args[0], [&](const ValNode& r) {
      if (r.kind == ValKind::read && r.args.size() > 1 && t.constants.contains(r.tensor)) weights = &r;
    });
  });
  if (weights == nullptr) return macs;
  const Tensor& w = t.constants.at(weights->tensor);
  const std::vector<bool> summed = summed_dims(t, *weights);
  int64_t places = 1;
  for (size_t d = 0; d < summed.size(); ++d)
    if (summed[d]) places *= w.shape()[d];
  if (places == 0 || w.elements() == 0) return macs;
  std::vector<bool> used(static_cast<size_t>(places), false);
  std::vector<int64_t> at(summed.size(), 0);
  int64_t count = 0;
  for (int64_t e = 0; e < w.elements() && count < places; ++e) {
    if (w.get_int(e) != 0) {
      int64_t place = 0;
      for (size_t d = 0; d < at.size(); ++d)
        if (summed[d]) place = place * w.shape()[d] + at[d];
      count += used[static_cast<size_t>(place)] ? 0 : 1;
      used[static_cast<size_t>(place)] = true;
    }
    for (size_t d = at.size(); d-- > 0 && ++at[d] == w.shape()[d];) at[d] = 0;
  }
  return macs / places * count;
}

}  // namespace dlc::map
