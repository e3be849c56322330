#include <fmt/format.h>

#include "core/ops/bind.h"

namespace dlc::detail {
namespace {

std::string_view kind_name(AttrDecl::Kind k) {
  switch (k) {
    case AttrDecl::Kind::real:
      return "a real";
    case AttrDecl::Kind::string:
      return "a string";
    case AttrDecl::Kind::type:
      return "a type";
    default:
      return "an integer";
  }
}

struct Given {
  std::vector<Value> values;
  bool list = false;
  std::string_view kind;
};

Given flatten(const AttrValue& v) {
  Given g;
  auto one = [&](Value x, std::string_view kind) {
    g.values.push_back(std::move(x));
    g.kind = kind;
  };
  auto many = [&](const auto& items, std::string_view kind, auto make) {
    g.list = true;
    g.kind = kind;
    for (const auto& i : items) g.values.push_back(make(i));
  };
  auto index = [](const Expr& e) { return Value(val::index(e)); };
  auto real = [](double d) { return Value(val::real(d)); };
  auto string = [](const std::string& s) { return Value(s); };
  if (const auto* e = std::get_if<Expr>(&v)) one(index(*e), "an integer");
  if (const auto* d = std::get_if<double>(&v)) one(real(*d), "a real");
  if (const auto* s = std::get_if<std::string>(&v)) one(string(*s), "a string");
  if (const auto* t = std::get_if<DType>(&v)) one(Value(*t), "a type");
  if (const auto* l = std::get_if<std::vector<Expr>>(&v)) many(*l, "an integer", index);
  if (const auto* l = std::get_if<std::vector<double>>(&v)) many(*l, "a real", real);
  if (const auto* l = std::get_if<std::vector<std::string>>(&v)) many(*l, "a string", string);
  if (std::holds_alternative<Tensor>(v)) g.kind = "a tensor";
  return g;
}

// Integers may stand for reals: a front end reads "2" where "2.0" is meant.
void widen(const AttrDecl& decl, Given& g) {
  if (decl.kind != AttrDecl::Kind::real || g.kind != "an integer") return;
  for (Value& v : g.values) {
    const Val& x = std::get<Val>(v);
    if (x->kind != ValKind::integer) return;
    v = val::real(static_cast<double>(x->integer));
  }
  g.kind = "a real";
}

}  // namespace

Result<> bind_attributes(const RecordAst& record, const Attrs& attrs, Symbols& s) {
  for (const AttrDecl& d : record.attributes) s.attributes[d.name].decl = &d;
  for (const auto& [name, v] : attrs) {
    const auto it = s.attributes.find(name);
    if (it == s.attributes.end()) {
      std::vector<std::string> names;
      for (const AttrDecl& d : record.attributes) names.push_back(d.name);
      const std::string near = nearest(name, names);
      return s.fail_use(fmt::format("unknown attribute {}", name),
                        near.empty() ? "the record is: " + record.name : "did you mean " + near + "?");
    }
    const AttrDecl& d = *it->second.decl;
    Given g = flatten(v);
    widen(d, g);
    const bool empty_list = g.list && g.values.empty();
    if (g.kind != kind_name(d.kind) && !empty_list)
      return s.fail_use(fmt::format("attribute {} is {}, got {}", name, kind_name(d.kind), g.kind),
                        "it is declared as " + print(d));
    if (g.list && !d.list) return s.fail_use(fmt::format("attribute {} is one value, got a list", name));
    if (!g.list && d.list && !it->second.selects())
      return s.fail_use(fmt::format("attribute {} is a list, got one value", name));
    for (const Value& x : g.values)
      if (const Val* n = std::get_if<Val>(&x))
        if (const auto e = val::as_expr(*n); e && !e->valid())
          return s.fail_use(fmt::format("attribute {} overflows 64 bits", name));
    it->second.values = std::move(g.values);
    it->second.given = true;
  }
  for (const AttrDecl& d : record.attributes) {
    const bool may_miss = !d.initial.empty() || d.kind == AttrDecl::Kind::axes || d.kind == AttrDecl::Kind::type;
    if (!s.attributes[d.name].given && !may_miss)
      return s.fail_use(fmt::format("attribute {} is required", d.name), "it is declared as " + print(d));
  }
  return {};
}

Result<> bind_types(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs, Symbols& s) {
  std::map<std::string, std::string, std::less<>> source;
  for (const AttrDecl& d : record.attributes) {
    if (d.kind != AttrDecl::Kind::type || !attrs.contains(d.name)) continue;
    s.types[d.name] = std::get<DType>(s.attributes[d.name].values[0]);
    source[d.name] = "attribute " + d.name;
  }
  for (size_t i = 0; i < record.operands.size(); ++i) {
    const OperandDecl& o = record.operands[i];
    for (const TensorType& t : operands[i].types) {
      const TypeRef& want = type_or_default(o.type);
      if (const auto fixed = parse_dtype(want.name)) {
        if (*fixed != t.dtype)
          return s.fail_use(fmt::format("operand {} must be {}, has {}", o.name, want.name, to_string(t.dtype)));
        continue;
      }
      const auto [it, is_new] = s.types.emplace(want.name, t.dtype);
      if (is_new) {
        source[want.name] = "operand " + o.name;
      } else if (it->second != t.dtype) {
        return s.fail_use(fmt::format("operand {} is {}, but {} is {}", o.name, to_string(t.dtype), source[want.name],
                                      to_string(it->second)));
      }
    }
  }
  for (const AttrDecl& d : record.attributes) {
    if (d.kind != AttrDecl::Kind::type) continue;
    if (!s.types.contains(d.name)) {
      if (d.initial.empty()) return s.fail_use(fmt::format("attribute {} is required", d.name));
      DLC_TRY(const DType t, s.type({d.initial[0].text, false, d.initial[0].pos}));
      s.types[d.name] = t;
    }
    s.attributes[d.name].given = true;
    s.attributes[d.name].values = {Value(s.types[d.name])};
  }
  return {};
}

}  // namespace dlc::detail
