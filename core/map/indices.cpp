#include "core/map/indices.h"

#include "core/map/target.h"

namespace dlc::map {

std::optional<std::vector<Expr>> unviewed(const std::vector<Expr>& index, const std::vector<int64_t>& from,
                                          const std::vector<int64_t>& to, int64_t first, const Ranges& ranges) {
  std::vector<Expr> out(to.size(), Expr(0));
  std::vector<bool> taken(to.size(), false);
  const auto step = [](const std::vector<int64_t>& shape, size_t d) {
    int64_t n = 1;
    while (++d < shape.size()) n *= shape[d];
    return n;
  };
  const auto own = [&](size_t d) -> std::optional<size_t> {
    const auto is = [&](size_t o) {
      return o < to.size() && !taken[o] && to[o] == from[d] && (to[o] == 1 || step(to, o) == step(from, d));
    };
    if (is(d)) return d;
    for (size_t o = to.size(); o-- > 0;)
      if (is(o) && static_cast<int>(o) != blocked_dim(to.size())) return o;
    return std::nullopt;
  };
  Expr flat = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    flat = flat * from[d];
    if (provably_le(0, index[d], ranges) && provably_lt(index[d], from[d], ranges)) {
      flat += index[d];
      continue;
    }
    const auto o = own(d);
    if (!o) return std::nullopt;
    out[*o] = index[d];
    taken[*o] = true;
  }
  flat += first;
  int64_t stride = 1;
  for (size_t d = to.size(); d-- > 0; stride *= to[d])
    if (to[d] > 1 && !taken[d]) out[d] = d == 0 ? floor_div(flat, stride) : mod(floor_div(flat, stride), to[d]);
  return out;
}

void find_division(const Expr& e, const Ranges& ranges, std::string& var, int64_t& by) {
  for (const Term& t : e.terms())
    for (const Atom& a : t.factors) {
      if (a.kind() == AtomKind::symbol) continue;
      for (const Expr& arg : a.args()) find_division(arg, ranges, var, by);
      const auto d =
          a.kind() == AtomKind::floor_div || a.kind() == AtomKind::mod ? a.args()[1].constant() : std::nullopt;
      if (!d) continue;
      for (const Term& inner : a.args()[0].terms()) {
        if (inner.factors.size() != 1 || inner.factors[0].kind() != AtomKind::symbol || *d % inner.coefficient != 0)
          continue;
        const std::string name(inner.factors[0].name());
        const int64_t factor = *d / inner.coefficient;
        const auto r = ranges.find(name);
        if (factor <= 1 || r == ranges.end() || r->second.bounds.hi < factor) continue;
        if (by == 0 || factor < by) {
          var = name;
          by = factor;
        }
      }
    }
}

}  // namespace dlc::map
