#include <set>

#include "core/ops/ast.h"
#include "core/ops/embedded.h"
#include "core/ops/parser.h"
#include "helpers.h"

using namespace dlc;

namespace {

std::string parse_error(const std::string& text) {
  const auto r = RecordSet::parse(text, "t.ops", &RecordSet::builtin());
  if (r) FAIL("no error from: " + text);
  return to_string(r.error());
}

// The expression as it is printed after being parsed.
std::string printed(const std::string& expr) {
  const auto s = detail::parse_statements("Y[] = " + expr, "t.ops");
  if (!s) return to_string(s.error());
  return print((*s)[0].value);
}

}  // namespace

TEST_CASE("the builtin records have no errors") {
  CHECK(to_string(RecordSet::builtin_errors()) == "");
  CHECK(RecordSet::builtin().names().size() > 120);
}

TEST_CASE("every builtin record round-trips through its text") {
  const RecordSet& set = RecordSet::builtin();
  for (const std::string& name : set.names()) {
    const Record& r = *set.find(name);
    INFO(r.print());
    REQUIRE_OK(const RecordSet again, RecordSet::parse(r.print(), "again.ops", &set));
    CHECK(again.find(name)->ast() == r.ast());
    CHECK(again.find(name)->print() == r.print());
  }
}

TEST_CASE("expressions print with the parentheses they need") {
  for (const char* e : {
           "a + b * c",
           "(a + b) * c",
           "a - (b - c)",
           "a - b - c",
           "a // b % c",
           "-a * b",
           "-(a * b)",
           "not a and b",
           "not (a and b)",
           "a or b and c",
           "(a or b) and c",
           "a << 2 + b",
           "(a << 2) + b",
           "a & b == c",
           "(a == b) == c",
           "a | b ^ c & d",
           "~a & b",
           "sum[k] a * b + c",
           "sum[k] (a + b)",
           "(sum[k] a) * b",
           "a * (sum[k] b)",
           "sum:f32[k < n, j...] X[k, j...]",
           "max[j] X[j] - c",
           "max(a, b)",
           "a ?: b ?: c",
           "(a ?: b) ?: c",
           "(if a then b else c) ?: d",
           "if a then b else c ?: d",
           "(if a then b else c) + 1",
           "|c| | |d|",
           "|X...|",
           "X[(y * stride + k)..., i[!axes, keepdims]...]",
           "(X[i...] + ...)",
           "(p >= 0 and ...)",
           "(X[a...] ?: ...)",
           "f(X[i...]...)",
           "-1",
           "a - -1",
           "1e-05",
           "-0.5 * a",
           "0.5",
           "\"text\" == mode",
           "argmax[j] X[j]",
           "if q % s == 0 then X[q // s] else 0",
           "len(d) == |q|",
       }) {
    CHECK(printed(e) == e);
  }
  CHECK(printed("((a))") == "a");
  CHECK(printed("0x10 + 1.0") == "16 + 1.0");
  CHECK(printed("- 3") == "-3");
}

TEST_CASE("syntax errors name the place and what was expected") {
  CHECK(parse_error("op f(X[i...]) -> Y[i...] {\n  Y[i...] = X[i...] +\n}") ==
        "t.ops:3:1: error: expected an expression, got `}`");
  CHECK(parse_error("op f(X[i...] -> Y[i...] { }") == "t.ops:1:14: error: expected `,`, `;` or `)`, got `->`");
  CHECK(parse_error("operation f") == "t.ops:1:1: error: expected `op` or `def`, got `operation`");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { Y = 1 }") == "t.ops:1:30: error: expected `[` after `Y`, got `=`");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { Y[i...] X }") == "t.ops:1:36: error: expected `=`, got `X`");
  CHECK(parse_error("op f(X[i...]; a in [1) -> Y[] {}") == "t.ops:1:22: error: expected `,` or `]`, got `)`");
  CHECK(parse_error("op f(X[i...]; a in [1]) -> Y[] {}") ==
        "t.ops:1:21: error: a range is `[lowest, highest]` or `(above, below)`");
  CHECK(parse_error("op f(X[i...] from 1) -> Y[] {}") == "t.ops:1:19: error: expected `[`, `(` or `{`, got `1`");
  CHECK(parse_error("op f(X[i...]; a: banana) -> Y[] {}") ==
        "t.ops:1:18: error: unknown kind of attribute `banana`\n"
        "  next: kinds are int, real, string, type, at, axes of, new axes of");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { let op = 1 }") == "t.ops:1:32: error: expected a name, got `op`");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { Y[i...] = \"abc }") ==
        "t.ops:1:38: error: string without its closing quote");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { Y[i...] = 99999999999999999999 }") ==
        "t.ops:1:38: error: integer 99999999999999999999 does not fit 64 bits");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { Y[i...] = 1e999 }") ==
        "t.ops:1:38: error: number 1e999 is out of range");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { Y[i...] = $ }") == "t.ops:1:38: error: unexpected character '$'");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] { Y[i...] = a < b < c }") ==
        "t.ops:1:44: error: expected a statement, got `<`");
  CHECK(parse_error("op f(X[i...]) -> Y[i...] {") ==
        "t.ops:1:27: error: expected a statement, got the end of the text");
  CHECK(parse_error("op f(X[~i = 2]) -> Y[i] { Y[i] = X[i] }") == "t.ops:1:9: error: only results give extents");
}

