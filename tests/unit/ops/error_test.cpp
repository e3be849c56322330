// Every mistake of a caller is one diagnostic that names the node, the record, the operand and the rule.
#include "helpers.h"

using namespace dlc;

namespace {

std::string error(const std::string& name, const std::vector<Operand>& operands, const Attrs& attrs = {}) {
  const auto k = instantiate(RecordSet::builtin(), name, operands, attrs);
  if (k) return "no error:\n" + print(*k);
  return to_string(k.error());
}

// The error of instantiating a record given as text.
std::string own_error(const std::string& text, const std::vector<Operand>& operands, const Attrs& attrs = {}) {
  const auto set = RecordSet::parse(text, "t.ops", &RecordSet::builtin());
  if (!set) return to_string(set.error());
  const auto k = instantiate(*set, "f", operands, attrs);
  return k ? "no error:\n" + print(*k) : to_string(k.error());
}

}  // namespace

TEST_CASE("operands that do not fit") {
  CHECK(error("matmul", {op({2, 3})}) == "error: matmul: operand B is missing (node node1)");
  CHECK(error("matmul", {op({2, 3}), op({3, 4}), op({4})}) == "error: matmul: takes 2 operands, has 3 (node node1)");
  CHECK(error("matmul", {op({2, 3}), op({4, 5})}) == "error: matmul: operand B has k = 4, but A has 3 (node node1)");
  CHECK(error("matmul", {op({2, 3}), op({3})}) ==
        "error: matmul: operand B has rank 1, but B[~b..., k, n] needs 2 (node node1)");
  CHECK(error("conv", {op({1, 3, 8, 8}), op({4})}) ==
        "error: conv: operand W has rank 1, but W[o, ci, k...] needs at least 2 (node node1)");
  CHECK(error("conv", {op({1, 3, 8, 8}), op({4, 3, 3})}) ==
        "error: conv: require len(k) == len(i) does not hold: 1 against 2 (node node1)\n  next: look at the operands: "
        "X is f32[1,3,8,8], W is f32[4,3,3]");
  CHECK(error("conv", {op({1, 3, 8, 8}), op({4, 2, 3, 3})}) ==
        "error: conv: require c == ci * group does not hold: 3 against 2 (node node1)\n  next: look at the operands: X "
        "is f32[1,3,8,8], W is f32[4,2,3,3]");
  CHECK(error("conv", {op({1, 3, 2, 2}), op({4, 3, 5, 5})}) ==
        "error: conv: require (span(k, dilation) <= i + pad_lo + pad_hi and ...) does not hold: 5 against 2 (node "
        "node1)\n  next: look at the operands: X is f32[1,3,2,2], W is f32[4,3,5,5]");
  CHECK(error("add", {op({2, 3}), op({2, 4})}) == "error: add: operand B has i1 = 4, but A has 3 (node node1)");
  CHECK(error("add", {op({2}), op({2}, kF16)}) == "error: add: operand B is f16, but operand A is f32 (node node1)");
  CHECK(error("logical_not", {op({2})}) == "error: logical_not: operand X must be bool, has f32 (node node1)");
  CHECK(error("exp", {op({2}, kS32)}) ==
        "error: exp: require is_float(T) does not hold (node node1)\n  next: look at the operands: X is s32[2]");
  CHECK(error("concat", {many({{kF32, {2, 3}}, {kF32, {4, 5}}})}, {{"axis", Expr(1)}}) ==
        "error: concat: operand X has a0 = 4, but X has 2 (node node1)");
  CHECK(error("concat", {many({})}, {{"axis", Expr(0)}}) == "error: concat: operand X is missing (node node1)");
  CHECK(error("relu", {many({{kF32, {2}}, {kF32, {2}}})}) ==
        "error: relu: operand X is one tensor, has 2 (node node1)");
  CHECK(error("relu", {op({-1})}) == "error: relu: operand X has the shape f32[-1] (node node1)");
  CHECK(error("one_hot", {op({2}, kS64), op({3})}, {{"depth", Expr(4)}}) ==
        "error: one_hot: operand V has a dim 3 that must be 2 (node node1)");
  CHECK(error("reshape", {op({2, 3})}, {{"shape", ints({4})}}) ==
        "error: reshape: require |i...| == (shape * ...) does not hold: 6 against 4 (node node1)\n  next: look at the "
        "operands: X is f32[2,3]");
}

