#include "core/map/ring.h"

#include <algorithm>
#include <iterator>

#include "dlc/base/checked.h"

namespace dlc::map {

Ring::Ring(const HwState& memory) : capacity_(memory.words * memory.word_bytes()) {
  if (memory.banks > 1) bank_ = capacity_ / memory.banks;
}

std::optional<int64_t> Ring::find(const std::string& key) {
  const auto it = resident_.find(key);
  if (it == resident_.end()) return std::nullopt;
  pins_.push_back(it->second);
  return it->second.begin;
}

std::optional<int64_t> Ring::free_from(int64_t start, int64_t bytes, int64_t align) const {
  int64_t at = ceil_div(start, align) * align;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Span& p : pins_)
      if (at < p.end && p.begin < at + bytes) {
        at = ceil_div(p.end, align) * align;
        moved = true;
      }
  }
  return at + bytes <= capacity_ ? std::optional(at) : std::nullopt;
}

std::optional<int64_t> Ring::allocate(int64_t bytes, int64_t align, const std::string& key, bool for_tile) {
  int64_t start = cursor_;
  // Users of different banks do not wait for each other.
  if (bank_ > 0 && bytes <= bank_) start = ceil_div(start, bank_) * bank_;
  auto at = free_from(start, bytes, align);
  if (!at) at = free_from(0, bytes, align);
  if (!at) return std::nullopt;
  const Span span{*at, *at + bytes, for_tile};
  auto it = by_address_.lower_bound(span.begin);
  if (it != by_address_.begin() && std::prev(it)->second->second.end > span.begin) --it;
  while (it != by_address_.end() && it->first < span.end) erase((it++)->second);
  if (!key.empty()) put(key, span.begin, bytes);
  pins_.push_back(span);
  cursor_ = span.end;
  return at;
}

void Ring::put(const std::string& key, int64_t at, int64_t bytes) {
  if (const auto old = resident_.find(key); old != resident_.end()) erase(old);
  if (bytes <= 0) return;  // it would share its place with another
  by_address_[at] = resident_.emplace(key, Span{at, at + bytes}).first;
}

Ring::Residents::iterator Ring::erase(Residents::iterator it) {
  by_address_.erase(it->second.begin);
  return resident_.erase(it);
}

void Ring::forget(const std::string& prefix) {
  for (auto it = resident_.lower_bound(prefix); it != resident_.end() && it->first.starts_with(prefix);) it = erase(it);
}

void Ring::release() {
  std::erase_if(pins_, [](const Span& p) { return !p.for_tile; });
}

}  // namespace dlc::map
