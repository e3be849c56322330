#include "core/ops/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dlc/kernel/condition.h"

namespace dlc::detail {

const TypeRef& type_or_default(const TypeRef& t) {
  static const TypeRef kDefault{"T", false, {}};
  return t.empty() ? kDefault : t;
}

Result<std::vector<Slot>> slots(const OperandDecl& o, const Symbols& s) {
  std::vector<Slot> out;
  for (const Dim& d : o.dims) {
    if (d.ref.name.empty()) {
      out.push_back({&d, {}});
      continue;
    }
    if (!d.ref.pack && s.is_pack(d.ref.name))
      return s.fail_text(d.ref.pos, fmt::format("`{}` is a pack; write {}...", d.ref.name, d.ref.name));
    DLC_TRY(const auto elements, s.elements(d.ref));
    for (const Element& e : elements) out.push_back({&d, e});
  }
  return out;
}

namespace {

class Binder {
 public:
  Binder(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs, Symbols& s, Kernel& k)
      : record_(record), operands_(operands.begin(), operands.end()), attrs_(attrs), s_(s), k_(k), eval_(s) {}

  Result<> run() {
    DLC_CHECK(arity());
    reserve_symbols();
    DLC_CHECK(bind_attributes(record_, attrs_, s_));
    DLC_CHECK(bind_types(record_, operands_, attrs_, s_));
    DLC_CHECK(bind_packs(record_, operands_, attrs_, s_));
    for (const OperandDecl& r : record_.results)
      for (const Dim& d : r.dims)
        if (!d.extent.empty() && !d.ref.name.empty()) made_by_result_.insert(d.ref.name);
    DLC_CHECK(operand_extents());
    DLC_CHECK(broadcast_extents());
    DLC_CHECK(attribute_lengths());
    DLC_CHECK(requires_hold());
    DLC_CHECK(result_extents());
    DLC_CHECK(attribute_domains());
    DLC_CHECK(operand_tensors());
    return result_tensors();
  }

 private:
  Result<> arity() {
    const size_t n = record_.operands.size();
    if (operands_.size() > n)
      return s_.fail_use(fmt::format("takes {} operand{}, has {}", n, n == 1 ? "" : "s", operands_.size()));
    operands_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const OperandDecl& o = record_.operands[i];
      Operand& given = operands_[i];
      given.present = given.present && !given.types.empty();
      if (!given.present) given.types.clear();
      if (!given.present && !o.optional) return s_.fail_use(fmt::format("operand {} is missing", o.name));
      if (given.types.size() > 1 && !o.variadic)
        return s_.fail_use(fmt::format("operand {} is one tensor, has {}", o.name, given.types.size()));
      if (o.variadic) s_.variadic[o.name] = static_cast<int>(given.types.size());
      for (const TensorType& t : given.types)
        for (const Expr& e : t.shape)
          if (!e.valid() || bounds(e, s_.ranges).hi < 0)
            return s_.fail_use(fmt::format("operand {} has the shape {}", o.name, to_string(t)));
    }
    return {};
  }

  // Loop variables must not be called like a dim of the model, and a dim is not negative.
  void reserve_symbols() {
    for (const auto& [name, range] : s_.ranges) s_.reserved.insert(name);
    auto reserve = [&](const Expr& e) {
      for (const std::string& n : e.symbols()) s_.reserved.insert(n);
    };
    for (const Operand& o : operands_)
      for (const TensorType& t : o.types)
        for (const Expr& e : t.shape) {
          reserve(e);
          if (const auto name = e.as_symbol(); name && !s_.ranges.contains(*name))
            s_.ranges.emplace(std::string(*name), Range(0, std::numeric_limits<int32_t>::max()));
        }
    for (const auto& [name, v] : attrs_) {
      if (const auto* e = std::get_if<Expr>(&v)) reserve(*e);
      if (const auto* l = std::get_if<std::vector<Expr>>(&v)) std::for_each(l->begin(), l->end(), reserve);
    }
  }

