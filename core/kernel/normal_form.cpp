#include "dlc/kernel/normal_form.h"

#include <algorithm>
#include <set>

#include "dlc/kernel/access.h"
#include "rebuild.h"

namespace dlc {

namespace {

bool joins(ReduceOp op) { return op != ReduceOp::argmax && op != ReduceOp::argmin; }

// sum[i] sum[j] x as sum[i, j] x, where x needs both; nullptr when v is nothing of the kind.
Val joined(const Val& v) {
  if (v->kind != ValKind::reduce || !joins(v->reduce_op())) return nullptr;
  const Val& inner = v->args[0];
  if (inner->kind != ValKind::reduce || inner->op != v->op || inner->to != v->to) return nullptr;
  const auto needed = free_symbols(inner);
  std::vector<Loop> loops = v->loops;
  for (const Loop& l : v->loops)
    if (!needed.contains(l.var)) return nullptr;  // cheaper once, by itself
  loops.insert(loops.end(), inner->loops.begin(), inner->loops.end());
  return val::reduce(v->reduce_op(), v->to, std::move(loops), inner->args[0]);
}

class Normaliser {
 public:
  explicit Normaliser(Kernel k) : k_(std::move(k)) {}

  Kernel run() {
    k_.body = body(std::move(k_.body));
    return std::move(k_);
  }

 private:
  struct Seq {
    std::vector<Loop> loops;
    std::set<int> written;  // roots of the tensors written anywhere in it
  };
  // Where a value stands: the loops that bind its symbols, outermost first, and what is known.
  struct Place {
    std::vector<Loop> loops;  // of the statement and of enclosing reductions
    Known known;
    bool guarded = false;  // may not be evaluated, or may be caught when undefined
  };

  struct Extracted {
    Val reduction;
    std::vector<Loop> loops;
    Val read;  // of its result
  };
  static bool same_loop(const Loop& a, const Loop& b) { return a.var == b.var && a.extent == b.extent; }

  int root(int tensor) const {
    while (const auto& view = k_.tensors[static_cast<size_t>(tensor)].view) tensor = view->base;
    return tensor;
  }

  std::vector<Stmt> body(std::vector<Stmt> statements) {
    std::vector<Stmt> out;
    bodies_.push_back(&out);
    for (Stmt& s : statements) {
      if (s.kind == Stmt::Kind::seq) {
        Seq seq{s.loops, {}};
        walk(s.body, [&](const Stmt& inner) {
          if (inner.kind == Stmt::Kind::assign) seq.written.insert(root(inner.tensor));
        });
        seqs_.push_back(std::move(seq));
        s.body = body(std::move(s.body));
        seqs_.pop_back();
      } else {
        assignment(s);
      }
      out.push_back(std::move(s));
    }
    bodies_.pop_back();
    return out;
  }

  void assignment(Stmt& s) {
    Place place;
    place.loops = s.loops;
    for (const Seq& q : seqs_) add_loop_ranges(q.loops, place.known.ranges);
    add_loop_ranges(s.loops, place.known.ranges);
    name_ = k_.tensors[static_cast<size_t>(s.tensor)].name;
    extracted_.clear();
    for (Val& i : s.indices) i = value(i, place);
    s.value = rewrite(s.value, joined);
    if (s.value->kind != ValKind::reduce) {
      s.value = value(s.value, place);
      return;
    }
    Val v = children(s.value, place);
    const bool is_own_statement = v->kind == ValKind::reduce && depends_on_all(v, s.loops) && level(v) == seqs_.size();
    const bool stays = is_own_statement || v->kind != ValKind::reduce || may_stay_out_of_reach(v, place);
    s.value = stays ? v : extract(v, place);
  }

  static bool depends_on_all(const Val& v, const std::vector<Loop>& loops) {
    const auto symbols = free_symbols(v);
    return std::ranges::all_of(loops, [&](const Loop& l) { return symbols.contains(l.var); });
  }

  Val value(const Val& v, const Place& place) {
    const Val r = children(v, place);
    if (r->kind != ValKind::reduce) return r;
    // Without its guard it may read out of bounds, or what its seq has not written yet.
    if (place.guarded && (level(r) > 0 || !provably_defined(r, k_, outside(r, place)))) return r;
    return may_stay_out_of_reach(r, place) ? r : extract(r, place);
  }

