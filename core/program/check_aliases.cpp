// The proof that aliases keep every value until its last reader; see dlc/program/alias.h.
//
// A *family* is a buffer and what lies `in` it: parts of one value. Several calls may write one, each its own part:
// the parts are boxes that do not meet, together they are all of it, and a call reads none that is written later. A
// buffer `over` another one begins a family of its own in old bytes: by then nobody needs what was there. One that is
// `keeping` an input begins with that input's elements, as if a call before all others had written them.
#include <fmt/format.h>

#include <algorithm>

#include "core/program/buffers.h"
#include "core/program/pieces.h"
#include "dlc/program/alias.h"

namespace dlc {

namespace {

using detail::Box;
using detail::Use;

std::unexpected<Error> bad(const Program& p, const Call& c, std::string message) {
  const std::string node = c.locations.empty() ? std::string() : c.locations.front();
  return fail({{}, 0, 0, node}, fmt::format("program @{}: {}", p.name, message));
}

// Bytes of a buffer inside its family.
struct Bytes {
  Expr lo, end;
};
Bytes bytes_in_family(const Program& p, int b) {
  const Expr lo = detail::offset_in_family(p, b);
  return {lo, lo + detail::bytes_of(p.buffers[static_cast<size_t>(b)].type)};
}
// From the first to the last byte of a box of it.
Bytes bytes_in_family(const Program& p, int b, const Box& box) {
  const TensorType& type = p.buffers[static_cast<size_t>(b)].type;
  Expr first(0), last(0), stride(1);
  for (size_t d = box.size(); d-- > 0; stride = stride * type.shape[d]) {
    first += stride * box[d].lo;
    last += stride * (box[d].lo + box[d].extent - 1);
  }
  const Expr lo = detail::offset_in_family(p, b);
  return {lo + first * type.dtype.bytes(), lo + (last + 1) * type.dtype.bytes()};
}
bool apart(const Bytes& a, const Bytes& b, const Ranges& symbols) {
  return provably_le(a.end, b.lo, symbols) || provably_le(b.end, a.lo, symbols);
}

class Family {
 public:
  Family(const Program& p, int root, const std::vector<Use>& uses) : p_(p), root_(root) {
    for (const Use& u : uses) (u.writes ? writes_ : reads_).push_back(u);
  }

  Result<> check() {
    const auto kept = box_kept();
    Expr total(0);
    for (const Use& w : writes_) {
      boxes_.push_back(detail::boxes_written(kernel(w), w.tensor));
      if (!boxes_.back() && (writes_.size() > 1 || (kept && !keeps_all())))
        return bad(p_, call(w),
                   fmt::format("call @{} writes {}, and so do others, but not as a box", kernel(w).name, name(w)));
      if (!boxes_.back()) continue;
      for (const Box& b : *boxes_.back()) {
        total += detail::volume(b) * type(w).dtype.bytes();
        if (kept && !keeps_all() && !(w.buffer == root_ && detail::provably_disjoint(b, *kept, p_.symbols)) &&
            !apart(bytes_in_family(p_, w.buffer, b), bytes_in_family(p_, root_, *kept), p_.symbols))
          return bad(p_, call(w), fmt::format("call @{} may write what {} keeps", kernel(w).name, name(w)));
      }
    }
    for (size_t i = 0; i < writes_.size(); ++i)
      for (size_t j = i + 1; j < writes_.size(); ++j)
        if (!disjoint(writes_[i], boxes_[i], writes_[j], boxes_[j]))
          return bad(p_, call(writes_[j]),
                     fmt::format("call @{} may write what @{} wrote to {}", kernel(writes_[j]).name,
                                 kernel(writes_[i]).name, name(writes_[i])));
    DLC_CHECK(check_filled(total, kept));
    for (const Use& r : reads_) {
      const auto read = detail::boxes_read(kernel(r), r.tensor, p_.symbols);
      for (size_t w = 0; w < writes_.size(); ++w)
        if (writes_[w].call >= r.call && (boxes_[w] || kept) && !disjoint(r, read, writes_[w], boxes_[w]))
          return bad(p_, call(r),
                     fmt::format("call @{} reads {} before call @{} has written its part", kernel(r).name, name(r),
                                 kernel(writes_[w]).name));
    }
    return {};
  }

 private:
  const Call& call(const Use& u) const { return p_.calls[u.call]; }
  const Kernel& kernel(const Use& u) const { return p_.kernels[static_cast<size_t>(call(u).kernel)]; }
  const TensorType& type(const Use& u) const { return p_.buffers[static_cast<size_t>(u.buffer)].type; }
  const std::string& name(const Use& u) const { return p_.buffers[static_cast<size_t>(u.buffer)].name; }

