// Facts derived from kernels: reads, guards, classes, contractions, counts, footprints.
#include "dlc/kernel/access.h"

#include "dlc/kernel/normal_form.h"
#include "dlc_test/catch.h"
#include "kernels.h"

using namespace dlc;

namespace {

Kernel normal(const std::string& text) {
  auto k = parse_kernel(text);
  if (!k) FAIL(to_string(k.error()));
  auto n = normalise(*k);
  if (!n) FAIL(to_string(n.error()));
  return *n;
}

// A kernel of one statement over X[8,6], Z[8,6], I[8], n < 8, m < 6.
Kernel as_written(const std::string& value, const std::string& target = "Y[n, m]") {
  auto k = parse_kernel(
      "dlc.kernel 1\nkernel @k { in X: f32[8,6] in Z: f32[8,6] in I: s64[8] out Y: f32[8,6]\n  for n < 8, m < 6: " +
      target + " = " + value + " }");
  if (!k) FAIL(to_string(k.error()));
  return *k;
}
Kernel statement(const std::string& value, const std::string& target = "Y[n, m]") {
  return normal(print(as_written(value, target)));
}
std::string_view class_of(const std::string& value, const std::string& target = "Y[n, m]") {
  return to_string(classify(statement(value, target).body.back()));
}
Known known(const Stmt& s) {
  Known k;
  add_loop_ranges(s.loops, k.ranges);
  return k;
}
bool defined(const std::string& value) {
  const Kernel k = statement(value);
  return provably_defined(k.body.back().value, k, known(k.body.back()));
}

std::vector<std::string> classes(const Kernel& k) {
  std::vector<std::string> r;
  const auto visit = [&](const auto& self, const std::vector<Stmt>& body, const std::vector<int>& written) -> void {
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::assign) {
        r.emplace_back(to_string(classify(s, written)));
        continue;
      }
      std::vector<int> here = written;
      walk(s.body, [&](const Stmt& inner) { here.push_back(inner.tensor); });
      self(self, s.body, here);
    }
  };
  visit(visit, k.body, {});
  return r;
}

}  // namespace

TEST_CASE("classes of injective statements") {
  CHECK(class_of("1") == "constant");
  CHECK(class_of("n") == "constant");
  CHECK(class_of("X[n, m] + Z[n, m]") == "elementwise");
  CHECK(class_of("X[n, m] + Z[n, 0]") == "broadcast");
  CHECK(class_of("X[m, n]") == "permute");
  CHECK(class_of("X[n, 5 - m]") == "remap");
  CHECK(class_of("X[m, m]") == "remap");
  CHECK(class_of("X[n, m] + X[I[n], m]") == "gather");
  CHECK(class_of("X[n, m]", "Y[n, m - 1]") == "elementwise");
  CHECK(class_of("X[n, m]", "Y[I[n], m]") == "scatter");
  CHECK(class_of("X[n, m]", "Y[n, 0]") == "scatter");
  CHECK(class_of("X[n, m]", "Y[n, m // 2]") == "scatter");
}

TEST_CASE("classes of whole kernels") {
  using Classes = std::vector<std::string>;
  CHECK(classes(normal(kConv)) == Classes{"contraction", "broadcast"});
  CHECK(classes(normal(kSoftmax)) == Classes{"reduction", "broadcast", "reduction", "broadcast"});
  CHECK(classes(normal(kLstm)) == Classes{"contraction", "contraction", "scan"});
}

TEST_CASE("unit loops do not change a class") {
  const auto one = [](const std::string& value) {
    const Kernel k =
        normal("dlc.kernel 1\nkernel @k { in X: f32[1,8] out Y: f32[1,8] for u < 1, n < 8: Y[0, n] = " + value + " }");
    return to_string(classify(k.body.back()));
  };
  CHECK(one("X[0, n]") == "elementwise");
  CHECK(one("X[u, n]") == "elementwise");
  CHECK(one("X[0, 3]") == "broadcast");
}

TEST_CASE("what is a contraction") {
  const auto sides = [](const std::string& value) -> std::string {
    const Kernel k = statement(value);
    for (const Stmt& s : k.body)
      if (const auto c = contraction(s.value))
        return print(c->lhs.read, k) + " x " + print(c->rhs.read, k) + ", " + std::to_string(c->scales.size()) + ", " +
               std::to_string(c->conditions.size());
    return "none";
  };
  CHECK(sides("sum[k < 6] X[n, k] * Z[k, m]") == "X[n, k] x Z[k, m], 0, 0");
  CHECK(sides("sum[k < 6] ((X[n, k + m - 1] - X[0, 0]) ?: 0) * Z[k, m]") == "X[n, k + m - 1] x Z[k, m], 0, 0");
  CHECK(sides("sum[k < 6] cast(cast(X[n, k], bf16), f32) * cast(Z[k, m], f32) * X[n, m] * 0.5") ==
        "X[n, k] x Z[k, m], 2, 0");
  CHECK(sides("sum[k < 6] (if k < m then X[n, k] * Z[k, m] else 0)") == "X[n, k] x Z[k, m], 0, 1");
  CHECK(sides("sum[k < 6] X[n, k] * Z[k, m] * Z[k, 0]") == "X[n, k] x Z[k, m], 0, 0");
  CHECK(sides("sum[k < 6] (X[n, k] * X[I[k // 2], k // 2]) * Z[k, m]") == "X[n, k] x Z[k, m], 0, 0");
  CHECK(sides("sum[k < 6] X[n, k] * X[n, k]") == "none");
  CHECK(sides("sum[k < 6] X[n, k] * 2") == "none");
  CHECK(sides("sum[k < 6] (X[n, k] + Z[k, m])") == "none");
  CHECK(sides("max[k < 6] X[n, k] * Z[k, m]") == "none");
}

