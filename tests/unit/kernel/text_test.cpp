// Kernel text: round trip, places of errors, limits.
#include <random>

#include "dlc/kernel/access.h"
#include "dlc/kernel/kernel.h"
#include "dlc/kernel/normal_form.h"
#include "dlc_test/catch.h"
#include "kernels.h"

using namespace dlc;

TEST_CASE("kernels print as they were written") {
  for (const char* text : {kConv, kSoftmax, kLstm, kEverything}) {
    REQUIRE_OK(const Kernel k, parse_kernel(text));
    CHECK(print(k) == text);
    const auto ok = verify(k);
    INFO((ok ? std::string() : to_string(ok.error())));
    CHECK(ok.has_value());
  }
}

TEST_CASE("text in other forms prints canonically and then stays") {
  const std::string text =
      "dlc.kernel 1 # a comment\n"
      "kernel @k { in X: f32[N]  out Y: f32[N]\n"
      "for i < N: Y[i] = select(i - 2, 1.0, if not (i > 0 and X[i] < 2) then (2) else X[(i + 1) - 1] * (1/3)) }";
  REQUIRE_OK(const Kernel k, parse_kernel(text));
  const std::string once = print(k);
  CHECK(once ==
        "dlc.kernel 1\n"
        "kernel @k {\n"
        "  in    X: f32[N]\n"
        "  out   Y: f32[N]\n"
        "  for i < N:\n"
        "    Y[i] = if i - 2 >= 0 then 1.0 else if not (i > 0 and X[i] < 2.0) then 2.0 else X[i] * 0.3333333333333333\n"
        "}\n");
  REQUIRE_OK(const Kernel again, parse_kernel(once));
  CHECK(print(again) == once);
}

TEST_CASE("operators print with the parentheses they need") {
  REQUIRE_OK(Kernel k, parse_kernel("dlc.kernel 1 kernel @k { in A: f32[] in B: f32[] in I: s32[] in J: s32[] }"));
  const auto same = [&](const std::string& expression) {
    const std::string text = print(k);
    const std::string with = text.substr(0, text.size() - 2) + "  temp  T: f32[]\n  T[] = " + expression + "\n}\n";
    REQUIRE_OK(const Kernel parsed, parse_kernel(with));
    CHECK(print(parsed) == with);
  };
  same("A[] - (B[] - 1.0)");
  same("(A[] - B[]) * (A[] + B[])");
  same("A[] / (B[] / A[])");
  same("-(A[] + B[]) * -A[]");
  same("(A[] ?: B[]) ?: 0.0");
  same("A[] ?: B[] ?: 0.0");
  same("(if A[] < B[] then A[] else B[]) + 1.0");
  same("(sum[i < 4] A[]) * (max[j < 3] B[] * A[])");
  same("sum[i < 4] (A[] + B[])");
  same("cast((I[] << 2 | J[] & 7) ^ ~I[] >> 1, f32)");
  same("cast(sat(round(A[]), s8), f32)");
  same("cast(cast(A[], bf16), f16)");
  same("cast(cast(I[], u64) + 18446744073709551615:u64, f32)");
  same("cast(cast(A[], f64) * 0.1:f64, f32)");
  same("cast(argmax[i < 3] A[] * cast(i, f32), f32)");
  same("if any[i < 3] (A[] > cast(i, f32)) then 1.0 else nan");
  same("undef:f32");
  same("max(A[], B[], 0.0) + pow(A[], 2.0)");
  same("if A[] < B[] and (B[] < 3.0 or not is_nan(A[])) then 1.0 else 2.0");
}

TEST_CASE("names that are no identifiers are quoted") {
  Kernel k;
  k.name = "layer1/conv";
  k.tensors = {{"onnx::Add_3", kF32, {4}, Role::input, {}}, {"sum", kF32, {4}, Role::output, {}}};
  k.inputs = {0};
  k.outputs = {1};
  Stmt s;
  s.loops = {{"i", 4}};
  s.tensor = 1;
  const Val i = val::index(Expr::symbol("i"));
  s.indices = {i};
  s.value = val::read(0, kF32, {i});
  k.body = {s};
  k.locations = {"say \"hi\"", "b\\"};
  REQUIRE_OK(const Kernel back, parse_kernel(print(k)));
  CHECK(print(back) == print(k));
  CHECK(back.tensors[0].name == "onnx::Add_3");
  CHECK(back.locations == k.locations);
}

