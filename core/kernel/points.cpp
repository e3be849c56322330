#include "points.h"

#include <algorithm>
#include <cstdlib>

#include "core/expr/node.h"
#include "dlc/kernel/access.h"

namespace dlc {

namespace {

int root(const Kernel& k, int tensor) {
  while (const auto& view = k.tensors[static_cast<size_t>(tensor)].view) tensor = view->base;
  return tensor;
}

template <class F>
void each_value(const Stmt& s, const F& f) {
  for (const Val& i : s.indices) walk(i, f);
  walk(s.value, f);
}

// Bytes from the start of the root. nullopt where an index depends on data.
std::optional<Expr> address(const Kernel& k, int tensor, const AccessMap& access) {
  const KernelTensor& t = k.tensors[static_cast<size_t>(tensor)];
  Expr at = 0, stride = t.dtype.bytes();
  for (size_t d = access.size(); d-- > 0;) {
    if (!access[d]) return std::nullopt;
    at += *access[d] * (t.view ? t.view->byte_strides[d] : stride);
    stride = stride * t.shape[d];
  }
  for (int v = tensor; k.tensors[static_cast<size_t>(v)].view; v = k.tensors[static_cast<size_t>(v)].view->base)
    at += k.tensors[static_cast<size_t>(v)].view->byte_offset;
  return at.valid() ? std::optional(at) : std::nullopt;
}

// Places of `a` and `b` bytes, `difference` from the second's start to the first's, have none in common: one is above
// the other, or they differ in what is left of a step that all else is a multiple of.
bool apart(const Expr& difference, int64_t a, int64_t b, const Known& known) {
  if (!difference.valid()) return false;
  if (provably_nonnegative(difference - b, known) || provably_nonnegative(-difference - a, known)) return true;
  return std::ranges::any_of(difference.terms(), [&](const Term& step) {
    if (step.factors.empty() || step.coefficient == INT64_MIN) return false;
    const int64_t m = std::abs(step.coefficient);
    Expr rest = 0;
    for (const detail::Product& p : detail::products(difference))
      if (p.coefficient % m != 0) rest += detail::of_product(p);
    const Interval left = bounds(rest, known.ranges);
    if (left.lo == Interval::kNegInf || left.hi == Interval::kPosInf) return false;
    const int64_t low = left.lo % m < 0 ? left.lo % m + m : left.lo % m;
    const uint64_t span = static_cast<uint64_t>(left.hi) - static_cast<uint64_t>(left.lo);
    return low >= b && low <= m - a && span <= static_cast<uint64_t>(m - a - low);
  });
}

class Points {
 public:
  Points(const Kernel& k, const Stmt& s, const std::vector<Loop>& seqs)
      : k_(k), s_(s), target_(root(k, s.tensor)), own_(access_map(s.indices)) {
    for (const KernelTensor& t : k.tensors)
      for (const Expr& d : t.shape)
        if (const auto n = d.as_symbol()) known_.ranges.insert_or_assign(std::string(*n), Range(0, Interval::kPosInf));
    const auto say = [&](const Expr& e) {
      for (auto& name : e.symbols()) named_.insert(name);
    };
    for (const KernelTensor& t : k.tensors) std::ranges::for_each(t.shape, say);
    std::ranges::for_each(k.assumptions, say);
    for (const auto* loops : {&seqs, &s.loops})
      for (const Loop& l : *loops) named_.insert(l.var);
    each_value(s, [&](const ValNode& v) {
      for (const Loop& l : v.loops) named_.insert(l.var);
    });
    known_.nonnegative = k.assumptions;
    for (const auto* loops : {&seqs, &s.loops})  // where there is a point
      for (const Loop& l : *loops) known_.nonnegative.push_back(l.extent - 1);
    add_loop_ranges(seqs, known_.ranges);
    add_loop_ranges(s.loops, known_.ranges);
    std::map<std::string, Expr, std::less<>> other;
    std::vector<Loop> others;
    for (const Loop& l : s.loops) {
      if (l.extent.is(0) || l.extent.is(1)) continue;
      open_.push_back(l);
      others.push_back({l.var + ".other", l.extent});
      other.insert_or_assign(l.var, Expr::symbol(others.back().var));
    }
    add_loop_ranges(others, known_.ranges);
    for (const auto& index : own_) others_.push_back(index ? std::optional(substitute(*index, other)) : std::nullopt);
  }

  std::optional<DependentRead> first_dependent() {
    if (open_.empty()) return std::nullopt;
    for (const Val& i : s_.indices)
      if (auto found = in(i)) return found;
    return in(s_.value);
  }

 private:
  std::optional<DependentRead> in(const Val& v) {
    for (const ReadSite& r : reads(v, known_)) {
      if (root(k_, r.read->tensor) != target_ || misses_all(r)) continue;
      const bool own = is_own(r);
      if (own ? each_its_own() || has_free_steps() : is_freely_away(r)) continue;
      return DependentRead{r.read, own};
    }
    return std::nullopt;
  }

  int64_t bytes(int tensor) const { return k_.tensors[static_cast<size_t>(tensor)].dtype.bytes(); }

