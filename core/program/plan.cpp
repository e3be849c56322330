// The memory plan: offsets in one arena for buffers whose lives do not overlap.
//
// Sizes may be symbolic; buffers are then compared by size where the symbols are large and offsets are sums of the
// sizes below them, so that one plan holds for every shape. Greedy by size, largest first, each at the lowest free
// offset (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ranges>

#include "core/expr/order.h"
#include "core/program/buffers.h"
#include "core/program/guarded_ranges.h"
#include "dlc/base/checked.h"
#include "dlc/program/program.h"

namespace dlc {

namespace {

using detail::bytes_of;
using detail::Order;
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

// Bytes of a buffer, or of the whole steps of `align` that hold them: what is planned and what is checked are brought
// into one form by the same facts, so that a size that only a guard fixes is the same number on both sides.
Expr size_of(const ProgramBuffer& b, const Ranges& ranges, int64_t align = 1) {
  return simplify(ceil_div(bytes_of(b.type), align) * align, ranges);
}

struct Place {
  Order::Address begin, end;
  std::vector<bool> below;  // by placed index: which buffers are known to end at or before `begin`
};

class Planner {
 public:
  Planner(Program& p, int64_t align)
      : p_(p), align_(align), life_(lives(p)), ranges_(detail::guarded_ranges(p)), order_(ranges_) {}

  Result<> run() {
    DLC_CHECK(measure());
    for (const size_t i : largest_first_) {
      Place best = lowest_free(i);
      p_.buffers[i].offset = best.begin.value;
      raise_top(best.end);
      placed_.push_back(std::move(best));
      placed_buffer_.push_back(i);
    }
    p_.arena_bytes = top();
    if (!p_.arena_bytes.valid()) return fail({}, "the size of the program's buffers overflows");
    return {};
  }

 private:
  Result<> measure() {
    size_.resize(p_.buffers.size());
    std::vector<int64_t> bound(p_.buffers.size(), 0);
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      if (!is_planned(p_.buffers[i])) continue;
      size_[i] = size_of(p_.buffers[i], ranges_, align_);
      if (!size_[i].valid()) return fail({}, fmt::format("the size of {} overflows", p_.buffers[i].name));
      bound[i] = order_.address(size_[i]).at[0].value_or(Interval::kPosInf);
      largest_first_.push_back(i);
    }
    std::ranges::stable_sort(largest_first_, std::greater<>(), [&](size_t i) { return bound[i]; });
    return {};
  }

  void raise_top(const Order::Address& end) {
    for (const Expr& e : end.sums) {
      if (std::ranges::any_of(tops_, [&](const Expr& t) { return order_.provably_le(e, t); })) continue;
      std::erase_if(tops_, [&](const Expr& t) { return order_.provably_le(t, e); });
      tops_.push_back(e);
    }
  }
  Expr top() const {
    if (tops_.empty()) return Expr(0);
    Expr top = tops_[0];
    for (size_t i = 1; i < tops_.size(); ++i) top = max(top, tops_[i]);
    return top;
  }

  // Candidates are 0 and the ends of the buffers alive at the same time; the lowest that is provably free wins. Above
  // everything where symbolic sizes cannot be compared.
  Place lowest_free(size_t i) {
    std::vector<size_t> rivals;  // the highest first: what ends below one of them is known to end below others
    for (size_t j = 0; j < placed_.size(); ++j)
      if (overlap(life_[i], life_[placed_buffer_[j]])) rivals.push_back(j);
    std::ranges::stable_sort(rivals, std::greater<>(),
                             [&](size_t j) { return placed_[j].end.at[0].value_or(Interval::kPosInf); });
    if (auto bottom = on_top_of({}, i, rivals)) return *bottom;
    for (const size_t j : std::views::reverse(rivals))
      if (auto found = on_top_of(j, i, rivals)) return *found;
    return place(top(), i, std::vector<bool>(placed_.size(), true));
  }

