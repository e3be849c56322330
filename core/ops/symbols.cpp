#include "core/ops/symbols.h"

#include <fmt/format.h>

#include <algorithm>

namespace dlc::detail {

std::unexpected<Error> Symbols::fail_use(std::string message, std::string hint) const {
  return fail(where, owner + ": " + std::move(message), std::move(hint));
}

std::unexpected<Error> Symbols::fail_text(Pos pos, std::string message, std::string hint) const {
  if (fragment) return fail(loc_of(file, pos), std::move(message), std::move(hint));
  return fail(where, fmt::format("{} ({}:{}:{}): {}", owner, file, pos.line, pos.column, message), std::move(hint));
}

std::vector<std::string> Symbols::known_names() const {
  std::vector<std::string> names;
  auto add = [&](const auto& map) {
    for (const auto& entry : map) names.push_back(entry.first);
  };
  add(packs);
  add(extents);
  add(operand_extents);
  add(attributes);
  add(lets);
  add(values);
  add(tensors);
  add(defs->defs);
  return names;
}

std::vector<std::string> Symbols::known_tensors() const {
  std::vector<std::string> names;
  for (const auto& [name, t] : tensors) names.push_back(name);
  return names;
}

Result<DType> Symbols::type(const TypeRef& t) const {
  DType d;
  if (const auto known = parse_dtype(t.name)) {
    d = *known;
  } else if (const auto it = types.find(t.name); it != types.end()) {
    d = it->second;
  } else {
    return fail_text(t.pos, fmt::format("type {} is not known: no operand that is present has it", t.name));
  }
  return t.compute ? compute_type(d) : d;
}

Result<int64_t> Symbols::constant_attribute(std::string_view name, Pos pos) const {
  const auto it = attributes.find(name);
  if (it == attributes.end()) return fail_text(pos, fmt::format("`{}` is not an attribute", name));
  const Attribute& a = it->second;
  if (a.given && a.values.size() == 1)
    if (const Val* v = std::get_if<Val>(&a.values[0]); v && (*v)->kind == ValKind::integer) return (*v)->integer;
  if (!a.given && !a.decl->initial.empty() && a.decl->initial[0].kind == NodeKind::integer)
    return a.decl->initial[0].integer;
  return fail_use(fmt::format("attribute {} must be a constant integer", name));
}

Result<std::vector<Element>> Symbols::elements(const IndexRef& ref) const {
  const auto pack = packs.find(ref.name);
  if (pack == packs.end()) {
    if (!ref.select.empty() || ref.pack) return fail_text(ref.pos, fmt::format("`{}` is not a pack", ref.name));
    return std::vector<Element>{{false, ref.name}};
  }
  std::vector<Element> out;
  if (ref.select.empty()) {
    for (int p = 0; p < pack->second; ++p) out.push_back({false, flat_name(ref.name, p)});
    return out;
  }
  const auto a = attributes.find(ref.select);
  if (a == attributes.end() || !a->second.selects())
    return fail_text(ref.pos, fmt::format("`{}` does not select from a pack", ref.select),
                     fmt::format("declare it as `{}: axes of {}`", ref.select, ref.name));
  const std::vector<int>& axes = a->second.axes;
  auto has = [&](int p) { return std::find(axes.begin(), axes.end(), p) != axes.end(); };
  if (a->second.decl->kind == AttrDecl::Kind::new_axes) {
    const int n = pack->second + static_cast<int>(axes.size());
    for (int p = 0, next = 0; p < n; ++p)
      out.push_back(has(p) ? Element{true, {}} : Element{false, flat_name(ref.name, next++)});
    return out;
  }
  if (!ref.complement) {
    for (int p : axes) out.push_back({false, flat_name(ref.name, p)});
    return out;
  }
  bool keep = false;
  if (!ref.keep.empty()) {
    DLC_TRY(const int64_t k, constant_attribute(ref.keep, ref.pos));
    keep = k != 0;
  }
  for (int p = 0; p < pack->second; ++p) {
    if (!has(p)) {
      out.push_back({false, flat_name(ref.name, p)});
    } else if (keep) {
      out.push_back({true, {}});
    }
  }
  return out;
}

namespace {

void add_pack(const Symbols& s, const std::string& name, PackUse& use) {
  if (const auto it = s.packs.find(name); it != s.packs.end()) use.packs[name] = it->second;
}

void collect_name(const Symbols& s, const std::string& name, PackUse& use) {
  if (s.is_pack(name)) return add_pack(s, name, use);
  if (const auto it = s.operand_extents.find(name); it != s.operand_extents.end())
    use.variadic = static_cast<int>(it->second.size());
  if (const auto it = s.lets.find(name); it != s.lets.end() && it->second->pack)
    collect_packs(s, it->second->value, use);
  if (const auto it = s.attributes.find(name); it != s.attributes.end() && it->second.decl->list) {
    const Attribute& a = it->second;
    if (s.is_pack(a.decl->along)) {
      add_pack(s, a.decl->along, use);
    } else if (a.given) {
      use.packs[name] = static_cast<int>(a.values.size());
    }
  }
}

void collect_call(const Symbols& s, const Node& n, PackUse& use) {
  if (n.text == "len" || n.text == "total" || n.text == "flat") return;
  if (n.text == "before" && !n.args.empty()) return collect_name(s, n.args[0].text, use);
  if ((n.text == "pos" || n.text == "selected") && !n.args.empty()) return add_pack(s, n.args[0].text, use);
  if ((n.text == "rep" || n.text == "unflat") && n.args.size() == 2) {
    add_pack(s, n.args[1].text, use);
    return collect_packs(s, n.args[0], use);
  }
  for (const Node& a : n.args) collect_packs(s, a, use);
}

}  // namespace

void collect_packs(const Symbols& s, const Node& n, PackUse& use) {
  switch (n.kind) {
    case NodeKind::name:
      return collect_name(s, n.text, use);
    case NodeKind::size:
      if (!n.pack) collect_packs(s, n.args[0], use);
      return;
    case NodeKind::read: {
      if (s.is_pack(n.text)) {
        if (const auto e = s.elements(index_ref(n))) use.packs[print(n)] = static_cast<int>(e->size());
        return;
      }
      if (s.attributes.contains(n.text)) return;
      if (const auto it = s.variadic.find(n.text); it != s.variadic.end()) use.variadic = it->second;
      for (const Node& a : n.args) collect_packs(s, a, use);
      return;
    }
    case NodeKind::pack: {
      PackUse inner;  // its packs are expanded there; a variadic operand inside is not
      collect_packs(s, n.args[0], inner);
      if (inner.variadic >= 0) use.variadic = inner.variadic;
      return;
    }
    case NodeKind::fold:
      return;
    case NodeKind::call:
      return collect_call(s, n, use);
    case NodeKind::reduce: {
      PackUse inner;
      collect_packs(s, n.args[0], inner);
      for (const RangeVar& v : n.vars) inner.packs.erase(v.ref.name);
      use.packs.merge(inner.packs);
      if (inner.variadic >= 0) use.variadic = inner.variadic;
      return;
    }
    default:
      for (const Node& a : n.args) collect_packs(s, a, use);
  }
}

}  // namespace dlc::detail
