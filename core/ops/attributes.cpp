#include "dlc/ops/attributes.h"

#include <algorithm>

#include "core/ops/ast.h"

namespace dlc {

namespace {

std::optional<AttrValue> literal(const detail::AttrDecl& decl, const detail::Node& n) {
  using detail::NodeKind;
  const bool real = decl.kind == detail::AttrDecl::Kind::real;
  switch (n.kind) {
    case NodeKind::integer:
      return real ? AttrValue(static_cast<double>(n.integer)) : AttrValue(Expr(n.integer));
    case NodeKind::real:
      return n.real;
    case NodeKind::string:
      return n.text;
    case NodeKind::neg: {
      const auto a = literal(decl, n.args[0]);
      if (!a) return std::nullopt;
      if (const auto* d = std::get_if<double>(&*a)) return -*d;
      if (const auto* e = std::get_if<Expr>(&*a)) return -*e;
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<AttrValue> Attributes::find(std::string_view name) const {
  if (const auto it = given_.find(name); it != given_.end()) return it->second;
  const auto& all = record_.ast().attributes;
  const auto decl = std::ranges::find(all, name, &detail::AttrDecl::name);
  return decl == all.end() || decl->initial.empty() ? std::nullopt : literal(*decl, decl->initial[0]);
}

std::optional<int64_t> Attributes::integer(std::string_view name) const {
  const auto a = find(name);
  const auto* e = a ? std::get_if<Expr>(&*a) : nullptr;
  return e ? e->constant() : std::nullopt;
}

std::optional<double> Attributes::real(std::string_view name) const {
  const auto a = find(name);
  if (const auto* d = a ? std::get_if<double>(&*a) : nullptr) return *d;
  const auto i = integer(name);  // 2 may stand for 2.0
  return i ? std::optional(static_cast<double>(*i)) : std::nullopt;
}

std::optional<std::string> Attributes::text(std::string_view name) const {
  const auto a = find(name);
  const auto* s = a ? std::get_if<std::string>(&*a) : nullptr;
  return s ? std::optional(*s) : std::nullopt;
}

std::optional<std::vector<Expr>> Attributes::list(std::string_view name, size_t size) const {
  const auto a = find(name);
  if (!a) return std::nullopt;
  if (const auto* e = std::get_if<Expr>(&*a)) return std::vector<Expr>(size, *e);
  const auto* l = std::get_if<std::vector<Expr>>(&*a);
  return l && l->size() == size ? std::optional(*l) : std::nullopt;
}

}  // namespace dlc