TEST_CASE("attributes that do not fit") {
  const std::vector<Operand> x = {op({2, 3})};
  CHECK(error("softmax", x, {{"axes", Expr(0)}}) ==
        "error: softmax: unknown attribute axes (node node1)\n  next: did you mean axis?");
  CHECK(error("softmax", x, {{"axis", Expr(2)}}) ==
        "error: softmax: attribute axis = 2 is outside [-2, 1] of X (node node1)");
  CHECK(error("softmax", x, {{"axis", text("one")}}) ==
        "error: softmax: attribute axis is an integer, got a string (node node1)\n"
        "  next: it is declared as axis: at j = -1");
  CHECK(error("gelu", x, {{"approximate", text("tan")}}) ==
        "error: gelu: attribute approximate = \"tan\" is not allowed (node node1)\n  next: did you mean \"tanh\"?");
  CHECK(error("max_pool", {op({1, 1, 4})}) ==
        "error: max_pool: attribute kernel is required (node node1)\n"
        "  next: it is declared as kernel[i]... in [1, inf]");
  CHECK(error("max_pool", {op({1, 1, 4})}, {{"kernel", ints({2, 2})}}) ==
        "error: max_pool: attribute kernel has 2 values, but there are 1 dims i (node node1)");
  CHECK(error("max_pool", {op({1, 1, 4})}, {{"kernel", ints({0})}}) ==
        "error: max_pool: attribute kernel = 0 is outside its domain (node node1)\n"
        "  next: it is declared as kernel[i]... in [1, inf]");
  CHECK(error("max_pool", {op({1, 1, 4})}, {{"kernel", Expr(2)}}) ==
        "error: max_pool: attribute kernel is a list, got one value (node node1)");
  CHECK(error("trilu", x, {{"k", ints({1})}}) == "error: trilu: attribute k is one value, got a list (node node1)");
  CHECK(error("reduce_sum", x, {{"axes", ints({2})}}) ==
        "error: reduce_sum: attribute axes has 2, outside [-2, 1] (node node1)");
  CHECK(error("reduce_sum", x, {{"axes", ints({0, -2})}}) ==
        "error: reduce_sum: attribute axes names dim 0 twice (node node1)");
  CHECK(error("transpose", x, {{"perm", ints({0})}}) ==
        "error: transpose: require len(perm) == len(i) does not hold: 1 against 2 (node node1)\n  next: look at the "
        "operands: X is f32[2,3]");
  CHECK(error("cast", x) == "error: cast: attribute to is required (node node1)");
  CHECK(error("reduce_sum", x, {{"axes", exprs({Expr::symbol("N")})}}) ==
        "error: reduce_sum: attribute axes must be constant (node node1)");
  CHECK(error("squeeze", x, {{"axes", ints({0})}}) ==
        "error: squeeze: require (i[axes] == 1 and ...) does not hold: 2 against 1 (node node1)\n  next: look at the "
        "operands: X is f32[2,3]");
  CHECK_THAT(error("leaky_relu", x, {{"alpha", Expr(1)}}), Catch::Matchers::Contains("no error"));  // 1 for 1.0
}

TEST_CASE("huge extents are errors") {
  const Expr big = int64_t{1} << 62;
  CHECK_THAT(error("concat", {many({{kF32, {big}}, {kF32, {big}}})}, {{"axis", Expr(0)}}),
             Catch::Matchers::Contains("overflows 64 bits"));
  CHECK_THAT(error("tile", {op({big})}, {{"repeats", ints({4})}}), Catch::Matchers::Contains("overflows 64 bits"));
  CHECK_THAT(error("reshape", {op({big, 4})}, {{"shape", ints({1})}}), Catch::Matchers::Contains("overflows 64 bits"));
  CHECK_THAT(error("conv", {op({1, 1, 4}), op({1, 1, 1})}, {{"pad_lo", exprs({big})}, {"pad_hi", exprs({big})}}),
             Catch::Matchers::Contains("overflows 64 bits"));
}

