// Every structural rule refuses what breaks it, with a message that says what.
#include "dlc/kernel/kernel.h"
#include "dlc_test/catch.h"
#include "kernels.h"

using namespace dlc;

namespace {

Kernel small() {
  auto k = parse_kernel(
      "dlc.kernel 1\nkernel @k { in X: f32[N] temp T: f32[N] out Y: f32[N]\n"
      "for i < N: T[i] = X[i] * 2\n"
      "for i < N: Y[i] = sum[j < N] T[j] }");
  return *k;
}
// A node of another type than the constructors give.
Val retyped(const Val& v, DType t) {
  ValNode n = *v;
  n.type = t;
  return std::make_shared<ValNode>(n);
}

}  // namespace

TEST_CASE("well-formed kernels pass") {
  CHECK(verify(small()).has_value());
  CHECK(verify(Kernel{}).has_value());
}

TEST_CASE("ill-formed kernels are refused") {
  struct Case {
    const char* message;
    void (*damage)(Kernel&);
  };
  const Case cases[] = {
      {"two tensors are named X", [](Kernel& k) { k.tensors[1].name = k.tensors[0].name; }},
      {"tensor 1 has no name", [](Kernel& k) { k.tensors[1].name.clear(); }},
      {"X has the negative dim -1", [](Kernel& k) { k.tensors[0].shape[0] = -1; }},
      {"a dim of X overflows", [](Kernel& k) { k.tensors[0].shape[0] = Expr::invalid(); }},
      {"view X must come after the tensor it views", [](Kernel& k) { k.tensors[0].view = View{1, 0, {4}}; }},
      {"view Y has 1 dims and 0 strides", [](Kernel& k) { k.tensors[2].view = View{1, 0, {}}; }},
      {"input 7 is no tensor", [](Kernel& k) { k.inputs = {7}; }},
      {"input T is declared 'temp'", [](Kernel& k) { k.inputs = {0, 1}; }},
      {"output X is declared 'in'", [](Kernel& k) { k.outputs = {0}; }},
      {"output Y is never written", [](Kernel& k) { k.body.pop_back(); }},
      {"statement of T: T is read before any statement writes it",
       [](Kernel& k) { k.body[0].value = val::read(1, kF32, {sym("i")}); }},
      {"X is declared 'in' and cannot be written", [](Kernel& k) { k.body[0].tensor = 0; }},
      {"a statement writes tensor 9", [](Kernel& k) { k.body[0].tensor = 9; }},
      {"statement of T has no value", [](Kernel& k) { k.body[0].value = nullptr; }},
      {"T has 1 dims, written with 0 indices", [](Kernel& k) { k.body[0].indices.clear(); }},
      {"X has 1 dims, read with 0 indices", [](Kernel& k) { k.body[0].value = val::read(0, kF32, {}); }},
      {"reads tensor 8, which does not exist", [](Kernel& k) { k.body[0].value = val::read(8, kF32, {sym("i")}); }},
      {"X of type f32 is read as f64", [](Kernel& k) { k.body[0].value = val::read(0, kF64, {sym("i")}); }},
      {"index of type f32, must be s64", [](Kernel& k) { k.body[0].indices[0] = val::real(0); }},
      {"a value of type s64 is stored to f32", [](Kernel& k) { k.body[0].value = sym("i"); }},
      {"* gives f32, not f64", [](Kernel& k) { k.body[0].value = retyped(k.body[0].value, kF64); }},
      {"loop i hides another loop", [](Kernel& k) { k.body[0].loops.push_back({"i", 2}); }},
      {"loop N hides another loop or dim", [](Kernel& k) { k.body[0].loops.push_back({"N", 2}); }},
      {"'if' cannot name a loop", [](Kernel& k) { k.body[0].loops.push_back({"if", 2}); }},
      {"the extent of loop q depends on loop i",
       [](Kernel& k) { k.body[0].loops.push_back({"q", Expr::symbol("i")}); }},
      {"the extent of loop q overflows", [](Kernel& k) { k.body[0].loops.push_back({"q", Expr::invalid()}); }},
      {"loop variable j is not bound here", [](Kernel& k) { k.body[0].value = val::read(0, kF32, {sym("j")}); }},
      {"index arithmetic overflows", [](Kernel& k) { k.body[0].indices[0] = val::index(Expr::invalid()); }},
      {"a seq has no loops", [](Kernel& k) { k.body.push_back({Stmt::Kind::seq, {}, -1, {}, nullptr, 1, {}}); }},
      {"a seq steps by 1 or -1, not 2",
       [](Kernel& k) { k.body.push_back({Stmt::Kind::seq, {{"t", 2}}, -1, {}, nullptr, 2, {}}); }},
      {"has a body", [](Kernel& k) { k.body[0].body.push_back(k.body[1]); }},
  };
  for (const Case& c : cases) {
    INFO(c.message);
    Kernel k = small();
    c.damage(k);
    const auto r = verify(k);
    REQUIRE_FALSE(r.has_value());
    CHECK(to_string(r.error()).find("kernel @k: ") != std::string::npos);
    INFO(to_string(r.error()));
    CHECK(to_string(r.error()).find(c.message) != std::string::npos);
  }
}

TEST_CASE("a seq may read what it writes, also further down") {
  REQUIRE_OK(const Kernel k, parse_kernel("dlc.kernel 1\nkernel @k { in X: f32[T] temp A: f32[T] out Y: f32[T]\n"
                                          "seq t < T { A[t] = Y[t - 1] ?: 0   Y[t] = A[t] + X[t] } }"));
  CHECK(verify(k).has_value());
}

TEST_CASE("an output may be written through its base") {
  REQUIRE_OK(const Kernel k,
             parse_kernel("dlc.kernel 1\nkernel @k { temp P: f32[8] out A: f32[4] view P at 0 strides [4]\n"
                          "out B: f32[4] view P at 16 strides [4]  for i < 8: P[i] = 1 }"));
  CHECK(verify(k).has_value());
}
