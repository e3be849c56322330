#include "dlc/ops/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "core/ops/bind.h"
#include "core/ops/domains.h"

namespace dlc {
namespace detail {
namespace {

// splitmix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t between(int64_t lo, int64_t hi) {
    return hi <= lo ? lo : lo + static_cast<int64_t>(next() % static_cast<uint64_t>(hi - lo + 1));
  }
  bool chance(int percent) { return between(0, 99) < percent; }
  double real(double lo, double hi) { return lo + (hi - lo) * static_cast<double>(next() >> 11) * 0x1p-53; }
  template <class T>
  void shuffle(std::vector<T>& v) {
    for (size_t i = v.size(); i > 1; --i)
      std::swap(v[i - 1], v[static_cast<size_t>(between(0, static_cast<int64_t>(i) - 1))]);
  }

 private:
  uint64_t state_;
};

// One attempt: numbers for packs, attributes and extents, then repairs so that the requires hold. What they do not
// reach is left to chance and to another attempt.
class Attempt {
 public:
  Attempt(const RecordAst& r, uint64_t seed, const GenerateOptions& options) : r_(r), rng_(seed), options_(options) {}

  Instance run() {
    for (const Statement& s : r_.body)
      if (s.kind == Statement::Kind::require) split(s.value);
    pack_lengths();
    types();
    extents();
    for (const AttrDecl& a : r_.attributes) attribute(a);
    for (int round = 0; round < 2; ++round)
      for (const Node* n : requires_) repair(*n);
    operands();
    return std::move(out_);
  }

 private:
  // ---- what requires say

  void split(const Node& n) {
    if (n.kind == NodeKind::binary && n.binary_op() == BinaryOp::logical_and) {
      split(n.args[0]);
      split(n.args[1]);
    } else {
      requires_.push_back(&n);
    }
  }
  static bool is_call(const Node& n, std::string_view f) {
    return n.kind == NodeKind::call && n.text == f && n.args.size() == 1 && n.args[0].kind == NodeKind::name;
  }
  static bool is_binary(const Node& n, BinaryOp op) { return n.kind == NodeKind::binary && n.binary_op() == op; }

  const AttrDecl* find_attribute(const std::string& name) const {
    for (const AttrDecl& a : r_.attributes)
      if (a.name == name) return &a;
    return nullptr;
  }
  bool demands(std::string_view predicate, const std::string& type) const {
    return std::any_of(requires_.begin(), requires_.end(),
                       [&](const Node* n) { return is_call(*n, predicate) && n->args[0].text == type; });
  }
  // require len(name) == right
  const Node* required_length(const std::string& name) const {
    for (const Node* n : requires_)
      if (is_binary(*n, BinaryOp::eq) && is_call(n->args[0], "len") && n->args[0].args[0].text == name)
        return &n->args[1];
    return nullptr;
  }

  // ---- numbers

  void pack_lengths() {
    for (const OperandDecl& o : r_.operands)
      for (const Dim& d : o.dims)
        if (d.ref.pack && d.ref.select.empty()) packs_.emplace(d.ref.name, 0);
    for (auto& [name, n] : packs_) n = static_cast<int>(rng_.between(0, options_.max_pack));
    const std::set<std::string> fitted = fit();
    for (auto& [name, n] : packs_) {
      const Node* want = fitted.contains(name) ? nullptr : required_length(name);
      if (want && is_call(*want, "len")) n = packs_[want->args[0].text];
      if (want && want->kind == NodeKind::integer) n = static_cast<int>(want->integer);
      if (want && want->kind == NodeKind::size) {
        n = std::max(n, 1);
        extents_[want->args[0].text] = n;
      }
      if (want && want->kind == NodeKind::name) out_.attrs[want->text] = Expr(n);
    }
    for (const AttrDecl& a : r_.attributes) {  // one axis needs a dim to name
      const Node* want = required_length(a.name);
      if (a.kind == AttrDecl::Kind::axes && want && want->kind == NodeKind::integer)
        packs_[a.index] = std::max(packs_[a.index], static_cast<int>(want->integer));
      if (!a.along.empty() && !packs_.contains(a.along))
        packs_[a.along] = static_cast<int>(rng_.between(0, options_.max_pack));
    }
  }

