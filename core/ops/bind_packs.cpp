// Pack lengths. Every source is an equation; they are applied until nothing new is learnt, the surest ones first.
#include <fmt/format.h>

#include <algorithm>

#include "core/ops/bind.h"

namespace dlc::detail {
namespace {

class PackSolver {
 public:
  PackSolver(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs, Symbols& s)
      : record_(record), operands_(operands), attrs_(attrs), s_(s) {
    for (size_t i = 0; i < record.operands.size(); ++i) {
      for (const Dim& d : record.operands[i].dims) {
        if (!d.ref.pack || !d.ref.select.empty()) continue;
        packs_.insert(d.ref.name);
        if (operands[i].present) used_.insert(d.ref.name);
      }
    }
  }

  Result<> run() {
    DLC_CHECK(settle());
    DLC_CHECK(from_attribute_lists());
    DLC_CHECK(settle());
    DLC_CHECK(from_broadcast());
    DLC_CHECK(settle());
    for (const std::string& p : packs_) {
      if (known(p)) continue;
      if (used_.contains(p)) return s_.fail_use(fmt::format("the number of dims {} stands for cannot be told", p));
      s_.packs[p] = 0;  // only an absent operand mentions it
    }
    return positions();
  }

 private:
  bool known(const std::string& p) const { return s_.packs.contains(p); }
  int length(const std::string& p) const { return s_.packs.find(p)->second; }

  Result<> set(const std::string& p, int n, const std::string& because) {
    if (n < 0) return s_.fail_use(because);
    s_.packs[p] = n;
    changed_ = true;
    return {};
  }

  Result<> settle() {
    do {
      changed_ = false;
      DLC_CHECK(from_ranks());
      DLC_CHECK(from_positions());
      DLC_CHECK(from_requires());
    } while (changed_);
    return {};
  }

  struct Count {
    int fixed = 0;  // single dims and packs of known length
    std::vector<const Dim*> unknown;
  };
  Count count(const std::vector<Dim>& dims, size_t end) const {
    Count c;
    for (size_t i = 0; i < end; ++i) {
      const Dim& d = dims[i];
      if (!d.ref.pack) {
        ++c.fixed;
      } else if (!d.ref.select.empty() || !known(d.ref.name)) {
        c.unknown.push_back(&d);
      } else {
        c.fixed += length(d.ref.name);
      }
    }
    return c;
  }
  Count count(const OperandDecl& o) const { return count(o.dims, o.dims.size()); }

  int rank(size_t i) const { return static_cast<int>(operands_[i].types[0].shape.size()); }