  // The place at the end of `base` (at 0 without one), if it is free of all rivals.
  std::optional<Place> on_top_of(std::optional<size_t> base, size_t i, const std::vector<size_t>& rivals) {
    std::vector<bool> below = base ? placed_[*base].below : std::vector<bool>();
    below.resize(placed_.size());
    if (base) below[*base] = true;
    Place at = place(base ? placed_[*base].end.value : Expr(0), i, std::move(below));
    for (const size_t j : rivals)
      if (!at.below[j] && !Order::may_be_le(at.end, placed_[j].begin) && !Order::may_be_le(placed_[j].end, at.begin))
        return std::nullopt;
    for (const size_t j : rivals) {
      if (at.below[j] || order_.provably_le(at.end, placed_[j].begin)) continue;
      if (!order_.provably_le(placed_[j].end, at.begin)) return std::nullopt;
      at.below[j] = true;
      for (size_t k = 0; k < placed_[j].below.size(); ++k)
        if (placed_[j].below[k]) at.below[k] = true;
    }
    return at;
  }

  Place place(const Expr& begin, size_t i, std::vector<bool> below) const {
    return {order_.address(begin), order_.address(begin + size_[i]), std::move(below)};
  }

  Program& p_;
  const int64_t align_;
  const std::vector<Life> life_;
  const Ranges ranges_;
  Order order_;
  std::vector<Expr> size_;             // by buffer
  std::vector<size_t> largest_first_;  // buffers
  std::vector<Expr> tops_;             // ends that are not known to be below another
  std::vector<Place> placed_;
  std::vector<size_t> placed_buffer_;  // the buffer of each place
};

}  // namespace

Result<> plan_memory(Program& p, int64_t align) { return Planner(p, align).run(); }

// In the order of addresses, the nearest first: what ends below a neighbour also ends below what lies above that one.
Result<> check_memory_plan(const Program& p) {
  const auto life = lives(p);
  const Ranges ranges = detail::guarded_ranges(p);
  Order order(ranges);
  struct Checked {
    size_t buffer;
    Order::Address begin, end;
    std::vector<bool> below;  // by place in `all`
  };
  std::vector<Checked> all;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (!is_planned(p.buffers[i])) continue;
    const Expr& begin = p.buffers[i].offset;
    all.push_back({i, order.address(begin), order.address(begin + size_of(p.buffers[i], ranges)), {}});
  }
  std::ranges::stable_sort(all, {}, [](const Checked& c) {
    return std::pair(c.begin.at[0].value_or(Interval::kPosInf), c.end.at[0].value_or(Interval::kPosInf));
  });
  const auto name = [&](const Checked& c) -> const std::string& { return p.buffers[c.buffer].name; };
  const auto known_below = [&](Checked& c, size_t i) {
    c.below[i] = true;
    for (size_t k = 0; k < i; ++k) c.below[k] = c.below[k] || all[i].below[k];
  };
  const Order::Address zero = order.address(Expr(0));
  for (size_t j = 0; j < all.size(); ++j) {
    Checked& c = all[j];
    c.below.assign(j, false);
    if (!order.provably_le(zero, c.begin))
      return fail({}, fmt::format("buffer {} may begin before the arena, at {}", name(c), to_string(c.begin.value)));
    for (size_t i = j; i-- > 0;) {
      if (c.below[i] || !overlap(life[c.buffer], life[all[i].buffer])) continue;
      if (order.provably_le(all[i].end, c.begin))
        known_below(c, i);
      else if (!order.provably_le(c.end, all[i].begin))
        return fail({},
                    fmt::format("buffers {} and {} are alive at the same time and may overlap", name(all[i]), name(c)));
    }
  }
  Checked arena{0, order.address(p.arena_bytes), {}, std::vector<bool>(all.size(), false)};
  for (size_t i = all.size(); i-- > 0;) {
    if (arena.below[i]) continue;
    if (!order.provably_le(all[i].end, arena.begin))
      return fail({}, fmt::format("buffer {} ends at {}, beyond the arena of {} bytes", name(all[i]),
                                  to_string(all[i].end.value), to_string(p.arena_bytes)));
    known_below(arena, i);
  }
  return {};
}

}  // namespace dlc