  // The packs of the given operand get lengths that add up to its rank, its dims get its extents. Returns the packs.
  std::set<std::string> fit() {
    std::set<std::string> fitted;
    if (!options_.given || options_.given_operand >= r_.operands.size()) return fitted;
    const OperandDecl& o = r_.operands[options_.given_operand];
    const TensorType& type = *options_.given;
    if (const std::string& t = type_or_default(o.type).name; !parse_dtype(t)) types_[t] = type.dtype;
    auto left = static_cast<int64_t>(type.shape.size());
    std::vector<std::string> packs;
    for (const Dim& d : o.dims) {
      if (d.ref.pack && d.ref.select.empty()) packs.push_back(d.ref.name);
      left -= d.ref.pack ? 0 : 1;
    }
    for (size_t i = 0; i < packs.size(); ++i) {
      const int64_t n = i + 1 == packs.size() ? std::max<int64_t>(left, 0) : rng_.between(0, left);
      packs_[packs[i]] = static_cast<int>(n);
      left -= n;
      fitted.insert(packs[i]);
    }
    size_t at = 0;
    for (const Dim& d : o.dims) {
      if (d.ref.name.empty()) ++at;
      if (d.ref.name.empty()) continue;
      for (const std::string& n : flat(d)) {
        if (at >= type.shape.size()) return fitted;
        const int64_t extent = type.shape[at++].constant().value_or(1);
        if (!d.broadcast || extent != 1) extents_[n] = extent;
      }
    }
    return fitted;
  }

  DType pick_type(const std::string& name) {
    static constexpr std::array kFloats{kF32, kF32, kF32, kF16, kBF16, kF64};
    static constexpr std::array kInts{kS8, kU8, kS32, kS16, kS64, kU16, kU32, kU64};
    static constexpr std::array kSmallFloats{kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF4E2M1};
    static constexpr std::array kSmallInts{DType{DType::Kind::signed_int, 4}, DType{DType::Kind::unsigned_int, 4}};
    const bool floats = demands("is_float", name);
    const bool ints = demands("is_int", name) || (!floats && rng_.chance(35));
    const auto pick = [&](const auto& types) { return types[static_cast<size_t>(rng_.between(0, types.size() - 1))]; };
    if (rng_.chance(10)) return ints ? pick(kSmallInts) : pick(kSmallFloats);
    return ints ? pick(kInts) : pick(kFloats);
  }

  void types() {
    for (const AttrDecl& a : r_.attributes) {
      if (a.kind != AttrDecl::Kind::type) continue;
      types_[a.name] = pick_type(a.name);
      out_.attrs[a.name] = types_[a.name];
    }
    for (const OperandDecl& o : r_.operands) {
      const std::string& name = type_or_default(o.type).name;
      if (!types_.contains(name)) types_[name] = parse_dtype(name).value_or(pick_type(name));
    }
  }

  std::vector<std::string> flat(const Dim& d) const {
    if (!d.ref.pack) return {d.ref.name};
    std::vector<std::string> names;
    for (int p = 0; p < packs_.find(d.ref.name)->second; ++p) names.push_back(flat_name(d.ref.name, p));
    return names;
  }

  void extents() {
    const bool square = rng_.chance(30);  // equal extents satisfy many a require
    const int64_t all = rng_.between(1, options_.max_extent);
    const auto extent = [&] {
      if (options_.zero_percent > 0 && rng_.chance(options_.zero_percent)) return int64_t{0};
      return square ? all : rng_.between(1, options_.max_extent);
    };
    for (const OperandDecl& o : r_.operands)
      for (const Dim& d : o.dims) {
        if (d.ref.name.empty()) continue;
        for (const std::string& n : flat(d))
          if (!extents_.contains(n)) extents_[n] = extent();
      }
  }

  // Integers over extents and attributes; nothing else is needed for the repairs.
  std::optional<int64_t> value(const Node& n, int position = -1) const {
    switch (n.kind) {
      case NodeKind::integer:
        return n.integer;
      case NodeKind::neg: {
        const auto a = value(n.args[0], position);
        return a ? std::optional(-*a) : std::nullopt;
      }
      case NodeKind::name: {
        const bool is_pack = packs_.contains(n.text);
        if (is_pack && position < 0) return std::nullopt;
        const auto e = extents_.find(is_pack ? flat_name(n.text, position) : n.text);
        if (e != extents_.end()) return e->second;
        if (const auto a = out_.attrs.find(n.text); a != out_.attrs.end()) {
          if (const auto* x = std::get_if<Expr>(&a->second)) return x->constant();
          const auto* l = std::get_if<std::vector<Expr>>(&a->second);
          if (l && position >= 0 && position < static_cast<int>(l->size()))
            return (*l)[static_cast<size_t>(position)].constant();
        }
        const AttrDecl* a = find_attribute(n.text);
        return a && !a->initial.empty() ? value(a->initial[0], position) : std::nullopt;
      }
      case NodeKind::binary: {
        const auto a = value(n.args[0], position), b = value(n.args[1], position);
        if (!a || !b) return std::nullopt;
        const Val v = val::binary(n.binary_op(), val::integer(*a), val::integer(*b));
        return v->kind == ValKind::integer ? std::optional(v->integer) : std::nullopt;
      }
      default:
        if (is_call(n, "len"))
          if (const auto p = packs_.find(n.args[0].text); p != packs_.end()) return p->second;
        return std::nullopt;
    }
  }

