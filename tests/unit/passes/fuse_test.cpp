// Which groups fusion makes, and what their kernels say.
#include "dlc/passes/fuse.h"

#include "core/graph/algorithms.h"
#include "groups.h"

using namespace dlc;
using dlc_test::parsed;

namespace {

std::vector<FusionGroup> fused(const Graph& g, const FusionOptions& options = {}) {
  REQUIRE_OK(auto groups, fuse(g, options));
  return groups;
}

std::string ops(const Graph& g, const std::vector<FusionGroup>& groups) {
  std::string s;
  for (const auto& group : groups) {
    s += s.empty() ? "" : " | ";
    for (NodeId n : group.nodes) s += (n == group.nodes[0] ? "" : " ") + g.node(n).op;
    if (group.is_view) s += "*";
  }
  return s;
}

const char* kConv = R"(
  in    %x: f32[N,3,8,8]
  in    %r: f32[N,4,8,8]
  const @w: f32[4,3,3,3] = 1
  const @b: f32[4] = [1, 2, 3, 4]
  %c: f32[N,4,8,8] = conv(%x, @w, @b) {pad_hi = [1, 1], pad_lo = [1, 1]} loc "conv"
  %s: f32[N,4,8,8] = add(%c, %r) loc "add"
  %y: f32[N,4,8,8] = relu(%s) loc "relu"
  out   %y
)";

}  // namespace

TEST_CASE("a convolution takes its element-wise users", "[fuse]") {
  const Graph g = parsed(kConv, "(N in 1..4)");
  const auto groups = fused(g);
  REQUIRE(ops(g, groups) == "conv add relu");
  CHECK(print(groups[0].kernel) == R"(dlc.kernel 1
kernel @conv_add_relu {
  in    x: f32[N,3,8,8]
  const w: f32[4,3,3,3]
  const b: f32[4]
  in    r: f32[N,4,8,8]
  out   y: f32[N,4,8,8]
  temp  Y_1: f32[N,4,8,8]
  for n < N, o < 4, y0 < 8, y1 < 8:
    Y_1[n, o, y0, y1] = sum[ci < 3, k0 < 3, k1 < 3] (x[n, ci, k0 + y0 - 1, k1 + y1 - 1] ?: 0.0) * w[o, ci, k0, k1]
  for i0 < N, i1 < 4, i2 < 8, i3 < 8:
    y[i0, i1, i2, i3] = max(b[i1] + Y_1[i0, i1, i2, i3] + r[i0, i1, i2, i3], 0.0)
  loc "conv", "add", "relu"
}
)");
  CHECK(groups[0].kernel.locations == std::vector<std::string>{"conv", "add", "relu"});
  CHECK(ops(g, fused(g, {.fuse = false})) == "conv | add | relu");
}

TEST_CASE("a value seen elsewhere ends its group", "[fuse]") {
  const Graph g = parsed(R"(
  in    %x: f32[4,4]
  in    %w: f32[4,4]
  %a: f32[4,4] = matmul(%x, %w)
  %b: f32[4,4] = relu(%a)
  %c: f32[4,4] = matmul(%b, %w)
  %d: f32[4,4] = add(%c, %b)
  %e: f32[4,4] = exp(%d)
  out   %e
  out   %c
)");
  CHECK(ops(g, fused(g)) == "matmul relu | matmul | add exp");
}

TEST_CASE("a value used twice inside is one group", "[fuse]") {
  const Graph g = parsed(R"(
  in    %x: f32[4,4]
  in    %w: f32[4,4]
  %a: f32[4,4] = matmul(%x, %w)
  %s: f32[4,4] = sigmoid(%a)
  %y: f32[4,4] = mul(%a, %s)
  out   %y
)");
  const auto groups = fused(g);
  CHECK(ops(g, groups) == "matmul sigmoid mul");
  CHECK(groups[0].kernel.body.size() == 2);  // the product, and everything after it
}

TEST_CASE("views stay alone, movements join element-wise groups, not anchors", "[fuse]") {
  const Graph g = parsed(R"(
  in    %x: f32[2,3]
  in    %w: f32[3,3]
  %a: f32[2,3] = matmul(%x, %w)
  %t: f32[3,2] = transpose(%a) {perm = [1, 0]}
  %e: f32[3,2] = exp(%t)
  %r: f32[6] = reshape(%e) {shape = [6]}
  %n: f32[6] = neg(%r)
  %s: f32[3] = slice(%n) {start = [0], stop = [6], step = [2]}
  %p: f32[5] = pad(%s) {lo = [1], hi = [1]}
  out   %p
)");
  CHECK(ops(g, fused(g)) == "matmul | transpose exp | reshape* | neg slice | pad");
}

TEST_CASE("a transpose whose elements would be computed again does not join", "[fuse]") {
  const Graph g = parsed(R"(
  in    %x: f32[1,3]
  %e: f32[1,3] = exp(%x)
  %y: f32[4,3] = expand(%e) {shape = [4, 3]}
  out   %y
)");
  CHECK(ops(g, fused(g)) == "exp | expand");
}

