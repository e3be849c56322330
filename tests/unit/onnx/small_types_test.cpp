// Element types of a byte and less: how a model holds them, and what casts and scales make of them.
#include <cmath>
#include <limits>

#include "models.h"

using namespace dlc;
using namespace dlc_test;

namespace {

// The standard's numbers; onnx.proto may be older.
constexpr int kE4M3FN = 17, kE5M2 = 19, kUint4 = 21, kInt4 = 22, kE2M1 = 23, kE8M0 = 24, kUint2 = 25, kInt2 = 26;
constexpr float kInf = std::numeric_limits<float>::infinity();

onnx::TensorProto* packed(onnx::ModelProto& m, int type, std::vector<int64_t> dims, const std::string& bytes) {
  auto* t = m.mutable_graph()->add_initializer();
  t->set_name("w");
  t->set_data_type(type);
  for (const int64_t d : dims) t->add_dims(d);
  t->set_raw_data(bytes);
  return t;
}

// What the constant "w" of such a type is.
template <class Add>
std::vector<double> constant(const Add& add) {
  auto m = model(25);
  add(m);
  node(m, "Identity", {"w"}, {"y"});
  m.mutable_graph()->add_output()->set_name("y");
  REQUIRE_OK(const Graph g, import(m));
  REQUIRE_OK(const auto y, run_graph(g, {}));
  return elements(y[0]);
}

std::vector<double> cast(int to, const std::vector<double>& x, int64_t saturate, const std::string& round_mode = "up") {
  OneNode c("Cast", 25, {static_cast<int64_t>(x.size())});
  set_int(c.n, "to", to);
  set_int(c.n, "saturate", saturate);
  set_string(c.n, "round_mode", round_mode);
  return elements(run(c.m, x));
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace

TEST_CASE("elements of less than a byte are unpacked, the first from the lowest bits") {
  using V = std::vector<double>;
  const auto raw = [](int type, std::vector<int64_t> dims, const std::string& bytes) {
    return constant([&](auto& m) { packed(m, type, dims, bytes); });
  };
  CHECK(raw(kInt4, {3}, "\x8f\xf7") == V{-1, -8, 7});
  CHECK(raw(kUint4, {2, 2}, "\x8f\xf7") == V{15, 8, 7, 15});
  CHECK(raw(kInt2, {5}, "\xe4\xfe") == V{0, 1, -2, -1, -2});
  CHECK(raw(kUint2, {4}, "\xe4") == V{0, 1, 2, 3});
  CHECK(raw(kE2M1, {3}, "\xe1\x07") == V{0.5, -4, 6});
  CHECK(raw(kE4M3FN, {2}, "\x38\xfe") == V{1, -448});
  CHECK(raw(kInt4, {}, "\x0e") == V{-2});
  CHECK(raw(kInt4, {0}, "").empty());
  const auto typed = [](int type, std::vector<int64_t> dims, std::vector<int64_t> values) {
    return constant([&](auto& m) { integers(m, "w", dims, values, type); });
  };
  CHECK(typed(kInt4, {3}, {0x8f, 0xf7}) == V{-1, -8, 7});
  CHECK(typed(kUint2, {5}, {0xe4, 2}) == V{0, 1, 2, 3, 2});
  CHECK(typed(kE5M2, {2}, {0x3c, 0xbe}) == V{1, -1.5});
  CHECK(typed(kE8M0, {2}, {0, 254}) == V{0x1p-127, 0x1p127});
}

TEST_CASE("packed elements must be as many bytes as they need") {
  const auto raw = [](int type, std::vector<int64_t> dims, const std::string& bytes) {
    auto m = model(25);
    packed(m, type, std::move(dims), bytes);
    return import(m);
  };
  REQUIRE_ERROR(raw(kInt4, {3}, "\x8f"), "tensor 'w' is s4[3] and needs 2 bytes, but holds 1");
  REQUIRE_ERROR(raw(kInt4, {3}, "\x8f\xf7\x01"), "needs 2 bytes, but holds 3");
  REQUIRE_ERROR(raw(kUint2, {5}, "abcde"), "tensor 'w' is u2[5] and needs 2 bytes, but holds 5");
  REQUIRE_ERROR(raw(kE2M1, {4}, "abcd"), "tensor 'w' is f4e2m1[4] and needs 2 bytes, but holds 4");
  REQUIRE_ERROR(raw(kInt4, {int64_t{1} << 62, 4}, ""), "impossible size");
  REQUIRE_ERROR(raw(kInt4, {int64_t{1} << 35}, ""), "needs 17179869184 bytes, but holds 0");
  auto m = model(25);
  integers(m, "w", {3}, {1, 2, 3}, kInt4);
  REQUIRE_ERROR(import(m), "tensor 'w' is s4[3], but holds 3 packed bytes");
  for (const int64_t no_byte : {300, -1}) {
    auto large = model(25);
    integers(large, "w", {2}, {no_byte}, kInt4);
    REQUIRE_ERROR(import(large), "which is no packed byte");
    auto code = model(25);
    integers(code, "w", {1}, {no_byte}, kE4M3FN);
    REQUIRE_ERROR(import(code), "which is no f8e4m3fn");
  }
  auto floats = model(25);
  auto* t = initializer(floats, "w", {4}, {1, 2});
  t->set_data_type(kInt4);
  REQUIRE_ERROR(import(floats), "tensor 'w' is s4[4], but holds 2 packed bytes");
}

TEST_CASE("a cast to a float of 8 bits saturates unless told otherwise") {
  const std::vector<double> x{1e6, -1e6, kInf, -kInf, 448, 464, 465, 0.3};
  CHECK(cast(kE4M3FN, x, 1) == std::vector<double>{448, -448, 448, -448, 448, 448, 448, 0.3125});
  CHECK(same(cast(kE4M3FN, x, 0), {NAN, NAN, NAN, NAN, 448, 448, NAN, 0.3125}));
  CHECK(cast(kE5M2, x, 0) == std::vector<double>{kInf, -kInf, kInf, -kInf, 448, 448, 448, 0.3125});
  CHECK(same(cast(kE5M2, {NAN, 6e4, 7e4}, 1), {NAN, 57344, 57344}));
  for (const int64_t saturate : {0, 1})
    CHECK(cast(kE2M1, {1e6, -kInf, 0.3}, saturate) == std::vector<double>{6, -6, 0.5});
}

TEST_CASE("a cast to a power of two goes up, down or to the nearest") {
  const std::vector<double> x{1, 1.25, 1.5, 3, 0.3, 0x1p-126, 0x1.8p-126, 0x1p127, 0x1.4p127};
  for (const int64_t saturate : {0, 1}) {
    CHECK(cast(kE8M0, x, saturate, "down") ==
          std::vector<double>{1, 1, 1, 2, 0.25, 0x1p-126, 0x1p-126, 0x1p127, 0x1p127});
    CHECK(cast(kE8M0, x, saturate, "nearest") ==
          std::vector<double>{1, 1, 2, 4, 0.25, 0x1p-126, 0x1p-125, 0x1p127, 0x1p127});
  }
  CHECK(cast(kE8M0, x, 1, "up") == std::vector<double>{1, 2, 2, 4, 0.5, 0x1p-126, 0x1p-125, 0x1p127, 0x1p127});
  CHECK(same(cast(kE8M0, x, 0, "up"), {1, 2, 2, 4, 0.5, 0x1p-126, 0x1p-125, 0x1p127, NAN}));
  CHECK(same(cast(kE8M0, {0, 0x1p-140, kInf, 0x1.8p127, NAN}, 1), {0x1p-127, 0x1p-127, 0x1p127, 0x1p127, NAN}));
  CHECK(same(cast(kE8M0, {0, 0x1p-140, kInf, 0x1.8p127, NAN}, 0, "nearest"), {NAN, NAN, NAN, NAN, NAN}));
  OneNode odd("Cast", 25, {1});
  set_int(odd.n, "to", kE8M0);
  set_string(odd.n, "round_mode", "sideways");
  REQUIRE_ERROR(import(odd.m), "round_mode");
}

TEST_CASE("a scale for each block: the last may be shorter") {
  const auto quantize = [](std::vector<int64_t> scale_shape, std::vector<float> scale, int64_t block, int output = 0) {
    OneNode q("QuantizeLinear", 25, {1, 5}, {"x", "s"});
    initializer(q.m, "s", std::move(scale_shape), std::move(scale));
    set_int(q.n, "axis", 1);
    set_int(q.n, "block_size", block);
    if (output != 0) set_int(q.n, "output_dtype", output);
    return q;
  };
  const std::vector<double> x{1, 2, -3, 40, 5};
  CHECK(elements(run(quantize({1, 3}, {1, 2, 0.5}, 2, kInt4).m, x)) == std::vector<double>{1, 2, -2, 7, 7});
  CHECK(elements(run(quantize({1, 2}, {1, 4}, 3).m, x)) == std::vector<double>{1, 2, 0, 10, 1});
  CHECK(elements(run(quantize({1, 3}, {1, 2, 0.5}, 2, kE2M1).m, x)) == std::vector<double>{1, 2, -1.5, 6, 6});
  REQUIRE_ERROR(import(quantize({1, 2}, {1, 4}, 2).m), "k == ceildiv(j, block)");
  REQUIRE_ERROR(import(quantize({3}, {1, 4, 1}, 2).m), "blocks of 2 need a scale of rank 2, it has 1");
  REQUIRE_ERROR(import(quantize({1, 2}, {1, 4}, -2).m), "attribute 'block_size' is -2");

  OneNode d("DequantizeLinear", 25, {4, 1}, {"x", "s", "z"}, kInt4);
  initializer(d.m, "s", {2, 1}, {0.5, 100});
  integers(d.m, "z", {2, 1}, {0x21}, kInt4);
  set_int(d.n, "axis", 0);
  set_int(d.n, "block_size", 2);
  CHECK(elements(run(d.m, {-8, 7, 3, 2})) == std::vector<double>{-4.5, 3, 100, 0});
}

TEST_CASE("the type that a scale is not: output_dtype and precision") {
  OneNode d("DequantizeLinear", 25, {2}, {"x", "s"}, kE4M3FN);
  integers(d.m, "s", {}, {128}, kE8M0);  // 2
  set_int(d.n, "output_dtype", onnx::TensorProto::FLOAT16);
  const Tensor y = run(d.m, {1.5, -448});
  CHECK(y.dtype() == kF16);
  CHECK(elements(y) == std::vector<double>{3, -896});

  OneNode q("QuantizeLinear", 25, {2}, {"x", "s"}, onnx::TensorProto::FLOAT16);
  integers(q.m, "s", {}, {126}, kE8M0);  // 0.5
  set_int(q.n, "output_dtype", kInt2);
  CHECK(elements(run(q.m, {0.5, -7})) == std::vector<double>{1, -2});
  set_int(q.n, "precision", onnx::TensorProto::FLOAT);
  CHECK(elements(run(q.m, {0.5, -7})) == std::vector<double>{1, -2});

  // A quotient of f16, 2374.94, is rounded to f16 first: there 2374 and 2376 are neighbours.
  OneNode half("QuantizeLinear", 25, {1}, {"x", "s"}, onnx::TensorProto::FLOAT16);
  integers(half.m, "s", {}, {0x2e7c}, onnx::TensorProto::FLOAT16);  // 0.1013
  set_int(half.n, "output_dtype", onnx::TensorProto::INT16);
  CHECK(elements(run(half.m, {-240.625})) == std::vector<double>{-2374});
  set_int(half.n, "precision", onnx::TensorProto::FLOAT);
  CHECK(elements(run(half.m, {-240.625})) == std::vector<double>{-2375});

  OneNode bad("QuantizeLinear", 25, {2}, {"x", "s", "z"});
  initializer(bad.m, "s", {}, {1});
  integers(bad.m, "z", {}, {0}, kInt4);
  set_int(bad.n, "output_dtype", kUint4);
  REQUIRE_ERROR(import(bad.m), "attribute 'output_dtype' says u4, the zero point is s4");
  OneNode none("QuantizeLinear", 25, {2}, {"x", "s"});
  initializer(none.m, "s", {}, {1});
  set_int(none.n, "output_dtype", 99);
  REQUIRE_ERROR(import(none.m), "which is no element type");
}
