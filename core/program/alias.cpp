// See dlc/program/alias.h.
#include "dlc/program/alias.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "core/program/buffers.h"
#include "core/program/pieces.h"

namespace dlc {

namespace {

using detail::Embedding;
using detail::Movement;
using detail::Piece;

class AliasSets {
 public:
  // Of what could be done, in the order it is found, the first `most` are done, without `refused`.
  AliasSets(Program& p, const AliasOptions& options, int most, const std::set<int>& refused)
      : p_(p), options_(options), most_(most), refused_(refused) {}

  int found() const { return found_; }

  AliasStats run() {
    for (Kernel& k : p_.kernels) detail::split_choices(k, p_.symbols);
    // Slices of slices compose from the first on, concats of concats from the last on. Concats that share operands
    // with a larger one are then parts of it.
    for (size_t c = 0; c < p_.calls.size(); ++c) read_in_place(c);
    for (size_t c = p_.calls.size(); c-- > 0;) write_in_place(c);
    for (size_t c = 0; c < p_.calls.size(); ++c) read_in_place(c);
    stats_.calls = static_cast<int>(std::erase_if(p_.calls, [](const Call& c) { return c.kernel < 0; }));
    uses_ = detail::uses_of(p_);
    for (size_t c = 0; c < p_.calls.size() && options_.in_place; ++c) reuse_operand(c);
    return stats_;
  }

 private:
  bool wanted() {
    const int i = found_++;
    const bool is_wanted = i < most_ && !refused_.contains(i);
    if (!is_wanted) ++stats_.refused;
    return is_wanted;
  }

  ProgramBuffer& buffer(int b) { return p_.buffers[static_cast<size_t>(b)]; }
  const Kernel& kernel(const Call& c) const { return p_.kernels[static_cast<size_t>(c.kernel)]; }
  const std::vector<Expr>& shape(int b) const { return p_.buffers[static_cast<size_t>(b)].type.shape; }

  Kernel& own_kernel(Call& call) { return detail::own_kernel(p_, call); }

  bool has_views(int b) const {
    return std::ranges::any_of(p_.buffers, [&](const ProgramBuffer& x) { return x.alias && x.alias->base == b; });
  }

  // ---- views

  // What a call moves; nothing for calls that are gone already.
  struct Moved {
    Movement movement;
    std::vector<int> buffers;  // by tensor of the kernel
    int target = -1;           // buffer
  };
  std::optional<Moved> moved_by(const Call& call) const {
    if (call.kernel < 0) return std::nullopt;
    auto m = detail::movement(kernel(call), p_.symbols);
    if (!m) return std::nullopt;
    Moved moved{std::move(*m), detail::buffers_of(kernel(call), call), -1};
    moved.target = moved.buffers[static_cast<size_t>(moved.movement.target)];
    return moved;
  }

  // The result is part of what its elements come from: a slice, a transpose, a concat of neighbours.
  void read_in_place(size_t c) {
    const auto m = moved_by(p_.calls[c]);
    if (!m || buffer(m->target).kind != BufferKind::temp || buffer(m->target).alias) return;
    if (same_embedding(c, *m) || same_offset(*m)) p_.calls[c].kernel = -1;
  }

  bool fills_target(const Moved& m) const {
    Expr filled(0);
    for (const Piece& piece : m.movement.pieces) {
      if (piece.source < 0) return false;
      filled += detail::volume(piece.box);
    }
    return simplify(filled, p_.symbols) == elements(m.target);
  }

  // Every piece comes from one buffer, by one embedding.
  bool same_embedding(size_t c, const Moved& m) {
    const auto& pieces = m.movement.pieces;
    if (!fills_target(m)) return false;
    const int source = m.buffers[static_cast<size_t>(pieces[0].source)];
    const auto e = detail::embedding(pieces[0].to, pieces[0].from, pieces[0].loops, shape(m.target), p_.symbols);
    if (!e) return false;
    for (const Piece& piece : pieces)
      if (m.buffers[static_cast<size_t>(piece.source)] != source ||
          detail::embedding(piece.to, piece.from, piece.loops, shape(m.target), p_.symbols) != e)
        return false;
    return place(c, m.target, source, *e);
  }