TEST_CASE("constants of one element are numbers in the kernel", "[fuse]") {
  const Graph g = parsed(R"(
  in    %x: f32[3,4]
  const @i: s64[] = 1
  const @lo: f32[] = 0
  const @hi: f32[1] = 6
  const @one: f32[1] = 1
  %row: f32[4] = gather(%x, @i) {axis = 0}
  %a: f32[4] = max_n(%row, @lo)
  %b: f32[4] = min_n(%a, @hi)
  %c: f32[5] = concat(@one, %b) {axis = 0}
  out   %c
)");
  const auto groups = fused(g);
  REQUIRE(ops(g, groups) == "gather max_n min_n | concat");
  CHECK(print(groups[0].kernel) == R"(dlc.kernel 1
kernel @gather_max_n_min_n {
  in    x: f32[3,4]
  out   b: f32[4]
  for i0 < 4:
    b[i0] = min(max(x[1, i0], 0.0), 6.0)
}
)");
  // concat asks whether an index is inside @one, so that this one is a tensor.
  CHECK(groups[1].inputs == std::vector{g.find("one"), g.find("b")});
  REQUIRE_OK(Tensor x, Tensor::make(kF32, {3, 4}));
  for (int64_t i = 0; i < 12; ++i) x.set_double(i, static_cast<double>(3 * i - 12));
  const auto y = dlc_test::run_groups(g, groups, {x}, {});
  std::vector<double> got;
  for (int64_t i = 0; i < 5; ++i) got.push_back(y[0].get_double(i));
  CHECK(got == std::vector<double>{1, 0, 3, 6, 6});
}

TEST_CASE("may_join keeps nodes apart", "[fuse]") {
  const Graph g = parsed(kConv, "(N in 1..4)");
  const FusionOptions options{.may_join = [&](std::span<const NodeId>, NodeId n) { return g.node(n).op != "relu"; }};
  CHECK(ops(g, fused(g, options)) == "conv add | relu");
}

TEST_CASE("inlining keeps the bounds of what it replaces", "[fuse]") {
  // T has 3 elements although X has 9: T[i - 1] outside T is undefined, X[i] there is not.
  const std::string text = R"(dlc.kernel 1
kernel @k {
  in   X: f32[9]
  temp T: f32[3]
  out  Y: f32[5]
  for i < 3: T[i] = X[i + 1]
  for i < 5: Y[i] = T[i - 1] ?: -1.0
}
)";
  REQUIRE_OK(Kernel k, parse_kernel(text));
  const Kernel inlined = inline_temporaries(k, {});
  CHECK(inlined.body.size() == 1);
  CHECK(inlined.tensors.size() == 2);
  const float values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  REQUIRE_OK(Tensor x, Tensor::from<float>(kF32, {9}, values));
  const Tensor inputs[] = {x};
  REQUIRE_OK(auto y, run_kernel(inlined, inputs));
  std::vector<double> got;
  for (int64_t i = 0; i < 5; ++i) got.push_back(y[0].get_double(i));
  CHECK(got == std::vector<double>{-1, 1, 2, 3, -1});
}

TEST_CASE("what is inlined and what is not", "[fuse]") {
  const auto statements = [](const std::string& tensors, const std::string& body) {
    REQUIRE_OK(Kernel k, parse_kernel("dlc.kernel 1\nkernel @k {\n" + tensors + body + "}\n"));
    return inline_temporaries(k, {}).body.size();
  };
  const std::string t = "in X: f32[8]\ntemp T: f32[8]\nout Y: f32[8]\n";
  CHECK(statements(t, "for i < 8: T[i] = exp(X[i])\nfor i < 8: Y[i] = T[i] + 1.0\n") == 1);
  // Dear, and read twice.
  CHECK(statements(t, "for i < 8: T[i] = exp(X[i])\nfor i < 8: Y[i] = T[i] * T[7 - i]\n") == 2);
  CHECK(statements(t, "for i < 8: T[i] = X[i] + 1.0\nfor i < 8: Y[i] = T[i] * T[7 - i]\n") == 1);
  // A reduction takes reads alone.
  CHECK(statements(t, "for i < 8: T[i] = X[i] + 1.0\nfor i < 8: Y[i] = sum[k < 8] T[k]\n") == 2);
  CHECK(statements(t, "for i < 8: T[i] = X[7 - i]\nfor i < 8: Y[i] = sum[k < 8] T[k]\n") == 1);
  // A tensor that is written in parts, or twice, stays.
  CHECK(statements(t, "for i < 4: T[2*i] = X[i]\nfor i < 4: T[2*i + 1] = X[i]\nfor i < 8: Y[i] = T[i]\n") == 3);
  // What T reads must still be there.
  CHECK(statements("in X: f32[8]\ntemp S: f32[8]\ntemp T: f32[8]\nout Y: f32[8]\nout Z: f32[8]\n",
                   "for i < 8: Z[i] = X[i]\nfor i < 8: T[i] = Z[i] + 1.0\nfor i < 8: Z[i] = 2.0*X[i]\n"
                   "for i < 8: Y[i] = T[i]\n") == 4);
  // A store of fewer bits is a cast.
  REQUIRE_OK(Kernel k, parse_kernel("dlc.kernel 1\nkernel @k {\nin X: s32[2]\ntemp T: s8[2]\nout Y: s32[2]\n"
                                    "for i < 2: T[i] = X[i]\nfor i < 2: Y[i] = T[i] + 1\n}\n"));
  const int32_t values[] = {200, 5};
  REQUIRE_OK(Tensor x, Tensor::from<int32_t>(kS32, {2}, values));
  const Tensor inputs[] = {x};
  const Kernel inlined = inline_temporaries(k, {});
  CHECK(inlined.body.size() == 1);
  REQUIRE_OK(auto y, run_kernel(inlined, inputs));
  CHECK(y[0].get_int(0) == -55);
  CHECK(y[0].get_int(1) == 6);
}
