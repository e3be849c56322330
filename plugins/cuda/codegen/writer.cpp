// Values, reads and the store.
#include "plugins/cuda/codegen/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace dlc::cuda {

namespace {

constexpr size_t kLong = 60;       // characters of an expression that becomes a variable
constexpr size_t kLongCheck = 24;  // of one that is used twice

std::string stored_zero(DType t) {
  return t.is_narrow_float() ? storage_name(t) + "{}" : fmt::format("({})0", storage_name(t));
}

}  // namespace

// ---- text

void Writer::line(const std::string& s) {
  text_.append(static_cast<size_t>(2 * indent_), ' ');
  text_ += s;
  text_ += '\n';
}
void Writer::open(const std::string& head) {
  line(head + " {");
  ++indent_;
}
void Writer::close() {
  --indent_;
  line("}");
}
void Writer::fail_with(std::string message) {
  if (error_.empty()) error_ = std::move(message);
}

std::string Writer::declare(std::string_view type, const std::string& value, std::string_view wanted) {
  const std::string key = fmt::format("const {} = {}", type, value);
  for (const Scope& scope : scopes_)
    if (const auto it = scope.declared.find(key); it != scope.declared.end()) return it->second;
  const std::string name = names_.fresh(wanted);
  line(fmt::format("const {} {} = {};", type, name, value));
  return scopes_.back().declared[key] = name;
}

Writer::Cell Writer::named(Cell c, std::string_view wanted) {
  return {{declare(name_of(c.type), c.v.s, wanted), true}, c.type, c.ok};
}

std::string Writer::all(std::string_view a, std::string_view b) const {
  if (a.empty() || a == b) return std::string(b);
  if (b.empty()) return std::string(a);
  return fmt::format("({} && {})", a, b);
}

std::string Writer::as(const Cell& c, Type t) {
  if (c.type == t) return c.v.operand();
  return fmt::format("({}){}", name_of(t), c.v.operand());
}

std::string Writer::argument(const Cell& c, Type t) { return c.type == t ? c.v.s : as(c, t); }

// ---- values

void Writer::count_uses(const Val& v) {
  if (++uses_[v.get()] > 1) return;
  for (const Val& a : v->args) count_uses(a);
}

lower::VarSet Writer::bound() const {
  lower::VarSet r = 0;
  for (const Scope& s : scopes_) r |= s.vars;
  return r;
}

// Computes now what needs only the loops that are open.
void Writer::hoist(const Val& v) {
  if (!l_.computes(v.get())) return;
  if ((l_.vars(v.get()) & ~bound()) == 0) {
    eval(v);
    return;
  }
  for (const Val& a : v->args) hoist(a);
}

const Writer::Cell& Writer::eval(const Val& v, bool raw) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const auto& known = raw ? scopes_[i].raw : scopes_[i].cells;
    if (const auto it = known.find(v.get()); it != known.end()) return it->second;
  }
  Cell c = compute(v, raw);
  if (!raw && !c.v.is_primary && (uses_[v.get()] > 1 || c.v.s.size() > kLong || !c.ok.empty()))
    c = named(std::move(c), "t");
  if (c.ok.size() > kLong) {
    c.ok = declare("bool", c.ok, "defined");
  }
  auto& known = raw ? scopes_.back().raw : scopes_.back().cells;
  return known[v.get()] = std::move(c);
}

Writer::Cell Writer::compute(const Val& v, bool raw) {
  const Type type = type_of_node(*v);
  const auto arg = [&](size_t i) { return eval(v->args[i], raw && !(v->kind == ValKind::select && i == 0)); };
  const auto choice = [&](const std::string& condition, const Cell& a, const Cell& b) -> Text {
    if (raw) return {fmt::format("{} ? {} : {}", condition, a.v.operand(), b.v.operand()), false};
    return {fmt::format("{} ? {} : {}", condition, as(a, type), as(b, type)), false};
  };
  switch (v->kind) {
    case ValKind::integer:
      return {{literal(v->integer, raw && l_.store_type().is_bool() ? Type::s32 : type), true}, type, {}};
    case ValKind::real:
      return {{literal(v->real, type), true}, type, {}};
    case ValKind::undef:
      return {{raw ? stored_zero(l_.store_type()) : literal(int64_t{0}, Type::s32), true}, type, "false"};
    case ValKind::index: {
      const ExprText::Result r = e_(v->index);
      return {r.text, r.is_long ? Type::s64 : Type::s32, {}};
    }
    case ValKind::read:
      return read(*v, raw, nullptr);
    case ValKind::reduce:
      return reduce(v);
    case ValKind::unary:
      return unary(*v, arg(0));
    case ValKind::binary: {
      const Cell a = arg(0);
      return binary(*v, a, arg(1));
    }
    case ValKind::select: {
      const Cell c = arg(0), a = arg(1), b = arg(2);
      std::string ok = c.ok;
      if (!a.ok.empty() || !b.ok.empty())
        ok = all(ok, fmt::format("({} ? {} : {})", c.v.operand(), a.ok.empty() ? "true" : a.ok,
                                 b.ok.empty() ? "true" : b.ok));
      return {choice(c.v.operand(), a, b), type, ok};
    }
    case ValKind::orelse: {
      const Val &x = v->args[0], &y = v->args[1];
      const bool is_literal = y->kind == ValKind::real || y->kind == ValKind::integer;
      if (x->kind == ValKind::read && is_literal) return read(*x, raw, y);
      const Cell a = arg(0);
      if (a.ok.empty()) return a;
      const Cell b = arg(1);
      return {choice(a.ok, a, b), type, b.ok.empty() ? std::string() : fmt::format("({} || {})", a.ok, b.ok)};
    }
    case ValKind::call: {
      std::vector<Cell> args;
      for (size_t i = 0; i < v->args.size(); ++i) args.push_back(arg(i));
      return call(*v, args);
    }
    case ValKind::cast:
      return cast(*v, arg(0));
  }
  fail_with("a value of unknown kind");
  return {};
}