TEST_CASE("guards") {
  CHECK(defined("X[n, m]"));
  CHECK_FALSE(defined("X[n, m + 1]"));
  CHECK(defined("X[n, m + 1] ?: 0"));
  CHECK(defined("X[n, m + 1] ?: X[n, m - 1] ?: 0"));
  CHECK_FALSE(defined("X[n, m + 1] ?: X[n, m - 1]"));
  CHECK(defined("if m < 5 then X[n, m + 1] else 0"));
  CHECK_FALSE(defined("if m < 5 then 0 else X[n, m + 1]"));
  CHECK(defined("if m == 0 or n == 7 then 0 else X[n + 1, m - 1]"));
  CHECK(defined("if 2*m - n >= 0 and 2*m - n < 6 then X[n, 2*m - n] else 0"));
  CHECK_FALSE(defined("if 2*m - n >= 0 then X[n, 2*m - n] else 0"));
  CHECK(defined("if m > 0 and X[n, m - 1] > 0 then 1 else 0"));
  CHECK_FALSE(defined("if X[n, m - 1] > 0 and m > 0 then 1 else 0"));
  CHECK(defined("sum[k < 6] X[n, k]"));
  CHECK_FALSE(defined("X[I[n], m]"));
  CHECK(defined("X[I[n], m] ?: 0"));
  CHECK(defined("n // (m + 1)"));
  CHECK_FALSE(defined("cast(I[n] // m, f32)"));
  CHECK_FALSE(defined("cast(I[n] << m - 1, f32)"));
  CHECK(defined("cast(I[n] << m, f32)"));
  CHECK_FALSE(defined("cast(tdiv(I[n], I[m]), f32)"));
}

TEST_CASE("reads come with what is known where they are") {
  const Kernel k = as_written("if m > 0 then X[n, m - 1] ?: Z[I[n], 0] else sum[j < 3] X[j, 2*j]");
  const auto sites = reads(k.body.back().value, known(k.body.back()));
  REQUIRE(sites.size() == 4);
  CHECK(print(sites[0].read, k) == "X[n, m - 1]");
  CHECK(sites[0].caught);
  CHECK(sites[0].known.ranges.at("m").bounds == Interval{1, 5});
  CHECK(sites[0].access[1] == Expr::symbol("m") - 1);
  CHECK(print(sites[1].read, k) == "I[n]");
  CHECK_FALSE(sites[2].caught);
  CHECK_FALSE(sites[2].access[0].has_value());
  CHECK(sites[3].known.ranges.at("m").bounds == Interval{0, 0});
  CHECK(sites[3].known.ranges.at("j").bounds == Interval{0, 2});
}

TEST_CASE("counts") {
  const Kernel conv = normal(kConv);
  CHECK(macs(conv) == Expr(int64_t{64} * 56 * 56 * 64 * 9));
  CHECK(flops(conv) == Expr(int64_t{2} * 64 * 56 * 56 * 64 * 9 + int64_t{2} * 64 * 56 * 56));
  CHECK(bytes(conv) == Expr(64 * 58 * 58 + 64 * 64 * 9 + 64 * 4 + 64 * 56 * 56));
  const Kernel softmax = normal(kSoftmax);
  CHECK(flops(softmax) == 5 * Expr::symbol("N") * Expr::symbol("S"));
  CHECK(macs(softmax) == Expr(0));
  const Kernel lstm = normal(kLstm);
  const Expr t = Expr::symbol("T"), b = Expr::symbol("B"), h = Expr::symbol("H"), i = Expr::symbol("I");
  CHECK(macs(lstm) == t * b * h * i + t * b * h * h);
}

TEST_CASE("footprints of tiles") {
  const auto of = [](const char* index, const std::map<std::string, Expr, std::less<>>& tile,
                     const Ranges& ranges = {}) {
    const auto e = parse_expr(index);
    const auto s = footprint({*e}, tile, ranges)[0];
    return s ? "[" + to_string(s->base) + "; " + to_string(s->extent) + "]" : std::string("unknown");
  };
  CHECK(of("y + kh", {{"y", 14}, {"kh", 3}}) == "[kh + y; 16]");
  CHECK(of("2*y + kh - 1", {{"y", 14}, {"kh", 3}}) == "[kh + 2*y - 1; 29]");
  CHECK(of("7 - y", {{"y", 4}}) == "[-y + 4; 4]");
  CHECK(of("y", {{"x", 4}}) == "[y; 1]");
  CHECK(of("3*y + x", {{"y", Expr::symbol("T")}, {"x", 2}}) == "[x + 3*y; 3*T - 1]");
  CHECK(of("o // 64", {{"o", 16}}) == "unknown");
  CHECK(of("k % 4", {{"k", 100}}) == "[0; 4]");
  CHECK(footprint({std::nullopt}, {}, {})[0].has_value() == false);
}
