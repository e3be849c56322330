#include "core/interp/group_split.h"

#include <algorithm>
#include <map>

#include "core/interp/plan.h"

namespace dlc::interp {

namespace {

// The constants c of all o // c in e.
void find_divisors(const Expr& e, std::string_view loop, std::vector<int64_t>& out) {
  for (const dlc::Term& t : e.terms()) {
    for (const Atom& a : t.factors) {
      if (a.kind() == AtomKind::symbol) continue;
      if (a.kind() == AtomKind::floor_div && a.args()[0].as_symbol() == loop)
        if (const auto c = a.args()[1].constant()) out.push_back(*c);
      for (const Expr& arg : a.args()) find_divisors(arg, loop, out);
    }
  }
}
void find_divisors(const Node& n, std::string_view loop, std::vector<int64_t>& out) {
  if (n.kind == NodeKind::index) find_divisors(n.expr, loop, out);
  for (const Node& a : n.args) find_divisors(a, loop, out);
}

void replace(Node& n, const std::map<std::string, Expr, std::less<>>& values, const Ranges& ranges, Slots& slots) {
  if (n.kind == NodeKind::index) {
    n.expr = simplify(substitute(n.expr, values), ranges);
    n.code = ExprCode(n.expr, slots);
  }
  for (Node& a : n.args) replace(a, values, ranges, slots);
}

}  // namespace

std::optional<GroupSplit> split_group(Lowered& code, const std::vector<LoopCode>& loops, const Node& product) {
  for (const LoopCode& l : loops) {
    if (!l.extent.is_constant()) continue;
    const std::string name = code.slots.name(l.slot);
    const int64_t extent = l.extent.constant();
    std::vector<int64_t> divisors;
    find_divisors(product, name, divisors);
    for (const int64_t c : divisors) {
      if (c <= 1 || c >= extent || extent % c != 0) continue;
      const std::string group = name + "$group", inside = name + "$inside";  // no parser makes such names
      GroupSplit r;
      r.loop = l;
      r.group = {code.slots.of(group), Expr(extent / c), ExprCode(extent / c)};
      r.inside = {code.slots.of(inside), Expr(c), ExprCode(c)};
      r.product = product;
      const Ranges ranges{{group, Range(0, extent / c - 1)}, {inside, Range(0, c - 1)}};
      replace(r.product, {{name, Expr::symbol(group) * c + Expr::symbol(inside)}}, ranges, code.slots);
      const auto uses = [&](const Node& n) {
        const auto slots = free_slots(n);
        return std::ranges::count(slots, r.inside.slot) > 0;
      };
      r.first_uses_inside = uses(r.product.args[0]);
      if (r.first_uses_inside != uses(r.product.args[1])) return r;
    }
  }
  return std::nullopt;
}

}  // namespace dlc::interp