  void assume_nonnegative(const Expr& e) {
    const Expr x = simplify(e, s_.ranges);
    const auto implied = [&](const Expr& known) { return provably_le(known, x, s_.ranges); };
    if (implied(0) || std::ranges::any_of(k_.assumptions, implied)) return;
    k_.assumptions.push_back(x);
  }

  // a == b, or an error, or an assumption.
  Result<> unify(const Expr& a, const Expr& b, const std::string& message) {
    if (a == b || provably_eq(a, b, s_.ranges)) return {};
    const bool differ = (a.constant() && b.constant()) || provably_lt(a, b, s_.ranges) || provably_lt(b, a, s_.ranges);
    if (differ) return s_.fail_use(message);
    assume_nonnegative(a - b);
    assume_nonnegative(b - a);
    return {};
  }

  // ---- extents

  // The slots of operand i for a tensor of this rank: leading broadcast dims may be absent.
  Result<std::vector<Slot>> fitted(size_t i, size_t rank) {
    const OperandDecl& o = record_.operands[i];
    DLC_TRY(auto all, slots(o, s_));
    while (all.size() > rank && all.front().dim->broadcast) all.erase(all.begin());
    if (all.size() != rank)
      return s_.fail_use(fmt::format("operand {} has rank {}, but {} needs {}", o.name, rank, print(o), all.size()));
    return all;
  }

  template <class F>
  Result<> each_operand_dim(F f) {
    for (size_t i = 0; i < operands_.size(); ++i) {
      for (const TensorType& t : operands_[i].types) {
        DLC_TRY(const auto fit, fitted(i, t.shape.size()));
        for (size_t j = 0; j < fit.size(); ++j) DLC_CHECK(f(record_.operands[i], fit[j], t.shape[j]));
      }
    }
    return {};
  }

  std::string mismatch(const OperandDecl& o, const Slot& slot, const Expr& x, const Expr& want) {
    const std::string& n = slot.element.name;
    return fmt::format("operand {} has {} = {}, but {} has {}", o.name, n, to_string(x), source_[n], to_string(want));
  }

  Result<> operand_extents() {
    return each_operand_dim([&](const OperandDecl& o, const Slot& slot, const Expr& x) -> Result<> {
      if (slot.dim->broadcast) return {};
      if (slot.dim->ref.name.empty()) {
        DLC_TRY(const Expr want, eval_.extent(slot.dim->extent[0], {}));
        return unify(x, want,
                     fmt::format("operand {} has a dim {} that must be {}", o.name, to_string(x), to_string(want)));
      }
      const std::string& n = slot.element.name;
      if (o.variadic && !slot.dim->ref.pack) {
        s_.operand_extents[n].push_back(x);
        return {};
      }
      return define(o, slot, x);
    });
  }

  Result<> define(const OperandDecl& o, const Slot& slot, const Expr& x) {
    const std::string& n = slot.element.name;
    const auto [it, is_new] = s_.extents.emplace(n, x);
    if (is_new) {
      source_[n] = o.name;
      return {};
    }
    DLC_CHECK(unify(it->second, x, mismatch(o, slot, x, it->second)));
    if (x.constant()) it->second = x;
    return {};
  }

  // An index that broadcast dims alone have: the extent that is not 1, a constant before a symbol.
  Result<> broadcast_extents() {
    std::map<std::string, Expr> widest;
    DLC_CHECK(each_operand_dim([&](const OperandDecl& o, const Slot& slot, const Expr& x) -> Result<> {
      const std::string& n = slot.element.name;
      if (!slot.dim->broadcast || s_.extents.contains(n) || made_by_result_.contains(slot.dim->ref.name)) return {};
      const auto [it, is_new] = widest.emplace(n, x);
      if (is_new || it->second.is(1) || (!it->second.constant() && x.constant() && !x.is(1))) {
        it->second = x;
        source_[n] = o.name;
      }
      return {};
    }));
    for (const auto& [n, e] : widest) s_.extents.emplace(n, e);
    for (size_t i = 0; i < operands_.size(); ++i) {  // dims that only an absent or shorter operand mentions
      if (!operands_[i].present) continue;
      DLC_TRY(const auto all, slots(record_.operands[i], s_));
      for (const Slot& slot : all)
        if (slot.dim->broadcast && !made_by_result_.contains(slot.dim->ref.name))
          s_.extents.emplace(slot.element.name, Expr(1));
    }
    return check_broadcast(false);
  }