TEST_CASE("mistakes in a record are reported at their place in its text") {
  const std::string place = "error: f (t.ops:2:";
  auto body = [](const std::string& text) { return "op f(X[i...], B[c]?; n = 1) -> Y[i...] {\n" + text + "\n}"; };
  const std::vector<Operand> x = {op({2, 3})};
  auto says = [&](const std::string& text, const std::string& message) {
    const std::string e = own_error(body(text), x);
    INFO(text);
    CHECK_THAT(e, Catch::Matchers::StartsWith(place) && Catch::Matchers::Contains(message));
  };
  says("Y[i...] = X[i]", "pack `i` is used outside `...`");
  says("Y[i...] = X[0]", "`X` has 2 dims and is read with 1 indices");
  says("Y[0] = X[i...]", "`Y` has 2 dims and is written with 1 indices");
  says("Y[i...] = X[(i / 2)...]", "index 0 of `X` is f32");
  says("Y[i...] = X[i...]  Z[i...]: s8 = X[i...]", "`Z` is s8 and its value is f32");
  says("Y[i...] = B[0]", "the value of `Y` is undefined");
  says("Y[i...] = \"text\"", "is a string, not a number");
  says("Y[i...] = X[i...] + T", "cannot be combined by +");
  says("Y[i...] = sum[c] X[i...]", "the extent of `c` is not known");
  says("Y[i...] = argmax[a < 2, b < 2] X[i...]", "argmax runs over one index, not 2");
  says("Y[i...] = cast(X[i...], 3)", "cast needs a type");
  says("Y[i...] = len(n)", "`n` is neither a pack nor a list");
  says("Y[i...] = max(X[i...], n...)", "no pack in `n...`");
  says("Y[i...] = pos(i)", "pos is used outside `...`");
  says("Y[i...] = X[i...] & 1", "& needs integers, has f32");
  says("Y[i...] = exp()", "exp takes 1 argument, has 0");
  says("Y[i...] = lowest()", "lowest takes 1 argument, has 0");
  says("Y[i...] = clamp(1, 2)", "clamp takes 3 arguments, has 2");
  says("X[i...] = 1  Y[i...] = 1", "operand `X` cannot be written");
  says("Z[n] = 1  Y[i...] = 1", "takes plain indices");
  says("Z[q < 4]: s8 = X[q, 0]  Y[i...] = 1", "say how it is converted");
  says("let a = a + 1  Y[i...] = a", "`a` is defined by itself");
  says("seq i... by 2: Y[i...] = 1", "a seq runs by 1 or -1");
  says("seq q < 2: W[q] = Z[q] + 1\nZ[q] = 1  Y[i...] = 1", "read before its type is known");
}

TEST_CASE("an index that nothing binds says what to write") {
  CHECK(own_error("op f(X[i], B[c]) -> Y[i] { Y[i] = X[i] + c }", {op({2}), op({3})}) ==
        "error: f (t.ops:1:42): index `c` is not bound here (node node1)\n  next: its extent is |c|");
}

TEST_CASE("defs that call themselves are refused") {
  CHECK_THAT(own_error("def g(x) = g(x) + 1\nop f(X[i...]) -> Y[i...] { Y[i...] = g(X[i...]) }", {op({2})}),
             Catch::Matchers::Contains("`g` calls itself"));
}

TEST_CASE("short texts that mean huge expressions are refused") {
  const std::string says = "too large once its lets and defs are expanded";
  std::string lets, calls = "X[0]", deep;
  for (int i = 1; i < 40; ++i) {
    const std::string before = i == 1 ? "X[0]" : "a" + std::to_string(i - 1);
    lets += "let a" + std::to_string(i) + " = " + before + " * " + before + "\n";
    calls = "twice(" + calls + ")";
  }
  CHECK_THAT(own_error("op f(X[i]) -> Y[i] {" + lets + "Y[i] = a39 }", {op({2})}), Catch::Matchers::Contains(says));
  CHECK_THAT(own_error("def twice(x) = x * x\nop f(X[i]) -> Y[i] { Y[i] = " + calls + " }", {op({2})}),
             Catch::Matchers::Contains(says));
  std::string chain = "a0";
  for (int i = 0; i < 300; ++i) chain += " * X[0]";
  deep = "let a0 = X[0]\n";
  for (int i = 1; i < 200; ++i)
    deep += "let a" + std::to_string(i) + " = a" + std::to_string(i - 1) + chain.substr(2) + "\n";
  CHECK_THAT(own_error("op f(X[i]) -> Y[i] {" + deep + "Y[i] = a199 }", {op({2})}), Catch::Matchers::Contains(says));
}
