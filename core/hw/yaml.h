// A strict YAML tree with a place for every node. yaml-cpp only scans: what it lets pass is refused here.
//
// Invariants: every node knows file, line and column; a map has no key twice; the tree has at most kMaxNodes nodes with
// aliases expanded, is at most kMaxDepth deep and a map has at most kMaxEntries keys, so walking it is bounded whatever
// the text says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"

namespace dlc::yaml {

inline constexpr size_t kMaxBytes = size_t{4} << 20;
inline constexpr int64_t kMaxNodes = 200'000;
inline constexpr size_t kMaxEntries = 20'000;  // of one map: names are compared pair by pair in places
inline constexpr int kMaxDepth = 64;

enum class Kind : uint8_t { null, scalar, sequence, map };

struct Node;
using Ptr = std::shared_ptr<const Node>;

struct Entry {
  std::string key;
  int line = 0, column = 0;
  Ptr value;

  Loc loc() const;  // of the key
};

struct Node {
  Kind kind = Kind::null;
  bool quoted = false;
  std::string text;  // scalar
  std::shared_ptr<const std::string> file;
  int line = 0, column = 0;
  std::vector<Ptr> items;      // sequence
  std::vector<Entry> entries;  // map, in file order; added and removed by the functions below only
  std::map<std::string, size_t, std::less<>> index;  // key -> place in entries
  int64_t nodes = 1;                                 // of the subtree, aliases expanded

  Loc loc() const { return {*file, line, column, {}}; }
  Loc text_loc() const { return {*file, line, column + (quoted ? 1 : 0), {}}; }  // where the scalar's text begins
  const Entry* find(std::string_view key) const;
  void add(Entry e);  // its key is new
  void remove(std::string_view key);
};

inline Loc Entry::loc() const { return {*value->file, line, column, {}}; }

Result<Ptr> parse(std::string_view text, const std::string& file);

// `over` laid on `base`: maps merge key by key, null removes a key, anything else replaces.
Ptr merge(const Ptr& base, const Ptr& over);

// The tree as text: one line for each key of the root, all scalars quoted.
std::string print(const Node& root);

std::string_view describe(Kind kind);  // "a map", for messages

}  // namespace dlc::yaml