  Result<> check_broadcast(bool results) {
    return each_operand_dim([&](const OperandDecl& o, const Slot& slot, const Expr& x) -> Result<> {
      if (!slot.dim->broadcast || x.is(1) || made_by_result_.contains(slot.dim->ref.name) != results) return {};
      const Expr want = s_.extents.find(slot.element.name)->second;
      if (results) source_[slot.element.name] = "the result";
      return unify(x, want, mismatch(o, slot, x, want));
    });
  }

  Result<> result_extents() {
    for (const OperandDecl& r : record_.results) {
      for (const Dim& d : r.dims) {
        if (d.extent.empty() || d.ref.name.empty()) continue;
        int n = 1;
        if (d.ref.pack) {
          PackUse use;
          collect_packs(s_, d.extent[0], use);
          if (use.packs.empty())
            return s_.fail_text(d.ref.pos, fmt::format("no pack in the extents of `{}`", d.ref.name));
          n = use.packs.begin()->second;
          for (const auto& [name, length] : use.packs)
            if (length != n)
              return s_.fail_use(
                  fmt::format("{} has {} elements, but {} has {}", name, length, use.packs.begin()->first, n));
          s_.packs[d.ref.name] = n;
        }
        for (int p = 0; p < n; ++p) {
          Env env;
          if (d.ref.pack) env.pack = p;
          DLC_TRY(const Expr e, eval_.extent(d.extent[0], env));
          s_.extents[d.ref.pack ? flat_name(d.ref.name, p) : d.ref.name] = e;
        }
      }
    }
    return check_broadcast(true);
  }

  // ---- attributes

  Result<> attribute_lengths() {
    for (const AttrDecl& d : record_.attributes) {
      const Attribute& a = s_.attributes[d.name];
      const auto pack = s_.packs.find(d.along);
      if (!a.given || pack == s_.packs.end()) continue;
      if (static_cast<int>(a.values.size()) != pack->second)
        return s_.fail_use(fmt::format("attribute {} has {} values, but there are {} dims {}", d.name, a.values.size(),
                                       pack->second, d.along));
    }
    return {};
  }

  Result<> attribute_domains() {
    for (const AttrDecl& d : record_.attributes) {
      const Attribute& a = s_.attributes[d.name];
      if (!a.given || d.domain.kind == Domain::Kind::none) continue;
      for (size_t p = 0; p < a.values.size(); ++p) {
        Env env;
        if (d.list) env.pack = static_cast<int>(p);
        DLC_CHECK(d.domain.kind == Domain::Kind::set ? in_set(d, a.values[p], env) : in_range(d, a.values[p], env));
      }
    }
    return {};
  }

  static std::string show(const Value& v) {
    if (const auto* s = std::get_if<std::string>(&v)) return '"' + *s + '"';
    if (const auto* t = std::get_if<DType>(&v)) return to_string(*t);
    const Val& x = std::get<Val>(v);
    if (const auto e = val::as_expr(x)) return to_string(*e);
    return x->kind == ValKind::real ? fmt::format("{}", x->real) : "?";
  }

