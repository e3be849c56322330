#include "core/kernel/fit.h"

#include <vector>

#include "dlc/kernel/access.h"

namespace dlc {

namespace {

constexpr int64_t kMostPoints = 8192;

// The value at every point of the loop.
std::optional<std::vector<int64_t>> values_of(const Val& index, const std::string& var, int64_t points) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < points; ++i) {
    const auto e = val::as_expr(substitute(index, {{var, Expr(i)}}));
    const auto n = e ? e->constant() : std::nullopt;
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

// The first point behind `at` whose value is another.
size_t next_change(const std::vector<int64_t>& values, size_t at) {
  size_t i = at;
  while (i < values.size() && values[i] == values[at]) ++i;
  return i;
}

}  // namespace

std::optional<Expr> fit_index(const Val& index, const Ranges& ranges) {
  if (auto e = val::as_expr(index)) return e;
  const SymbolSet symbols = free_symbols(index);
  if (symbols.size() != 1) return std::nullopt;
  const std::string& var = *symbols.begin();
  const auto range = ranges.find(var);
  if (range == ranges.end() || range->second.bounds.lo != 0 || range->second.bounds.hi >= kMostPoints)
    return std::nullopt;
  const auto values = values_of(index, var, range->second.bounds.hi + 1);
  if (!values || values->empty()) return std::nullopt;
  // Either it steps by as much at every point, or by one behind every `run` points, of which the first may be fewer.
  const int64_t step = values->size() > 1 ? (*values)[1] - (*values)[0] : 0;
  const size_t first = next_change(*values, 0);
  const size_t second = first < values->size() ? next_change(*values, first) : first;
  const auto run = static_cast<int64_t>(second < values->size() ? second - first : std::max(first, second - first));
  const Expr o = Expr::symbol(var);
  for (const auto& [scale, shift, divisor] :
       {std::tuple(step, int64_t{0}, int64_t{1}), std::tuple(int64_t{1}, run - static_cast<int64_t>(first), run)}) {
    bool same = true;
    for (size_t i = 0; i < values->size() && same; ++i)
      same = (*values)[i] == (*values)[0] + (static_cast<int64_t>(i) * scale + shift) / divisor;
    if (same) return (*values)[0] + floor_div(o * scale + shift, divisor);
  }
  return std::nullopt;
}

}  // namespace dlc
