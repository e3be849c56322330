#include "helpers.h"

using namespace dlc;

namespace {

const Expr N = Expr::symbol("N"), S = Expr::symbol("S"), C = Expr::symbol("C"), H = Expr::symbol("H");
const Ranges kPositive{{"N", {1, 1 << 20}}, {"S", {1, 1 << 20}}, {"C", {1, 1 << 20}}, {"H", {1, 1 << 20}}};

std::string positive(const std::string& name, const std::vector<Operand>& operands, const Attrs& attrs = {}) {
  return shapes(name, operands, attrs, kPositive);
}

std::string assumptions(const std::string& name, const std::vector<Operand>& operands, const Attrs& attrs = {}) {
  const auto k = instantiate(RecordSet::builtin(), name, operands, attrs, kPositive);
  if (!k) return to_string(k.error());
  std::string s;
  for (const Expr& e : k->assumptions) s += to_string(e) + ";";
  return s;
}

}  // namespace

TEST_CASE("shapes of contractions and pools") {
  CHECK(shapes("matmul", {op({4, 8}), op({8, 16})}) == "f32[4,16]");
  CHECK(shapes("matmul", {op({2, 1, 4, 8}), op({3, 8, 16})}) == "f32[2,3,4,16]");
  CHECK(shapes("gemm", {op({8, 4}), op({16, 8}), op({16})}, {{"trans_a", Expr(1)}, {"trans_b", Expr(1)}}) ==
        "f32[4,16]");
  const Attrs same = {{"pad_lo", ints({1, 1})}, {"pad_hi", ints({1, 1})}};
  CHECK(shapes("conv", {op({1, 3, 224, 224}), op({64, 3, 3, 3})}, same) == "f32[1,64,224,224]");
  CHECK(shapes("conv", {op({1, 3, 224, 224}), op({64, 3, 7, 7}), op({64})},
               {{"stride", ints({2, 2})}, {"pad_lo", ints({3, 3})}, {"pad_hi", ints({3, 3})}}) == "f32[1,64,112,112]");
  CHECK(shapes("conv", {op({1, 32, 20}), op({32, 1, 3})}, {{"group", Expr(32)}, {"dilation", ints({2})}}) ==
        "f32[1,32,16]");
  CHECK(
      shapes(
          "conv_transpose", {op({1, 8, 5, 5}), op({8, 4, 3, 3})},
          {{"stride", ints({2, 2})}, {"pad_lo", ints({1, 1})}, {"pad_hi", ints({1, 1})}, {"out_pad", ints({1, 1})}}) ==
      "f32[1,4,10,10]");
  CHECK(shapes("max_pool", {op({1, 8, 7, 7})}, {{"kernel", ints({2, 2})}, {"stride", ints({2, 2})}}) == "f32[1,8,3,3]");
  CHECK(shapes("max_pool", {op({1, 8, 7, 7})},
               {{"kernel", ints({2, 2})}, {"stride", ints({2, 2})}, {"ceil_mode", Expr(1)}}) == "f32[1,8,4,4]");
  CHECK(shapes("avg_pool", {op({1, 8, 7})}, {{"kernel", ints({7})}}) == "f32[1,8,1]");
}

