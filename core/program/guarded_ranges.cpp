#include "core/program/guarded_ranges.h"

#include <algorithm>

#include "dlc/base/checked.h"

namespace dlc::detail {

namespace {

// scale * symbol + constant
struct Line {
  std::string_view symbol;
  int64_t scale = 0, constant = 0;
};

std::optional<Line> line_of(const Expr& e) {
  Line line;
  for (const Term& t : e.terms()) {
    if (t.factors.empty()) {
      line.constant = t.coefficient;
    } else if (line.scale == 0 && t.factors.size() == 1 && t.factors[0].kind() == AtomKind::symbol) {
      line.symbol = t.factors[0].name();
      line.scale = t.coefficient;
    } else {
      return std::nullopt;
    }
  }
  // The smallest number has no negative.
  if (line.scale == 0 || line.scale == INT64_MIN || line.constant == INT64_MIN) return std::nullopt;
  return line;
}

}  // namespace

Ranges guarded_ranges(const Program& p) {
  Ranges ranges = p.symbols;
  for (const Guard& g : p.guards) {
    const auto line = line_of(g.excess);
    const auto it = line ? ranges.find(line->symbol) : ranges.end();
    if (it == ranges.end()) continue;
    Interval bounds = it->second.bounds;
    if (line->scale > 0 || g.is_equality) {
      const int64_t least =
          line->scale > 0 ? ceil_div(-line->constant, line->scale) : ceil_div(line->constant, -line->scale);
      bounds.lo = std::max(bounds.lo, least);
    }
    if (line->scale < 0 || g.is_equality) {
      const int64_t most =
          line->scale < 0 ? floor_div(line->constant, -line->scale) : floor_div(-line->constant, line->scale);
      bounds.hi = std::min(bounds.hi, most);
    }
    if (bounds.lo <= bounds.hi) it->second.bounds = bounds;  // otherwise no size passes
  }
  return ranges;
}

}  // namespace dlc::detail