TEST_CASE("errors name file, line and column") {
  struct Case {
    const char* text;
    const char* place;
    const char* message;
    const char* hint = "";
  };
  const Case cases[] = {
      {"kernel @k {}", "1:1", "starts with the line 'dlc.kernel 1'"},
      {"dlc.kernel 2\nkernel @k {}", "1:12", "version 2, this build reads version 1"},
      {"dlc.kernel 1\nkernel @k {\n  in X: f31[2]\n}", "3:9", "expected an element type, found 'f31'"},
      {"dlc.kernel 1\nkernel @k {\n  in X: f32[2]\n  in X: f32[2]\n}", "4:6", "declared twice"},
      {"dlc.kernel 1\nkernel @k {\n  out Yes: f32[2]\n  for i < 2: Yes[i] = Yis[i]\n}", "4:23", "no tensor named Yis",
       "did you mean Yes?"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2: Y[i, i] = 0\n}", "4:14", "has 1 dims, written with 2"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2: Y[i] = Y[] + 1\n}", "4:21", "read with 0 indices"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2: Y[i] = exq(1)\n}", "4:21", "no function named exq",
       "did you mean exp?"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: s8[2]\n  for i < 2: Y[i] = 0.5\n}", "4:14", "float value is stored to Y",
       "sat(round(...), s8)"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2: Y[i] = 1 < i < 2\n}", "4:27", "do not chain"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2: Y[i] = 1.5 & 2\n}", "4:25",
       "& needs integers, has f32"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2: Y[0.5] = 2\n}", "4:14", "index of type f32"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2: Y[i] = if 0.5 then 1 else 2\n}", "4:21",
       "condition of type f32"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < 2, i < 3: Y[i] = 0\n}", "4:14", "appears twice"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  for i < Y[0]: Y[i] = 0\n}", "4:11",
       "expected an index expression"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  seq t < 2 by 2 { Y[t] = 0 }\n}", "4:16", "steps by 1 or -1"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  Y[0] = 99999999999999999999\n}", "4:10", "does not fit s64"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  Y[0] = 1e999\n}", "4:10", "out of range"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  Y[0] = undef\n}", "4:10", "undef without its type"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  Y[0] = $\n}", "4:10", "character that no kernel text has"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  Y[0] = \"a\n}", "4:10", "without its closing quote"},
      {"dlc.kernel 1\nkernel @k {\n  out Y: f32[2]\n  Y[0] = 1", "4:11", "found ''"},
      {"dlc.kernel 1\nkernel @k {\n} x", "3:3", "text after the kernel's closing brace"},
      {"dlc.kernel 1\nkernel @k {\n  out exp: f32[2]\n}", "3:7", "exp is a word of the language", "quote it: \"exp\""},
  };
  for (const Case& c : cases) {
    INFO(c.text);
    const auto r = parse_kernel(c.text, "k.txt");
    REQUIRE_FALSE(r.has_value());
    const std::string shown = to_string(r.error());
    INFO(shown);
    CHECK(shown.starts_with("k.txt:" + std::string(c.place) + ": error: "));
    CHECK(shown.find(c.message) != std::string::npos);
    CHECK(shown.find(c.hint) != std::string::npos);
  }
}

namespace {
std::string kernel_with(const std::string& expression) {
  return "dlc.kernel 1\nkernel @k {\n  in X: f32[2]\n  out Y: f32[2]\n  for i < 2: Y[i] = " + expression + "\n}\n";
}
std::string repeated(const std::string& s, int n) {
  std::string r;
  for (int i = 0; i < n; ++i) r += s;
  return r;
}
}  // namespace

TEST_CASE("nesting and height are limited, long chains are not nesting") {
  const auto message = [](const std::string& text) {
    const auto r = parse_kernel(text);
    return r ? std::string() : std::string(r.error().message());
  };
  CHECK(message(kernel_with(repeated("(", 100) + "X[i]" + repeated(")", 100))).empty());
  CHECK(message(kernel_with(repeated("(", 100000) + "X[i]")).find("nested more than 200 deep") != std::string::npos);
  CHECK(message(kernel_with(repeated("-", 100000) + "X[i]")).find("nested more than 200 deep") != std::string::npos);
  CHECK(message(kernel_with(repeated("sum[a < 2] ", 100000) + "X[i]")).find("200 deep") != std::string::npos);
  CHECK(message(kernel_with("X[i]" + repeated(" ?: X[i]", 1000))).empty());
  CHECK(message(kernel_with(repeated("if i < 1 then X[i] else ", 1000) + "X[i]")).empty());
  CHECK(message(kernel_with("X[i]" + repeated(" + X[i]", 100000))).find("operations deep") != std::string::npos);
  const std::string seqs = repeated("seq t < 2 { ", 1000);
  CHECK(message("dlc.kernel 1 kernel @k { out Y: f32[2] " + seqs).find("nested more than 64 deep") !=
        std::string::npos);
}

TEST_CASE("no prefix of a kernel's text crashes the parser") {
  for (const std::string text : {kConv, kLstm, kEverything})
    for (size_t n = 0; n + 2 < text.size(); ++n) CHECK_FALSE(parse_kernel(text.substr(0, n)).has_value());
}

TEST_CASE("mutated text is refused or is a kernel, never a crash") {
  std::mt19937 random(7);
  const std::string pieces[] = {
      "[", "]", "(",   ")",       "{",  "}", "-",           "0",         "1",    "9223372036854775807",
      "n", "X", "if ", "?:",      "//", "%", "sum[n < 3] ", "undef:s64", "view", "seq ",
      ":", ",", "\"",  "select(", "1e9"};
  int parsed = 0, valid = 0;
  for (int round = 0; round < 20000; ++round) {
    const char* const sources[] = {kConv, kSoftmax, kLstm, kEverything};
    std::string text = sources[random() % 4];
    for (int edits = 1 + static_cast<int>(random() % 2); edits > 0; --edits) {
      const size_t at = 13 + random() % (text.size() - 13);
      const size_t cut = random() % 2;
      text = text.substr(0, at) + pieces[random() % std::size(pieces)] + text.substr(std::min(text.size(), at + cut));
    }
    const auto k = parse_kernel(text);
    if (!k) continue;
    ++parsed;
    INFO(text);
    const std::string printed = print(*k);
    const auto again = parse_kernel(printed);
    REQUIRE(again.has_value());
    REQUIRE(print(*again) == printed);
    if (!verify(*k)) continue;
    ++valid;
    const auto n = normalise(*k);
    REQUIRE(n.has_value());
    REQUIRE(verify(*n).has_value());
    CHECK(to_string(flops(*n)) != "");
  }
  CHECK(parsed > 500);
  CHECK(valid > 200);
}