TEST_CASE("deep nesting and long chains are errors, not crashes") {
  const std::string deep(100000, '('), minus(100000, '-');
  CHECK_THAT(parse_error("op f(X[]) -> Y[] { Y[] = " + deep), Catch::Matchers::Contains("nested deeper than"));
  CHECK_THAT(parse_error("op f(X[]) -> Y[] { Y[] = " + minus), Catch::Matchers::Contains("nested deeper than"));
  std::string chain = "1";
  for (int i = 0; i < 100000; ++i) chain += "+1";
  CHECK_THAT(parse_error("op f(X[]) -> Y[] { Y[] = " + chain), Catch::Matchers::Contains("in a chain"));
  std::string seqs;
  for (int i = 0; i < 100000; ++i) seqs += "seq t:";
  CHECK_THAT(parse_error("op f(X[t]) -> Y[t] { " + seqs), Catch::Matchers::Contains("nested deeper than"));
}

TEST_CASE("names are checked where a record is defined") {
  const std::string head = "op f(X[i...], B[c]?; axis: at i = 0, n = 1) -> Y[i...] { ";
  CHECK(parse_error(head + "Y[i...] = Z[i...] }") == "t.ops:1:68: error: `Z` is not declared\n  next: did you mean B?");
  CHECK_THAT(parse_error(head + "Y[i...] = X[j...] }"), Catch::Matchers::Contains("`j` is not declared"));
  CHECK_THAT(parse_error(head + "let q = axs  Y[i...] = X[i...] }"), Catch::Matchers::Contains("did you mean axis?"));
  CHECK_THAT(parse_error(head + "Y[i...] = expp(X[i...]) }"), Catch::Matchers::Contains("did you mean exp?"));
  CHECK_THAT(parse_error(head + "Y[i...] = cast(X[i...], U) }"), Catch::Matchers::Contains("`U` is not declared"));
  CHECK_THAT(parse_error(head + "Y[i...]: U = X[i...] }"), Catch::Matchers::Contains("`U` is not a type"));
  CHECK_THAT(parse_error(head + "let n = 1  Y[i...] = X[i...] }"),
             Catch::Matchers::Contains("`n` is declared twice, as attribute and let"));
  CHECK_THAT(parse_error(head + "Y[i...] = sum[c < 3] X[i...] }"),
             Catch::Matchers::Contains("`c` has an extent already"));
  CHECK_THAT(parse_error(head + "Z[i...] = X[i...] }"), Catch::Matchers::Contains("result `Y` is never written"));
  CHECK_THAT(parse_error("op f(X[inf]) -> Y[] { Y[] = 1 }"),
             Catch::Matchers::Contains("`inf` has a meaning of its own"));
  CHECK_THAT(parse_error("op f(X[i]) -> X[i] { X[i] = 1 }"), Catch::Matchers::Contains("`X` is declared twice"));
  CHECK_THAT(parse_error("op f(X[i]) -> Y[i] { require X[0] == 1  Y[i] = 1 }"),
             Catch::Matchers::Contains("require sees shapes and attributes, no elements"));
  CHECK_THAT(parse_error("op f(X[]) -> Y[] { Y[] = 1 } op f(X[]) -> Y[] { Y[] = 1 }"),
             Catch::Matchers::Contains("t.ops:1:30: error: `f` is defined twice"));
  CHECK_THAT(parse_error("def f(a) = a + b"), Catch::Matchers::Contains("t.ops:1:16: error: `b` is not declared"));
  CHECK_THAT(parse_error("def f(a) = X[a]"), Catch::Matchers::Contains("a def has no tensors"));
  CHECK_THAT(parse_error("def f(a) = sum[k < 3] a"), Catch::Matchers::Contains("a def has no loops"));
  CHECK_THAT(parse_error("def f(a: s33x) = a"), Catch::Matchers::Contains("`s33x` is not a type"));
}

TEST_CASE("damaged record texts never crash the parser") {
  uint64_t state = 12345;
  auto random = [&](size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % n;
  };
  for (const auto* f = detail::kBuiltinRecords; f->name; ++f) {
    const std::string whole = f->text;
    for (int round = 0; round < 60; ++round) {
      std::string text = whole;
      for (int i = 0; i < 3; ++i) {
        const size_t at = random(text.size()), n = random(12);
        if (random(2) == 0) {
          text.erase(at, n);
        } else {
          text.insert(at, whole.substr(random(whole.size()), n));
        }
      }
      if (const auto r = RecordSet::parse(text, "t.ops", &RecordSet::builtin()); !r) CHECK_FALSE(r.error().empty());
    }
  }
}

TEST_CASE("a record tells its interface") {
  const Record& r = *RecordSet::builtin().find("conv");
  REQUIRE(r.operands().size() == 3);
  CHECK(r.operands()[2].name == "B");
  CHECK(r.operands()[2].optional);
  CHECK(r.results()[0].name == "Y");
  CHECK_FALSE(r.is_extern());
  CHECK(RecordSet::builtin().find("top_k")->is_extern());
  CHECK(RecordSet::builtin().find("concat")->operands()[0].variadic);
  const auto& a = r.attributes();
  REQUIRE(a.size() == 5);
  CHECK(a[0].doc == "stride[i]... in [1, inf] = 1");
  CHECK(a[0].list);
  CHECK_FALSE(a[0].required);
  CHECK(RecordSet::builtin().find("concat")->attributes()[0].required);
  CHECK(RecordSet::builtin().find("no_such_op") == nullptr);
}