  // Every piece is contiguous, and all lie in one buffer as they do in the result.
  bool same_offset(const Moved& m) {
    if (!fills_target(m)) return false;
    int base = -1;
    std::optional<Expr> at;
    for (const Piece& piece : m.movement.pieces) {
      const int source = m.buffers[static_cast<size_t>(piece.source)];
      const auto e = whole_source(piece, source, m.target);
      if (!e) return false;
      const int family = detail::family_of(p_, source);
      const Expr start = simplify(detail::offset_in_family(p_, source) - *e * bytes(m.target), p_.symbols);
      if ((base >= 0 && base != family) || (at && *at != start)) return false;
      base = family;
      at = start;
    }
    if (base == m.target || !has_whole_blocks(m.target, base, floor_div(*at, bytes(m.target))) || !wanted())
      return false;
    buffer(m.target).alias = BufferAlias{base, *at, false};
    buffer(m.target).offset = Expr();
    ++stats_.views;
    return true;
  }

  int bytes(int b) const { return p_.buffers[static_cast<size_t>(b)].type.dtype.bytes(); }

  // Where in the target all of the source lies without gaps, in elements.
  std::optional<Expr> whole_source(const Piece& piece, int source, int target) const {
    const auto e = detail::embedding(piece.from, piece.to, piece.loops, shape(source), p_.symbols);
    if (!e || !covers(piece.from, piece, source)) return std::nullopt;
    return detail::contiguous_offset(*e, shape(source), shape(target), p_.symbols);
  }

  bool covers(const detail::Steps& steps, const Piece& piece, int b) const {
    return detail::covers(steps, piece.loops, shape(b), p_.symbols);
  }

  // The operands are parts of the result: a concat.
  void write_in_place(size_t c) {
    const auto m = moved_by(p_.calls[c]);
    if (!m) return;
    std::vector<Piece> left;
    for (const Piece& piece : m->movement.pieces) {
      const bool once = std::ranges::count(m->movement.pieces, piece.source, &Piece::source) == 1;
      if (piece.source < 0 || !once || !written_in_place(c, piece, *m)) left.push_back(piece);
    }
    if (left.empty())
      p_.calls[c].kernel = -1;
    else if (left.size() < m->movement.pieces.size())
      keep_only(p_.calls[c], m->movement, left);
  }

  // The operand's bytes are whole when it is a reshaped view of something.
  bool written_in_place(size_t c, const Piece& piece, const Moved& m) {
    const int operand = m.buffers[static_cast<size_t>(piece.source)];
    const auto e = detail::embedding(piece.from, piece.to, piece.loops, shape(operand), p_.symbols);
    if (!e || !covers(piece.from, piece, operand)) return false;
    int source = operand;
    while (const auto a = buffer(source).alias) {
      if (!a->byte_offset.is(0) || elements(source) != elements(a->base)) return false;
      source = a->base;
    }
    if (buffer(source).kind != BufferKind::temp || detail::root_of(p_, m.target) == source) return false;
    for (size_t i = c; i < p_.calls.size(); ++i)  // later readers see the same elements there
      if (p_.calls[i].kernel >= 0 && detail::writes(p_, p_.calls[i], source)) return false;
    if (source == operand) return place(c, source, m.target, *e);
    const auto offset = detail::contiguous_offset(*e, shape(operand), shape(m.target), p_.symbols);
    if (!offset || !has_whole_blocks(source, m.target, *offset) || !wanted()) return false;
    alias(source, m.target, *offset);
    return true;
  }

  Expr elements(int b) const {
    Expr n(1);
    for (const Expr& d : shape(b)) n = n * d;
    return simplify(n, p_.symbols);
  }

  void alias(int view, int base, const Expr& element_offset) {
    buffer(view).alias = BufferAlias{base, element_offset * buffer(view).type.dtype.bytes(), false};
    buffer(view).offset = Expr();
    ++stats_.views;
  }

  // ---- blocks

