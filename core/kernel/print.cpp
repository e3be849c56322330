// Kernel text. What is printed parses to the same kernel: the parser builds values with the same constructors, so the
// printer shows a node's type only where the constructors would not find it again.
#include <fmt/format.h>

#include <cmath>

#include "default_operands.h"
#include "dlc/kernel/kernel.h"
#include "dlc/kernel/names.h"

namespace dlc {

namespace {

constexpr int kLoosest = 0;  // `if`, `?:`
constexpr int kPrimary = kUnaryPrecedence + 1;

std::string quoted(std::string_view s) {
  std::string r = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\')
      r += std::string("\\") + c;
    else if (c == '\n')
      r += "\\n";
    else
      r += c;
  }
  return r + "\"";
}

std::string name_text(std::string_view name) {
  return is_identifier(name) && !is_reserved_word(name) ? std::string(name) : quoted(name);
}

// Also for kernels that are not valid: a dump shows them as they are.
std::string tensor_text(const Kernel& k, int i) {
  if (i < 0 || static_cast<size_t>(i) >= k.tensors.size()) return fmt::format("\"?{}\"", i);
  return name_text(k.tensors[static_cast<size_t>(i)].name);
}

std::string list(const std::vector<Expr>& v) {
  std::string s = "[";
  for (size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + to_string(v[i]);
  return s + "]";
}

std::string loops_text(const std::vector<Loop>& loops) {
  std::string s;
  for (const Loop& l : loops) s += (s.empty() ? "" : ", ") + l.var + " < " + to_string(l.extent);
  return s;
}

class ValPrinter {
 public:
  explicit ValPrinter(const Kernel& k) : kernel_(k) {}

  // v as an operand of something that binds as tightly as `context`.
  std::string text(const Val& v, int context = kLoosest) const {
    const auto [s, binds] = show(*v);
    return binds < context ? "(" + s + ")" : s;
  }

  std::string list(const std::vector<Val>& args) const {
    std::string s;
    for (const Val& a : args) s += (s.empty() ? "" : ", ") + text(a);
    return s;
  }

 private:
  struct Shown {
    std::string text;
    int binds;
  };

  static Shown literal(std::string s, std::string_view type) {
    const bool negative = s[0] == '-';
    if (!type.empty()) s += fmt::format(":{}", type);
    return {s, negative ? kUnaryPrecedence : kPrimary};
  }

  static Shown real(const ValNode& v) {
    std::string s = std::isnan(v.real)   ? "nan"
                    : std::isinf(v.real) ? (v.real < 0 ? "-inf" : "inf")
                                         : fmt::format("{}", v.real);
    if (std::isfinite(v.real) && s.find_first_of(".e") == std::string::npos) s += ".0";
    return literal(s, v.type == kF64 ? "f64" : "");
  }

  static Shown integer(const ValNode& v) {
    if (v.type.is_bool()) return {v.integer ? "true" : "false", kPrimary};
    if (v.type == kU64) return literal(fmt::format("{}", static_cast<uint64_t>(v.integer)), "u64");
    return literal(fmt::format("{}", v.integer), "");
  }

  static Shown index(const Expr& e) {
    const auto terms = e.terms();
    const bool one_atom = terms.size() == 1 && terms[0].coefficient == 1 && terms[0].factors.size() == 1;
    const AtomKind kind = one_atom ? terms[0].factors[0].kind() : AtomKind::floor_div;
    const bool primary = kind != AtomKind::floor_div && kind != AtomKind::mod;  // a name or a call
    return {to_string(e), primary ? kPrimary : kAddPrecedence};
  }

  Shown binary(const ValNode& v) const {
    const int p = precedence(v.binary_op());
    const int left = p == kComparisonPrecedence ? p + 1 : p;
    return {fmt::format("{} {} {}", text(v.args[0], left), to_string(v.binary_op()), text(v.args[1], p + 1)), p};
  }

  Shown unary(const ValNode& v) const {
    const std::string operand = text(v.args[0], kUnaryPrecedence);
    const std::string_view op = to_string(v.unary_op());
    // -(5) would parse as the literal -5, which is the same value; a space keeps `- -x` two operators.
    const bool spaced = v.unary_op() == UnaryOp::logical_not || operand[0] == '-';
    return {fmt::format("{}{}{}", op, spaced ? " " : "", operand), kUnaryPrecedence};
  }

  Shown reduce(const ValNode& v) const {
    const ReduceOp op = v.reduce_op();
    const bool shows_type = op <= ReduceOp::min && v.to != v.args[0]->type;
    return {fmt::format("{}{}[{}] {}", to_string(op), shows_type ? ":" + to_string(v.to) : "", loops_text(v.loops),
                        text(v.args[0], kMulPrecedence)),
            kLoosest};
  }

  Shown show(const ValNode& v) const {
    switch (v.kind) {
      case ValKind::integer:
        return integer(v);
      case ValKind::real:
        return real(v);
      case ValKind::index:
        return index(v.index);
      case ValKind::read:
        return {fmt::format("{}[{}]", tensor_text(kernel_, v.tensor), list(v.args)), kPrimary};
      case ValKind::unary:
        return unary(v);
      case ValKind::binary:
        return binary(v);
      case ValKind::select:
        return {fmt::format("if {} then {} else {}", text(v.args[0]), text(v.args[1]), text(v.args[2])), kLoosest};
      case ValKind::orelse:
        return {fmt::format("{} ?: {}", text(v.args[0], 1), text(v.args[1])), kLoosest};
      case ValKind::call:
        return {fmt::format("{}({})", to_string(v.fn()), list(v.args)), kPrimary};
      case ValKind::cast:
        return {fmt::format("{}({}, {})", v.saturate ? "sat" : "cast", text(v.args[0]), to_string(v.to)), kPrimary};
      case ValKind::reduce:
        return reduce(v);
      case ValKind::undef:
        return {"undef:" + to_string(v.type), kPrimary};
    }
    return {};
  }

  const Kernel& kernel_;
};

std::string declaration(const KernelTensor& t, const Kernel& k) {
  std::string s = fmt::format("  {:<5} {}: {}[", to_string(t.role), name_text(t.name), to_string(t.dtype));
  for (size_t i = 0; i < t.shape.size(); ++i) s += (i ? "," : "") + to_string(t.shape[i]);
  s += "]";
  if (t.view)
    s += fmt::format(" view {} at {} strides {}", tensor_text(k, t.view->base), to_string(t.view->byte_offset),
                     list(t.view->byte_strides));
  return s + "\n";
}

std::string operand_line(std::string_view keyword, const std::vector<int>& tensors, const Kernel& k) {
  std::string s = fmt::format("  {} [", keyword);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int t = tensors[i];
    s += (i ? ", " : "") + (t < 0 ? std::string("-") : tensor_text(k, t));
  }
  return s + "]\n";
}

void print_body(const std::vector<Stmt>& body, const Kernel& k, int indent, std::string& out) {
  const ValPrinter values(k);
  for (const Stmt& s : body) {
    std::string pad(static_cast<size_t>(indent), ' ');
    if (s.kind == Stmt::Kind::seq) {
      out += fmt::format("{}seq {} by {} {{\n", pad, loops_text(s.loops), s.step);
      print_body(s.body, k, indent + 2, out);
      out += pad + "}\n";
      continue;
    }
    if (!s.loops.empty()) {
      out += fmt::format("{}for {}:\n", pad, loops_text(s.loops));
      pad += "  ";
    }
    out += fmt::format("{}{}[{}] = {}\n", pad, tensor_text(k, s.tensor), values.list(s.indices),
                       s.value ? values.text(s.value) : "nothing");
  }
}

}  // namespace

std::string print(const Val& v, const Kernel& k) { return ValPrinter(k).text(v); }

std::string print(const Kernel& k) {
  std::string s = "dlc.kernel 1\nkernel @" + name_text(k.name) + " {\n";
  for (const KernelTensor& t : k.tensors) s += declaration(t, k);
  if (k.inputs != default_inputs(k)) s += operand_line("inputs", k.inputs, k);
  if (k.outputs != default_outputs(k)) s += operand_line("outputs", k.outputs, k);
  for (const Expr& a : k.assumptions) s += fmt::format("  assume {} >= 0\n", to_string(a));
  print_body(k.body, k, 2, s);
  for (size_t i = 0; i < k.locations.size(); ++i) s += (i ? ", " : "  loc ") + quoted(k.locations[i]);
  if (!k.locations.empty()) s += "\n";
  return s + "}\n";
}

}  // namespace dlc
