// The memory plan: offsets in one arena for buffers whose lives do not overlap.
//
// Sizes may be symbolic; buffers are then compared by size at the symbols' upper bounds and offsets are sums of the
// sizes below them, so that one plan holds for every shape. Greedy by size, largest first, each at the lowest free
// offset (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/program/buffers.h"
#include "dlc/base/checked.h"
#include "dlc/program/program.h"

namespace dlc {

namespace {

using detail::bytes_of;
using detail::root_of;

struct Life {
  int first = -1;  // call that first touches the buffer
  int last = -1;
};

// Lives of the buffers that have storage of their own; aliases extend their root's life.
std::vector<Life> lives(const Program& p) {
  std::vector<Life> life(p.buffers.size());
  for (size_t c = 0; c < p.calls.size(); ++c)
    for (const int b : p.calls[c].buffers) {
      Life& l = life[static_cast<size_t>(root_of(p, b))];
      if (l.first < 0) l.first = static_cast<int>(c);
      l.last = static_cast<int>(c);
    }
  // An output that lies in a temp keeps it alive to the end.
  for (size_t b = 0; b < p.buffers.size(); ++b)
    if (p.buffers[b].kind == BufferKind::output && p.buffers[b].alias)
      life[static_cast<size_t>(root_of(p, static_cast<int>(b)))].last = static_cast<int>(p.calls.size());
  return life;
}

bool overlap(const Life& a, const Life& b) { return a.first <= b.last && b.first <= a.last; }

bool is_planned(const ProgramBuffer& b) { return b.kind == BufferKind::temp && !b.alias; }

}  // namespace

Result<> plan_memory(Program& p, int64_t align) {
  const auto life = lives(p);
  std::vector<size_t> order;
  std::vector<Expr> size(p.buffers.size());
  std::vector<int64_t> bound(p.buffers.size(), 0);
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (!is_planned(p.buffers[i])) continue;
    const Expr bytes = bytes_of(p.buffers[i].type);
    if (!bytes.valid()) return fail({}, fmt::format("the size of {} overflows", p.buffers[i].name));
    size[i] = simplify(ceil_div(bytes, align) * align, p.symbols);
    bound[i] = bounds(size[i], p.symbols).hi;
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bound[a] > bound[b]; });

  std::vector<size_t> placed;
  p.arena_bytes = Expr(0);
  for (const size_t i : order) {
    // Candidate offsets: 0 and the ends of the buffers alive at the same time. The lowest that is provably free wins.
    std::vector<size_t> rivals;
    for (const size_t j : placed)
      if (overlap(life[i], life[j])) rivals.push_back(j);
    std::vector<Expr> candidates{Expr(0)};
    for (const size_t j : rivals) candidates.push_back(p.buffers[j].offset + size[j]);
    const auto upper = [&](const Expr& e) { return bounds(e, p.symbols).hi; };
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](const Expr& a, const Expr& b) { return upper(a) < upper(b); });
    std::optional<Expr> chosen;
    for (const Expr& at : candidates) {
      const bool is_free = std::ranges::all_of(rivals, [&](size_t j) {
        return provably_le(at + size[i], p.buffers[j].offset, p.symbols) ||
               provably_le(p.buffers[j].offset + size[j], at, p.symbols);
      });
      if (is_free) {
        chosen = at;
        break;
      }
    }
    if (!chosen) chosen = p.arena_bytes;  // symbolic sizes that cannot be compared: above everything
    p.buffers[i].offset = *chosen;
    placed.push_back(i);
    const Expr end = *chosen + size[i];
    p.arena_bytes = provably_le(end, p.arena_bytes, p.symbols)   ? p.arena_bytes
                    : provably_le(p.arena_bytes, end, p.symbols) ? end
                                                                 : max(p.arena_bytes, end);
    if (!p.arena_bytes.valid()) return fail({}, "the size of the program's buffers overflows");
  }
  return {};
}

Result<> check_memory_plan(const Program& p) {
  const auto life = lives(p);
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (!is_planned(p.buffers[i])) continue;
    const Expr end = p.buffers[i].offset + bytes_of(p.buffers[i].type);
    if (!provably_le(0, p.buffers[i].offset, p.symbols))
      return fail({}, fmt::format("buffer {} may begin before the arena, at {}", p.buffers[i].name,
                                  to_string(p.buffers[i].offset)));
    if (!provably_le(end, p.arena_bytes, p.symbols))
      return fail({}, fmt::format("buffer {} ends at {}, beyond the arena of {} bytes", p.buffers[i].name,
                                  to_string(end), to_string(p.arena_bytes)));
    for (size_t j = 0; j < i; ++j) {
      if (!is_planned(p.buffers[j]) || !overlap(life[i], life[j])) continue;
      if (provably_le(end, p.buffers[j].offset, p.symbols)) continue;
      if (provably_le(p.buffers[j].offset + bytes_of(p.buffers[j].type), p.buffers[i].offset, p.symbols)) continue;
      return fail({}, fmt::format("buffers {} and {} are alive at the same time and may overlap", p.buffers[j].name,
                                  p.buffers[i].name));
    }
  }
  return {};
}

}  // namespace dlc