  Result<> in_set(const AttrDecl& d, const Value& v, const Env& env) {
    for (const Node& n : d.domain.values) {
      DLC_TRY(const Value allowed, eval_.value(n, env));
      if (allowed.index() != v.index()) continue;
      if (!std::holds_alternative<Val>(v)) {
        if (allowed == v) return {};
        continue;
      }
      const Val same = val::binary(BinaryOp::eq, std::get<Val>(allowed), std::get<Val>(v));
      if (same->kind == ValKind::integer && same->integer) return {};
    }
    std::vector<std::string> words;
    for (const Node& n : d.domain.values) words.push_back(n.text);
    const std::string near = std::holds_alternative<std::string>(v) ? nearest(std::get<std::string>(v), words) : "";
    return s_.fail_use(fmt::format("attribute {} = {} is not allowed", d.name, show(v)),
                       near.empty() ? "it is declared as " + print(d) : "did you mean \"" + near + "\"?");
  }

  Result<> in_range(const AttrDecl& d, const Value& v, const Env& env) {
    for (int side = 0; side < 2; ++side) {
      DLC_TRY(const Val bound, eval_.number(d.domain.values[static_cast<size_t>(side)], env));
      const BinaryOp above = d.domain.open ? BinaryOp::gt : BinaryOp::ge;
      const BinaryOp below = d.domain.open ? BinaryOp::lt : BinaryOp::le;
      const Val ok = val::binary(side == 0 ? above : below, std::get<Val>(v), bound);
      const auto c = nonnegative_form(ok);
      const bool infinite = bound->kind == ValKind::real && (bound->real > 1e300 || bound->real < -1e300);
      if (infinite) continue;
      if (!c) return s_.fail_text(d.pos, fmt::format("the domain of `{}` is not known", d.name));
      if (provably_lt(*c, 0, s_.ranges))
        return s_.fail_use(fmt::format("attribute {} = {} is outside its domain", d.name, show(v)),
                           "it is declared as " + print(d));
      assume_nonnegative(*c);
    }
    return {};
  }

  // ---- requires

  Result<> requires_hold() {
    for (const Statement& st : record_.body) {
      if (st.kind != Statement::Kind::require || mentions_absent(st.value)) continue;
      Env sizes;
      sizes.exact = true;
      DLC_TRY(Val c, eval_.number(st.value, sizes));
      c = val::convert(kBool, c);
      if (c->kind == ValKind::integer && c->integer) continue;
      const auto e = nonnegative_form(c);
      if (!e) return s_.fail_text(st.pos, fmt::format("`require {}` depends on data", print(st.value)));
      if (provably_lt(*e, 0, s_.ranges))
        return s_.fail_use(fmt::format("require {} does not hold{}", print(st.value), sides(st.value, {})), shapes());
      assume(c);
    }
    return {};
  }

  // Extents that only an absent operand has say nothing.
  bool mentions_absent(const Node& n) const {
    if (n.kind == NodeKind::name && !s_.extents.contains(n.text) && !s_.is_pack(n.text)) {
      for (size_t i = 0; i < operands_.size(); ++i) {
        if (operands_[i].present) continue;
        for (const Dim& d : record_.operands[i].dims)
          if (d.ref.name == n.text) return true;
      }
    }
    return std::any_of(n.args.begin(), n.args.end(), [&](const Node& a) { return mentions_absent(a); });
  }

  // Conjunctions and equalities become several assumptions, which later passes can use one by one.
  void assume(const Val& c) {
    if (c->kind == ValKind::binary && c->binary_op() == BinaryOp::logical_and) {
      assume(c->args[0]);
      assume(c->args[1]);
    } else if (c->kind == ValKind::binary && c->binary_op() == BinaryOp::eq) {
      const Expr d = *val::as_expr(c->args[0]) - *val::as_expr(c->args[1]);
      assume_nonnegative(d);
      assume_nonnegative(-d);
    } else {
      assume_nonnegative(*nonnegative_form(c));
    }
  }

