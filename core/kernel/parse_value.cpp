#include "parse_value.h"

#include <charconv>
#include <limits>

#include "dlc/kernel/names.h"

namespace dlc {

namespace {

constexpr int kMaxNesting = 200;  // of parentheses, conditions, arguments: the parser's own recursion
constexpr int kMaxHeight = 4000;  // of a value's tree: everyone else's recursion

std::string shown(const Token& t) {
  if (t.kind == TokenKind::end) return "the end of the text";
  return t.kind == TokenKind::string ? "\"" + t.text + "\"" : "'" + t.text + "'";
}

class Nested {  // counts one level of recursion while it lives
 public:
  explicit Nested(int& depth) : depth_(++depth) {}
  ~Nested() { --depth_; }

 private:
  int& depth_;
};

}  // namespace

Token TokenCursor::next() {
  Token t = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return t;
}

bool TokenCursor::at(std::string_view text) const {
  const Token& t = peek();
  return (t.kind == TokenKind::name || t.kind == TokenKind::punct) && t.text == text;
}

bool TokenCursor::take(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}

Result<> TokenCursor::expect(std::string_view text, std::string_view after) {
  if (take(text)) return {};
  return error(peek(), "expected '" + std::string(text) + "' after " + std::string(after) + ", found " + shown(peek()));
}

std::unexpected<Error> TokenCursor::error(const Token& where, std::string message, std::string hint) const {
  return fail({file_, where.line, where.column, {}}, std::move(message), std::move(hint));
}

Result<int> ValueParser::tensor(const Token& name) const {
  const int i = kernel_.find(name.text);
  if (i >= 0) return i;
  std::vector<std::string> names;
  for (const auto& t : kernel_.tensors) names.push_back(t.name);
  const std::string near = nearest(name.text, names);
  return t_.error(name, "no tensor named " + name.text, near.empty() ? "" : "did you mean " + near + "?");
}

Result<std::string> ValueParser::new_name(std::string_view what) {
  const Token t = t_.next();
  if (t.kind != TokenKind::name && t.kind != TokenKind::string)
    return t_.error(t, "expected the name of " + std::string(what) + ", found " + shown(t));
  if (t.kind == TokenKind::name && is_reserved_word(t.text))
    return t_.error(t, t.text + " is a word of the language", "quote it: \"" + t.text + "\"");
  return t.text;
}

Result<ValueParser::Tree> ValueParser::above(const Token& where, Val v, std::initializer_list<int> heights) {
  if (std::string wrong = type_error(*v); !wrong.empty()) return t_.error(where, std::move(wrong));
  const int height = std::max(heights) + 1;
  if (height > kMaxHeight)
    return t_.error(where, "expression is more than " + std::to_string(kMaxHeight) + " operations deep");
  return Tree{std::move(v), height};
}

Result<ValueParser::Tree> ValueParser::above(const Token& where, Val v, const std::vector<Tree>& children) {
  int highest = 0;
  for (const Tree& c : children) highest = std::max(highest, c.height);
  return above(where, std::move(v), {highest});
}

Result<Val> ValueParser::value() {
  DLC_TRY(Tree t, any());
  return t.v;
}

Result<Expr> ValueParser::expr() {
  const Token start = t_.peek();
  DLC_TRY(const Tree t, binary(kComparisonPrecedence + 1));
  const auto e = val::as_expr(t.v);
  if (!e) return t_.error(start, "expected an index expression: integers, dims, + - * // % min max select");
  return *e;
}

Result<std::vector<Loop>> ValueParser::loops() {
  std::vector<Loop> loops;
  do {
    const Token name = t_.next();
    if (name.kind != TokenKind::name || is_reserved_word(name.text))
      return t_.error(name, "expected a loop variable, found " + shown(name));
    for (const Loop& l : loops)
      if (l.var == name.text) return t_.error(name, "loop variable " + name.text + " appears twice");
    DLC_CHECK(t_.expect("<", "loop variable " + name.text));
    DLC_TRY(const Expr extent, expr());
    loops.push_back({name.text, extent});
  } while (t_.take(","));
  return loops;
}

Result<std::vector<ValueParser::Tree>> ValueParser::trees_until(std::string_view close) {
  std::vector<Tree> trees;
  if (t_.take(close)) return trees;
  do {
    DLC_TRY(Tree t, any());
    trees.push_back(std::move(t));
  } while (t_.take(","));
  DLC_CHECK(t_.expect(close, "the last of the list"));
  return trees;
}

Result<std::vector<Val>> ValueParser::values_until(std::string_view close) {
  DLC_TRY(const auto trees, trees_until(close));
  std::vector<Val> values;
  for (const Tree& t : trees) values.push_back(t.v);
  return values;
}

// expr := condition ['?:' expr], read as a list since chains may be long
Result<ValueParser::Tree> ValueParser::any() {
  const Nested nested(nesting_);
  if (nesting_ > kMaxNesting)
    return t_.error(t_.peek(), "expression is nested more than " + std::to_string(kMaxNesting) + " deep");
  std::vector<Tree> chain;
  std::vector<Token> operators;
  do {
    if (!chain.empty()) operators.push_back(t_.peek());
    DLC_TRY(Tree t, condition());
    chain.push_back(std::move(t));
  } while (t_.take("?:"));
  Tree r = std::move(chain.back());
  for (size_t i = chain.size() - 1; i-- > 0;) {
    DLC_TRY(r, above(operators[i], val::orelse(chain[i].v, r.v), {chain[i].height, r.height}));
  }
  return r;
}

// condition := 'if' expr 'then' expr 'else' expr | binary
Result<ValueParser::Tree> ValueParser::condition() {
  if (!t_.at("if")) return binary(1);
  struct Branch {
    Token where;
    Tree condition, then;
  };
  std::vector<Branch> branches;
  while (t_.at("if")) {
    const Token where = t_.next();
    DLC_TRY(Tree c, any());
    DLC_CHECK(t_.expect("then", "the condition"));
    DLC_TRY(Tree then, any());
    DLC_CHECK(t_.expect("else", "the value of 'then'"));
    branches.push_back({where, std::move(c), std::move(then)});
  }
  DLC_TRY(Tree r, any());
  for (size_t i = branches.size(); i-- > 0;) {
    const Branch& b = branches[i];
    DLC_TRY(r,
            above(b.where, val::select(b.condition.v, b.then.v, r.v), {b.condition.height, b.then.height, r.height}));
  }
  return r;
}

Result<ValueParser::Tree> ValueParser::binary(int least) {
  DLC_TRY(Tree left, unary());
  int most = kMulPrecedence;
  while (true) {
    const Token op_token = t_.peek();
    const bool could_be = op_token.kind == TokenKind::punct || op_token.kind == TokenKind::name;
    const auto op = could_be ? find_binary(op_token.text) : std::nullopt;
    const int p = op ? precedence(*op) : 0;
    if (!op || p < least) return left;
    if (p > most) return t_.error(op_token, "comparisons do not chain", "use `and`, or parentheses");
    t_.next();
    DLC_TRY(const Tree right, binary(p + 1));
    DLC_TRY(left, above(op_token, val::binary(*op, left.v, right.v), {left.height, right.height}));
    most = p == kComparisonPrecedence ? p - 1 : p;
  }
}

Result<ValueParser::Tree> ValueParser::unary() {
  const Token op = t_.peek();
  const bool is_operator = t_.at("-") || t_.at("not") || t_.at("~");
  if (!is_operator) return primary();
  const Nested nested(nesting_);
  if (nesting_ > kMaxNesting)
    return t_.error(op, "expression is nested more than " + std::to_string(kMaxNesting) + " deep");
  t_.next();
  if (op.text == "-" && t_.peek().kind == TokenKind::integer && t_.peek().text == "9223372036854775808") {
    t_.next();
    return Tree{val::integer(std::numeric_limits<int64_t>::min())};
  }
  DLC_TRY(const Tree a, unary());
  const UnaryOp u = op.text == "-" ? UnaryOp::neg : op.text == "not" ? UnaryOp::logical_not : UnaryOp::bit_not;
  return above(op, val::unary(u, a.v), {a.height});
}

// ":f64" directly behind a literal
Result<std::optional<DType>> ValueParser::type_suffix() {
  const bool adjacent = t_.at(":") && t_.peek().touches_previous && t_.peek(1).touches_previous;
  const auto type = adjacent && t_.peek(1).kind == TokenKind::name ? parse_dtype(t_.peek(1).text) : std::nullopt;
  if (!type) return std::optional<DType>();
  t_.next();
  const Token name = t_.next();
  if (compute_type(*type) != *type)
    return t_.error(name, "a literal is bool, s64, u64, f32 or f64, not " + name.text, "cast(..., " + name.text + ")");
  return type;
}

Result<ValueParser::Tree> ValueParser::literal() {
  const Token t = t_.next();
  DLC_TRY(const auto type, type_suffix());
  const char *begin = t.text.data(), *end = begin + t.text.size();
  if (t.text == "undef") {
    if (!type) return t_.error(t, "undef without its type", "write undef:f32");
    return Tree{val::undef(*type)};
  }
  if (t.text == "true" || t.text == "false") return Tree{val::boolean(t.text == "true")};
  const bool is_integer = t.kind == TokenKind::integer && !(type && type->is_float());
  if (is_integer) {
    uint64_t v = 0;
    const bool fits = std::from_chars(begin, end, v).ec == std::errc();
    const bool is_unsigned = type && *type == kU64;
    if (!fits || (!is_unsigned && v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())))
      return t_.error(t, "integer " + t.text + " does not fit " + (is_unsigned ? "u64" : "s64"));
    if (type && type->is_bool()) return t_.error(t, "a bool literal is true or false");
    return Tree{val::integer(static_cast<int64_t>(v), type.value_or(kS64))};
  }
  if (type && !type->is_float()) return t_.error(t, "real literal of type " + to_string(*type));
  double v = 0;
  if (t.text == "inf") {
    v = std::numeric_limits<double>::infinity();
  } else if (t.text == "nan") {
    v = std::numeric_limits<double>::quiet_NaN();
  } else if (std::from_chars(begin, end, v).ec != std::errc()) {
    return t_.error(t, "number " + t.text + " is out of range");
  }
  return Tree{val::real(v, type.value_or(kF32))};
}

