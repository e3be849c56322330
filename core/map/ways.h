// Ways: how a part of an instruction's text and a part of a kernel's value can be the same, without regard to fields.
//
//   (acc[...] - za) + bias   and   X + 7:   acc[...] - za is X and bias is 7
//                                           acc[...] - za is 7 and bias is X
//                                           bias is 0 and acc[...] - za is X + 7
//                                           ...
//
// A way is a list of steps; pairs of smaller parts are steps, and each pair has its ways once, however often it comes
// up. A way with a pair that has none is none.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/map/pattern.h"
#include "core/map/value.h"

namespace dlc::map {

struct Step;
using Way = std::vector<Step>;

struct Pair {
  std::vector<Way> ways;
};

struct Step {
  enum class Kind : uint8_t {
    pair,       // one of the ways of `pair`
    equal,      // `pattern` is `number`
    choice,     // the same, of a field that decides between ways: that it cannot be is no reason
    later,      // the same, once reads are bound
    read,       // `pattern` is a read, and stands for `target`
    reduction,  // they are reductions
    guard,      // `pattern` holds for elements
    never,      // the reason is why()
  };
  Kind kind = Kind::never;
  const Pair* pair = nullptr;
  Val pattern, target;
  int64_t number = 0;
  std::function<std::string()> why;
};

class Ways {
 public:
  // `explain`: keeps what cannot be, with steps `never` that say why.
  Ways(const Pattern& p, const Val& root, const Kernel& k, ValueRanges& ranges, bool explain)
      : p_(p), root_(root), k_(k), ranges_(ranges), explain_(explain) {}

  const Pair* of(const Val& p, const Val& t);

 private:
  void find(const Val& p, const Val& t, Pair& out);
  void number(const Val& p, const Val& t, Pair& out) const;
  void memory(const Val& p, const Val& t, Pair& out);
  void same_kind(const Val& p, const Val& t, Pair& out);
  void neutral(const Val& p, const Val& t, Pair& out);
  void without(const Val& p, size_t gone, int64_t number, const Val& t, Pair& out);
  bool guards(const Val& p) const;
  bool may_be(const Val& p, int64_t n) const;
  Val in_place_of(const Val& gate, const Val& p, const Val& t) const;
  Val put(const Val& p, const Val& gate, const Val& at);

  // A way gets one more pair; false: it is none then.
  bool also(Way& way, const Val& p, const Val& t);
  void never(Pair& to, std::function<std::string()> why) const;
  static Step is(Step::Kind kind, const Val& p, int64_t n) { return {kind, nullptr, p, nullptr, n, {}}; }

  const Pattern& p_;
  const Val root_;
  const Kernel& k_;
  ValueRanges& ranges_;
  const bool explain_;
  using Parts = std::pair<const ValNode*, const ValNode*>;
  struct Hash {
    size_t operator()(const Parts& parts) const {
      const std::hash<const void*> hash;
      return hash(parts.first) * 0x9e3779b97f4a7c15u ^ hash(parts.second);
    }
  };
  std::unordered_map<Parts, std::unique_ptr<Pair>, Hash> pairs_;
  std::map<int64_t, Val> literals_;
};

}  // namespace dlc::map
