// Classes of statements and contractions.
#include <algorithm>
#include <array>

#include "dlc/kernel/access.h"
#include "typing.h"

namespace dlc {

namespace {

bool contains_reduction(const Val& v) {
  return v->kind == ValKind::reduce || std::ranges::any_of(v->args, contains_reduction);
}

bool is_symbol(const Expr& e, const std::vector<Loop>& loops, size_t* which) {
  const auto name = e.as_symbol();
  if (!name) return false;
  for (size_t i = 0; i < loops.size(); ++i)
    if (loops[i].var == *name) {
      *which = i;
      return true;
    }
  return false;
}

StmtClass class_of_read(const AccessMap& access, const std::vector<Loop>& loops) {
  std::vector<size_t> order;
  for (const auto& index : access) {
    if (!index) return StmtClass::gather;
    size_t which = 0;
    if (is_symbol(*index, loops, &which))
      order.push_back(which);
    else if (std::ranges::any_of(loops, [&](const Loop& l) { return index->mentions(l.var); }))
      return StmtClass::remap;  // an index free of the loops selects a slice of the same order
  }
  const auto unused_units = std::ranges::count_if(loops, [&](const Loop& l) {
    return l.extent.is(1) && std::ranges::find(order, static_cast<size_t>(&l - loops.data())) == order.end();
  });
  if (!std::ranges::is_sorted(order)) return StmtClass::permute;
  if (std::ranges::adjacent_find(order) != order.end()) return StmtClass::remap;  // a diagonal
  return order.size() + static_cast<size_t>(unused_units) == loops.size() ? StmtClass::elementwise
                                                                          : StmtClass::broadcast;
}

// Each index is a loop of the statement (each used once) plus something free of its loops: different points are
// different elements.
bool writes_in_place(const Stmt& s) {
  std::set<size_t> used;
  for (const auto& index : access_map(s.indices)) {
    if (!index) return false;
    const Loop* loop = nullptr;
    for (const Loop& l : s.loops) {
      if (!index->mentions(l.var)) continue;
      if (loop || (*index - Expr::symbol(l.var)).mentions(l.var)) return false;
      loop = &l;
    }
    if (loop && !used.insert(static_cast<size_t>(loop - s.loops.data())).second) return false;
  }
  return std::ranges::all_of(s.loops, [&](const Loop& l) {
    return l.extent.is(1) || used.contains(static_cast<size_t>(&l - s.loops.data()));
  });
}

}  // namespace

std::string_view to_string(StmtClass c) {
  constexpr std::array<std::string_view, 10> kNames{"constant", "elementwise", "broadcast",   "permute", "remap",
                                                    "gather",   "reduction",   "contraction", "scan",    "scatter"};
  return kNames[static_cast<size_t>(c)];
}

StmtClass classify(const Stmt& s, const std::vector<int>& seq_written) {
  if (!writes_in_place(s)) return StmtClass::scatter;
  StmtClass c = StmtClass::constant;
  bool reads_written = false;
  walk(s.value, [&](const ValNode& v) {
    if (v.kind != ValKind::read) return;
    c = std::max(c, class_of_read(access_map(v.args), s.loops));
    reads_written = reads_written || std::ranges::find(seq_written, v.tensor) != seq_written.end();
  });
  if (contraction(s.value)) return StmtClass::contraction;
  if (reads_written) return StmtClass::scan;
  return contains_reduction(s.value) ? StmtClass::reduction : c;
}

// ---- contractions

namespace {

bool is_zero(const Val& v) { return typing::is_literal(v) && typing::as_double(v) == 0; }

// The factors of a product; `if c then p else 0` gives p's factors and the condition.
void split_product(const Val& v, std::vector<Val>& factors, std::vector<Val>& conditions) {
  if (v->kind == ValKind::select && is_zero(v->args[2])) {
    conditions.push_back(v->args[0]);
    return split_product(v->args[1], factors, conditions);
  }
  if (v->kind == ValKind::binary && v->binary_op() == BinaryOp::mul) {
    for (const Val& a : v->args) split_product(a, factors, conditions);
    return;
  }
  factors.push_back(v);
}

// The read that carries the factor: it depends on a reduction loop, and every other such read depends on no loop that
// it does not (a scale per block, a zero point). Nothing but a read's value may depend on the reduction loops.
Val heart(const Val& factor, const SymbolSet& reduced) {
  std::vector<Val> found;
  for (const ReadSite& r : reads(factor, {})) {
    const SymbolSet s = free_symbols(r.read);
    if (std::ranges::any_of(s, [&](const auto& name) { return reduced.contains(name); })) found.push_back(r.read);
  }
  for (const Val& r : found) {
    const SymbolSet mine = free_symbols(r);
    if (std::ranges::all_of(found, [&](const Val& o) {
          const SymbolSet theirs = free_symbols(o);
          return std::ranges::includes(mine, theirs);
        }))
      return r;
  }
  return nullptr;
}

bool depends_on(const Val& v, const SymbolSet& names) {
  return std::ranges::any_of(free_symbols(v), [&](const auto& s) { return names.contains(s); });
}

// A factor over no loop beyond another's (a scale per block) belongs to that side.
bool merge_to_two(std::vector<Factor>& sides) {
  while (sides.size() > 2) {
    bool merged = false;
    for (size_t i = 0; i < sides.size() && !merged; ++i)
      for (size_t j = 0; j < sides.size() && !merged; ++j) {
        const SymbolSet inner = free_symbols(sides[i].read), outer = free_symbols(sides[j].read);
        if (i == j || !std::ranges::includes(outer, inner)) continue;
        sides[j].factor = val::binary(BinaryOp::mul, sides[j].factor, sides[i].factor);
        sides.erase(sides.begin() + static_cast<std::ptrdiff_t>(i));
        merged = true;
      }
    if (!merged) return false;
  }
  return sides.size() == 2;
}

}  // namespace

std::optional<Contraction> contraction(const Val& reduce) {
  if (reduce->kind != ValKind::reduce || reduce->reduce_op() != ReduceOp::sum) return std::nullopt;
  if (contains_reduction(reduce->args[0])) return std::nullopt;
  SymbolSet reduced;
  for (const Loop& l : reduce->loops) reduced.insert(l.var);
  Contraction c;
  std::vector<Val> factors;
  split_product(reduce->args[0], factors, c.conditions);
  std::vector<Factor> sides;
  for (const Val& f : factors) {
    if (!depends_on(f, reduced)) {
      c.scales.push_back(f);
      continue;
    }
    const Val read = heart(f, reduced);
    if (!read) return std::nullopt;
    sides.push_back({read, f});
  }
  if (!merge_to_two(sides)) return std::nullopt;
  if (val::structurally_equal(sides[0].read, sides[1].read)) return std::nullopt;
  c.lhs = sides[0];
  c.rhs = sides[1];
  return c;
}

}  // namespace dlc