  // No point writes what r reads.
  bool misses_all(const ReadSite& r) const {
    if (r.read->tensor == s_.tensor)
      for (size_t d = 0; d < own_.size(); ++d)
        if (r.access[d] && others_[d] && apart(simplify(*r.access[d] - *others_[d], r.known.ranges), 1, 1, r.known))
          return true;
    const auto read = address(k_, r.read->tensor, r.access), written = address(k_, s_.tensor, others_);
    return read && written &&
           apart(simplify(*read - *written, r.known.ranges), bytes(r.read->tensor), bytes(s_.tensor), r.known);
  }

  bool is_own(const ReadSite& r) const {
    if (r.read->tensor != s_.tensor) {
      const auto read = address(k_, r.read->tensor, r.access), written = address(k_, s_.tensor, own_);
      return read && written && bytes(r.read->tensor) == bytes(s_.tensor) &&
             provably_eq(*read, *written, r.known.ranges);
    }
    for (size_t d = 0; d < own_.size(); ++d) {
      if (val::structurally_equal(r.read->args[d], s_.indices[d])) continue;
      if (!r.access[d] || !own_[d] || !provably_eq(*r.access[d], *own_[d], r.known.ranges)) return false;
    }
    return true;
  }

  // Symbols that are no dims are given with each run, as the fields of an instruction are. What only they decide, how
  // far an operand is from the result or one point from the next, whoever gives them answers for.
  bool is_free(const Expr& e) const {
    return std::ranges::any_of(e.symbols(), [&](const auto& name) { return !named_.contains(name); });
  }
  bool is_freely_away(const ReadSite& r) const {
    if (r.read->tensor != s_.tensor) return false;
    for (size_t d = 0; d < own_.size(); ++d)
      if (r.access[d] && own_[d] && is_free(*r.access[d] - *own_[d])) return true;
    return false;
  }
  bool has_free_steps() const {
    std::vector<std::string> names;
    for (const Loop& l : open_) names.push_back(l.var);
    return std::ranges::any_of(own_, [&](const auto& index) {
      const auto form = index ? affine(*index, names) : std::nullopt;
      return form && std::ranges::any_of(form->coefficients, [&](const Expr& c) { return is_free(c); });
    });
  }

  // Different points write different elements: the indices tell every loop's place, one after the other.
  bool each_its_own() {
    if (its_own_) return *its_own_;
    std::vector<Expr> told;
    for (const auto& index : own_)
      if (index) told.push_back(*index);
    // a // m and a % m together tell a.
    for (const auto& index : own_) {
      if (!index || index->terms().size() != 1 || index->terms()[0].factors.size() != 1) continue;
      const Atom atom = index->terms()[0].factors[0];
      if (index->terms()[0].coefficient != 1 || atom.kind() != AtomKind::mod) continue;
      const Expr quotient = floor_div(atom.args()[0], atom.args()[1]);
      for (const auto& other : own_)
        if (other && is_fixed(*other - quotient)) told.push_back(atom.args()[0]);
    }
    std::vector<Loop> left = open_;
    for (size_t before = left.size() + 1; left.size() < before;) {
      before = left.size();
      for (const Expr& e : told) drop_told(e, left);
    }
    its_own_ = left.empty();
    return *its_own_;
  }

  bool is_fixed(const Expr& e) const {
    return std::ranges::none_of(open_, [&](const Loop& l) { return e.mentions(l.var); });
  }

  // Those of `left` that e counts as digits of a number: each one's step is more than the smaller ones reach together.
  void drop_told(const Expr& e, std::vector<Loop>& left) const {
    std::vector<std::string> names;
    for (const Loop& l : left)
      if (e.mentions(l.var)) names.push_back(l.var);
    const auto form = affine(e, names);
    if (!form) return;
    struct Digit {
      Expr step, reach;
    };
    std::vector<Digit> digits;
    for (size_t i = 0; i < names.size(); ++i) {
      const Expr& c = form->coefficients[i];
      const Expr step = provably_nonnegative(c, known_) ? c : -c;
      digits.push_back({step, step * (std::ranges::find(left, names[i], &Loop::var)->extent - 1)});
    }
    for (Expr reach = 0; !digits.empty();) {
      const auto least = std::ranges::find_if(digits, [&](const Digit& d) {
        return provably_nonnegative(d.step - reach - 1, known_) && std::ranges::all_of(digits, [&](const Digit& other) {
                 return provably_nonnegative(other.step - d.step, known_);
               });
      });
      if (least == digits.end()) return;
      reach += least->reach;
      digits.erase(least);
    }
    std::erase_if(left, [&](const Loop& l) { return std::ranges::find(names, l.var) != names.end(); });
  }

  const Kernel& k_;
  const Stmt& s_;
  const int target_;
  const AccessMap own_;
  AccessMap others_;        // what another point writes
  std::vector<Loop> open_;  // loops of more than one point
  SymbolSet named_;         // loops and dims
  Known known_;
  std::optional<bool> its_own_;
};

}  // namespace

std::optional<DependentRead> dependent_read(const Kernel& k, const Stmt& s, const std::vector<Loop>& seqs) {
  bool reads_target = false;  // few statements do
  each_value(s, [&](const ValNode& v) {
    reads_target = reads_target || (v.kind == ValKind::read && root(k, v.tensor) == root(k, s.tensor));
  });
  return reads_target ? Points(k, s, seqs).first_dependent() : std::nullopt;
}

}  // namespace dlc
