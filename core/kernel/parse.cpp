// Kernel text: the header line, declarations, statements. Expressions are in parse_value.cpp.
#include <charconv>

#include "core/kernel/parse_at.h"
#include "default_operands.h"
#include "dlc/kernel/kernel.h"
#include "dlc/kernel/names.h"
#include "parse_value.h"

namespace dlc {

namespace {

constexpr int kMajor = 1;
constexpr int kMaxSeqDepth = 64;

class KernelParser {
 public:
  explicit KernelParser(TokenCursor tokens) : t_(std::move(tokens)), values_(t_, k_) {}

  Result<Kernel> run() {
    DLC_CHECK(header());
    DLC_CHECK(t_.expect("kernel", "the header line"));
    DLC_CHECK(t_.expect("@", "kernel"));
    const Token name = t_.next();
    if (name.kind != TokenKind::name && name.kind != TokenKind::string)
      return t_.error(name, "expected the kernel's name after '@'");
    k_.name = name.text;
    DLC_CHECK(t_.expect("{", "the kernel's name"));
    while (!t_.take("}")) DLC_CHECK(item());
    if (t_.peek().kind != TokenKind::end) return t_.error(t_.peek(), "text after the kernel's closing brace");
    if (!has_inputs_) k_.inputs = default_inputs(k_);
    if (!has_outputs_) k_.outputs = default_outputs(k_);
    return std::move(k_);
  }

 private:
  Result<> header() {
    const Token word = t_.next(), version = t_.next();
    if (word.text != "dlc.kernel" || version.kind != TokenKind::integer)
      return t_.error(word, "kernel text starts with the line 'dlc.kernel 1'");
    if (version.text != std::to_string(kMajor))
      return t_.error(
          version, "kernel text of version " + version.text + ", this build reads version " + std::to_string(kMajor));
    return {};
  }

  Result<> item() {
    for (int r = 0; r <= static_cast<int>(Role::state); ++r)
      if (t_.take(to_string(static_cast<Role>(r)))) return declaration(static_cast<Role>(r));
    if (t_.take("inputs")) {
      has_inputs_ = true;
      return operands(k_.inputs);
    }
    if (t_.take("outputs")) {
      has_outputs_ = true;
      return operands(k_.outputs);
    }
    if (t_.take("assume")) {
      DLC_TRY(const Expr e, values_.expr());
      k_.assumptions.push_back(e);
      DLC_CHECK(t_.expect(">=", "the assumed expression"));
      const Token zero = t_.next();
      if (zero.text != "0") return t_.error(zero, "an assumption has the form 'assume EXPR >= 0'");
      return {};
    }
    if (t_.take("loc")) return locations();
    return statement(k_.body, 0);
  }

  Result<> declaration(Role role) {
    const Token where = t_.peek();
    KernelTensor t;
    t.role = role;
    DLC_TRY(t.name, values_.new_name("a tensor"));
    if (k_.find(t.name) >= 0) return t_.error(where, "tensor " + t.name + " is declared twice");
    DLC_CHECK(t_.expect(":", "the tensor's name"));
    const Token type = t_.next();
    const auto dtype = type.kind == TokenKind::name ? parse_dtype(type.text) : std::nullopt;
    if (!dtype) return t_.error(type, "expected an element type, found '" + type.text + "'", "f32, s8, u8, bool, ...");
    t.dtype = *dtype;
    DLC_CHECK(t_.expect("[", "the element type"));
    DLC_TRY(t.shape, exprs());
    if (t_.take("view")) {
      DLC_TRY(t.view, view());
      if (t.view->byte_strides.size() != t.shape.size())
        return t_.error(where, "view " + t.name + " has " + std::to_string(t.shape.size()) + " dims and " +
                                   std::to_string(t.view->byte_strides.size()) + " strides");
    }
    k_.tensors.push_back(std::move(t));
    return {};
  }

  Result<View> view() {
    View v;
    DLC_TRY(v.base, values_.tensor(t_.next()));
    DLC_CHECK(t_.expect("at", "the viewed tensor"));
    DLC_TRY(v.byte_offset, values_.expr());
    DLC_CHECK(t_.expect("strides", "the byte offset"));
    DLC_CHECK(t_.expect("[", "strides"));
    DLC_TRY(v.byte_strides, exprs());
    return v;
  }