  // The old value's elements, in a family that keeps them.
  std::optional<Box> box_kept() const {
    const auto& root = p_.buffers[static_cast<size_t>(root_)];
    if (!root.alias || !root.alias->keeps) return std::nullopt;
    Box box;
    for (const Expr& d : value_type(p_.buffers[static_cast<size_t>(root.alias->base)]).shape)
      box.push_back({Expr(0), d});
    return box;
  }
  // The old value is as large as the new one: any element may be written, and none has to be.
  bool keeps_all() const {
    const auto& root = p_.buffers[static_cast<size_t>(root_)];
    return value_type(root) == value_type(p_.buffers[static_cast<size_t>(root.alias->base)]);
  }

  Result<> check_filled(Expr total, const std::optional<Box>& kept) const {
    if (writes_.empty() || (kept && keeps_all())) return {};
    if (writes_.size() == 1 && !boxes_[0]) return {};
    const auto& root = p_.buffers[static_cast<size_t>(root_)];
    const Expr size = detail::bytes_of(value_type(root));
    if (kept) total += detail::volume(*kept) * root.type.dtype.bytes();
    // A single writer may write some elements twice (an initial value, then sums) and is the only one who can.
    const bool filled =
        writes_.size() == 1 && !kept ? !provably_lt(total, size, p_.symbols) : simplify(total - size, p_.symbols).is(0);
    if (filled) return {};
    return bad(p_, call(writes_.back()),
               fmt::format("of the {} bytes of {}, {} are written", to_string(size), root.name,
                           to_string(simplify(total, p_.symbols))));
  }

  bool disjoint(const Use& a, const std::optional<std::vector<Box>>& boxes_of_a, const Use& b,
                const std::optional<std::vector<Box>>& boxes_of_b) const {
    if (!boxes_of_a || !boxes_of_b) return false;
    const auto &of_a = *boxes_of_a, &of_b = *boxes_of_b;
    return std::ranges::all_of(of_a, [&](const Box& x) {
      return std::ranges::all_of(of_b, [&](const Box& y) {
        if (a.buffer == b.buffer && detail::provably_disjoint(x, y, p_.symbols)) return true;
        return apart(bytes_in_family(p_, a.buffer, x), bytes_in_family(p_, b.buffer, y), p_.symbols);
      });
    });
  }

  const Program& p_;
  int root_;
  std::vector<Use> writes_, reads_;
  std::vector<std::optional<std::vector<Box>>> boxes_;  // of writes_; nothing where they are none
};

}  // namespace

namespace {

// Whether what `reader` reads of an old value and what `writer` writes of the one that keeps its elements never meet.
bool never_meet(const Program& p, const Use& reader, const Use& writer) {
  const auto kernel = [&](const Use& u) -> const Kernel& {
    return p.kernels[static_cast<size_t>(p.calls[u.call].kernel)];
  };
  const auto written = detail::boxes_written(kernel(writer), writer.tensor);
  const bool same_shape = p.buffers[static_cast<size_t>(reader.buffer)].type.shape ==
                          p.buffers[static_cast<size_t>(writer.buffer)].type.shape;
  return written &&
         std::ranges::all_of(detail::boxes_read(kernel(reader), reader.tensor, p.symbols), [&](const Box& r) {
           return std::ranges::all_of(*written, [&](const Box& w) {
             return (same_shape && detail::provably_disjoint(r, w, p.symbols)) ||
                    apart(bytes_in_family(p, reader.buffer, r), bytes_in_family(p, writer.buffer, w), p.symbols);
           });
         });
}

// An output that keeps an input: the input is read before the output is written, or where it is not written.
Result<> check_keeping(const Program& p, const detail::Uses& uses, int result) {
  const int operand = p.buffers[static_cast<size_t>(result)].alias->base;
  const auto own = uses.find(result), others = uses.find(operand);
  for (size_t b = 0; b < p.buffers.size(); ++b) {  // an output is read when all is done
    if (p.buffers[b].kind != BufferKind::output || detail::family_of(p, static_cast<int>(b)) != operand) continue;
    return fail({}, fmt::format("program @{}: buffer {} cannot keep {}: output {} lies there", p.name,
                                p.buffers[static_cast<size_t>(result)].name,
                                p.buffers[static_cast<size_t>(operand)].name, p.buffers[b].name));
  }
  if (own == uses.end() || others == uses.end()) return {};
  for (const Use& r : others->second)
    for (const Use& w : own->second) {
      if (!w.writes || w.call > r.call || never_meet(p, r, w)) continue;
      const Call& call = p.calls[r.call];
      const Kernel& k = p.kernels[static_cast<size_t>(call.kernel)];
      if (w.call == r.call && r.buffer == operand && w.buffer == result && detail::may_replace(k, r.tensor, w.tensor))
        continue;
      return bad(p, call,
                 fmt::format("buffer {} cannot keep {}: call @{} reads what may be written over by then",
                             p.buffers[static_cast<size_t>(result)].name, p.buffers[static_cast<size_t>(operand)].name,
                             k.name));
    }
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const auto& a = p.buffers[b].alias;
    if (static_cast<int>(b) != result && a && a->replaces && detail::root_of(p, a->base) == operand)
      return fail({}, fmt::format("program @{}: buffer {} cannot keep {}: {} is there", p.name,
                                  p.buffers[static_cast<size_t>(result)].name,
                                  p.buffers[static_cast<size_t>(operand)].name, p.buffers[b].name));
  }
  return {};
}

}  // namespace