  // ": 3 against 4" for a comparison; for one over a pack, where it fails.
  std::string sides(const Node& n, Env env) {
    if (n.kind == NodeKind::fold) {
      PackUse use;
      collect_packs(s_, n.args[0], use);
      for (env.pack = 0; !use.packs.empty() && env.pack < use.packs.begin()->second; ++env.pack) {
        const auto c = eval_.number(n.args[0], env);
        const auto e = c ? nonnegative_form(val::convert(kBool, *c)) : std::nullopt;
        if (e && provably_lt(*e, 0, s_.ranges)) return sides(n.args[0], env);
      }
      return {};
    }
    if (n.kind != NodeKind::binary) return {};
    const auto a = eval_.extent(n.args[0], env), b = eval_.extent(n.args[1], env);
    return a && b ? fmt::format(": {} against {}", to_string(*a), to_string(*b)) : "";
  }

  std::string shapes() const {
    std::string s = "look at the operands:";
    for (size_t i = 0; i < operands_.size(); ++i)
      for (const TensorType& t : operands_[i].types)
        s += fmt::format("{} {} is {}", s.back() == ':' ? "" : ",", record_.operands[i].name, to_string(t));
    return s;
  }

  // ---- tensors

  Result<> operand_tensors() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const OperandDecl& o = record_.operands[i];
      if (!operands_[i].present) {
        TensorName absent;
        if (const auto t = s_.type(type_or_default(o.type))) absent.type = *t;
        s_.tensors[o.name] = absent;
        k_.inputs.push_back(-1);
        continue;
      }
      DLC_TRY(const auto all, slots(o, s_));
      for (size_t q = 0; q < operands_[i].types.size(); ++q) {
        const TensorType& t = operands_[i].types[q];
        DLC_TRY(const auto fit, fitted(i, t.shape.size()));
        TensorName name;
        name.index = static_cast<int>(k_.tensors.size());
        name.type = t.dtype;
        name.absent = all.size() - fit.size();
        for (size_t j = 0; j < fit.size(); ++j) name.unit.push_back(fit[j].dim->broadcast && t.shape[j].is(1));
        const std::string id = o.variadic ? flat_name(o.name, static_cast<int>(q)) : o.name;
        s_.tensors[id] = name;
        k_.inputs.push_back(name.index);
        k_.tensors.push_back({id, t.dtype, t.shape, Role::input, std::nullopt});
      }
    }
    return {};
  }

  Result<> result_tensors() {
    for (const OperandDecl& r : record_.results) {
      DLC_TRY(const auto all, slots(r, s_));
      KernelTensor t;
      t.name = r.name;
      t.role = Role::output;
      DLC_TRY(t.dtype, s_.type(type_or_default(r.type)));
      for (const Slot& slot : all) {
        Expr e = 1;
        if (slot.dim->ref.name.empty()) {
          DLC_TRY(e, eval_.extent(slot.dim->extent[0], {}));
        } else if (!slot.element.unit) {
          const auto it = s_.extents.find(slot.element.name);
          if (it == s_.extents.end())
            return s_.fail_text(slot.dim->ref.pos, fmt::format("the extent of `{}` is not known", slot.element.name));
          e = it->second;
        }
        if (provably_lt(e, 0, s_.ranges))
          return s_.fail_use(fmt::format("the result {} would have {} = {}", r.name,
                                         slot.element.name.empty() ? "a dim" : slot.element.name, to_string(e)),
                             shapes());
        assume_nonnegative(e);
        t.shape.push_back(e);
      }
      TensorName name;
      name.index = static_cast<int>(k_.tensors.size());
      name.type = t.dtype;
      name.unit.resize(t.shape.size());
      s_.tensors[r.name] = name;
      k_.outputs.push_back(name.index);
      k_.tensors.push_back(std::move(t));
    }
    return {};
  }

  const RecordAst& record_;
  std::vector<Operand> operands_;
  const Attrs& attrs_;
  Symbols& s_;
  Kernel& k_;
  Evaluator eval_;
  std::map<std::string, std::string> source_;  // which operand gave an extent
  std::set<std::string> made_by_result_;
};

}  // namespace

Result<> bind_signature(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs,
                        Symbols& symbols, Kernel& kernel) {
  return Binder(record, operands, attrs, symbols, kernel).run();
}

}  // namespace dlc::detail