  // What is known where v is computed once it is taken out: that a loop it leaves has a point is not.
  Known outside(const Val& v, const Place& place) const {
    Known known = place.known;
    const auto symbols = free_symbols(v);
    const auto leave = [&](const std::vector<Loop>& loops) {
      for (const Loop& l : loops)
        if (!symbols.contains(l.var)) known.ranges.erase(l.var);
    };
    leave(place.loops);
    for (size_t i = level(v); i < seqs_.size(); ++i) leave(seqs_[i].loops);
    return known;
  }

  // In loops that may have no points v need not be defined; taken out of them, it must.
  bool may_stay_out_of_reach(const Val& v, const Place& place) const {
    const auto symbols = free_symbols(v);
    const Known known = outside(v, place);
    const auto leaves = [&](const Loop& l) {
      return !symbols.contains(l.var) && !provably_lt(0, l.extent, known.ranges);
    };
    bool out = std::ranges::any_of(place.loops, leaves);
    for (size_t i = level(v); i < seqs_.size(); ++i) out = out || std::ranges::any_of(seqs_[i].loops, leaves);
    return out && !provably_defined(v, k_, known);
  }

  // v with the reductions inside it taken out.
  Val children(const Val& v, const Place& place) {
    if (v->args.empty()) return v;
    std::vector<Val> args;
    for (size_t i = 0; i < v->args.size(); ++i) args.push_back(child(*v, i, place));
    return args == v->args ? v : rebuild(*v, std::move(args));
  }

  Val child(const ValNode& v, size_t i, const Place& outer) {
    Place place = outer;
    const bool is_lazy_operator =
        v.kind == ValKind::binary && (v.binary_op() == BinaryOp::logical_and || v.binary_op() == BinaryOp::logical_or);
    if (v.kind == ValKind::orelse || (v.kind == ValKind::select && i > 0) || (is_lazy_operator && i > 0))
      place.guarded = true;
    if (v.kind != ValKind::reduce) return value(v.args[i], place);
    place.loops.insert(place.loops.end(), v.loops.begin(), v.loops.end());
    add_loop_ranges(v.loops, place.known.ranges);
    return value(v.args[i], place);
  }

  // The number of enclosing seqs v must stay in: it reads something that the innermost of them writes.
  size_t level(const Val& v) const {
    size_t stay = 0;
    walk(v, [&](const ValNode& n) {
      if (n.kind != ValKind::read) return;
      for (size_t i = stay; i < seqs_.size(); ++i)
        if (seqs_[i].written.contains(root(n.tensor))) stay = i + 1;
    });
    return stay;
  }

  // A statement of its own for the reduction v; returns the read of its result.
  Val extract(const Val& v, const Place& place) {
    const size_t stay = level(v);
    const auto symbols = free_symbols(v);
    Stmt s;
    const auto take = [&](const std::vector<Loop>& loops) {
      for (const Loop& l : loops)
        if (symbols.contains(l.var)) s.loops.push_back(l);
    };
    for (size_t i = stay; i < seqs_.size(); ++i) take(seqs_[i].loops);
    take(place.loops);
    for (const Extracted& e : extracted_)
      if (val::structurally_equal(e.reduction, v) && std::ranges::equal(e.loops, s.loops, same_loop)) return e.read;
    extracted_.push_back({v, s.loops, nullptr});
    KernelTensor t{fresh_name(), v->to, {}, Role::temp, {}};
    for (const Loop& l : s.loops) {
      t.shape.push_back(l.extent);
      s.indices.push_back(val::index(Expr::symbol(l.var)));
    }
    s.tensor = static_cast<int>(k_.tensors.size());
    s.value = v;
    const Val read = val::read(s.tensor, t.dtype, s.indices);
    k_.tensors.push_back(std::move(t));
    for (size_t i = 0; i < stay; ++i) seqs_[i].written.insert(s.tensor);
    bodies_[stay]->push_back(std::move(s));
    extracted_.back().read = read;
    return read;
  }

  std::string fresh_name() {
    std::string name;
    int n = 0;
    do name = name_ + "_" + std::to_string(++n);
    while (k_.find(name) >= 0);
    return name;
  }

  Kernel k_;
  std::vector<Seq> seqs_;                   // enclosing the current statement, outermost first
  std::vector<std::vector<Stmt>*> bodies_;  // bodies_[i]: what is being built inside i seqs
  std::string name_;                        // of the tensor the current statement writes
  std::vector<Extracted> extracted_;        // from the current statement
};

}  // namespace

Result<Kernel> normalise(const Kernel& k) {
  DLC_CHECK(verify(k));
  return Normaliser(k).run();
}

}  // namespace dlc