Result<> detail::check_replacement(const Program& p, const Uses& uses, int result) {
  const auto& name = p.buffers[static_cast<size_t>(result)].name;
  const int operand = p.buffers[static_cast<size_t>(result)].alias->base;
  const auto& old = p.buffers[static_cast<size_t>(operand)];
  const auto refuse = [&](const Call& c, const std::string& why) {
    return bad(p, c, fmt::format("buffer {} cannot take the place of {}: {}", name, old.name, why));
  };
  if (p.buffers[static_cast<size_t>(root_of(p, operand))].kind != BufferKind::temp)
    return refuse({}, "that is no buffer of the program's own");
  if (!provably_le(bytes_of(p.buffers[static_cast<size_t>(result)].type), bytes_of(old.type), p.symbols))
    return refuse({}, "it is larger");
  const auto own = uses.find(family_of(p, result));
  if (own == uses.end()) return {};
  const size_t first = own->second.front().call;
  int out = -1;
  for (const Use& u : own->second)
    if (u.call == first && u.writes && u.buffer == result) out = u.tensor;
  const Bytes bytes = bytes_in_family(p, operand);
  const auto others = uses.find(family_of(p, operand));
  for (const Use& u : others == uses.end() ? std::vector<Use>() : others->second) {
    if (u.call < first || apart(bytes_in_family(p, u.buffer), bytes, p.symbols)) continue;
    const Call& call = p.calls[u.call];
    const Kernel& k = p.kernels[static_cast<size_t>(call.kernel)];
    if (u.call > first) return refuse(call, fmt::format("call @{} still uses {}", k.name, old.name));
    if (u.writes || out < 0 || u.buffer != operand || !may_replace(k, u.tensor, out))
      return refuse(call, fmt::format("call @{} reads other elements than the one it computes", k.name));
  }
  for (size_t b = 0; b < p.buffers.size(); ++b) {  // nobody else is there already
    const auto& a = p.buffers[b].alias;
    if (static_cast<int>(b) == result || !a || !a->replaces || family_of(p, a->base) != family_of(p, operand)) continue;
    if (!apart(bytes_in_family(p, a->base), bytes, p.symbols))
      return refuse({}, fmt::format("{} already does", p.buffers[b].name));
  }
  return {};
}

Result<> check_aliases(const Program& p) {
  const detail::Uses all = detail::uses_of(p);
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const auto& a = p.buffers[b].alias;
    if (a && a->keeps) DLC_CHECK(check_keeping(p, all, static_cast<int>(b)));
    if (a && a->replaces && !a->keeps) DLC_CHECK(detail::check_replacement(p, all, static_cast<int>(b)));
    if (!a || a->replaces) continue;
    const Expr end = a->byte_offset + detail::bytes_of(p.buffers[b].type);
    const auto& base = p.buffers[static_cast<size_t>(a->base)];
    if (!provably_le(0, a->byte_offset, p.symbols) || !provably_le(end, detail::bytes_of(base.type), p.symbols))
      return fail({},
                  fmt::format("program @{}: buffer {} does not lie inside {}", p.name, p.buffers[b].name, base.name));
  }
  for (const auto& [root, uses] : all) DLC_CHECK(Family(p, root, uses).check());
  return {};
}

}  // namespace dlc