  // ---- attributes

  AttrValue element(const AttrDecl& a, int position) {
    const std::vector<Node>& domain = a.domain.values;
    if (a.domain.kind == Domain::Kind::set) {
      const Node& n = domain[static_cast<size_t>(rng_.between(0, static_cast<int64_t>(domain.size()) - 1))];
      if (n.kind == NodeKind::string) return n.text;
      if (n.kind == NodeKind::real) return n.real;
      return Expr(value(n).value_or(0));
    }
    if (a.kind == AttrDecl::Kind::real) return rng_.real(0.5, 2.0);
    if (a.domain.kind == Domain::Kind::none) {
      const int64_t v = rng_.between(-3, 3);
      return Expr(v == 0 ? int64_t{1} : v);
    }
    const int64_t lo = value(domain[0], position).value_or(0);
    return Expr(rng_.between(lo, std::min(value(domain[1], position).value_or(lo + 3), lo + 3)));
  }

  // The position of index `name` in the first operand or result that has it, and that one's rank.
  std::pair<int, int> place(const std::string& name) const {
    for (const auto* list : {&r_.operands, &r_.results})
      for (const OperandDecl& o : *list) {
        int at = -1, rank = 0;
        for (const Dim& d : o.dims) {
          if (d.ref.name == name) at = rank;
          const auto p = packs_.find(d.ref.name);
          rank += d.ref.pack && p != packs_.end() ? p->second : 1;
        }
        if (at >= 0) return {at, rank};
      }
    return {0, 0};
  }

  void attribute(const AttrDecl& a) {
    if (out_.attrs.contains(a.name)) return;
    if (a.kind == AttrDecl::Kind::at) {
      const auto [at, rank] = place(a.index);
      out_.attrs[a.name] = Expr(at < rank && rng_.chance(50) ? at - rank : at);
      return;
    }
    if (a.kind == AttrDecl::Kind::axes || a.kind == AttrDecl::Kind::new_axes) return axes(a);
    if (!a.initial.empty() && rng_.chance(40)) return;
    if (!a.list) {
      out_.attrs[a.name] = element(a, -1);
      return;
    }
    std::vector<Expr> ints;
    std::vector<double> reals;
    const int n = a.along.empty() ? static_cast<int>(rng_.between(0, options_.max_pack)) : packs_[a.along];
    for (int p = 0; p < n; ++p) {
      const AttrValue v = element(a, p);
      if (const auto* e = std::get_if<Expr>(&v)) ints.push_back(*e);
      if (const auto* d = std::get_if<double>(&v)) reals.push_back(*d);
    }
    if (a.kind == AttrDecl::Kind::real) {
      out_.attrs[a.name] = reals;
    } else {
      out_.attrs[a.name] = ints;
    }
  }

  void axes(const AttrDecl& a) {
    const int added = a.kind == AttrDecl::Kind::new_axes ? static_cast<int>(rng_.between(0, 2)) : 0;
    std::vector<int> all(static_cast<size_t>(packs_[a.index] + added));
    std::iota(all.begin(), all.end(), 0);
    rng_.shuffle(all);
    size_t n = a.kind == AttrDecl::Kind::new_axes
                   ? static_cast<size_t>(added)
                   : static_cast<size_t>(rng_.between(0, static_cast<int64_t>(all.size())));
    if (const Node* want = required_length(a.name))
      n = static_cast<size_t>(value(*want).value_or(static_cast<int64_t>(all.size())));
    all.resize(std::min(n, all.size()));
    std::vector<Expr> list;
    for (const int p : all) list.emplace_back(p);
    out_.attrs[a.name] = list;
  }

  // ---- repairs

