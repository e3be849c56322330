// Ring: addresses in one on-chip memory, handed out round and round, so that what comes next lands beside what is in
// use: double buffering without being asked for. What is still there under its key need not be loaded again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dlc/hw/description.h"

namespace dlc::map {

class Ring {
 public:
  explicit Ring(const HwState& memory);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  int64_t capacity() const { return capacity_; }
  // Where `key` lies; it is pinned.
  std::optional<int64_t> find(const std::string& key);
  // nullopt: the pinned regions leave no room. Regions in the way lose their keys.
  std::optional<int64_t> allocate(int64_t bytes, int64_t align, const std::string& key, bool for_tile = false);
  // What lies at an address of what was just allocated has this key.
  void put(const std::string& key, int64_t at, int64_t bytes);
  bool has(const std::string& key) const { return resident_.contains(key); }
  // What lies outside under keys that begin so has changed.
  void forget(const std::string& prefix);
  // Pinned regions may not be given away: those of one instruction until release(), those of a tile until end_tile().
  void release();
  void end_tile() { pins_.clear(); }

 private:
  struct Span {
    int64_t begin = 0, end = 0;
    bool for_tile = false;
  };
  using Residents = std::map<std::string, Span>;
  std::optional<int64_t> free_from(int64_t start, int64_t bytes, int64_t align) const;
  Residents::iterator erase(Residents::iterator it);

  int64_t capacity_ = 0, bank_ = 0, cursor_ = 0;
  Residents resident_;                                 // no two of them overlap
  std::map<int64_t, Residents::iterator> by_address_;  // by where they begin
  std::vector<Span> pins_;
};

}  // namespace dlc::map