  // Channels [first, first + n) of `all` are whole blocks; the last one may have an end of its own.
  bool are_whole_blocks(const Expr& first, const Expr& n, const Expr& all) const {
    const auto at = first.constant(), size = n.constant(), end = all.constant();
    return at && size && end && *at % options_.lanes == 0 && (*size % options_.lanes == 0 || *at + *size == *end);
  }
  static Expr product(std::span<const Expr> shape) {
    Expr n(1);
    for (const Expr& e : shape) n = n * e;
    return n;
  }

  // Of a view whose elements begin `offset` behind those of `base` and follow each other there.
  bool has_whole_blocks(int view, int base, Expr offset) const {
    if (options_.lanes == 1) return true;
    const int root = detail::root_of(p_, base);
    offset = simplify(offset + floor_div(detail::offset_in_family(p_, base), bytes(base)), p_.symbols);
    const auto &small = shape(view), &whole = shape(root);
    const auto at = offset.constant();
    if (small.size() < 2 || whole.size() < 2 || !at || bytes(view) != bytes(root)) return false;
    const auto pixels = simplify(product(std::span(whole).subspan(2)), p_.symbols).constant();
    if (!pixels || *pixels == 0 || !simplify(product(std::span(small).subspan(2)) - *pixels, p_.symbols).is(0))
      return false;
    if (*at % *pixels != 0 || !whole[1].constant()) return false;
    const Expr first(*at / *pixels % std::max<int64_t>(*whole[1].constant(), 1));
    return (small[0].is(1) || small[1] == whole[1]) && are_whole_blocks(first, small[1], whole[1]);
  }

  bool has_whole_blocks(int view, int base, const Embedding& e) const {
    if (options_.lanes == 1) return true;
    if (shape(view).size() < 2 || shape(base).size() < 2 || p_.buffers[static_cast<size_t>(base)].alias) return false;
    return e.dim[1] == 1 && are_whole_blocks(e.offset[1], shape(view)[1], shape(base)[1]);
  }

  // Makes `view`, which has bytes of its own so far, the part of `base` that e says, so that call c need not move it.
  // False when that cannot be.
  bool place(size_t c, int view, int base, const Embedding& e) {
    if (detail::root_of(p_, base) == view) return false;
    if (const auto offset = detail::contiguous_offset(e, shape(view), shape(base), p_.symbols)) {
      if (!has_whole_blocks(view, base, *offset) || !wanted()) return false;
      alias(view, base, *offset);
      return true;
    }
    if (!has_whole_blocks(view, base, e)) return false;
    if (has_views(view) || !detail::keeps_rows(e, shape(view), shape(base))) return false;
    if (buffer(base).kind == BufferKind::constant) return false;
    const auto accesses_it = [&](const Call& call) {
      return &call != &p_.calls[c] && call.kernel >= 0 && std::ranges::find(call.buffers, view) != call.buffers.end();
    };
    for (const Call& call : p_.calls) {
      if (!accesses_it(call)) continue;
      const Kernel& k = kernel(call);
      const auto buffers = detail::buffers_of(k, call);
      for (size_t t = 0; t < buffers.size(); ++t) {
        if (buffers[t] != view) continue;
        if (k.tensors[t].role != Role::input && k.tensors[t].role != Role::output) return false;
        if (!detail::stays_inside(k, static_cast<int>(t), p_.symbols)) return false;
      }
    }
    if (!wanted()) return false;
    for (Call& call : p_.calls) {
      if (!accesses_it(call)) continue;
      Kernel& k = own_kernel(call);
      const auto buffers = detail::buffers_of(k, call);
      for (size_t t = 0; t < buffers.size(); ++t)
        if (buffers[t] == view) detail::embed(k, static_cast<int>(t), e, shape(base));
      std::ranges::replace(call.buffers, view, base);
    }
    ++stats_.views;
    return true;
  }

