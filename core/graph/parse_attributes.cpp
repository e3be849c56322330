// The attributes of a node in graph text.
#include <charconv>

#include "core/graph/scanner.h"

namespace dlc::detail {

namespace {

std::optional<double> real(std::string_view text) {
  if (text.find_first_of(".en") == std::string_view::npos) return std::nullopt;
  double v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

// The kind of a list is that of its first element; an empty one says it, unless it is of integers.
Result<AttrValue> list(Scanner& in) {
  DLC_CHECK(in.expect('['));
  if (in.accept(']')) {
    if (!in.accept("of")) return AttrValue(std::vector<Expr>());
    if (in.accept("real")) return AttrValue(std::vector<double>());
    DLC_CHECK(in.expect("string"));
    return AttrValue(std::vector<std::string>());
  }
  std::vector<Expr> exprs;
  std::vector<double> reals;
  std::vector<std::string> strings;
  do {
    const Loc where = in.loc();
    if (in.peek() == '"') {
      DLC_TRY(auto s, in.string());
      strings.push_back(std::move(s));
    } else {
      const std::string_view text = in.until(",]");
      if (auto d = real(text)) {
        reals.push_back(*d);
      } else {
        DLC_TRY(Expr e, parse_expr(text, where));
        exprs.push_back(e);
      }
    }
    if (!exprs.empty() + !reals.empty() + !strings.empty() > 1)
      return fail(where, "a list has elements of one kind", "write 1.0 for a real number");
  } while (in.accept(','));
  DLC_CHECK(in.expect(']'));
  if (!strings.empty()) return AttrValue(std::move(strings));
  if (!reals.empty()) return AttrValue(std::move(reals));
  return AttrValue(std::move(exprs));
}

Result<AttrValue> attribute_value(Scanner& in) {
  if (in.peek() == '[') return list(in);
  if (in.peek() == '"') {
    DLC_TRY(auto s, in.string());
    return AttrValue(std::move(s));
  }
  const Loc where = in.loc();
  const std::string_view text = in.until(",}");
  if (auto d = real(text)) return AttrValue(*d);
  DLC_TRY(Expr e, parse_expr(text, where));
  return AttrValue(e);
}

}  // namespace

// {axis = 1, mode = "edge", to: f32, value: s64[2] = [1, 2]}
Result<Attrs> parse_attributes(Scanner& in) {
  Attrs attrs;
  if (!in.accept('{')) return attrs;
  do {
    const Loc where = in.loc();
    DLC_TRY(auto name, in.word("an attribute's name"));
    AttrValue value;
    if (in.accept(':')) {
      const Loc at = in.loc();
      Scanner ahead = in;
      DLC_TRY(auto word, ahead.word("an element type"));
      if (ahead.peek() == '[') {
        DLC_TRY(auto type, in.type());
        DLC_CHECK(in.expect('='));
        DLC_TRY(value, in.elements(type));
      } else {
        in = ahead;
        auto dtype = parse_dtype(word);
        if (!dtype) return fail(at, "'" + word + "' is not an element type");
        value = *dtype;
      }
    } else {
      DLC_CHECK(in.expect('='));
      DLC_TRY(value, attribute_value(in));
    }
    if (!attrs.emplace(name, std::move(value)).second) return fail(where, "attribute " + name + " is given twice");
  } while (in.accept(','));
  DLC_CHECK(in.expect('}'));
  return attrs;
}

}  // namespace dlc::detail