TEST_CASE("shapes over symbolic dims come out simplified") {
  CHECK(positive("conv", {op({N, 3, H * 2, 8}), op({16, 3, 3, 3})},
                 {{"stride", ints({2, 2})}, {"pad_lo", ints({1, 1})}, {"pad_hi", ints({1, 1})}}) == "f32[N,16,H,4]");
  CHECK(positive("matmul", {op({N, S, 64}), op({64, 32})}) == "f32[N,S,32]");
  CHECK(positive("concat", {many({{kF32, {N, 1, 8}}, {kF32, {N, S, 8}}, {kF32, {N, 2, 8}}})}, {{"axis", Expr(1)}}) ==
        "f32[N,S + 3,8]");
  CHECK(positive("slice", {op({N, S})},
                 {{"start", ints({0, 1})}, {"stop", ints({int64_t{1} << 40, int64_t{1} << 40})}}) == "f32[N,S - 1]");
  CHECK(positive("slice", {op({N, S})}, {{"start", exprs({0, S - 1})}, {"stop", exprs({N, S})}}) == "f32[N,1]");
  CHECK(positive("reshape", {op({N, S, 768})}, {{"shape", exprs({N, S, 12, 64})}}) == "f32[N,S,12,64]");
  CHECK(positive("transpose", {op({N, S, 12, 64})}, {{"perm", ints({0, 2, 1, 3})}}) == "f32[N,12,S,64]");
  CHECK(positive("pad", {op({N, S})}, {{"lo", ints({0, 2})}, {"hi", exprs({0, C})}}) == "f32[N,C + S + 2]");
  CHECK(positive("tile", {op({N, 3})}, {{"repeats", exprs({2, S})}}) == "f32[2*N,3*S]");
  CHECK(positive("range", {op({}, kS64), op({}, kS64)}, {{"count", S}}) == "s64[S]");
  CHECK(positive("expand", {op({1, S})}, {{"shape", exprs({N, C, S})}}) == "f32[N,C,S]");
  CHECK(positive("attention", {op({N, 12, S, 64}), op({N, 4, S, 64}), op({N, 4, S, 64})}) == "f32[N,12,S,64]");
}

TEST_CASE("what cannot be decided is assumed") {
  CHECK(assumptions("add", {op({N, S}), op({N, C})}) == "C - S;-C + S;");
  CHECK(assumptions("add", {op({N, S}), op({N, 8})}) == "S - 8;-S + 8;");
  CHECK(positive("add", {op({N, S}), op({N, 8})}) == "f32[N,8]");
  CHECK(assumptions("add", {op({N, S}), op({1, S})}) == "");
  CHECK(assumptions("add", {op({N, S}), op({S})}) == "");
  CHECK(assumptions("conv", {op({N, C, 8, 8}), op({4, 4, 1, 1})}, {{"group", Expr(1)}}) == "C - 4;-C + 4;");
  CHECK(assumptions("conv", {op({N, 4, S, 8}), op({4, 4, 3, 3})}) == "S - 3;");
  CHECK(assumptions("reshape", {op({N, S})}, {{"shape", exprs({C, 4})}}) == "N*S - 4*C;-N*S + 4*C;");
}

TEST_CASE("shapes of movement ops") {
  CHECK(shapes("squeeze", {op({1, 3, 1})}, {{"axes", ints({0, -1})}}) == "f32[3]");
  CHECK(shapes("unsqueeze", {op({3, 4})}, {{"axes", ints({0, -1})}}) == "f32[1,3,4,1]");
  CHECK(shapes("unsqueeze", {op({})}, {{"axes", ints({0})}}) == "f32[1]");
  CHECK(shapes("gather", {op({30522, 768}), op({1, 128}, kS64)}) == "f32[1,128,768]");
  CHECK(shapes("gather", {op({5, 4, 3}), op({}, kS64)}, {{"axis", Expr(-1)}}) == "f32[5,4]");
  CHECK(shapes("gather_elements", {op({3, 4}), op({2, 4}, kS64)}) == "f32[2,4]");
  CHECK(shapes("gather_nd", {op({2, 3, 4}), op({5, 2}, kS64)}) == "f32[5,4]");
  CHECK(shapes("gather_nd", {op({2, 3, 4}), op({2, 5, 1}, kS64)}, {{"batch_dims", Expr(1)}}) == "f32[2,5,4]");
  CHECK(shapes("scatter_nd", {op({8}), op({4, 1}, kS64), op({4})}) == "f32[8]");
  CHECK(shapes("scatter_elements", {op({3, 4}), op({1, 2}, kS64), op({1, 2})}, {{"axis", Expr(1)}}) == "f32[3,4]");
  CHECK(shapes("one_hot", {op({2, 3}, kS64), op({2})}, {{"depth", Expr(7)}}) == "f32[2,3,7]");
  CHECK(shapes("one_hot", {op({2, 3}, kS64), op({2})}, {{"depth", Expr(7)}, {"axis", Expr(1)}}) == "f32[2,7,3]");
  CHECK(shapes("depth_to_space", {op({1, 8, 2, 3})}, {{"block", Expr(2)}}) == "f32[1,2,4,6]");
  CHECK(shapes("space_to_depth", {op({1, 2, 4, 6})}, {{"block", Expr(2)}}) == "f32[1,8,2,3]");
  CHECK(shapes("slice", {op({10})}, {{"start", ints({-1})}, {"stop", ints({-100})}, {"step", ints({-2})}}) == "f32[5]");
  CHECK(shapes("resize_nearest", {op({1, 3, 4, 4})},
               {{"size", ints({1, 3, 8, 8})}, {"scale", std::vector<double>{1, 1, 2, 2}}}) == "f32[1,3,8,8]");
  CHECK(shapes("shape", {op({2, 3, 4})}, {{"start", Expr(1)}, {"end", Expr(3)}}) == "s64[2]");
  CHECK(shapes("top_k", {op({2, 10})}, {{"k", Expr(3)}}) == "f32[2,3] s64[2,3]");
  CHECK(shapes("non_zero", {op({2, 10})}, {{"count", N}}) == "s64[2,N]");
}