Result<ValueParser::Tree> ValueParser::primary() {
  const Token& t = t_.peek();
  if (t.kind == TokenKind::integer || t.kind == TokenKind::real) return literal();
  for (std::string_view word : {"undef", "true", "false", "inf", "nan"})
    if (t_.at(word)) return literal();
  if (t_.take("(")) {
    DLC_TRY(Tree r, any());
    DLC_CHECK(t_.expect(")", "the expression"));
    return r;
  }
  const Token name = t_.next();
  if (name.kind == TokenKind::string) return read(name);
  if (name.kind != TokenKind::name) return t_.error(name, "expected a value, found " + shown(name));
  if (find_reduce(name.text) && (t_.at("[") || t_.at(":"))) return reduce(name);
  if (t_.at("[")) return read(name);
  if (t_.at("(")) return name.text == "cast" || name.text == "sat" ? cast(name) : call(name);
  if (is_reserved_word(name.text) && !find_fn(name.text) && !find_reduce(name.text))
    return t_.error(name, "expected a value, found " + shown(name));
  return Tree{val::index(Expr::symbol(name.text))};
}

Result<ValueParser::Tree> ValueParser::read(const Token& name) {
  DLC_TRY(const int i, tensor(name));
  DLC_CHECK(t_.expect("[", "tensor " + name.text));
  DLC_TRY(const auto trees, trees_until("]"));
  const KernelTensor& t = kernel_.tensors[static_cast<size_t>(i)];
  if (trees.size() != t.shape.size())
    return t_.error(name, name.text + " has " + std::to_string(t.shape.size()) + " dims, read with " +
                              std::to_string(trees.size()) + (trees.size() == 1 ? " index" : " indices"));
  std::vector<Val> indices;
  for (const Tree& tree : trees) indices.push_back(tree.v);
  return above(name, val::read(i, t.dtype, std::move(indices)), trees);
}