  Result<> from_ranks() {
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].present) continue;
      const OperandDecl& o = record_.operands[i];
      const Count c = count(o);
      if (c.unknown.size() != 1 || c.unknown[0]->broadcast) continue;
      DLC_CHECK(
          set(c.unknown[0]->ref.name, rank(i) - c.fixed,
              fmt::format("operand {} has rank {}, but {} needs at least {}", o.name, rank(i), print(o), c.fixed)));
    }
    return {};
  }

  // The rank of the operand or result that has index `name`; nullopt while it is not known.
  struct Place {
    const OperandDecl* decl;
    size_t dim;
    int rank;
  };
  std::optional<Place> place(const std::string& name) const {
    auto find = [&](const OperandDecl& o) {
      return std::find_if(o.dims.begin(), o.dims.end(), [&](const Dim& d) { return d.ref.name == name; }) -
             o.dims.begin();
    };
    for (size_t i = 0; i < operands_.size(); ++i) {
      const OperandDecl& o = record_.operands[i];
      const auto at = static_cast<size_t>(find(o));
      if (operands_[i].present && at < o.dims.size()) return Place{&o, at, rank(i)};
    }
    for (const OperandDecl& o : record_.results) {
      const auto at = static_cast<size_t>(find(o));
      if (at >= o.dims.size()) continue;
      if (const auto r = result_rank(o)) return Place{&o, at, *r};
    }
    return std::nullopt;
  }

  // Known when all its packs are, or when they are together all the packs of an operand.
  std::optional<int> result_rank(const OperandDecl& o) const {
    const Count c = count(o);
    if (c.unknown.empty()) return c.fixed;
    auto names = [](const Count& x) {
      std::vector<std::string> v;
      for (const Dim* d : x.unknown) v.push_back(d->ref.name);
      std::sort(v.begin(), v.end());
      return v;
    };
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].present) continue;
      const Count x = count(record_.operands[i]);
      if (names(x) == names(c)) return rank(i) - x.fixed + c.fixed;
    }
    return std::nullopt;
  }

  Result<int64_t> position_value(const AttrDecl& d) const {
    const Attribute& a = s_.attributes.find(d.name)->second;
    if (a.given) {
      const Val& v = std::get<Val>(a.values[0]);
      if (v->kind == ValKind::integer) return v->integer;
      return s_.fail_use(fmt::format("attribute {} must be a constant", d.name));
    }
    if (d.initial[0].kind == NodeKind::integer) return d.initial[0].integer;
    return s_.fail_text(d.pos, fmt::format("the default of `{}` must be an integer", d.name));
  }

  // The position `at` names, from 0; a pack may start after the last dim.
  Result<std::optional<std::pair<Place, int>>> located(const AttrDecl& d) const {
    const auto p = place(d.index);
    if (!p) return std::nullopt;
    DLC_TRY(const int64_t given, position_value(d));
    const int last = d.index_pack ? p->rank : p->rank - 1;
    const int64_t at = given < 0 ? given + p->rank : given;
    if (at < 0 || at > last)
      return s_.fail_use(
          fmt::format("attribute {} = {} is outside [{}, {}] of {}", d.name, given, -p->rank, last, p->decl->name));
    return std::pair(*p, static_cast<int>(at));
  }

  Result<> from_positions() {
    for (const AttrDecl& d : record_.attributes) {
      if (d.kind != AttrDecl::Kind::at) continue;
      DLC_TRY(const auto at, located(d));
      if (!at) continue;
      const Count before = count(at->first.decl->dims, at->first.dim);
      if (before.unknown.size() != 1 || !before.unknown[0]->ref.select.empty()) continue;
      DLC_CHECK(set(before.unknown[0]->ref.name, at->second - before.fixed,
                    fmt::format("attribute {} must be at least {}", d.name, before.fixed)));
    }
    return {};
  }

  // require len(p) == len(q), |q|, an attribute or a number
  Result<> from_requires() {
    for (const Statement& st : record_.body) {
      const Node& n = st.value;
      const bool is_length = st.kind == Statement::Kind::require && n.kind == NodeKind::binary &&
                             n.binary_op() == BinaryOp::eq && n.args[0].kind == NodeKind::call &&
                             n.args[0].text == "len" && n.args[0].args.size() == 1;
      if (!is_length) continue;
      const std::string& p = n.args[0].args[0].text;
      if (!packs_.contains(p) || known(p)) continue;
      const auto l = required_length(n.args[1]);
      if (!l) continue;
      DLC_CHECK(
          set(p, static_cast<int>(std::clamp<int64_t>(*l, -1, 1000)), fmt::format("require {} cannot hold", print(n))));
    }
    return {};
  }

  std::optional<int64_t> required_length(const Node& n) const {
    if (n.kind == NodeKind::integer) return n.integer;
    if (n.kind == NodeKind::call && n.text == "len" && known(n.args[0].text)) return length(n.args[0].text);
    if (n.kind == NodeKind::name && s_.attributes.contains(n.text)) {
      if (const auto v = s_.constant_attribute(n.text, n.pos)) return *v;
      return std::nullopt;
    }
    if (n.kind != NodeKind::size) return std::nullopt;
    for (size_t i = 0; i < operands_.size(); ++i) {  // the last dim of an operand
      const OperandDecl& o = record_.operands[i];
      if (!operands_[i].present || o.dims.empty() || rank(i) == 0) continue;
      if (!o.dims.back().ref.pack && o.dims.back().ref.name == n.args[0].text)
        return operands_[i].types[0].shape.back().constant();
    }
    return std::nullopt;
  }

  Result<> from_attribute_lists() {
    for (const AttrDecl& d : record_.attributes) {
      if (d.along.empty() || known(d.along) || !attrs_.contains(d.name)) continue;
      used_.insert(d.along);
      DLC_CHECK(set(d.along, static_cast<int>(s_.attributes.find(d.name)->second.values.size()), ""));
    }
    return {};
  }

  // The longest operand tells how long a broadcast pack is.
  Result<> from_broadcast() {
    std::map<std::string, int> longest;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Count c = count(record_.operands[i]);
      if (!operands_[i].present || c.unknown.size() != 1) continue;
      for (const TensorType& t : operands_[i].types) {
        const int n = std::max(0, static_cast<int>(t.shape.size()) - c.fixed);
        auto [it, is_new] = longest.emplace(c.unknown[0]->ref.name, n);
        it->second = std::max(it->second, n);
      }
    }
    for (const auto& [p, n] : longest) {
      DLC_CHECK(set(p, n, ""));
    }
    return {};
  }

  // Now that every length is known: the positions of at and axes.
  Result<> positions() {
    for (const AttrDecl& d : record_.attributes) {
      Attribute& a = s_.attributes[d.name];
      if (d.kind == AttrDecl::Kind::at) {
        DLC_TRY(const auto at, located(d));
        if (!at) return s_.fail_text(d.pos, fmt::format("no operand or result has `{}`", d.index));
        const Count before = count(at->first.decl->dims, at->first.dim);
        if (before.fixed != at->second)
          return s_.fail_use(fmt::format("attribute {} = {} does not agree with the ranks, which give {}", d.name,
                                         at->second, before.fixed));
        a.axes = {at->second};
      } else if (a.selects()) {
        DLC_CHECK(axes(d, a));
      }
    }
    return {};
  }

  Result<> axes(const AttrDecl& d, Attribute& a) {
    const auto pack = s_.packs.find(d.index);
    if (pack == s_.packs.end()) return s_.fail_text(d.pos, fmt::format("`{}` is not a pack", d.index));
    const bool is_new = d.kind == AttrDecl::Kind::new_axes;
    const int n = pack->second + (is_new ? static_cast<int>(a.values.size()) : 0);
    if (!a.given) {
      if (is_new) return s_.fail_use(fmt::format("attribute {} is required", d.name));
      for (int i = 0; i < n; ++i) a.axes.push_back(i);
      return {};
    }
    for (const Value& v : a.values) {
      const Val& x = std::get<Val>(v);
      if (x->kind != ValKind::integer) return s_.fail_use(fmt::format("attribute {} must be constant", d.name));
      const int64_t at = x->integer < 0 ? x->integer + n : x->integer;
      if (at < 0 || at >= n)
        return s_.fail_use(fmt::format("attribute {} has {}, outside [{}, {}]", d.name, x->integer, -n, n - 1));
      if (std::find(a.axes.begin(), a.axes.end(), static_cast<int>(at)) != a.axes.end())
        return s_.fail_use(fmt::format("attribute {} names dim {} twice", d.name, at));
      a.axes.push_back(static_cast<int>(at));
    }
    return {};
  }

  const RecordAst& record_;
  std::span<const Operand> operands_;
  const Attrs& attrs_;
  Symbols& s_;
  std::set<std::string> packs_, used_;
  bool changed_ = false;
};

}  // namespace

Result<> bind_packs(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs, Symbols& symbols) {
  return PackSolver(record, operands, attrs, symbols).run();
}

}  // namespace dlc::detail