TEST_CASE("shapes of reductions, normalisations and recurrent layers") {
  CHECK(shapes("reduce_sum", {op({2, 3, 4})}) == "f32[]");
  CHECK(shapes("reduce_sum", {op({2, 3, 4})}, {{"axes", ints({-1, 0})}}) == "f32[3]");
  CHECK(shapes("reduce_sum", {op({2, 3, 4})}, {{"axes", ints({1})}, {"keepdims", Expr(1)}}) == "f32[2,1,4]");
  CHECK(shapes("arg_max", {op({2, 3})}, {{"axis", Expr(-1)}}) == "s64[2]");
  CHECK(shapes("arg_max", {op({2, 3})}, {{"axis", Expr(0)}, {"keepdims", Expr(1)}}) == "s64[1,3]");
  CHECK(shapes("layer_norm", {op({2, 3, 4}), op({4}), op({4})}) == "f32[2,3,4] f32[2,3] f32[2,3]");
  CHECK(shapes("layer_norm", {op({2, 3, 4}, kF16), op({3, 4}, kF16)}, {{"axis", Expr(1)}}) ==
        "f16[2,3,4] f32[2] f32[2]");
  CHECK(shapes("lstm", {op({7, 2, 5}), op({1, 12, 5}), op({1, 12, 3})}) == "f32[7,1,2,3] f32[1,2,3] f32[1,2,3]");
  CHECK(shapes("gru", {op({7, 2, 5}), op({2, 9, 5}), op({2, 9, 3}), op({2, 18})}) == "f32[7,2,2,3] f32[2,2,3]");
}

TEST_CASE("types follow the operands and the type attributes") {
  CHECK(shapes("cast", {op({2})}, {{"to", kS8}}) == "s8[2]");
  CHECK(shapes("equal", {op({2}, kS32), op({2}, kS32)}) == "bool[2]");
  CHECK(shapes("quantize_linear", {op({2, 3}), op({3}), op({3}, kS8)}) == "s8[2,3]");
  CHECK(shapes("quantize_linear", {op({2, 3}), op({})}) == "u8[2,3]");
  CHECK(shapes("quantize_linear", {op({2, 3}), op({})}, {{"to", kS8}}) == "s8[2,3]");
  CHECK(shapes("dequantize_linear", {op({2, 3}, kU8), op({}), op({}, kU8)}) == "f32[2,3]");
  CHECK(shapes("dynamic_quantize_linear", {op({2, 3})}) == "u8[2,3] f32[] u8[]");
  CHECK(shapes("int_conv", {op({1, 3, 5, 5}, kU8), op({4, 3, 3, 3}, kS8), absent(), op({}, kU8)}) == "s32[1,4,3,3]");
  CHECK(shapes("qlinear_matmul", {op({2, 3}, kU8), op({}), op({}, kU8), op({3, 4}, kS8), op({4}), op({4}, kS8), op({}),
                                  op({}, kS8)}) == "s8[2,4]");
}