  void repair(const Node& n) {
    if (n.kind == NodeKind::fold) {
      const Node& e = n.args[0];
      if (is_binary(e, BinaryOp::eq) && e.args[0].kind == NodeKind::read) ones(e);
      if (is_binary(e, BinaryOp::le)) at_most(e);
      return;
    }
    if (n.kind != NodeKind::binary) return;
    const Node &left = n.args[0], &right = n.args[1];
    if (n.binary_op() == BinaryOp::eq && left.kind == NodeKind::size && left.pack && right.kind == NodeKind::fold)
      return factors(left.args[0].text, right.args[0].text);
    if (n.binary_op() == BinaryOp::eq && left.kind == NodeKind::name && extents_.contains(left.text))
      if (const auto v = value(right); v && *v >= 0) extents_[left.text] = *v;
    if (n.binary_op() == BinaryOp::eq && is_binary(left, BinaryOp::mod) && left.args[0].kind == NodeKind::name &&
        extents_.contains(left.args[0].text))
      if (const auto v = value(left.args[1]); v && *v > 0) {
        int64_t& e = extents_[left.args[0].text];
        if (e % *v != 0) e = *v * rng_.between(1, 2);
      }
  }

  // (i[axes] == 1 and ...)
  void ones(const Node& e) {
    const auto a = out_.attrs.find(e.args[0].args[0].text);
    if (a == out_.attrs.end()) return;
    for (const Expr& p : std::get<std::vector<Expr>>(a->second))
      extents_[flat_name(e.args[0].text, static_cast<int>(*p.constant()))] = 1;
  }

  // (p <= a and ...)
  void at_most(const Node& e) {
    const auto p = packs_.find(e.args[0].text);
    if (p == packs_.end()) return;
    for (int i = 0; i < p->second; ++i) {
      int64_t& x = extents_[flat_name(p->first, i)];
      x = std::min(x, value(e.args[1], i).value_or(x));
    }
  }

  // |pack...| == (list * ...)
  void factors(const std::string& pack, const std::string& list) {
    int64_t total = 1;
    for (int p = 0; p < packs_[pack]; ++p) total *= extents_[flat_name(pack, p)];
    std::vector<Expr> out;
    for (int64_t f = 2; total > 1;) {
      if (total % f != 0) {
        ++f;
        continue;
      }
      total /= f;
      if (!out.empty() && rng_.chance(50)) {
        out.back() = out.back() * f;
      } else {
        out.emplace_back(f);
      }
    }
    rng_.shuffle(out);
    out_.attrs[list] = out;
  }

  // ---- operands

  void operands() {
    for (const OperandDecl& r : r_.results)  // an extent that an attribute gives: expand
      for (const Dim& d : r.dims)
        if (d.ref.pack && !d.extent.empty() && d.extent[0].kind == NodeKind::name && packs_.contains(d.ref.name))
          if (const AttrDecl* a = find_attribute(d.extent[0].text); a && a->along == d.ref.name) {
            std::vector<Expr> shape;
            bool declared = true;
            for (const std::string& n : flat(d)) {
              declared = declared && extents_.contains(n);
              if (declared) shape.emplace_back(extents_[n]);
            }
            if (declared && !shape.empty()) out_.attrs[a->name] = shape;
          }
    for (const OperandDecl& o : r_.operands) {
      Operand given;
      given.present = !(o.optional && rng_.chance(40));
      const int64_t count = !given.present ? 0 : o.variadic ? rng_.between(1, 3) : 1;
      for (int64_t q = 0; q < count; ++q) {
        const bool wanted = options_.given && q == 0 && out_.operands.size() == options_.given_operand;
        given.types.push_back(wanted ? *options_.given : tensor(o));
      }
      out_.operands.push_back(std::move(given));
    }
  }

  TensorType tensor(const OperandDecl& o) {
    TensorType t;
    t.dtype = types_[type_or_default(o.type).name];
    std::vector<bool> broadcast;
    for (const Dim& d : o.dims) {
      if (d.ref.name.empty()) {
        t.shape.emplace_back(value(d.extent[0]).value_or(1));
        broadcast.push_back(false);
        continue;
      }
      for (const std::string& n : flat(d)) {
        const bool one = d.broadcast && rng_.chance(25);
        const bool own = o.variadic && !d.broadcast && !d.ref.pack;
        t.shape.emplace_back(one ? 1 : own ? rng_.between(1, options_.max_extent) : extents_[n]);
        broadcast.push_back(d.broadcast);
      }
    }
    size_t drop = 0;
    while (drop < broadcast.size() && broadcast[drop] && rng_.chance(15)) ++drop;
    t.shape.erase(t.shape.begin(), t.shape.begin() + static_cast<std::ptrdiff_t>(drop));
    return t;
  }

