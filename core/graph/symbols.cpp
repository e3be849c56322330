// Symbols and their ranges in the header of graph and program text.
#include <charconv>

#include "core/graph/scanner.h"

namespace dlc::detail {

Result<int64_t> parse_integer(std::string_view text, const Loc& where) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(where, "'" + std::string(text) + "' is not an integer");
  return v;
}

// N | N in 1..64 | N in ..M - 1 by 8
Result<> parse_symbol(Scanner& in, Ranges& symbols) {
  const Loc where = in.loc();
  DLC_TRY(auto name, in.word("a symbol"));
  Range range(1, Interval::kPosInf);
  if (in.accept("in")) {
    const Loc at = in.loc();
    const std::string text(in.until(",)"));
    const size_t dots = text.find("..");
    if (dots == std::string::npos) return fail(at, "expected a range such as 1..64, found '" + text + "'");
    const std::string lo = text.substr(0, dots);
    std::string hi = text.substr(dots + 2);
    if (const size_t by = hi.find(" by "); by != std::string::npos) {
      DLC_TRY(range.divisible_by, parse_integer(hi.substr(by + 4), at));
      if (range.divisible_by < 1) return fail(at, "a symbol is divisible by at least 1");
      hi.resize(by);
    } else if (hi.starts_with("by ")) {
      DLC_TRY(range.divisible_by, parse_integer(hi.substr(3), at));
      hi.clear();
    }
    range.bounds = {};
    if (!lo.empty()) {
      DLC_TRY(range.bounds.lo, parse_integer(lo, at));
    }
    if (!hi.empty()) {
      DLC_TRY(Expr upper, parse_expr(hi, at));
      if (auto c = upper.constant())
        range.bounds.hi = *c;
      else
        range.upper = upper.node();
    }
    if (range.bounds.lo > range.bounds.hi) return fail(at, "the range of " + name + " is empty");
  }
  if (!symbols.emplace(name, range).second) return fail(where, "symbol " + name + " is declared twice");
  return {};
}

}  // namespace dlc::detail
