#include "core/program/pieces.h"

#include <algorithm>
#include <functional>
#include <set>

#include "dlc/kernel/access.h"

namespace dlc::detail {

namespace {

std::optional<Step> step_of(const Val& index, const std::vector<Loop>& loops) {
  const auto e = val::as_expr(index);
  if (!e) return std::nullopt;
  Step step;
  for (const Loop& l : loops) {
    if (!e->mentions(l.var)) continue;
    const std::vector<std::string> var{l.var};
    const auto a = affine(*e, var);
    if (!step.var.empty() || !a || !a->coefficients[0].is(1)) return std::nullopt;
    step = {l.var, a->base};
  }
  if (step.var.empty()) step.offset = *e;
  for (const Loop& l : loops)
    if (step.offset.mentions(l.var)) return std::nullopt;
  return step;
}

std::optional<Steps> steps_of(const std::vector<Val>& indices, const std::vector<Loop>& loops) {
  Steps steps;
  for (const Val& i : indices) {
    auto step = step_of(i, loops);
    if (!step) return std::nullopt;
    steps.push_back(std::move(*step));
  }
  return steps;
}

const Part& part(const std::vector<Part>& loops, const std::string& var) {
  return *std::ranges::find(loops, var, &Part::var);
}

Box box_of(const Steps& steps, const std::vector<Part>& loops) {
  Box box;
  for (const Step& s : steps) {
    if (s.var.empty())
      box.push_back({s.offset, Expr(1)});
    else
      box.push_back({s.offset + part(loops, s.var).lo, part(loops, s.var).extent});
  }
  return box;
}

std::vector<Part> parts_of(const std::vector<Loop>& loops) {
  std::vector<Part> parts;
  for (const Loop& l : loops) parts.push_back({l.var, Expr(0), l.extent});
  return parts;
}

// Every loop of more than one point moves exactly one index.
bool uses_each_loop_once(const Steps& steps, const std::vector<Part>& loops) {
  return std::ranges::all_of(loops, [&](const Part& l) {
    const auto n = std::ranges::count(steps, l.var, &Step::var);
    return n == 1 || (n == 0 && l.extent.is(1));
  });
}

Expr larger(const Expr& a, const Expr& b, const Ranges& r) {
  return provably_le(a, b, r) ? b : provably_le(b, a, r) ? a : max(a, b);
}
Expr smaller(const Expr& a, const Expr& b, const Ranges& r) {
  return provably_le(a, b, r) ? a : provably_le(b, a, r) ? b : min(a, b);
}

bool free_of_reads(const Val& v) {
  bool found = false;
  walk(v, [&](const ValNode& n) { found |= n.kind == ValKind::read; });
  return !found;
}

// Whether v chooses between reads and does nothing else.
bool is_choice_of_reads(const Val& v, DType stored) {
  switch (v->kind) {
    case ValKind::read:
      return true;
    case ValKind::orelse:
      return is_choice_of_reads(v->args[0], stored) && is_choice_of_reads(v->args[1], stored);
    case ValKind::select:
      return free_of_reads(v->args[0]) && is_choice_of_reads(v->args[1], stored) &&
             is_choice_of_reads(v->args[2], stored);
    case ValKind::cast:
      return v->to == stored && is_choice_of_reads(v->args[0], stored);
    default:
      return false;
  }
}

// The points at which this read may be the one that is chosen: inside the bounds that conditions and its tensor set.
std::optional<Piece> piece_of(const Kernel& k, const Stmt& s, const Steps& to, const ReadSite& site,
                              const Ranges& symbols) {
  Piece p;
  p.source = site.read->tensor;
  p.to = to;
  auto from = steps_of(site.read->args, s.loops);
  if (!from) return std::nullopt;
  p.from = std::move(*from);
  const auto& shape = k.tensors[static_cast<size_t>(p.source)].shape;
  for (const Loop& l : s.loops) {
    Expr lo(0), end = l.extent;
    if (const auto r = site.known.ranges.find(l.var); r != site.known.ranges.end()) {
      if (r->second.bounds.lo > 0) lo = Expr(r->second.bounds.lo);
      if (r->second.bounds.hi != Interval::kPosInf) end = smaller(end, Expr(r->second.bounds.hi) + 1, symbols);
    }
    for (size_t d = 0; d < p.from.size(); ++d) {
      if (p.from[d].var != l.var) continue;
      lo = larger(lo, -p.from[d].offset, symbols);
      end = smaller(end, shape[d] - p.from[d].offset, symbols);
    }
    p.loops.push_back({l.var, lo, simplify(end - lo, symbols)});
  }
  p.box = box_of(p.to, p.loops);
  return p;
}

// The reads of a choice, with the points of s at which each is taken. Every point takes exactly one, and a box holds at
// least the points that take its read: boxes that are disjoint and fill the statement's are therefore exact.
std::optional<std::vector<Piece>> pieces_of_choice(const Kernel& k, const Stmt& s, const Val& choice,
                                                   const Ranges& symbols) {
  const auto to = steps_of(s.indices, s.loops);
  const std::vector<Part> loops = parts_of(s.loops);
  if (!to || !uses_each_loop_once(*to, loops)) return std::nullopt;
  Known known{symbols, {}};
  add_loop_ranges(s.loops, known.ranges);
  std::vector<Piece> pieces;
  Expr filled(0);
  for (const ReadSite& site : reads(choice, known)) {
    auto p = piece_of(k, s, *to, site, symbols);
    if (!p) return std::nullopt;
    for (const Piece& other : pieces)
      if (!provably_disjoint(other.box, p->box, symbols)) return std::nullopt;
    filled += volume(p->box);
    pieces.push_back(std::move(*p));
  }
  if (!simplify(filled - volume(box_of(*to, loops)), symbols).is(0)) return std::nullopt;
  return pieces;
}

// The pieces of one statement that moves elements or fills a halo.
bool add_pieces(const Kernel& k, const Stmt& s, const Ranges& symbols, std::vector<Piece>& pieces) {
  if (s.value->kind == ValKind::real || s.value->kind == ValKind::integer) {
    const auto to = steps_of(s.indices, s.loops);
    const std::vector<Part> loops = parts_of(s.loops);
    if (!to || !uses_each_loop_once(*to, loops)) return false;
    pieces.push_back({-1, loops, *to, {}, box_of(*to, loops), s});
    return true;
  }
  const DType stored = k.tensors[static_cast<size_t>(s.tensor)].dtype;
  if (!is_choice_of_reads(s.value, stored)) return false;
  auto own = pieces_of_choice(k, s, s.value, symbols);
  if (!own) return false;
  for (Piece& p : *own) {
    if (k.tensors[static_cast<size_t>(p.source)].dtype != stored) return false;
    pieces.push_back(std::move(p));
  }
  return true;
}

// The first choice between reads in v, outside reductions.
Val choice_in(const Val& v) {
  const bool chooses = v->kind == ValKind::orelse || v->kind == ValKind::select;
  if (chooses && is_choice_of_reads(v, v->type)) return v;
  if (v->kind == ValKind::reduce) return nullptr;
  for (const Val& a : v->args)
    if (Val found = choice_in(a)) return found;
  return nullptr;
}

// s at the points of p only, where `choice` is p's read.
Stmt restricted(const Stmt& s, const Val& choice, const Piece& p, const Kernel& k) {
  Stmt part = s;
  part.loops.clear();
  std::map<std::string, Expr, std::less<>> moved;
  for (const Part& l : p.loops) {
    part.loops.push_back({l.var, l.extent});
    if (!l.lo.is(0)) moved.emplace(l.var, l.lo + Expr::symbol(l.var));
  }
  std::vector<Val> from;
  for (const Step& step : p.from)
    from.push_back(val::index(step.var.empty() ? step.offset : step.offset + Expr::symbol(step.var)));
  const DType dtype = k.tensors[static_cast<size_t>(p.source)].dtype;
  Val read = val::convert(choice->type, val::read(p.source, dtype, std::move(from)));
  part.value = rewrite(s.value, [&](const Val& v) { return val::structurally_equal(v, choice) ? read : nullptr; });
  part.value = substitute(part.value, moved);
  for (Val& i : part.indices) i = substitute(i, moved);
  return part;
}

using Access = std::function<void(const std::vector<Val>& indices, const std::vector<Loop>& loops, const Known& known,
                                  bool write)>;

// Every access to tensor t, with the loops around it and what is known there.
void accesses(const std::vector<Stmt>& body, int t, const std::vector<Loop>& around, const Ranges& symbols,
              const Access& f) {
  for (const Stmt& s : body) {
    std::vector<Loop> loops = around;
    loops.insert(loops.end(), s.loops.begin(), s.loops.end());
    if (s.kind == Stmt::Kind::seq) {
      accesses(s.body, t, loops, symbols, f);
      continue;
    }
    Known known{symbols, {}};
    add_loop_ranges(loops, known.ranges);
    const auto of_value = [&](const Val& v) {
      for (const ReadSite& site : reads(v, known))
        if (site.read->tensor == t) f(site.read->args, loops, site.known, false);
    };
    for (const Val& i : s.indices) of_value(i);
    of_value(s.value);
    if (s.tensor == t) f(s.indices, loops, known, true);
  }
}

std::vector<Expr> strides_of(const std::vector<Expr>& shape) {
  std::vector<Expr> strides(shape.size(), Expr(1));
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

void embed_statements(std::vector<Stmt>& body, int t, const std::function<std::vector<Val>(const std::vector<Val>&)>& f,
                      DType dtype) {
  const auto moved = [&](const Val& v) {
    return rewrite(v, [&](const Val& n) -> Val {
      return n->kind == ValKind::read && n->tensor == t ? val::read(t, dtype, f(n->args)) : nullptr;
    });
  };
  for (Stmt& s : body) {
    if (s.kind == Stmt::Kind::seq) {
      embed_statements(s.body, t, f, dtype);
      continue;
    }
    for (Val& i : s.indices) i = moved(i);
    s.value = moved(s.value);
    if (s.tensor == t) s.indices = f(s.indices);
  }
}

}  // namespace

Expr volume(const Box& b) {
  Expr v(1);
  for (const BoxSide& s : b) v = v * s.extent;
  return v;
}

bool provably_disjoint(const Box& a, const Box& b, const Ranges& symbols) {
  for (size_t d = 0; d < a.size() && d < b.size(); ++d)
    if (provably_le(a[d].lo + a[d].extent, b[d].lo, symbols) || provably_le(b[d].lo + b[d].extent, a[d].lo, symbols))
      return true;
  return false;
}

std::optional<Movement> movement(const Kernel& k, const Ranges& symbols) {
  Movement m;
  for (size_t t = 0; t < k.tensors.size(); ++t) {
    const KernelTensor& tensor = k.tensors[t];
    if (tensor.view || tensor.role == Role::temp || tensor.role == Role::state) return std::nullopt;
    if (tensor.role != Role::output) continue;
    if (m.target >= 0) return std::nullopt;
    m.target = static_cast<int>(t);
  }
  bool moves = false;
  for (const Stmt& s : k.body) {
    if (s.kind != Stmt::Kind::assign || s.tensor != m.target) return std::nullopt;
    const size_t first = m.pieces.size();
    if (!add_pieces(k, s, symbols, m.pieces)) return std::nullopt;
    for (size_t i = first; i < m.pieces.size(); ++i) {
      moves = moves || m.pieces[i].source >= 0;
      if (m.pieces[i].source == m.target) return std::nullopt;
      for (size_t j = 0; j < first; ++j)
        if (!provably_disjoint(m.pieces[i].box, m.pieces[j].box, symbols)) return std::nullopt;
    }
  }
  return moves ? std::optional(std::move(m)) : std::nullopt;
}

bool split_choices(Kernel& k, const Ranges& symbols) {
  constexpr size_t kMostStatements = 64;
  bool changed = false;
  for (size_t i = 0; i < k.body.size();) {
    const Stmt s = k.body[i];
    const Val choice = s.kind == Stmt::Kind::assign ? choice_in(s.value) : nullptr;
    const auto pieces = choice ? pieces_of_choice(k, s, choice, symbols) : std::nullopt;
    const bool reads_result =
        pieces && std::ranges::find(*pieces, s.tensor, &Piece::source) != pieces->end();  // order would matter
    if (!pieces || reads_result || k.body.size() + pieces->size() > kMostStatements) {
      ++i;
      continue;
    }
    k.body.erase(k.body.begin() + static_cast<std::ptrdiff_t>(i));
    for (size_t p = 0; p < pieces->size(); ++p)
      k.body.insert(k.body.begin() + static_cast<std::ptrdiff_t>(i + p), restricted(s, choice, (*pieces)[p], k));
    changed = true;
  }
  return changed;
}

Stmt statement_of(const Piece& p, int target, DType dtype) {
  if (p.source < 0) return p.statement;
  Stmt s;
  s.tensor = target;
  for (const Part& l : p.loops) s.loops.push_back({l.var, l.extent});
  const auto indices = [&](const Steps& steps) {
    std::vector<Val> list;
    for (const Step& step : steps)
      list.push_back(val::index(step.var.empty() ? step.offset
                                                 : step.offset + part(p.loops, step.var).lo + Expr::symbol(step.var)));
    return list;
  };
  s.indices = indices(p.to);
  s.value = val::read(p.source, dtype, indices(p.from));
  return s;
}

std::optional<std::vector<Box>> boxes_written(const Kernel& k, int t) {
  std::vector<Box> boxes;
  bool all = true;
  accesses(k.body, t, {}, {}, [&](const auto& indices, const auto& loops, const Known&, bool write) {
    if (!write) return;
    const auto steps = steps_of(indices, loops);
    const auto parts = parts_of(loops);
    all = all && steps && uses_each_loop_once(*steps, parts);
    if (all) boxes.push_back(box_of(*steps, parts));
  });
  return all ? std::optional(std::move(boxes)) : std::nullopt;
}

std::vector<Box> boxes_read(const Kernel& k, int t, const Ranges& symbols) {
  const auto& shape = k.tensors[static_cast<size_t>(t)].shape;
  std::vector<Box> boxes;
  accesses(k.body, t, {}, symbols, [&](const auto& indices, const auto&, const Known& known, bool write) {
    if (write) return;
    Box box;
    std::map<std::string, Expr, std::less<>> none;
    for (size_t d = 0; d < indices.size(); ++d) {
      BoxSide side{Expr(0), shape[d]};
      // From its smallest to its largest value, when it is an offset and one variable.
      const auto e = val::as_expr(indices[d]);
      std::vector<std::string> moving;
      for (const auto& s : e ? e->symbols() : std::vector<std::string>())
        if (!symbols.contains(s)) moving.push_back(s);
      const auto a = e ? affine(*e, moving) : std::nullopt;
      if (a) {
        Expr lo = a->base, end = a->base + 1;
        bool known_ends = true;
        for (size_t i = 0; i < moving.size(); ++i) {
          const auto r = known.ranges.find(moving[i]);
          known_ends = known_ends && a->coefficients[i].constant().value_or(0) > 0 && r != known.ranges.end() &&
                       r->second.bounds.lo != Interval::kNegInf;
          if (!known_ends) break;
          Expr upper = Expr::invalid();
          if (r->second.bounds.hi != Interval::kPosInf)
            upper = Expr(r->second.bounds.hi);
          else if (r->second.upper != nullptr)
            upper = Expr(r->second.upper);
          known_ends = upper.valid();
          lo += a->coefficients[i] * r->second.bounds.lo;
          end += a->coefficients[i] * upper;
        }
        if (known_ends) {
          lo = larger(Expr(0), lo, symbols);
          side = {lo, simplify(smaller(end, shape[d], symbols) - lo, symbols)};
        }
      }
      box.push_back(side);
    }
    boxes.push_back(std::move(box));
  });
  return boxes;
}

std::optional<Embedding> embedding(const Steps& of_view, const Steps& of_base, const std::vector<Part>& loops,
                                   const std::vector<Expr>& view_shape, const Ranges& symbols) {
  Embedding e;
  std::set<std::string> used;
  for (const Step& b : of_base) {
    int dim = -1;
    Expr offset = b.offset;
    if (!b.var.empty()) {
      const auto v = std::ranges::find(of_view, b.var, &Step::var);
      if (v != of_view.end()) {
        if (!used.insert(b.var).second) return std::nullopt;
        dim = static_cast<int>(v - of_view.begin());
        offset = b.offset - v->offset;
      } else if (part(loops, b.var).extent.is(1)) {
        offset = b.offset + part(loops, b.var).lo;
      } else {
        return std::nullopt;
      }
    }
    e.dim.push_back(dim);
    e.offset.push_back(simplify(offset, symbols));
  }
  for (size_t d = 0; d < view_shape.size(); ++d)
    if (!view_shape[d].is(1) && std::ranges::count(e.dim, static_cast<int>(d)) != 1) return std::nullopt;
  return e;
}

bool covers(const Steps& steps, const std::vector<Part>& loops, const std::vector<Expr>& shape, const Ranges& symbols) {
  const Box seen = box_of(steps, loops);
  for (size_t d = 0; d < seen.size(); ++d)
    if (!simplify(seen[d].lo, symbols).is(0) || !simplify(seen[d].extent - shape[d], symbols).is(0)) return false;
  return true;
}

std::optional<Expr> contiguous_offset(const Embedding& e, const std::vector<Expr>& view_shape,
                                      const std::vector<Expr>& base_shape, const Ranges& symbols) {
  const auto view = strides_of(view_shape), base = strides_of(base_shape);
  Expr at(0);
  for (size_t k = 0; k < base.size(); ++k) {
    at += base[k] * e.offset[k];
    if (e.dim[k] < 0) continue;
    const auto d = static_cast<size_t>(e.dim[k]);
    if (!view_shape[d].is(1) && !simplify(base[k] - view[d], symbols).is(0)) return std::nullopt;
  }
  return simplify(at, symbols);
}

bool keeps_rows(const Embedding& e, const std::vector<Expr>& view_shape, const std::vector<Expr>& base_shape) {
  const auto view = strides_of(view_shape), base = strides_of(base_shape);
  for (size_t k = 0; k < base.size(); ++k) {
    if (e.dim[k] < 0) continue;
    const auto d = static_cast<size_t>(e.dim[k]);
    if (view_shape[d].is(1)) continue;
    if (view[d].is(1) && !base[k].is(1)) return false;
    if (view[d].constant() && !base[k].constant()) return false;
  }
  return true;
}

bool stays_inside(const Kernel& k, int t, const Ranges& symbols) {
  bool inside = true;
  accesses(k.body, t, {}, symbols, [&](const auto& indices, const auto&, const Known& known, bool) {
    const AccessMap map = access_map(indices);
    inside = inside && std::ranges::all_of(map, [](const auto& e) { return e.has_value(); }) &&
             provably_in_bounds(map, k.tensors[static_cast<size_t>(t)].shape, known);
  });
  return inside;
}

void embed(Kernel& k, int t, const Embedding& e, const std::vector<Expr>& base_shape) {
  KernelTensor& tensor = k.tensors[static_cast<size_t>(t)];
  tensor.shape = base_shape;
  embed_statements(
      k.body, t,
      [&](const std::vector<Val>& indices) {
        std::vector<Val> moved;
        for (size_t d = 0; d < e.dim.size(); ++d) {
          const Val offset = val::index(e.offset[d]);
          moved.push_back(e.dim[d] < 0 ? offset
                                       : val::binary(BinaryOp::add, indices[static_cast<size_t>(e.dim[d])], offset));
        }
        return moved;
      },
      tensor.dtype);
}

bool may_replace(const Kernel& k, int in, int out) {
  const KernelTensor &a = k.tensors[static_cast<size_t>(in)], &b = k.tensors[static_cast<size_t>(out)];
  if (a.shape != b.shape || a.dtype.bytes() != b.dtype.bytes()) return false;
  int writers = 0;
  bool pointwise = true;
  for (const Stmt& s : k.body) {
    if (s.kind == Stmt::Kind::seq) return false;
    const bool writes = s.tensor == out;
    const AccessMap own = access_map(s.indices);
    if (writes) {
      ++writers;
      const auto steps = steps_of(s.indices, s.loops);
      pointwise = pointwise && steps && uses_each_loop_once(*steps, parts_of(s.loops));
    }
    // A reduction may be computed elsewhere than where the statement stands, so nothing inside one counts.
    const std::function<void(const Val&, bool)> visit = [&](const Val& v, bool reduced) {
      if (v->kind == ValKind::read && v->tensor == in)
        pointwise = pointwise && writes && !reduced && access_map(v->args) == own;
      for (const Val& x : v->args) visit(x, reduced || v->kind == ValKind::reduce);
    };
    for (const Val& i : s.indices) visit(i, true);
    visit(s.value, false);
  }
  return pointwise && writers == 1;
}

}  // namespace dlc::detail