  // The call still moves these pieces.
  void keep_only(Call& call, const Movement& m, const std::vector<Piece>& pieces) {
    Kernel& k = own_kernel(call);
    const auto buffers = detail::buffers_of(k, call);
    Kernel rest;
    rest.name = k.name;
    rest.locations = k.locations;
    rest.assumptions = k.assumptions;
    call.buffers.clear();
    std::vector<int> moved(k.tensors.size(), -1);
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      const bool used = static_cast<int>(t) == m.target ||
                        std::ranges::find(pieces, static_cast<int>(t), &Piece::source) != pieces.end();
      if (!used) continue;
      moved[t] = static_cast<int>(rest.tensors.size());
      (k.tensors[t].role == Role::output ? rest.outputs : rest.inputs).push_back(moved[t]);
      rest.tensors.push_back(k.tensors[t]);
      call.buffers.push_back(buffers[t]);
    }
    const int target = moved[static_cast<size_t>(m.target)];
    for (Piece piece : pieces) {
      if (piece.source >= 0)
        piece.source = moved[static_cast<size_t>(piece.source)];
      else
        piece.statement.tensor = target;
      rest.body.push_back(detail::statement_of(piece, target, rest.tensors[static_cast<size_t>(target)].dtype));
    }
    k = std::move(rest);
  }

  // ---- results in the place of an operand

  void reuse_operand(size_t c) {
    const Call& call = p_.calls[c];
    const Kernel& k = kernel(call);
    const auto buffers = detail::buffers_of(k, call);
    for (const int out : k.outputs) {
      const int result = buffers[static_cast<size_t>(out)];
      if (buffer(result).kind != BufferKind::temp || buffer(result).alias) continue;
      for (size_t in = 0; in < buffers.size(); ++in) {
        if (k.tensors[in].role != Role::input || !detail::may_replace(k, static_cast<int>(in), out)) continue;
        const int operand = buffers[in];
        if (operand == result || buffer(detail::root_of(p_, operand)).kind != BufferKind::temp) continue;
        buffer(result).alias = BufferAlias{operand, Expr(0), true};
        if (detail::check_replacement(p_, uses_, result) && wanted()) {
          buffer(result).offset = Expr();
          ++stats_.in_place;
          break;
        }
        buffer(result).alias.reset();
      }
    }
  }

  Program& p_;
  const AliasOptions& options_;
  int most_, found_ = 0;
  const std::set<int>& refused_;
  detail::Uses uses_;  // once the views are made
  AliasStats stats_;
};

struct Outcome {
  Program program;
  AliasStats stats;
  int found = 0;
  bool proved = false;
};

Result<Outcome> attempt(const Program& p, const AliasOptions& options, int most, const std::set<int>& refused) {
  Outcome o{p, {}, 0, false};
  AliasSets sets(o.program, options, most, refused);
  o.stats = sets.run();
  o.found = sets.found();
  detail::order_buffers(o.program);
  share_kernels(o.program);
  DLC_CHECK(plan_memory(o.program, options.align));
  o.proved = verify(o.program) && check_memory_plan(o.program);
  return o;
}

}  // namespace

Result<AliasStats> alias_sets(Program& p, const AliasOptions& options) {
  // What cannot be proved, for some values of the symbols, is not done: the first that breaks the proof is refused,
  // then the rest is tried again, as long as it is not too many.
  constexpr size_t kMostRefused = 16;
  constexpr int kAll = std::numeric_limits<int>::max();
  std::set<int> refused;
  DLC_TRY(Outcome all, attempt(p, options, kAll, refused));
  while (!all.proved && all.found > 0) {
    int holds = 0, fails = all.found;
    while (fails - holds > 1) {
      const int middle = holds + (fails - holds) / 2;
      DLC_TRY(const Outcome some, attempt(p, options, middle, refused));
      (some.proved ? holds : fails) = middle;
    }
    if (!refused.insert(fails - 1).second) break;
    const bool go_on = refused.size() < kMostRefused;
    DLC_TRY(all, attempt(p, options, go_on ? kAll : fails - 1, refused));
    if (!go_on) break;
  }
  if (!all.proved) return AliasStats{};
  p = std::move(all.program);
  return all.stats;
}

Expr copied_bytes(const Program& p) {
  Expr bytes(0);
  for (const Call& call : p.calls) {
    const Kernel& k = p.kernels[static_cast<size_t>(call.kernel)];
    const auto m = detail::movement(k, p.symbols);
    if (!m) continue;
    for (const Piece& piece : m->pieces)
      if (piece.source >= 0)
        bytes += detail::volume(piece.box) * k.tensors[static_cast<size_t>(m->target)].dtype.bytes();
  }
  return bytes;
}

}  // namespace dlc
