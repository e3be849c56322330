#include "core/map/ways.h"

#include <fmt/format.h>

#include <algorithm>

#include "dlc/kernel/access.h"

namespace dlc::map {

namespace {

bool commutes(const ValNode& v) {
  if (v.args.size() != 2) return false;
  if (v.kind == ValKind::call) return v.fn() == Fn::min || v.fn() == Fn::max;
  if (v.kind != ValKind::binary) return false;
  switch (v.binary_op()) {
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
    case BinaryOp::eq:
    case BinaryOp::ne:
      return true;
    default:
      return false;
  }
}

// The index of a read that depends on data; nullptr: none does.
Val data_of(const Val& read) {
  const auto it = std::ranges::find_if(read->args, [](const Val& a) { return !val::as_expr(a); });
  return it == read->args.end() ? nullptr : *it;
}

}  // namespace

const Pair* Ways::of(const Val& p, const Val& t) {
  std::unique_ptr<Pair>& pair = pairs_[{p.get(), t.get()}];
  if (!pair) {
    auto made = std::make_unique<Pair>();
    find(p, t, *made);
    pair = std::move(made);
  }
  return pair.get();
}

bool Ways::also(Way& way, const Val& p, const Val& t) {
  const Pair* pair = of(p, t);
  if (!explain_ && pair->ways.empty()) return false;
  way.push_back({Step::Kind::pair, pair, p, t, 0, {}});
  return true;
}

void Ways::never(Pair& to, std::function<std::string()> why) const {
  if (explain_) to.ways.push_back({{Step::Kind::never, nullptr, nullptr, nullptr, 0, std::move(why)}});
}

bool Ways::may_be(const Val& p, int64_t n) const {
  const Interval& range = p_.part(p).range;
  return explain_ || (range.lo <= n && n <= range.hi);
}

void Ways::find(const Val& p, const Val& t, Pair& out) {
  const Pattern::Part& part = p_.part(p);
  if (part.scalar) return number(p, t, out);
  if (p->kind == ValKind::read) return memory(p, t, out);
  if (part.only_part && p->kind == t->kind) {
    const Val at = in_place_of(part.only_part, p, t);
    if (at && val::structurally_equal(put(p, part.only_part, at), t)) {
      Way way;
      if (also(way, part.only_part, at)) out.ways.push_back(std::move(way));
      return;
    }
  }
  if (guards(p)) {
    Way way{is(Step::Kind::guard, p->args[0], 0)};
    if (also(way, p->args[1], t)) out.ways.push_back(std::move(way));
    return;
  }
  if (p->kind == ValKind::select && p_.part(p->args[0]).scalar) {  // a field decides the branch
    for (const bool holds : {true, false}) {
      Way way{is(Step::Kind::choice, p->args[0], holds ? 1 : 0)};
      if (also(way, p->args[holds ? 1 : 2], t)) out.ways.push_back(std::move(way));
    }
    return;
  }
  same_kind(p, t, out);
  neutral(p, t, out);
  never(out, [t, k = &k_] { return short_text(t, *k) + " is not what it does"; });
  if (p->kind == ValKind::select) {  // a parameter that is a literal in the kernel decides the branch
    for (const bool holds : {true, false}) {
      Way way{is(Step::Kind::later, p->args[0], holds ? 1 : 0)};
      if (also(way, p->args[holds ? 1 : 2], t)) out.ways.push_back(std::move(way));
    }
  } else if (t->kind == ValKind::integer && p->kind == ValKind::binary && may_be(p, t->integer)) {
    out.ways.push_back({is(Step::Kind::later, p, t->integer)});
  }
}

void Ways::number(const Val& p, const Val& t, Pair& out) const {
  if (t->kind != ValKind::integer)
    return never(out, [t, k = &k_] { return short_text(t, *k) + " stands where it has a number"; });
  if (p->kind == ValKind::integer) {
    if (p->integer == t->integer) out.ways.emplace_back();
  } else if (may_be(p, t->integer)) {
    out.ways.push_back({is(Step::Kind::equal, p, t->integer)});
  }
}

void Ways::memory(const Val& p, const Val& t, Pair& out) {
  const KernelTensor& memory = p_.kernel.tensors[static_cast<size_t>(p->tensor)];
  const Val by = t->kind == ValKind::read ? data_of(t) : nullptr;
  Way way{{Step::Kind::read, nullptr, p, t, 0, {}}};
  if (const Val data = data_of(p)) {  // a look-up: the kernel must look up by the same value
    if (!by) return never(out, [t, k = &k_] { return short_text(t, *k) + " is no look-up"; });
    if (also(way, data, by)) out.ways.push_back(std::move(way));
    return;
  }
  if ((t->kind != ValKind::read || by) && t == root_)
    return never(out, [] { return std::string("a value would be computed from itself"); });
  if (!fits(ranges_.of(t), memory.dtype))
    return never(out, [t, k = &k_, &memory] {
      return fmt::format("{} needs more than the {} of {}", short_text(t, *k), to_string(memory.dtype), memory.name);
    });
  out.ways.push_back(std::move(way));
}

void Ways::same_kind(const Val& p, const Val& t, Pair& out) {
  if (p->kind != t->kind || p->args.size() != t->args.size()) return;
  const bool operators =
      p->kind == ValKind::unary || p->kind == ValKind::binary || p->kind == ValKind::call || p->kind == ValKind::reduce;
  if (operators && p->op != t->op) return;
  if ((p->kind == ValKind::cast || p->kind == ValKind::reduce) && (p->to != t->to || p->saturate != t->saturate))
    return;
  Way way;
  bool all = true;
  for (size_t i = 0; i < p->args.size() && all; ++i) all = also(way, p->args[i], t->args[i]);
  if (all && p->kind == ValKind::reduce) way.push_back({Step::Kind::reduction, nullptr, p, t, 0, {}});
  if (all) out.ways.push_back(std::move(way));
  if (!commutes(*p)) return;
  Way exchanged;
  if (also(exchanged, p->args[0], t->args[1]) && also(exchanged, p->args[1], t->args[0]))
    out.ways.push_back(std::move(exchanged));
}

// One argument of an operator is this number, and the other one all.
void Ways::without(const Val& p, size_t gone, int64_t number, const Val& t, Pair& out) {
  Val& literal = literals_[number];
  if (!literal) literal = val::integer(number);
  Way way;
  if (also(way, p->args[gone], literal) && also(way, p->args[1 - gone], t)) out.ways.push_back(std::move(way));
}

void Ways::neutral(const Val& p, const Val& t, Pair& out) {
  const Interval range = ranges_.of(t);
  switch (p->kind) {
    case ValKind::binary:
      switch (p->binary_op()) {
        case BinaryOp::add:
          without(p, 1, 0, t, out);
          without(p, 0, 0, t, out);
          break;
        case BinaryOp::sub:
        case BinaryOp::shl:
        case BinaryOp::shr:
          without(p, 1, 0, t, out);
          break;
        case BinaryOp::mul:
          without(p, 1, 1, t, out);
          without(p, 0, 1, t, out);
          break;
        default:
          break;
      }
      break;
    case ValKind::call:
      if (p->args.size() == 2 && (p->fn() == Fn::min || p->fn() == Fn::max)) {
        const int64_t bound = p->fn() == Fn::min ? range.hi : range.lo;
        without(p, 1, bound, t, out);
        without(p, 0, bound, t, out);
      }
      break;
    case ValKind::cast: {
      Way way;
      if (fits(range, p->to) && also(way, p->args[0], t)) out.ways.push_back(std::move(way));
      break;
    }
    case ValKind::reduce: {
      const ReduceOp op = p->reduce_op();
      if ((op != ReduceOp::max && op != ReduceOp::min && op != ReduceOp::sum) || !fits(range, p->to)) break;
      Way way;
      for (const Loop& l : p->loops) way.push_back(is(Step::Kind::choice, val::index(l.extent), 1));
      if (also(way, p->args[0], t)) out.ways.push_back(std::move(way));
      break;
    }
    default:
      break;
  }
}

// `max[l] (if l < n then x else lowest)`: the largest of n elements, where the condition is over loops.
bool Ways::guards(const Val& p) const {
  if (p->kind != ValKind::select || !p_.part(p->args[0]).scalar || p->args[1]->kind != ValKind::read ||
      p->args[2]->kind != ValKind::integer)
    return false;
  const auto symbols = free_symbols(p->args[0]);
  const bool loops = std::ranges::any_of(p_.loops, [&](const Loop& l) { return symbols.contains(l.var); });
  const Val& root = p_.stmt().value;
  const bool lowest = p->args[2]->integer == p_.part(p->args[1]).range.lo;
  return loops && lowest && root->kind == ValKind::reduce && root->reduce_op() == ReduceOp::max;
}

// What stands in t where p has the part that it is a function of, by one way to it; nullptr: the way differs.
Val Ways::in_place_of(const Val& gate, const Val& p, const Val& t) const {
  if (p == gate) return t;
  if (p->kind != t->kind || p->args.size() != t->args.size()) return nullptr;
  for (size_t i = 0; i < p->args.size(); ++i)
    if (!p_.part(p->args[i]).scalar) return in_place_of(gate, p->args[i], t->args[i]);
  return nullptr;
}

Val Ways::put(const Val& p, const Val& gate, const Val& at) {
  return canonical(rewrite(p, [&](const Val& n) -> Val { return n == gate ? at : nullptr; }), ranges_);
}

}  // namespace dlc::map