  Result<std::vector<Expr>> exprs() {
    std::vector<Expr> r;
    if (t_.take("]")) return r;
    do {
      DLC_TRY(const Expr e, values_.expr());
      r.push_back(e);
    } while (t_.take(","));
    DLC_CHECK(t_.expect("]", "the last of the list"));
    return r;
  }

  // inputs [X, -, W]: operand order, `-` for an absent one
  Result<> operands(std::vector<int>& list) {
    DLC_CHECK(t_.expect("[", "the word"));
    if (t_.take("]")) return {};
    do {
      if (t_.take("-")) {
        list.push_back(-1);
        continue;
      }
      DLC_TRY(const int i, values_.tensor(t_.next()));
      list.push_back(i);
    } while (t_.take(","));
    return t_.expect("]", "the last tensor");
  }

  Result<> locations() {
    do {
      const Token t = t_.next();
      if (t.kind != TokenKind::string) return t_.error(t, "loc takes quoted names");
      k_.locations.push_back(t.text);
    } while (t_.take(","));
    return {};
  }

  Result<> statement(std::vector<Stmt>& body, int depth) {
    Stmt s;
    if (t_.take("seq")) return seq(body, depth);
    if (t_.take("for")) {
      DLC_TRY(s.loops, values_.loops());
      DLC_CHECK(t_.expect(":", "the loops"));
    }
    const Token name = t_.next();
    if (name.kind != TokenKind::name && name.kind != TokenKind::string)
      return t_.error(name, "expected a statement, found '" + name.text + "'");
    DLC_TRY(s.tensor, values_.tensor(name));
    const KernelTensor& t = k_.tensors[static_cast<size_t>(s.tensor)];
    DLC_CHECK(t_.expect("[", "the assigned tensor"));
    DLC_TRY(s.indices, values_.values_until("]"));
    if (s.indices.size() != t.shape.size())
      return t_.error(name, t.name + " has " + std::to_string(t.shape.size()) + " dims, written with " +
                                std::to_string(s.indices.size()) + (s.indices.size() == 1 ? " index" : " indices"));
    for (Val& i : s.indices) {
      if (i->type.is_float()) return t_.error(name, "index of type " + to_string(i->type) + ", must be s64");
      i = val::convert(kS64, i);
    }
    DLC_CHECK(t_.expect("=", "the assigned element"));
    DLC_TRY(s.value, values_.value());
    if (s.value->type.is_float() && !t.dtype.is_float())
      return t_.error(name, "a float value is stored to " + t.name + " of type " + to_string(t.dtype),
                      "say how it is rounded: sat(round(...), " + to_string(t.dtype) + ")");
    s.value = val::convert(t.dtype, s.value);
    body.push_back(std::move(s));
    return {};
  }

  // seq t < n by 1 { ... }
  Result<> seq(std::vector<Stmt>& body, int depth) {
    const Token where = t_.peek();
    if (depth >= kMaxSeqDepth)
      return t_.error(where, "seq is nested more than " + std::to_string(kMaxSeqDepth) + " deep");
    Stmt s;
    s.kind = Stmt::Kind::seq;
    DLC_TRY(s.loops, values_.loops());
    if (t_.take("by")) {
      const bool backwards = t_.take("-");
      const Token step = t_.next();
      if (step.text != "1") return t_.error(step, "a seq steps by 1 or -1");
      s.step = backwards ? -1 : 1;
    }
    DLC_CHECK(t_.expect("{", "the seq's loops"));
    while (!t_.take("}")) DLC_CHECK(statement(s.body, depth + 1));
    body.push_back(std::move(s));
    return {};
  }

  TokenCursor t_;
  Kernel k_;
  ValueParser values_;
  bool has_inputs_ = false;
  bool has_outputs_ = false;
};

}  // namespace

Result<Kernel> parse_kernel_at(std::string_view text, const std::string& file, int line) {
  DLC_TRY(auto tokens, lex(text, file, line));
  return KernelParser(TokenCursor(std::move(tokens), file)).run();
}

Result<Kernel> parse_kernel(std::string_view text, const std::string& file) { return parse_kernel_at(text, file, 1); }

}  // namespace dlc
