#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/graph/text.h"
#include "dlc/graph/control.h"
#include "dlc/graph/read.h"

namespace dlc {

namespace detail {

bool is_bare_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '$' || c == '-';
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string name_text(std::string_view name) {
  for (char c : name)
    if (!is_bare_name_char(c)) return quoted(name);
  return name.empty() ? quoted(name) : std::string(name);
}

std::string double_text(double v) {
  std::string s = fmt::format("{}", v);
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

namespace {

std::string element_text(const Tensor& t, int64_t i) {
  const DType type = t.dtype();
  if (type == kU64) return fmt::format("{}", static_cast<uint64_t>(t.get_int(i)));
  if (!type.is_float()) return fmt::format("{}", t.get_int(i));
  if (type == kF64) return fmt::format("{}", t.get_double(i));
  return fmt::format("{}", static_cast<float>(t.get_double(i)));
}

bool all_same(const Tensor& t) {
  const auto size = static_cast<size_t>(t.dtype().bytes());
  for (int64_t i = 1; i < t.elements(); ++i)
    if (std::memcmp(t.bytes(), t.bytes() + static_cast<size_t>(i) * size, size) != 0) return false;
  return t.elements() > 0;
}

}  // namespace

std::string elements_text(const Tensor& t) {
  if (t.elements() > 0 && all_same(t)) return element_text(t, 0);
  std::string s = "[";
  for (int64_t i = 0; i < t.elements(); ++i) s += (i ? ", " : "") + element_text(t, i);
  return s + "]";
}

std::string type_text(const Tensor& t) { return to_string(type_of(t)); }

namespace {

struct AttrPrinter {
  std::string& out;

  template <class T, class F>
  void list(const std::vector<T>& items, std::string_view empty_kind, F text) {
    out += " = [";
    for (size_t i = 0; i < items.size(); ++i) out += (i ? ", " : "") + text(items[i]);
    out += "]";
    if (items.empty()) out += empty_kind;
  }
  void operator()(const Expr& e) { out += " = " + to_string(e); }
  void operator()(double d) { out += " = " + double_text(d); }
  void operator()(const std::string& s) { out += " = " + quoted(s); }
  void operator()(const std::vector<Expr>& v) {
    list(v, "", [](const Expr& e) { return to_string(e); });
  }
  void operator()(const std::vector<double>& v) { list(v, " of real", double_text); }
  void operator()(const std::vector<std::string>& v) { list(v, " of string", quoted); }
  void operator()(DType t) { out += ": " + to_string(t); }
  void operator()(const Tensor& t) { out += ": " + type_text(t) + " = " + elements_text(t); }
};

}  // namespace

std::string attribute_text(const Attrs::value_type& attr) {
  std::string out = attr.first;
  std::visit(AttrPrinter{out}, attr.second);
  return out;
}

std::string symbol_text(const Ranges::value_type& symbol) {
  const auto& [name, range] = symbol;
  std::string lo = range.bounds.lo == Interval::kNegInf ? "" : std::to_string(range.bounds.lo);
  std::string hi = range.bounds.hi != Interval::kPosInf ? std::to_string(range.bounds.hi)
                   : range.upper                        ? to_string(Expr(range.upper))
                                                        : "";
  std::string s = name;
  if (lo != "1" || !hi.empty() || range.divisible_by != 1) s += " in " + lo + ".." + hi;
  if (range.divisible_by != 1) s += " by " + std::to_string(range.divisible_by);
  return s;
}

namespace {

std::string use_text(const Graph& g, ValueId v) {
  if (v == kNoValue) return "_";
  return (g.value(v).constant ? "@" : "%") + name_text(g.value(v).name);
}

std::string braces_text(const Graph& g, const std::string& indent);

std::string node_text(const Graph& g, const Node& n, const std::string& indent) {
  std::string s;
  for (ValueId v : n.outputs)
    s += (s.empty() ? "" : ", ") + ("%" + name_text(g.value(v).name)) + ": " + to_string(g.value(v).type);
  s += " = " + n.op + "(";
  for (size_t i = 0; i < n.inputs.size(); ++i) s += (i ? ", " : "") + use_text(g, n.inputs[i]);
  s += ")";
  const char* separator = " {";
  for (const auto& attr : n.attrs) {
    s += separator + attribute_text(attr);
    separator = ", ";
  }
  if (!n.attrs.empty()) s += "}";
  separator = " loc ";
  for (const auto& l : n.locations) {
    s += separator + quoted(l);
    separator = ", ";
  }
  for (size_t b = 0; b < n.bodies.size(); ++b) {
    s += " ";
    s += body_names(n.op)[b];
    s += braces_text(*n.bodies[b], indent);
  }
  return s;
}

// " (N in 1..64) {", the statements, "}".
std::string braces_text(const Graph& g, const std::string& indent) {
  std::string s;
  const char* separator = " (";
  for (const auto& symbol : g.symbols) {
    s += separator + symbol_text(symbol);
    separator = ", ";
  }
  s += g.symbols.empty() ? " {\n" : ") {\n";
  const std::string inside = indent + "  ";
  for (ValueId v : g.inputs)
    s += inside + "in    %" + name_text(g.value(v).name) + ": " + to_string(g.value(v).type) + "\n";

  const auto order = g.order();
  std::vector<bool> used(g.value_count(), false);
  const auto use = [&](ValueId v) {
    if (v != kNoValue) used[static_cast<size_t>(v)] = true;
  };
  for (NodeId n : order) std::ranges::for_each(g.node(n).inputs, use);
  std::ranges::for_each(g.outputs, use);
  for (size_t i = 0; i < g.value_count(); ++i) {
    const Value& v = g.value(static_cast<ValueId>(i));
    if (!used[i] || !v.constant) continue;
    s += inside + "const @" + name_text(v.name) + ": " + to_string(v.type);
    if (is_inline_constant(*v.constant)) s += " = " + elements_text(*v.constant);
    s += "\n";
  }
  for (NodeId n : order) s += inside + node_text(g, g.node(n), inside) + "\n";
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    s += inside + "out   " + use_text(g, g.outputs[i]);
    if (i < g.output_names.size()) s += " " + quoted(g.output_names[i]);
    s += "\n";
  }
  for (const StatePair& state : g.states)
    s += inside + "state %" + name_text(state.input) + " -> " + quoted(state.output) + "\n";
  return s + indent + "}";
}

void add_table_constants(const Graph& g, const std::string& prefix, std::vector<std::pair<std::string, Tensor>>& all) {
  for (size_t i = 0; i < g.value_count(); ++i) {
    const auto v = static_cast<ValueId>(i);
    const auto& constant = g.value(v).constant;
    if (constant && g.find(g.value(v).name) == v && !is_inline_constant(*constant))
      all.emplace_back(prefix + g.value(v).name, *constant);
  }
  for (const NodeId n : g.order())
    for (size_t b = 0; b < g.node(n).bodies.size(); ++b)
      add_table_constants(*g.node(n).bodies[b],
                          body_prefix(prefix, g.value(g.node(n).outputs[0]).name, g.node(n).op, b), all);
}

}  // namespace

std::string body_prefix(const std::string& around, const std::string& result, std::string_view op, size_t body) {
  return fmt::format("{}{}:{}:", around, result, body_names(op)[body]);
}

}  // namespace detail

std::vector<std::pair<std::string, Tensor>> table_constants(const Graph& g) {
  std::vector<std::pair<std::string, Tensor>> all;
  detail::add_table_constants(g, "", all);
  return all;
}

bool is_inline_constant(const Tensor& t) {
  return t.elements() <= detail::kInlineElements || (t.elements() <= detail::kSplatElements && detail::all_same(t));
}

std::string print(const Graph& g) {
  return std::string(detail::kGraphHeader) + "\ngraph @" + detail::name_text(g.name) + detail::braces_text(g, "") +
         "\n";
}

}  // namespace dlc
