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

TEST_CASE("what a point reads of the tensor that its loops write is its own element, or written by none") {
  struct Case {
    const char* body;
    const char* refused;  // empty: it is not
  };
  const Case cases[] = {
      // its own
      {"for i < N: Y[i] = Y[i] * 2", ""},
      {"for i < N, j < M: Z[i, j] = Z[i, j] + X[i]", ""},
      {"for i < N, j < 1: Y[i + j] = Y[i + j] + 1", ""},
      {"for i < 8, c < 64: B[i, c // 16, c % 16] = B[i, c // 16, c % 16] + 1", ""},
      {"for i < 8, c < 4, k < 16: F[i*64 + c*16 + k] = F[64*i + 16*c + k] + 1", ""},
      {"for i < N, j < M: G[i*M + j] = G[j + i*M] + 1", ""},
      {"for j < M: Z[I[0], j] = Z[I[0], j] + 1", ""},
      {"seq i < N { for j < M: Z[I[i], j] = Z[I[i], j] + 1 }", ""},
      {"for i < N: Y[i] = V[i] + 1", ""},
      // none's
      {"seq t < N { for j < M: Z[t, j] = Z[t - 1, N - 1 - j] ?: 0 }", ""},
      {"for i < 8: F[i] = F[15 - i]", ""},
      {"for i < 8: F[2*i] = F[15 - 2*i]", ""},
      {"for i < N: Y[i] = if i >= 1 then Y[0 - i] ?: 0 else 0", ""},
      {"for i < 8, j < 4: left[i, j] = right[7 - i, j]", ""},
      {"for i < 1: Y[i] = Y[5] + Y[I[i]]", ""},
      // as the parameters of the run say
      {"for i < rows, j < 8: F[to + 8*i + j] = F[from + 8*i + j]", ""},
      {"for i < rows, j < cols: F[to + cols*i + j] = F[to + cols*i + j] + 1", ""},
      {"for i < rows, j < cols: F[to + i*step + j] = F[to + i*step + j] + 1", ""},
      {"for i < rows, j < 8: F[to + 8*i + j] = F[to + 8*i + j + 8]", "an element that"},
      {"for i < rows, j < 9: F[to + 8*i + j] = F[to + 8*i + j] + 1", "which"},
      // another's
      {"for i < N: Y[i] = Y[i + 1] ?: 0", "Y[i + 1], an element that"},
      {"for i < N: Y[i] = Y[0]", "Y[0], an element that"},
      {"for i < N: Y[i] = sum[j < N] Y[j]", "Y[j], an element that"},
      {"for i < N: Y[i] = Y[I[i]]", "Y[I[i]], an element that"},
      {"for i < N: Y[Y[i]] = 1", "Y[i], an element that"},
      {"for i < N, j < M: Z[i, j] = Z[j, i] ?: 0", "Z[j, i], an element that"},
      {"for i < 8: F[2*i] = F[14 - 2*i]", "F[-2*i + 14], an element that"},
      {"for i < 8, j < 4: left[i, j] = over[7 - i, j]", "over[-i + 7, j], an element that"},
      {"seq t < N { for j < M: Z[t, j] = Z[t, j - 1] ?: 0 }", "Z[t, j - 1], an element that"},
      // its own, and others'
      {"for i < N, j < M: Y[i] = Y[i] + Z[i, j]", "Y[i], which"},
      {"for i < N: Y[I[i]] = Y[I[i]] + 1", "Y[I[i]], which"},
      {"for i < 8, k < 17: F[i*16 + k] = F[i*16 + k] + 1", "F[16*i + k], which"},
      {"for i < 8, c < 64: B[i, c // 16, c % 8] = B[i, c // 16, c % 8] + 1", "which"},
  };
  for (const Case& c : cases) {
    INFO(c.body);
    REQUIRE_OK(const Kernel k, parse_kernel(std::string("dlc.kernel 1\nkernel @k {\n in X: s64[N]\n in I: s64[N]\n"
                                                        " state Y: s64[N]\n temp V: s64[N] view Y at 0 strides [8]\n"
                                                        " state Z: s64[N,M]\n state B: s64[8,4,16]\n"
                                                        " state F: s64[512]\n state G: s64[N*M]\n state raw: u8[256]\n"
                                                        " temp left: s32[8,4] view raw at 0 strides [32, 4]\n"
                                                        " temp right: s32[8,4] view raw at 16 strides [32, 4]\n"
                                                        " temp over: s32[8,4] view raw at 12 strides [32, 4]\n") +
                                            c.body + "\n}\n"));
    const auto ok = verify(k);
    const std::string said = ok ? "" : to_string(ok.error());
    INFO(said);
    CHECK(ok.has_value() == std::string_view(c.refused).empty());
    CHECK(said.find(c.refused) != std::string::npos);
  }
}