// ---- reads and the store

// Whether the access lies inside its tensor: "(y + 1 < 56)"; empty: always.
std::string Writer::check(const lower::Access& a, const std::vector<Val>& indices) {
  std::string ok;
  for (const lower::Check& c : a.checks) {
    const std::string extent = e_(c.extent).text.s;
    if (c.dynamic) {
      const Cell& index = eval(indices[static_cast<size_t>(c.dim)]);
      ok = all(all(ok, index.ok), fmt::format("dlc::inside({}, {})", index.v.s, extent));
      continue;
    }
    ok = all(ok, fmt::format("dlc::inside({}, {})", e_(c.index).text.s, extent));
  }
  for (const int d : a.dynamic) ok = all(ok, eval(indices[static_cast<size_t>(d)]).ok);
  return ok;
}

namespace {

// e / n, when that is exact for every term.
std::optional<Expr> divided(const Expr& e, int64_t n) {
  for (const Term& t : e.terms())
    if (t.coefficient % n != 0) return std::nullopt;
  return floor_div(e, Expr(n));
}

}  // namespace

std::string Writer::element(int tensor, const lower::Access& a, const std::vector<Val>& indices) {
  const KernelTensor &t = l_.kernel().tensors[static_cast<size_t>(tensor)],
                     &root = l_.kernel().tensors[static_cast<size_t>(a.root)];
  const std::string& pointer = tensors_[static_cast<size_t>(a.root)];
  std::optional<Expr> index = root.dtype == t.dtype ? divided(a.offset, t.dtype.bytes()) : std::nullopt;
  std::vector<Expr> strides;
  for (const Expr& s : a.dynamic_strides) {
    const auto whole = index ? divided(s, t.dtype.bytes()) : std::nullopt;
    if (!whole) index.reset();
    strides.push_back(whole.value_or(s));
  }
  if (!index) strides = a.dynamic_strides;
  std::string place = index ? e_(*index).text.s : e_(a.offset).text.s;
  for (size_t i = 0; i < a.dynamic.size(); ++i) {
    const Cell& c = eval(indices[static_cast<size_t>(a.dynamic[i])]);
    if (place == "0") place.clear();
    if (!place.empty()) place += " + ";
    place += as(c, Type::s64);
    if (!strides[i].is(1)) place += " * " + e_(strides[i]).text.operand();
  }
  if (index) return fmt::format("{}[{}]", pointer, place);
  return fmt::format("dlc::at<{}>({}, {})", storage_name(t.dtype), pointer, place);
}

// `otherwise`: what stands in for it where it is out of bounds; null: it is undefined there.
Writer::Cell Writer::read(const ValNode& n, bool raw, const Val& otherwise) {
  const KernelTensor& t = l_.kernel().tensors[static_cast<size_t>(n.tensor)];
  const lower::Access& a = l_.access(&n);
  std::string ok = check(a, n.args);
  if (ok.size() > kLongCheck) ok = declare("bool", ok, "inside");
  const std::string stored = element(n.tensor, a, n.args);
  std::string wanted = t.name;
  std::ranges::transform(wanted, wanted.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (wanted == t.name) wanted += "_value";
  if (raw) {
    const std::string type = storage_name(t.dtype);
    std::string fallback = stored_zero(t.dtype);
    if (otherwise) fallback = fmt::format("({}){}", type, compute(otherwise, true).v.operand());
    const std::string name =
        declare(type, ok.empty() ? stored : fmt::format("{} ? {} : {}", ok, stored, fallback), wanted);
    return {{name, true}, type_of_node(n), otherwise ? std::string() : ok};
  }
  const Type type = type_of_node(n);
  Cell c = decoded(t.dtype, stored, type);
  if (!ok.empty()) {
    // The other value may need a wider type than what is stored.
    const bool is_float = type == Type::f32 || type == Type::f64;
    const Text zero{is_float ? literal(0.0, type) : literal(int64_t{0}, type), true};
    const Cell other = otherwise ? eval(otherwise) : Cell{zero, type, {}};
    const bool widens = otherwise && type == Type::s32 && other.type == Type::s64;
    const Type both = widens ? Type::s64 : type;
    c.v = {fmt::format("{} ? {} : {}", ok, as(c, both), as(other, both)), false};
    c.type = both;
  }
  return {{declare(name_of(c.type), c.v.s, wanted), true}, c.type, otherwise ? std::string() : ok};
}

void Writer::store(int number, const std::string& only) {
  const bool raw = l_.is_copy();
  const lower::Access& a = l_.store();
  count_uses(l_.value());
  for (const Val& i : l_.store_indices()) count_uses(i);
  const Cell v = eval(l_.value(), raw);
  std::string ok = all(v.ok, check(a, l_.store_indices()));
  const std::string value = raw ? v.v.s : encoded(l_.store_type(), v);
  const std::string place = element(target_, a, l_.store_indices());
  if (ok.empty()) {
    line(fmt::format("{}{} = {};", only.empty() ? "" : "if (" + only + ") ", place, value));
    return;
  }
  reports_ = true;
  if (!only.empty()) open("if (" + only + ")");
  open("if (" + (ok[0] == '(' || ok.find(' ') == std::string::npos ? ok : "(" + ok + ")") + ")");
  line(fmt::format("{} = {};", place, value));
  --indent_;
  line("} else {");
  ++indent_;
  line(fmt::format("dlc::report(status, {}u);", number));
  close();
  if (!only.empty()) close();
}

}  // namespace dlc::cuda
