#include "core/map/ring.h"

#include <algorithm>

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
  std::erase_if(resident_, [&](const auto& r) { return r.second.begin < span.end && span.begin < r.second.end; });
  if (!key.empty()) resident_.insert_or_assign(key, span);
  pins_.push_back(span);
  cursor_ = span.end;
  return at;
}

void Ring::forget(const std::string& prefix) {
  std::erase_if(resident_, [&](const auto& r) { return r.first.starts_with(prefix); });
}

void Ring::release() {
  std::erase_if(pins_, [](const Span& p) { return !p.for_tile; });
}

}  // namespace dlc::map
