#include <charconv>

#include "core/graph/scanner.h"
#include "core/graph/text.h"
#include "dlc/graph/graph.h"

namespace dlc {

namespace {

using detail::Scanner;

class Parser {
 public:
  Parser(std::string_view text, const std::string& file,
         const std::function<std::optional<Tensor>(std::string_view)>& weights)
      : in_(text, file), weights_(weights) {}

  Result<Graph> parse();

 private:
  Result<> header();
  Result<> symbol();
  Result<> statement();
  Result<> input();
  Result<> constant();
  Result<> output();
  Result<> node();
  Result<ValueId> use();
  Result<std::string> new_name();
  Result<Attrs> attributes();
  Result<AttrValue> attribute_value();
  Result<AttrValue> list();
  static std::optional<double> real(std::string_view text);
  Result<int64_t> integer(std::string_view text, const Loc& where);

  Scanner in_;
  const std::function<std::optional<Tensor>(std::string_view)>& weights_;
  Graph g_;
};

Result<Graph> Parser::parse() {
  DLC_CHECK(header());
  DLC_CHECK(in_.expect("graph"));
  DLC_CHECK(in_.expect('@'));
  DLC_TRY(g_.name, in_.name("the graph's name"));
  if (in_.accept('(')) {
    do DLC_CHECK(symbol());
    while (in_.accept(','));
    DLC_CHECK(in_.expect(')'));
  }
  DLC_CHECK(in_.expect('{'));
  while (!in_.accept('}')) DLC_CHECK(statement());
  if (!in_.at_end()) return in_.unexpected("the end of the text");
  return std::move(g_);
}

Result<> Parser::header() {
  const Loc where = in_.loc();
  DLC_CHECK(in_.expect("dlc.graph"));
  DLC_TRY(auto version, in_.word("the version of the text"));
  if (version != "1")
    return fail(where, "this is graph text of version " + version + "; this dlc reads version 1",
                "use a dlc that writes version 1, or export the model again");
  return {};
}

Result<int64_t> Parser::integer(std::string_view text, const Loc& where) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(where, "'" + std::string(text) + "' is not an integer");
  return v;
}

// N | N in 1..64 | N in ..M - 1 by 8
Result<> Parser::symbol() {
  const Loc where = in_.loc();
  DLC_TRY(auto name, in_.word("a symbol"));
  Range range(1, Interval::kPosInf);
  if (in_.accept("in")) {
    const Loc at = in_.loc();
    const std::string text(in_.until(",)"));
    const size_t dots = text.find("..");
    if (dots == std::string::npos) return fail(at, "expected a range such as 1..64, found '" + text + "'");
    const std::string lo = text.substr(0, dots);
    std::string hi = text.substr(dots + 2);
    if (const size_t by = hi.find(" by "); by != std::string::npos) {
      DLC_TRY(range.divisible_by, integer(hi.substr(by + 4), at));
      if (range.divisible_by < 1) return fail(at, "a symbol is divisible by at least 1");
      hi.resize(by);
    } else if (hi.starts_with("by ")) {
      DLC_TRY(range.divisible_by, integer(hi.substr(3), at));
      hi.clear();
    }
    range.bounds = {};
    if (!lo.empty()) {
      DLC_TRY(range.bounds.lo, integer(lo, at));
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
  if (!g_.symbols.emplace(name, range).second) return fail(where, "symbol " + name + " is declared twice");
  return {};
}

Result<> Parser::statement() {
  if (in_.peek() == '%') return node();
  if (in_.accept("in")) return input();
  if (in_.accept("const")) return constant();
  if (in_.accept("out")) return output();
  return in_.unexpected("in, const, out, a node or '}'");
}

Result<std::string> Parser::new_name() {
  const Loc where = in_.loc();
  DLC_TRY(auto name, in_.name("a value's name"));
  if (g_.find(name) != kNoValue) return fail(where, "there is already a value called " + name);
  return name;
}

Result<> Parser::input() {
  DLC_CHECK(in_.expect('%'));
  DLC_TRY(auto name, new_name());
  DLC_CHECK(in_.expect(':'));
  DLC_TRY(auto type, in_.type());
  g_.add_input(std::move(name), std::move(type));
  return {};
}

Result<> Parser::constant() {
  DLC_CHECK(in_.expect('@'));
  const Loc where = in_.loc();
  DLC_TRY(auto name, new_name());
  DLC_CHECK(in_.expect(':'));
  DLC_TRY(auto type, in_.type());
  if (in_.accept('=')) {
    DLC_TRY(auto value, in_.elements(type));
    g_.add_constant(std::move(name), std::move(value));
    return {};
  }
  auto value = weights_ ? weights_(name) : std::nullopt;
  if (!value) return fail(where, "the weight table has no @" + name);
  if (type_of(*value) != type)
    return fail(where, "@" + name + " is " + to_string(type) + " here and " + detail::type_text(*value) +
                           " in the weight table");
  g_.add_constant(std::move(name), *std::move(value));
  return {};
}

Result<ValueId> Parser::use() {
  const Loc where = in_.loc();
  const bool constant = in_.peek() == '@';
  DLC_CHECK(in_.expect(constant ? '@' : '%'));
  DLC_TRY(auto name, in_.name("a value's name"));
  const ValueId v = g_.find(name);
  if (v == kNoValue) return fail(where, "there is no value called " + name, "a value is defined before it is used");
  if (g_.value(v).constant.has_value() != constant)
    return fail(where, name + " is written " + (constant ? "%" : "@") + name + ", since it is " +
                           (constant ? "no constant" : "a constant"));
  return v;
}

Result<> Parser::output() {
  DLC_TRY(ValueId v, use());
  std::string name = g_.value(v).name;
  if (in_.peek() == '"') {
    DLC_TRY(name, in_.string());
  }
  g_.outputs.push_back(v);
  g_.output_names.push_back(std::move(name));
  return {};
}

Result<> Parser::node() {
  std::vector<std::string> names;
  std::vector<TensorType> types;
  const Loc where = in_.loc();
  do {
    DLC_CHECK(in_.expect('%'));
    DLC_TRY(auto name, new_name());
    DLC_CHECK(in_.expect(':'));
    DLC_TRY(auto type, in_.type());
    names.push_back(std::move(name));
    types.push_back(std::move(type));
  } while (in_.accept(','));
  DLC_CHECK(in_.expect('='));
  DLC_TRY(auto op, in_.word("the name of an op"));
  DLC_CHECK(in_.expect('('));
  std::vector<ValueId> inputs;
  if (!in_.accept(')')) {
    do {
      if (in_.accept("_")) {
        inputs.push_back(kNoValue);
        continue;
      }
      DLC_TRY(ValueId v, use());
      inputs.push_back(v);
    } while (in_.accept(','));
    DLC_CHECK(in_.expect(')'));
  }
  DLC_TRY(Attrs attrs, attributes());
  std::vector<std::string> locations;
  if (in_.accept("loc")) do {
      DLC_TRY(auto l, in_.string());
      locations.push_back(std::move(l));
    } while (in_.accept(','));

  auto id = g_.add_node(op, std::move(inputs), std::move(attrs), std::move(locations));
  if (!id) {
    for (auto& d : id.error().diagnostics)
      if (d.loc.line == 0)
        std::tie(d.loc.file, d.loc.line, d.loc.column) = std::tie(where.file, where.line, where.column);
    return std::unexpected(std::move(id).error());
  }
  const auto& outputs = g_.node(*id).outputs;
  if (outputs.size() != names.size())
    return fail(where, op + " has " + std::to_string(outputs.size()) + " results, not " + std::to_string(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    const TensorType& inferred = g_.value(outputs[i]).type;
    if (inferred != types[i])
      return fail(where, "%" + names[i] + " is declared " + to_string(types[i]) + ", but " + op + " gives " +
                             to_string(inferred));
    g_.rename(outputs[i], names[i]);
  }
  return {};
}

// {axis = 1, mode = "edge", to: f32, value: s64[2] = [1, 2]}
Result<Attrs> Parser::attributes() {
  Attrs attrs;
  if (!in_.accept('{')) return attrs;
  do {
    const Loc where = in_.loc();
    DLC_TRY(auto name, in_.word("an attribute's name"));
    AttrValue value;
    if (in_.accept(':')) {
      const Loc at = in_.loc();
      Scanner ahead = in_;
      DLC_TRY(auto word, ahead.word("an element type"));
      if (ahead.peek() == '[') {
        DLC_TRY(auto type, in_.type());
        DLC_CHECK(in_.expect('='));
        DLC_TRY(value, in_.elements(type));
      } else {
        in_ = ahead;
        auto dtype = parse_dtype(word);
        if (!dtype) return fail(at, "'" + word + "' is not an element type");
        value = *dtype;
      }
    } else {
      DLC_CHECK(in_.expect('='));
      DLC_TRY(value, attribute_value());
    }
    if (!attrs.emplace(name, std::move(value)).second) return fail(where, "attribute " + name + " is given twice");
  } while (in_.accept(','));
  DLC_CHECK(in_.expect('}'));
  return attrs;
}

std::optional<double> Parser::real(std::string_view text) {
  if (text.find_first_of(".en") == std::string_view::npos) return std::nullopt;
  double v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

Result<AttrValue> Parser::attribute_value() {
  if (in_.peek() == '[') return list();
  if (in_.peek() == '"') {
    DLC_TRY(auto s, in_.string());
    return AttrValue(std::move(s));
  }
  const Loc where = in_.loc();
  const std::string_view text = in_.until(",}");
  if (auto d = real(text)) return AttrValue(*d);
  DLC_TRY(Expr e, parse_expr(text, where));
  return AttrValue(e);
}

// The kind of a list is that of its first element; an empty one says it, unless it is of integers.
Result<AttrValue> Parser::list() {
  DLC_CHECK(in_.expect('['));
  if (in_.accept(']')) {
    if (!in_.accept("of")) return AttrValue(std::vector<Expr>());
    if (in_.accept("real")) return AttrValue(std::vector<double>());
    DLC_CHECK(in_.expect("string"));
    return AttrValue(std::vector<std::string>());
  }
  std::vector<Expr> exprs;
  std::vector<double> reals;
  std::vector<std::string> strings;
  do {
    const Loc where = in_.loc();
    if (in_.peek() == '"') {
      DLC_TRY(auto s, in_.string());
      strings.push_back(std::move(s));
    } else {
      const std::string_view text = in_.until(",]");
      if (auto d = real(text)) {
        reals.push_back(*d);
      } else {
        DLC_TRY(Expr e, parse_expr(text, where));
        exprs.push_back(e);
      }
    }
    if (!exprs.empty() + !reals.empty() + !strings.empty() > 1)
      return fail(where, "a list has elements of one kind", "write 1.0 for a real number");
  } while (in_.accept(','));
  DLC_CHECK(in_.expect(']'));
  if (!strings.empty()) return AttrValue(std::move(strings));
  if (!reals.empty()) return AttrValue(std::move(reals));
  return AttrValue(std::move(exprs));
}

}  // namespace

Result<Graph> parse_graph(std::string_view text, const std::string& file,
                          const std::function<std::optional<Tensor>(std::string_view)>& weights) {
  return Parser(text, file, weights).parse();
}

}  // namespace dlc