Result<ValueParser::Tree> ValueParser::call(const Token& name) {
  const auto fn = find_fn(name.text);
  const bool is_select = name.text == "select";  // select(d, a, b): a where d >= 0
  if (!fn && !is_select) {
    std::vector<std::string> names{"cast", "sat", "select"};
    for (int f = 0; f <= static_cast<int>(Fn::is_inf); ++f) names.emplace_back(to_string(static_cast<Fn>(f)));
    const std::string near = nearest(name.text, names);
    return t_.error(name, "no function named " + name.text, near.empty() ? "" : "did you mean " + near + "?");
  }
  t_.next();
  DLC_TRY(const auto trees, trees_until(")"));
  std::vector<Val> args;
  for (const Tree& tree : trees) args.push_back(tree.v);
  if (!is_select) return above(name, val::call(*fn, std::move(args)), trees);
  if (args.size() != 3) return t_.error(name, "select takes 3 arguments, has " + std::to_string(args.size()));
  const Val nonnegative = val::binary(BinaryOp::ge, args[0], val::integer(0));
  return above(name, val::select(nonnegative, args[1], args[2]), trees);
}

// cast(value, type), sat(value, type)
Result<ValueParser::Tree> ValueParser::cast(const Token& name) {
  t_.next();
  DLC_TRY(const Tree a, any());
  DLC_CHECK(t_.expect(",", "the value to cast"));
  const Token type = t_.next();
  const auto to = type.kind == TokenKind::name ? parse_dtype(type.text) : std::nullopt;
  if (!to) return t_.error(type, "expected an element type, found " + shown(type), "f32, s8, u8, bool, ...");
  DLC_CHECK(t_.expect(")", "the type"));
  return above(name, val::cast(*to, a.v, name.text == "sat"), {a.height});
}

// sum[:type][loops] term
Result<ValueParser::Tree> ValueParser::reduce(const Token& name) {
  const Nested nested(nesting_);
  if (nesting_ > kMaxNesting)
    return t_.error(name, "expression is nested more than " + std::to_string(kMaxNesting) + " deep");
  const ReduceOp op = *find_reduce(name.text);
  std::optional<DType> acc;
  if (t_.take(":")) {
    const Token type = t_.next();
    acc = type.kind == TokenKind::name ? parse_dtype(type.text) : std::nullopt;
    if (!acc) return t_.error(type, "expected an element type, found " + shown(type), "f32, s32, ...");
  }
  DLC_CHECK(t_.expect("[", name.text));
  DLC_TRY(auto over, loops());
  DLC_CHECK(t_.expect("]", "the loops"));
  DLC_TRY(const Tree body, binary(kMulPrecedence));
  const DType kept = acc.value_or(body.v->type.is_bool() ? kS64 : body.v->type);
  return above(name, val::reduce(op, kept, std::move(over), body.v), {body.height});
}

}  // namespace dlc
