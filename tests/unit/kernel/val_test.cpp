// Constructors of values: typing, folding, undefined operands.
#include <cmath>
#include <limits>

#include "dlc/kernel/kernel.h"
#include "dlc/kernel/names.h"
#include "dlc_test/catch.h"
#include "kernels.h"

using namespace dlc;

namespace {

// A kernel with one scalar tensor per type, and reads of them.
struct Reads {
  Kernel k;
  Val b, i, u, f, d;
  Reads() {
    const auto scalar = [&](const char* name, DType t) {
      k.tensors.push_back({name, t, {}, Role::input, {}});
      return val::read(static_cast<int>(k.tensors.size()) - 1, t, {});
    };
    b = scalar("b", kBool);
    i = scalar("i", kS8);
    u = scalar("u", kU64);
    f = scalar("f", kF16);
    d = scalar("d", kF64);
  }
  std::string text(const Val& v) const { return to_string(v->type) + " " + print(v, k); }
};

Val num(int64_t v) { return val::integer(v); }
Val real(double v) { return val::real(v); }
Val add(Val a, Val b) { return val::binary(BinaryOp::add, std::move(a), std::move(b)); }
Val bin(BinaryOp op, Val a, Val b) { return val::binary(op, std::move(a), std::move(b)); }

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("reads compute in the five types") {
  const Reads r;
  CHECK(r.text(r.b) == "bool b[]");
  CHECK(r.text(r.i) == "s64 i[]");
  CHECK(r.text(r.u) == "u64 u[]");
  CHECK(r.text(r.f) == "f32 f[]");
  CHECK(r.text(r.d) == "f64 d[]");
}

TEST_CASE("arithmetic brings both sides to one type") {
  const Reads r;
  CHECK(r.text(add(r.b, r.b)) == "s64 cast(b[], s64) + cast(b[], s64)");
  CHECK(r.text(add(r.i, r.i)) == "s64 i[] + i[]");
  CHECK(r.text(add(r.i, r.u)) == "u64 cast(i[], u64) + u[]");
  CHECK(r.text(add(r.i, r.f)) == "f32 cast(i[], f32) + f[]");
  CHECK(r.text(add(r.f, r.d)) == "f64 cast(f[], f64) + d[]");
  CHECK(r.text(bin(BinaryOp::div, r.i, r.i)) == "f32 cast(i[], f32) / cast(i[], f32)");
  CHECK(r.text(bin(BinaryOp::div, sym("n"), num(2))) == "f32 cast(n, f32) / 2.0");
  CHECK(r.text(bin(BinaryOp::bit_and, r.b, r.i)) == "s64 cast(b[], s64) & i[]");
}

TEST_CASE("literals and indices take the other side's type") {
  const Reads r;
  CHECK(r.text(add(r.f, num(2))) == "f32 f[] + 2.0");
  CHECK(r.text(add(r.d, real(0.1))) == "f64 d[] + 0.1:f64");
  CHECK(r.text(add(r.u, num(2))) == "u64 u[] + 2:u64");
  CHECK(r.text(add(r.i, val::integer(2, kU64))) == "s64 i[] + 2");
  CHECK(r.text(add(r.i, real(0.5))) == "f32 cast(i[], f32) + 0.5");
  CHECK(r.text(add(r.d, sym("n"))) == "f64 d[] + cast(n, f64)");
  CHECK(r.text(add(num(1), real(0.5))) == "f32 1.5");
}

TEST_CASE("infinite literals are an integer's extremes, but floats beside weak integers") {
  const Reads r;
  CHECK(r.text(val::call(Fn::max, {r.i, real(-kInf)})) == "s64 max(i[], -9223372036854775808)");
  CHECK(r.text(val::call(Fn::min, {r.u, real(kInf)})) == "u64 min(u[], 18446744073709551615:u64)");
  CHECK(r.text(val::select(r.b, r.f, real(-kInf))) == "f32 if b[] then f[] else -inf");
  CHECK(r.text(val::select(r.b, num(0), real(-kInf))) == "f32 if b[] then 0.0 else -inf");
}

TEST_CASE("comparisons, logic and conditions give and take bool") {
  const Reads r;
  CHECK(r.text(bin(BinaryOp::lt, r.i, r.f)) == "bool cast(i[], f32) < f[]");
  CHECK(r.text(bin(BinaryOp::eq, r.b, r.b)) == "bool cast(b[], s64) == cast(b[], s64)");
  CHECK(r.text(bin(BinaryOp::logical_and, r.b, r.i)) == "bool b[] and i[] != 0");
  CHECK(r.text(val::unary(UnaryOp::logical_not, r.i)) == "bool not (i[] != 0)");
  CHECK(r.text(val::select(r.i, r.i, num(1))) == "s64 if i[] != 0 then i[] else 1");
  CHECK(type_error(*bin(BinaryOp::logical_and, r.b, r.f)) == "and needs bool, has f32");
  CHECK(type_error(*val::select(r.f, r.i, r.i)) == "condition of type f32, must be bool");
}

TEST_CASE("functions on integers") {
  const Reads r;
  CHECK(r.text(val::call(Fn::floor, {r.i})) == "s64 i[]");
  CHECK(r.text(val::call(Fn::round, {r.f})) == "f32 round(f[])");
  CHECK(r.text(val::call(Fn::exp, {r.i})) == "f32 exp(cast(i[], f32))");
  CHECK(r.text(val::call(Fn::abs, {r.i})) == "s64 abs(i[])");
  CHECK(r.text(val::call(Fn::is_nan, {r.d})) == "bool is_nan(d[])");
  CHECK(val::call(Fn::max, {r.i, r.f, r.d})->type == kF64);
  CHECK(type_error(*val::call(Fn::max, {r.i, r.f, r.d})).empty());
  CHECK(type_error(*val::call(Fn::tdiv, {r.f, r.f})) == "tdiv needs integers, has f32");
  CHECK(type_error(*val::call(Fn::pow, {r.f})) == "pow takes 2 arguments, has 1");
}

TEST_CASE("integer arithmetic over indices is one index expression") {
  const Reads r;
  const Val i = sym("i"), j = sym("j");
  const Val e = bin(BinaryOp::floor_div, add(bin(BinaryOp::mul, i, num(4)), num(3)), num(4));
  CHECK(val::as_expr(e) == Expr::symbol("i"));
  CHECK(val::as_expr(val::unary(UnaryOp::neg, i)) == -Expr::symbol("i"));
  CHECK(val::as_expr(val::call(Fn::max, {i, j, num(0)})) == max(max(Expr::symbol("i"), Expr::symbol("j")), Expr(0)));
  CHECK_FALSE(val::as_expr(add(i, r.i)).has_value());
  CHECK_FALSE(val::as_expr(val::convert(kF32, i)).has_value());
}

TEST_CASE("conditions over indices give select expressions with the same values") {
  const Val i = sym("i"), j = sym("j");
  const BinaryOp ops[] = {BinaryOp::eq, BinaryOp::ne, BinaryOp::lt, BinaryOp::le, BinaryOp::gt, BinaryOp::ge};
  const auto holds = [](BinaryOp op, int64_t a, int64_t b) {
    return op == BinaryOp::eq   ? a == b
           : op == BinaryOp::ne ? a != b
           : op == BinaryOp::lt ? a < b
           : op == BinaryOp::le ? a <= b
           : op == BinaryOp::gt ? a > b
                                : a >= b;
  };
  for (BinaryOp first : ops)
    for (BinaryOp second : ops) {
      const Val c1 = bin(first, i, j), c2 = bin(second, j, num(1));
      const auto both = val::as_expr(val::select(bin(BinaryOp::logical_and, c1, c2), i, num(7)));
      const auto one = val::as_expr(val::select(bin(BinaryOp::logical_or, c1, c2), i, num(7)));
      const auto none = val::as_expr(val::select(val::unary(UnaryOp::logical_not, c1), i, num(7)));
      REQUIRE((both && one && none));
      for (int64_t a = -1; a < 3; ++a)
        for (int64_t b = -1; b < 3; ++b) {
          const bool x = holds(first, a, b), y = holds(second, b, 1);
          CHECK(evaluate(*both, {{"i", a}, {"j", b}}) == (x && y ? a : 7));
          CHECK(evaluate(*one, {{"i", a}, {"j", b}}) == (x || y ? a : 7));
          CHECK(evaluate(*none, {{"i", a}, {"j", b}}) == (!x ? a : 7));
        }
    }
}

TEST_CASE("comparisons of indices that are always so fold") {
  const Reads r;
  const Val i = sym("i");
  CHECK(r.text(bin(BinaryOp::lt, i, add(i, num(1)))) == "bool true");
  CHECK(r.text(bin(BinaryOp::ge, bin(BinaryOp::mod, i, num(4)), num(4))) == "bool false");
  CHECK(r.text(bin(BinaryOp::eq, i, i)) == "bool true");
  CHECK(r.text(bin(BinaryOp::lt, i, num(3))) == "bool i < 3");
}

TEST_CASE("literals fold as they would be computed") {
  const Reads r;
  const auto fold = [&](BinaryOp op, Val a, Val b) { return r.text(bin(op, std::move(a), std::move(b))); };
  CHECK(fold(BinaryOp::floor_div, num(-7), num(2)) == "s64 -4");
  CHECK(fold(BinaryOp::mod, num(-7), num(2)) == "s64 1");
  CHECK(fold(BinaryOp::mod, real(-7), real(2)) == "f32 1.0");
  CHECK(fold(BinaryOp::floor_div, real(-7), real(2)) == "f32 -4.0");
  CHECK(fold(BinaryOp::div, num(7), num(2)) == "f32 3.5");
  CHECK(fold(BinaryOp::mod, num(7), num(0)) == "s64 undef:s64");
  CHECK(fold(BinaryOp::mod, r.i, num(0)) == "s64 undef:s64");
  CHECK(fold(BinaryOp::shl, num(1), num(64)) == "s64 undef:s64");
  CHECK(fold(BinaryOp::shl, r.i, num(-1)) == "s64 undef:s64");
  CHECK(fold(BinaryOp::shr, num(-8), num(1)) == "s64 -4");
  CHECK(fold(BinaryOp::shr, val::integer(-8, kU64), val::integer(1, kU64)) == "u64 9223372036854775804:u64");
  CHECK(fold(BinaryOp::mul, num(std::numeric_limits<int64_t>::max()), num(2)) == "s64 -2");
  CHECK(fold(BinaryOp::lt, val::integer(-1, kU64), val::integer(1, kU64)) == "bool false");
  CHECK(r.text(val::call(Fn::round, {real(2.5)})) == "f32 2.0");
  CHECK(r.text(val::call(Fn::max, {real(1), real(NAN)})) == "f32 nan");
  CHECK(r.text(val::call(Fn::tdiv, {num(-7), num(2)})) == "s64 -3");
  CHECK(r.text(val::call(Fn::fmod, {num(-7), num(2)})) == "s64 -1");
  CHECK(r.text(val::call(Fn::tdiv, {r.i, num(0)})) == "s64 undef:s64");
  CHECK(r.text(val::cast(kS8, num(200))) == "s64 -56");
  CHECK(r.text(val::cast(kS8, num(200), true)) == "s64 127");
  CHECK(r.text(val::cast(kU8, real(-3.7), true)) == "s64 0");
  CHECK(r.text(val::cast(kU8, real(-3.7))) == "s64 253");
  CHECK(r.text(val::cast(kS64, real(1e300))) == "s64 9223372036854775807");
  CHECK(r.text(val::cast(kF16, real(65520))) == "f32 inf");
  CHECK(r.text(val::cast(kF16, real(65520), true)) == "f32 65504.0");
  CHECK(r.text(val::cast(kF8E4M3FN, real(1e6))) == "f32 nan");
  CHECK(r.text(val::cast(kF8E4M3FN, real(-1e6), true)) == "f32 -448.0");
  CHECK(r.text(val::cast(kF8E8M0, num(0), true)) == "f32 5.877471754111438e-39");
  CHECK(r.text(val::reduce(ReduceOp::max, kF16, {}, real(INFINITY))) == "f32 inf");
  CHECK(r.text(val::cast(kBool, real(0.5))) == "bool true");
  CHECK(r.text(val::cast(kF64, val::cast(kF32, val::real(0.1, kF64)))) == "f64 0.10000000149011612:f64");
  CHECK(r.text(val::cast(kF64, val::cast(kF32, real(0.1)))) == "f64 0.10000000149011612:f64");
  CHECK(r.text(val::cast(kF64, real(0.1))) == "f64 0.1:f64");  // the literal itself is weak
  CHECK(bin(BinaryOp::eq, val::cast(kF32, num(16777217)), val::cast(kF32, num(16777216)))->integer == 1);
  CHECK(r.text(val::cast(kU64, num(-1), true)) == "u64 0:u64");
  CHECK(r.text(val::cast(kS64, val::integer(-1, kU64), true)) == "s64 9223372036854775807");
}

TEST_CASE("what changes nothing is left out") {
  const Reads r;
  CHECK(r.text(add(r.f, num(0))) == "f32 f[]");
  CHECK(r.text(add(num(0), r.f)) == "f32 f[]");
  CHECK(r.text(add(r.f, val::orelse(val::undef(kF32), num(0)))) == "f32 f[]");  // an absent operand
  // -0.0 + 0.0 is 0.0, and 0.0 - 0.0 is no -0.0.
  CHECK(r.text(add(r.f, real(0))) == "f32 f[] + 0.0");
  CHECK(r.text(add(real(0), r.f)) == "f32 0.0 + f[]");
  CHECK(r.text(add(r.f, real(-0.0))) == "f32 f[]");
  CHECK(r.text(bin(BinaryOp::sub, r.f, real(0))) == "f32 f[]");
  CHECK(r.text(bin(BinaryOp::sub, r.f, real(-0.0))) == "f32 f[] - -0.0");
  CHECK(r.text(bin(BinaryOp::mul, r.f, real(0))) == "f32 f[] * 0.0");
  CHECK(r.text(bin(BinaryOp::sub, r.f, r.f)) == "f32 f[] - f[]");
  CHECK(r.text(bin(BinaryOp::mul, r.i, num(1))) == "s64 i[]");
  CHECK(r.text(bin(BinaryOp::div, r.f, num(1))) == "f32 f[]");
  CHECK(r.text(bin(BinaryOp::sub, num(0), r.f)) == "f32 0.0 - f[]");
  CHECK(r.text(bin(BinaryOp::mul, r.i, num(0))) == "s64 i[] * 0");  // i may be undefined
  CHECK(r.text(val::unary(UnaryOp::neg, val::unary(UnaryOp::neg, r.f))) == "f32 f[]");
  CHECK(r.text(val::cast(kF32, r.f)) == "f32 f[]");
  CHECK(r.text(val::cast(kS8, r.i)) == "s64 cast(i[], s8)");
  CHECK(r.text(bin(BinaryOp::logical_and, val::boolean(true), r.b)) == "bool b[]");
  CHECK(r.text(bin(BinaryOp::logical_or, r.b, val::boolean(true))) == "bool b[] or true");
  CHECK(r.text(val::select(val::boolean(false), r.i, r.f)) == "f32 f[]");
  CHECK(r.text(val::call(Fn::max, {r.f})) == "f32 f[]");
}

TEST_CASE("undefined operands") {
  const Reads r;
  const Val undef = val::undef(kF32);
  CHECK(r.text(add(undef, r.i)) == "f32 undef:f32");
  CHECK(r.text(val::unary(UnaryOp::neg, undef)) == "f32 undef:f32");
  CHECK(r.text(val::call(Fn::exp, {undef})) == "f32 undef:f32");
  CHECK(r.text(val::cast(kS8, undef)) == "s64 undef:s64");
  CHECK(r.text(bin(BinaryOp::lt, r.f, undef)) == "bool undef:bool");
  CHECK(r.text(val::orelse(undef, num(0))) == "s64 0");  // still weak
  CHECK(r.text(val::orelse(undef, r.i)) == "f32 cast(i[], f32)");
  CHECK(r.text(val::orelse(r.f, num(0))) == "f32 f[] ?: 0.0");
  CHECK(r.text(val::orelse(sym("i"), r.i)) == "s64 i");
  CHECK(r.text(val::orelse(val::index(mod(Expr::symbol("i"), Expr::symbol("n"))), num(0))) == "s64 i % n ?: 0");
  CHECK(r.text(val::select(r.b, r.f, undef)) == "f32 if b[] then f[] else undef:f32");
  CHECK(r.text(bin(BinaryOp::logical_and, r.b, val::undef(kBool))) == "bool b[] and undef:bool");
  CHECK(r.text(val::reduce(ReduceOp::sum, kF32, {{"i", 3}}, undef)) == "f32 undef:f32");
  CHECK(r.text(val::reduce(ReduceOp::sum, kF32, {{"i", Expr::symbol("n")}}, undef)) == "f32 sum[i < n] undef:f32");
}

TEST_CASE("reductions keep their accumulator") {
  const Reads r;
  const std::vector<Loop> loops{{"i", 3}};
  CHECK(r.text(val::reduce(ReduceOp::sum, kS32, loops, r.i)) == "s64 sum:s32[i < 3] i[]");
  CHECK(r.text(val::reduce(ReduceOp::sum, kF64, loops, r.f)) == "f64 sum[i < 3] cast(f[], f64)");
  CHECK(r.text(val::reduce(ReduceOp::sum, kF16, loops, r.f)) == "f32 sum:f16[i < 3] f[]");
  CHECK(r.text(val::reduce(ReduceOp::any, kF32, loops, r.i)) == "bool any[i < 3] (i[] != 0)");
  CHECK(r.text(val::reduce(ReduceOp::argmax, kF32, loops, r.f)) == "s64 argmax[i < 3] f[]");
  CHECK(r.text(val::reduce(ReduceOp::sum, kF32, {}, r.f)) == "f32 f[]");
  CHECK(type_error(*val::reduce(ReduceOp::sum, kS32, loops, r.f)) == "sum accumulates s32 but its body is f32");
}

TEST_CASE("rewriting rebuilds and folds, substitution respects loops") {
  const Reads r;
  const Val v = add(bin(BinaryOp::mul, r.f, r.d), r.i);
  const Val w = rewrite(v, [&](const Val& x) { return x->kind == ValKind::read ? num(2) : nullptr; });
  CHECK(r.text(w) == "f64 6.0:f64");
  int reads = 0;
  walk(v, [&](const ValNode& n) { reads += n.kind == ValKind::read; });
  CHECK(reads == 3);

  const Val sum = val::reduce(ReduceOp::sum, kS64, {{"i", Expr::symbol("n")}}, add(sym("i"), sym("n")));
  CHECK(r.text(substitute(sum, {{"n", 4}})) == "s64 sum[i < 4] (i + 4)");
  CHECK(r.text(substitute(sum, {{"i", 4}})) == r.text(sum));
  CHECK(r.text(substitute(sum, {{"n", Expr::symbol("i") * 2}})) == "s64 sum[i_ < 2*i] (2*i + i_)");
  // A new name is that of no loop beside, around or inside, and of no symbol.
  const auto over = [](std::vector<Loop> loops, Val body) {
    return val::reduce(ReduceOp::sum, kS64, std::move(loops), std::move(body));
  };
  const std::map<std::string, Expr, std::less<>> n_is_i{{"n", Expr::symbol("i")}};
  const Val both = add(add(sym("i"), sym("i_")), sym("n"));
  CHECK(r.text(substitute(over({{"i", 2}, {"i_", 3}}, both), n_is_i)) == "s64 sum[i__ < 2, i_ < 3] (i + i_ + i__)");
  CHECK(r.text(substitute(over({{"i", 2}}, both), n_is_i)) == "s64 sum[i__ < 2] (i + i_ + i__)");
  CHECK(r.text(substitute(over({{"i", 2}}, over({{"i_", 3}}, both)), n_is_i)) ==
        "s64 sum[i__ < 2] (sum[i_ < 3] (i + i_ + i__))");
}