  const RecordAst& r_;
  Random rng_;
  const GenerateOptions& options_;
  std::vector<const Node*> requires_;
  std::map<std::string, int> packs_;
  std::map<std::string, int64_t> extents_;
  std::map<std::string, DType> types_;
  Instance out_;
};

}  // namespace

// From where the elements of the operands are drawn: a float with a domain in (lo, hi], at most 2 from 0.
Result<std::vector<std::optional<Interval>>> operand_ranges(const RecordAst& ast, const Instance& use,
                                                            const DefTable& defs) {
  DLC_TRY(const auto domains, element_domains(ast, use.operands, use.attrs, {}, defs));
  constexpr double kMost = 2;
  std::vector<std::optional<Interval>> out;
  for (size_t i = 0; i < domains.size(); ++i) {
    std::optional<Interval> range;
    if (const auto& d = domains[i]; d && !use.operands[i].types.empty()) {
      const bool real = use.operands[i].types[0].dtype.is_float();
      const double lo = real ? std::max(d->lo, -kMost) : d->lo, hi = real ? std::min(d->hi, kMost) : d->hi;
      if (hi < lo) return fail({}, fmt::format("{}: operand {} has no possible value", ast.name, ast.operands[i].name));
      constexpr double kLarge = 1e15;  // stands for no bound
      range = Interval{static_cast<int64_t>(std::max(lo, -kLarge)), static_cast<int64_t>(std::min(hi, kLarge))};
    } else if (ast.operands[i].type.name == "s64") {
      range = Interval{0, 0};  // indices whose domain differs by position: the first element is always there
    }
    out.push_back(range);
  }
  return out;
}

}  // namespace detail

Result<Instance> generate(const RecordSet& set, const Record& record, uint64_t seed, const GenerateOptions& options) {
  constexpr uint64_t kStreams = 300;  // of a seed
  Error last;
  for (int i = 0; i < options.tries; ++i) {
    Instance use = detail::Attempt(record.ast(), seed * kStreams + static_cast<uint64_t>(i), options).run();
    auto k = set.instantiate(record, use.operands, use.attrs);
    if (k) {
      auto ranges = detail::operand_ranges(record.ast(), use, set.defs());
      if (ranges) {
        use.values = std::move(*ranges);
        return use;
      }
      last = std::move(ranges).error();
    } else {
      last = std::move(k).error();
    }
  }
  return fail({}, fmt::format("no valid instance of {} in {} tries; the last: {}", record.name(), options.tries,
                              last.message()));
}

Result<std::vector<Tensor>> random_operands(const Instance& instance, uint64_t seed) {
  detail::Random rng(seed ^ 0x6f7065726e6473u);
  std::vector<Tensor> out;
  for (size_t i = 0; i < instance.operands.size(); ++i) {
    const Operand& o = instance.operands[i];
    if (!o.present) out.emplace_back();
    for (const TensorType& type : o.types) {
      std::vector<int64_t> shape;
      for (const Expr& e : type.shape) {
        if (!e.constant()) return fail({}, "a symbolic shape has no elements");
        shape.push_back(*e.constant());
      }
      DLC_TRY(Tensor t, Tensor::make(type.dtype, shape));
      const auto range = i < instance.values.size() ? instance.values[i] : std::nullopt;
      for (int64_t e = 0; e < t.elements(); ++e) {
        if (range && type.dtype.is_float()) {
          t.set_double(e, static_cast<double>(range->hi) - rng.real(0, static_cast<double>(range->hi - range->lo)));
        } else if (range) {
          const int64_t lo = type.dtype.is_signed() ? range->lo : std::max<int64_t>(range->lo, 0);
          t.set_int(e, rng.between(lo, std::max(lo, range->hi)));
        } else if (type.dtype.is_float()) {
          t.set_double(e, rng.real(-2, 2));
        } else if (type.dtype.is_bool()) {
          t.set_int(e, rng.between(0, 1));
        } else {
          const int64_t v = rng.between(1, 7);
          t.set_int(e, type.dtype.is_signed() && rng.chance(50) ? -v : v);
        }
      }
      out.push_back(std::move(t));
    }
  }
  return out;
}

}  // namespace dlc
