// Program text: the program itself, then each kernel's own text.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/graph/scanner.h"
#include "core/kernel/parse_at.h"
#include "dlc/program/program.h"

namespace dlc {

namespace {

using detail::Scanner;

constexpr std::string_view kKernelHeader = "\ndlc.kernel ";

class Parser {
 public:
  Parser(std::string_view text, std::string file, Program& p) : in_(text, std::move(file)), p_(p) {
    for (size_t i = 0; i < p.kernels.size(); ++i) kernels_.emplace(p.kernels[i].name, static_cast<int>(i));
  }

  Result<> parse() {
    const Loc where = in_.loc();
    DLC_CHECK(in_.expect("dlc.program"));
    DLC_TRY(const std::string version, in_.word("a version"));
    if (version != "1")
      return fail(where, fmt::format("program text of version {}, this build reads version 1", version));
    DLC_CHECK(in_.expect("program"));
    DLC_CHECK(in_.expect('@'));
    DLC_TRY(p_.name, in_.name("the program's name"));
    if (in_.accept('(')) {
      do DLC_CHECK(detail::parse_symbol(in_, p_.symbols));
      while (in_.accept(','));
      DLC_CHECK(in_.expect(')'));
    }
    DLC_CHECK(in_.expect('{'));
    while (!in_.accept('}')) DLC_CHECK(statement());
    if (!in_.at_end()) return in_.unexpected("a kernel's text or the end");
    return {};
  }

 private:
  Result<> statement() {
    if (in_.accept("input")) return buffer(BufferKind::input);
    if (in_.accept("output")) return buffer(BufferKind::output);
    if (in_.accept("const")) return buffer(BufferKind::constant);
    if (in_.accept("temp")) return buffer(BufferKind::temp);
    if (in_.accept("arena")) {
      DLC_TRY(p_.arena_bytes, expr());
      return {};
    }
    if (in_.accept("call")) return call();
    if (in_.accept("guard")) return guard();
    if (in_.accept("state")) return state();
    return in_.unexpected("input, output, const, temp, arena, call, guard, state or '}'");
  }

  // To the end of the line.
  Result<Expr> expr() {
    const Loc where = in_.loc();
    return parse_expr(in_.until("\n"), where);
  }

  Result<int> use() {
    const Loc where = in_.loc();
    DLC_TRY(const std::string name, in_.name("a buffer"));
    const auto it = buffers_.find(name);
    if (it == buffers_.end()) return fail(where, fmt::format("buffer {} is not declared", name));
    return it->second;
  }

  Result<> buffer(BufferKind kind) {
    const Loc where = in_.loc();
    ProgramBuffer b;
    b.kind = kind;
    DLC_TRY(b.name, in_.name("a buffer"));
    if (in_.peek() == '"') {
      DLC_TRY(b.external_name, in_.string());
    }
    DLC_CHECK(in_.expect(':'));
    DLC_TRY(b.type, in_.type());
    if (in_.accept("holds")) {
      DLC_TRY(b.holds, in_.shape());
    }
    if (in_.accept("in")) {
      BufferAlias alias;
      DLC_TRY(alias.base, use());
      DLC_CHECK(in_.expect("at"));
      DLC_TRY(alias.byte_offset, expr());
      b.alias = alias;
    } else if (const bool keeps = in_.accept("keeping"); keeps || in_.accept("over")) {
      DLC_TRY(const int base, use());
      b.alias = BufferAlias{base, Expr(0), true, keeps};
    } else if (kind == BufferKind::temp) {
      DLC_CHECK(in_.expect("at"));
      DLC_TRY(b.offset, expr());
    }
    if (!buffers_.emplace(b.name, static_cast<int>(p_.buffers.size())).second)
      return fail(where, fmt::format("buffer {} is declared twice", b.name));
    p_.buffers.push_back(std::move(b));
    return {};
  }

  Result<> call() {
    Call c;
    const Loc where = in_.loc();
    DLC_CHECK(in_.expect('@'));
    DLC_TRY(const std::string name, in_.name("a kernel"));
    const auto it = kernels_.find(name);
    if (it == kernels_.end()) return fail(where, fmt::format("kernel @{} has no text", name));
    c.kernel = it->second;
    DLC_CHECK(in_.expect('('));
    if (!in_.accept(')')) {
      do {
        DLC_TRY(const int b, use());
        c.buffers.push_back(b);
      } while (in_.accept(','));
      DLC_CHECK(in_.expect(')'));
    }
    DLC_TRY(c.locations, locations());
    p_.calls.push_back(std::move(c));
    return {};
  }

  Result<std::vector<std::string>> locations() {
    std::vector<std::string> all;
    if (!in_.accept("loc")) return all;
    do {
      DLC_TRY(std::string s, in_.string());
      all.push_back(std::move(s));
    } while (in_.accept(','));
    return all;
  }

  Result<> state() {
    StatePair s;
    DLC_TRY(const int input, use());
    DLC_CHECK(in_.expect('-'));
    DLC_CHECK(in_.expect('>'));
    DLC_TRY(const int output, use());
    p_.states.push_back({p_.buffers[static_cast<size_t>(input)].name, p_.buffers[static_cast<size_t>(output)].name});
    return {};
  }

  // EXPR == EXPR, EXPR >= EXPR, EXPR <= EXPR; then `, loc` and nodes
  Result<> guard() {
    Guard g;
    const Loc where = in_.loc();
    DLC_TRY(const Expr left, parse_expr(in_.until("=<>"), where));
    const char relation = in_.peek();
    if ((!in_.accept('=') && !in_.accept('<') && !in_.accept('>')) || !in_.accept('='))
      return fail(where, "a guard compares two expressions", "guard N == 4, guard N <= 8 or guard N >= 2");
    g.is_equality = relation == '=';
    const Loc behind = in_.loc();
    DLC_TRY(const Expr right, parse_expr(in_.until(","), behind));
    g.excess = relation == '<' ? right - left : left - right;
    if (in_.accept(',')) {
      DLC_TRY(g.locations, locations());
    }
    p_.guards.push_back(std::move(g));
    return {};
  }

  Scanner in_;
  Program& p_;
  std::map<std::string, int, std::less<>> buffers_, kernels_;
};

}  // namespace

Result<Program> parse_program(std::string_view text, const std::string& file) {
  Program p;
  const size_t end = std::min(text.find(kKernelHeader), text.size());
  const auto lines = [](std::string_view part) { return static_cast<int>(std::ranges::count(part, '\n')); };
  int line = 1 + lines(text.substr(0, end));
  for (size_t at = end; at < text.size();) {
    const size_t next = std::min(text.find(kKernelHeader, at + 1), text.size());
    const std::string_view kernel = text.substr(at, next - at);
    DLC_TRY(Kernel k, parse_kernel_at(kernel, file, line));
    p.kernels.push_back(std::move(k));
    line += lines(kernel);
    at = next;
  }
  DLC_CHECK(Parser(text.substr(0, end), file, p).parse());
  DLC_CHECK(verify(p));
  return p;
}

}  // namespace dlc
