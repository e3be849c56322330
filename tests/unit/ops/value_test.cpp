// Values of records against results worked by hand or by plain loops written apart from the records.
#include <algorithm>
#include <cmath>
#include <limits>

#include "dlc/interp/interp.h"
#include "dlc_test/tensors.h"
#include "helpers.h"

using namespace dlc;
using dlc_test::elements;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor tensor(std::vector<int64_t> shape, std::vector<double> v, DType dtype = kF32) {
  auto t = Tensor::make(dtype, std::move(shape));
  if (!t || t->elements() != static_cast<int64_t>(v.size())) FAIL("a test's tensor has the wrong size");
  for (size_t i = 0; i < v.size(); ++i) t->set_double(static_cast<int64_t>(i), v[i]);
  return std::move(*t);
}
// 0, 1, 2 ... times scale, from start
Tensor iota(std::vector<int64_t> shape, double start = 0, double scale = 1, DType dtype = kF32) {
  auto t = Tensor::make(dtype, std::move(shape));
  if (!t) FAIL(to_string(t.error()));
  for (int64_t i = 0; i < t->elements(); ++i) t->set_double(i, start + scale * static_cast<double>(i));
  return std::move(*t);
}
Tensor scalar(double v, DType dtype = kF32) { return tensor({}, {v}, dtype); }

std::vector<Tensor> run_all(const std::string& name, const std::vector<Tensor>& in, const Attrs& attrs = {}) {
  const RecordSet& set = RecordSet::builtin();
  const Record* r = set.find(name);
  if (!r) FAIL("no record " + name);
  std::vector<Operand> operands;
  for (const Tensor& t : in) {
    TensorType type{t.dtype(), {t.shape().begin(), t.shape().end()}};
    if (!r->operands().empty() && r->operands()[0].variadic) {
      if (operands.empty()) operands.push_back({{}, true});
      operands[0].types.push_back(type);
    } else {
      operands.push_back(t.is_valid() ? Operand::of(type) : Operand::absent());
    }
  }
  std::vector<Tensor> inputs = in;
  inputs.resize(std::max(in.size(), r->operands().size()));
  const auto k = set.instantiate(*r, operands, attrs);
  if (!k) FAIL(to_string(k.error()));
  if (auto ok = verify(*k); !ok) FAIL(to_string(ok.error()) + print(*k));
  const auto out = run_kernel(*k, inputs);
  if (!out) FAIL(to_string(out.error()) + "\n" + print(*k));
  return *out;
}
std::vector<double> run(const std::string& name, const std::vector<Tensor>& in, const Attrs& attrs = {}) {
  return elements(run_all(name, in, attrs)[0]);
}

using V = std::vector<double>;

void close(const V& got, const V& want, double tolerance = 1e-5) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    if (std::isfinite(want[i])) {
      CHECK(std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i])));
    } else {
      CHECK(got[i] == want[i]);
    }
  }
}

}  // namespace

TEST_CASE("element-wise values") {
  const Tensor x = tensor({5}, {-2, -0.5, 0, 1, 3});
  CHECK(run("add", {iota({2, 3}), tensor({3}, {10, 20, 30})}) == V{10, 21, 32, 13, 24, 35});
  CHECK(run("sub", {iota({2, 1}), iota({1, 2})}) == V{0, -1, 1, 0});
  CHECK(run("div", {tensor({4}, {7, -7, 7, -7}, kS32), tensor({4}, {2, 2, -2, -2}, kS32)}) == V{3, -3, -3, 3});
  CHECK(run("mod", {tensor({4}, {7, -7, 7, -7}, kS32), tensor({4}, {3, 3, -3, -3}, kS32)}) == V{1, 2, -2, -1});
  CHECK(run("mod", {tensor({4}, {7, -7, 7, -7}, kS32), tensor({4}, {3, 3, -3, -3}, kS32)}, {{"fmod", Expr(1)}}) ==
        V{1, -1, 1, -1});
  CHECK(run("add", {tensor({1}, {100}, kS8), tensor({1}, {100}, kS8)}) == V{-56});
  CHECK(run("pow", {tensor({3}, {2, 3, 4}, kS32), tensor({3}, {3, 2, 0}, kS32)}) == V{8, 9, 1});
  CHECK(run("pow", {tensor({2}, {2, 9}), tensor({2}, {10, 0.5})}) == V{1024, 3});
  CHECK(run("max_n", {tensor({3}, {1, 5, 3}), tensor({3}, {4, 2, 3}), tensor({}, {2})}) == V{4, 5, 3});
  CHECK(run("mean_n", {tensor({2}, {1, 5}), tensor({2}, {3, 2})}) == V{2, 3.5});
  CHECK(run("relu", {x}) == V{0, 0, 0, 1, 3});
  CHECK(run("leaky_relu", {x}, {{"alpha", 0.5}}) == V{-1, -0.25, 0, 1, 3});
  CHECK(run("prelu", {iota({2, 2}, -2), tensor({2}, {10, 100})}) == V{-20, -100, 0, 1});
  CHECK(run("clip", {x, scalar(-1), scalar(2)}) == V{-1, -0.5, 0, 1, 2});
  CHECK(run("clip", {x, Tensor(), scalar(2)}) == V{-2, -0.5, 0, 1, 2});
  CHECK(run("clip", {tensor({2}, {-100, 100}, kS8), scalar(-5, kS8)}) == V{-5, 100});
  close(run("sigmoid", {x}), {0.119203, 0.377541, 0.5, 0.731059, 0.952574});
  close(run("hard_sigmoid", {x}), {0.1, 0.4, 0.5, 0.7, 1});
  close(run("hard_swish", {x}), {-2 / 6.0, -0.5 * 2.5 / 6, 0, 4 / 6.0, 3});
  close(run("gelu", {x}), {-0.0455003, -0.154269, 0, 0.841345, 2.99595});
  close(run("gelu", {x}, {{"approximate", text("tanh")}}), {-0.0454023, -0.154286, 0, 0.841192, 2.99636});
  close(run("softplus", {tensor({3}, {-100, 0, 100})}), {0, 0.693147, 100});
  close(run("elu", {x}), {std::exp(-2) - 1, std::exp(-0.5) - 1, 0, 1, 3});
  close(run("selu", {tensor({2}, {-1, 1})}),
        {1.0507009873554805 * 1.6732632423543772 * (std::exp(-1) - 1), 1.0507009873554805});
  close(run("mish", {tensor({2}, {1, -1})}), {0.865098, -0.303401});
  CHECK(run("round", {tensor({5}, {0.5, 1.5, 2.5, -0.5, -1.5})}) == V{0, 2, 2, 0, -2});
  CHECK(run("sign", {x}) == V{-1, -1, 0, 1, 1});
  CHECK(run("equal", {x, scalar(0)}) == V{0, 0, 1, 0, 0});
  CHECK(run("logical_xor", {tensor({4}, {0, 0, 1, 1}, kBool), tensor({4}, {0, 1, 0, 1}, kBool)}) == V{0, 1, 1, 0});
  CHECK(run("is_inf", {tensor({3}, {kInf, -kInf, 1})}, {{"detect_negative", Expr(0)}}) == V{1, 0, 0});
  CHECK(run("where", {tensor({2, 1}, {1, 0}, kBool), iota({2}), iota({2}, 10)}) == V{0, 1, 10, 11});
  CHECK(run("cast", {tensor({3}, {1.9, -1.9, 300})}, {{"to", kU8}}) == V{1, 255, 44});
  CHECK(run("cast", {tensor({3}, {0, 0.5, -2})}, {{"to", kBool}}) == V{0, 1, 1});
  CHECK(run("bit_shift", {tensor({3}, {16, 4, 1}, kU8), tensor({3}, {1, 2, 3}, kU8)}, {{"direction", text("LEFT")}}) ==
        V{32, 16, 8});
}

TEST_CASE("convolutions against plain loops") {
  struct Case {
    int64_t channels, filters, group, stride, dilation, lo, hi;
  };
  for (const Case& c :
       {Case{4, 6, 1, 1, 1, 0, 0}, Case{4, 6, 2, 1, 1, 1, 1}, Case{3, 3, 3, 2, 1, 1, 0}, Case{2, 2, 1, 2, 2, 2, 1}}) {
    const int64_t h = 7, w = 6, k = 3, ci = c.channels / c.group;
    const Tensor x = iota({2, c.channels, h, w}, -20, 0.25), f = iota({c.filters, ci, k, k}, -3, 0.125),
                 b = iota({c.filters}, 1);
    const int64_t oh = (h + c.lo + c.hi - c.dilation * (k - 1) - 1) / c.stride + 1;
    const int64_t ow = (w + c.lo + c.hi - c.dilation * (k - 1) - 1) / c.stride + 1;
    V want;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t o = 0; o < c.filters; ++o)
        for (int64_t y = 0; y < oh; ++y)
          for (int64_t z = 0; z < ow; ++z) {
            double sum = b.get_double(o);
            for (int64_t i = 0; i < ci; ++i)
              for (int64_t p = 0; p < k; ++p)
                for (int64_t q = 0; q < k; ++q) {
                  const int64_t r = y * c.stride + p * c.dilation - c.lo, s = z * c.stride + q * c.dilation - c.lo;
                  if (r < 0 || s < 0 || r >= h || s >= w) continue;
                  const int64_t channel = o / (c.filters / c.group) * ci + i;
                  sum += x.get_double(((n * c.channels + channel) * h + r) * w + s) *
                         f.get_double(((o * ci + i) * k + p) * k + q);
                }
            want.push_back(sum);
          }
    const Attrs attrs = {{"stride", ints({c.stride, c.stride})},
                         {"dilation", ints({c.dilation, c.dilation})},
                         {"pad_lo", ints({c.lo, c.lo})},
                         {"pad_hi", ints({c.hi, c.hi})},
                         {"group", Expr(c.group)}};
    close(run("conv", {x, f, b}, attrs), want, 1e-4);
  }
}

TEST_CASE("a transposed convolution scatters what a convolution gathers") {
  const int64_t h = 4, k = 3, stride = 2, lo = 1, out_pad = 1, group = 2, og = 2, channels = 4;
  const Tensor x = iota({1, channels, h}, 1, 0.5), w = iota({channels, og, k}, -2, 0.25);
  const int64_t oh = (h - 1) * stride + out_pad + k - 2 * lo;
  V want(static_cast<size_t>(group * og * oh), 0.0);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < h; ++i)
      for (int64_t o = 0; o < og; ++o)
        for (int64_t p = 0; p < k; ++p) {
          const int64_t y = i * stride + p - lo;
          if (y < 0 || y >= oh) continue;
          const int64_t filter = c / (channels / group) * og + o;
          want[static_cast<size_t>(filter * oh + y)] += x.get_double(c * h + i) * w.get_double((c * og + o) * k + p);
        }
  close(run("conv_transpose", {x, w},
            {{"stride", ints({stride})},
             {"pad_lo", ints({lo})},
             {"pad_hi", ints({lo})},
             {"out_pad", ints({out_pad})},
             {"group", Expr(group)}}),
        want);
}

TEST_CASE("matrix products") {
  CHECK(run("matmul", {iota({2, 3}), iota({3, 2})}) == V{10, 13, 28, 40});
  CHECK(run("gemm", {iota({3, 2}), iota({2, 3}), tensor({2}, {1, 2})},
            {{"trans_a", Expr(1)}, {"trans_b", Expr(1)}, {"alpha", 2.0}, {"beta", 10.0}}) ==
        V{2 * 10 + 10, 2 * 28 + 20, 2 * 13 + 10, 2 * 40 + 20});
  CHECK(run("int_matmul", {tensor({1, 2}, {200, 100}, kU8), tensor({2, 1}, {-3, 5}, kS8), tensor({}, {100}, kU8),
                           tensor({1}, {1}, kS8)}) == V{-400});
}

TEST_CASE("pools") {
  const Tensor x = iota({1, 1, 4, 4});
  const Attrs two = {{"kernel", ints({2, 2})}, {"stride", ints({2, 2})}};
  CHECK(run("max_pool", {x}, two) == V{5, 7, 13, 15});
  CHECK(run("avg_pool", {x}, two) == V{2.5, 4.5, 10.5, 12.5});
  const Attrs padded = {{"kernel", ints({3})}, {"stride", ints({2})}, {"pad_lo", ints({1})}, {"pad_hi", ints({1})}};
  CHECK(run("avg_pool", {iota({1, 1, 4}, 1)}, padded) == V{1.5, 3});
  Attrs counted = padded;
  counted["count_include_pad"] = Expr(1);
  close(run("avg_pool", {iota({1, 1, 4}, 1)}, counted), {1, 3});
  Attrs ceil = two;
  ceil["kernel"] = ints({3, 3});
  ceil["ceil_mode"] = Expr(1);
  CHECK(run("max_pool", {x}, ceil) == V{10, 11, 14, 15});
  CHECK(run("max_pool", {tensor({1, 1, 2}, {-3, -4}, kS8)}, {{"kernel", ints({2})}, {"pad_lo", ints({1})}}) ==
        V{-3, -3});
}

TEST_CASE("softmax and normalisations") {
  close(run("softmax", {tensor({1, 3}, {-1, 0, 1})}), {0.0900306, 0.244728, 0.665241});
  close(run("softmax", {tensor({2, 2}, {1000, 0, 1001, 0})}, {{"axis", Expr(0)}}), {0.268941, 0.5, 0.731059, 0.5});
  close(run("log_softmax", {tensor({1, 3}, {-1, 0, 1})}), {-2.407606, -1.407606, -0.407606});
  CHECK(run("hardmax", {tensor({2, 3}, {1, 3, 3, 9, 2, 9})}) == V{0, 1, 0, 1, 0, 0});
  const auto ln = run_all("layer_norm", {tensor({2, 2}, {1, 3, 2, 6}), tensor({2}, {1, 2}), tensor({2}, {0, 1})},
                          {{"epsilon", 0.0}});
  close(elements(ln[0]), {-1, 3, -1, 3});
  close(elements(ln[1]), {2, 4});
  close(elements(ln[2]), {1, 0.5});
  close(run("batch_norm",
            {tensor({1, 2, 2}, {1, 3, 5, 7}), tensor({2}, {2, 1}), tensor({2}, {0, 1}), tensor({2}, {1, 5}),
             tensor({2}, {4, 1})},
            {{"epsilon", 0.0}}),
        {0, 2, 1, 3});
  close(run("instance_norm", {tensor({1, 1, 2}, {1, 3}), tensor({1}, {2}), tensor({1}, {1})}, {{"epsilon", 0.0}}),
        {-1, 3});
  close(run("group_norm", {tensor({1, 4, 1}, {1, 3, 10, 30}), tensor({4}, {1, 1, 1, 1}), tensor({4}, {0, 0, 0, 0})},
            {{"groups", Expr(2)}, {"epsilon", 0.0}}),
        {-1, 1, -1, 1});
  close(run("rms_norm", {tensor({1, 2}, {3, 4}), tensor({2}, {1, 2})}, {{"epsilon", 0.0}}),
        {3 / std::sqrt(12.5), 8 / std::sqrt(12.5)});
  close(run("lrn", {tensor({1, 3, 1}, {1, 2, 3})}, {{"size", Expr(3)}, {"alpha", 3.0}, {"beta", 0.5}, {"bias", 1.0}}),
        {1 / std::sqrt(6), 2 / std::sqrt(15), 3 / std::sqrt(14)});
}

TEST_CASE("reductions") {
  const Tensor x = iota({2, 3}, 1);
  CHECK(run("reduce_sum", {x}) == V{21});
  CHECK(run("reduce_sum", {x}, {{"axes", ints({0})}}) == V{5, 7, 9});
  CHECK(run("reduce_mean", {x}, {{"axes", ints({-1})}, {"keepdims", Expr(1)}}) == V{2, 5});
  CHECK(run("reduce_mean", {tensor({2}, {1, 4}, kS32)}) == V{2});
  CHECK(run("reduce_mean", {tensor({2}, {-1, -4}, kS32)}) == V{-2});  // toward zero
  // Integers that f32 does not have.
  for (const DType t : {kS32, kU32, kS64, kU64}) {
    CHECK(run("reduce_mean", {tensor({2}, {16777217, 16777217}, t)}) == V{16777217});
    CHECK(run("reduce_l2", {tensor({1}, {16777217}, t)}) == V{16777217});
  }
  CHECK(run("reduce_log_sum", {tensor({2}, {3, 5}, kS64)}) == V{2});
  CHECK(run("reduce_prod", {x}, {{"axes", ints({1})}}) == V{6, 120});
  CHECK(run("reduce_max", {x}, {{"axes", ints({1})}}) == V{3, 6});
  CHECK(run("reduce_min", {x}, {{"axes", ints({0})}}) == V{1, 2, 3});
  CHECK(run("reduce_l1", {tensor({2}, {-3, 4})}) == V{7});
  CHECK(run("reduce_l2", {tensor({2}, {-3, 4})}) == V{5});
  CHECK(run("reduce_sum_square", {tensor({2}, {-3, 4}, kS32)}) == V{25});
  close(run("reduce_log_sum_exp", {tensor({2}, {1000, 1000})}), {1000.693147});
  CHECK(run("arg_max", {tensor({2, 3}, {1, 3, 3, 9, 2, 9})}, {{"axis", Expr(1)}}) == V{1, 0});
  CHECK(run("arg_max", {tensor({2, 3}, {1, 3, 3, 9, 2, 9})}, {{"axis", Expr(1)}, {"select_last_index", Expr(1)}}) ==
        V{2, 2});
  CHECK(run("arg_min", {tensor({2, 2}, {1, 0, 1, 2})}, {{"axis", Expr(0)}, {"keepdims", Expr(1)}}) == V{0, 0});
  const Tensor c = iota({3}, 1);
  CHECK(run("cumsum", {c}) == V{1, 3, 6});
  CHECK(run("cumsum", {c}, {{"reverse", Expr(1)}}) == V{6, 5, 3});
  CHECK(run("cumsum", {c}, {{"exclusive", Expr(1)}}) == V{0, 1, 3});
  CHECK(run("cumsum", {c}, {{"reverse", Expr(1)}, {"exclusive", Expr(1)}}) == V{5, 3, 0});
  CHECK(run("cumsum", {iota({2, 2}, 1)}, {{"axis", Expr(-1)}}) == V{1, 3, 3, 7});
}

TEST_CASE("movement") {
  const Tensor x = iota({2, 3});
  CHECK(run("reshape", {x}, {{"shape", ints({3, 2})}}) == V{0, 1, 2, 3, 4, 5});
  CHECK(run("transpose", {x}, {{"perm", ints({1, 0})}}) == V{0, 3, 1, 4, 2, 5});
  CHECK(run("transpose", {iota({1, 2, 3})}, {{"perm", ints({2, 0, 1})}}) == V{0, 3, 1, 4, 2, 5});
  CHECK(run("squeeze", {iota({1, 2, 1})}, {{"axes", ints({0, 2})}}) == V{0, 1});
  CHECK(run("concat", {x, tensor({2, 1}, {7, 8})}, {{"axis", Expr(1)}}) == V{0, 1, 2, 7, 3, 4, 5, 8});
  CHECK(run("slice", {iota({5})}, {{"start", ints({-1})}, {"stop", ints({-100})}, {"step", ints({-2})}}) == V{4, 2, 0});
  CHECK(run("slice", {x}, {{"start", ints({0, 1})}, {"stop", ints({100, -1})}}) == V{1, 4});
  CHECK(run("pad", {iota({3}), scalar(9)}, {{"lo", ints({1})}, {"hi", ints({2})}}) == V{9, 0, 1, 2, 9, 9});
  CHECK(run("pad", {iota({3})}, {{"lo", ints({-1})}, {"hi", ints({1})}}) == V{1, 2, 0});
  CHECK(run("pad", {iota({3})}, {{"lo", ints({2})}, {"hi", ints({2})}, {"mode", text("reflect")}}) ==
        V{2, 1, 0, 1, 2, 1, 0});
  CHECK(run("pad", {iota({3})}, {{"lo", ints({2})}, {"hi", ints({1})}, {"mode", text("edge")}}) == V{0, 0, 0, 1, 2, 2});
  CHECK(run("pad", {iota({3})}, {{"lo", ints({2})}, {"hi", ints({1})}, {"mode", text("wrap")}}) == V{1, 2, 0, 1, 2, 0});
  CHECK(run("expand", {iota({2, 1})}, {{"shape", ints({2, 2, 3})}}) == V{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1});
  CHECK(run("tile", {iota({2})}, {{"repeats", ints({2})}}) == V{0, 1, 0, 1});
  CHECK(run("trilu", {iota({2, 3}, 1)}, {{"k", Expr(1)}}) == V{0, 2, 3, 0, 0, 6});
  CHECK(run("trilu", {iota({2, 3}, 1)}, {{"upper", Expr(0)}}) == V{1, 0, 0, 4, 5, 0});
  CHECK(run("gather", {x, tensor({2}, {0, -1}, kS64)}, {{"axis", Expr(1)}}) == V{0, 2, 3, 5});
  CHECK(run("gather_elements", {tensor({2, 2}, {1, 2, 3, 4}), tensor({2, 2}, {0, 0, 1, 0}, kS64)},
            {{"axis", Expr(1)}}) == V{1, 1, 4, 3});
  CHECK(run("gather_nd", {tensor({2, 2}, {0, 1, 2, 3}), tensor({2, 2}, {0, 0, 1, 1}, kS64)}) == V{0, 3});
  CHECK(run("gather_nd", {iota({2, 2, 2}), tensor({2, 1}, {1, 0}, kS64)}, {{"batch_dims", Expr(1)}}) == V{2, 3, 4, 5});
  CHECK(run("scatter_nd", {iota({8}, 1), tensor({4, 1}, {4, 3, 1, 7}, kS64), tensor({4}, {9, 10, 11, 12})}) ==
        V{1, 11, 3, 10, 9, 6, 7, 12});
  CHECK(run("scatter_nd", {iota({3}), tensor({2, 1}, {1, 1}, kS64), tensor({2}, {5, 7})},
            {{"reduction", text("add")}}) == V{0, 13, 2});
  CHECK(run("scatter_elements",
            {tensor({1, 5}, {1, 2, 3, 4, 5}), tensor({1, 2}, {1, 3}, kS64), tensor({1, 2}, {1.5, 2.5})},
            {{"axis", Expr(1)}}) == V{1, 1.5, 3, 2.5, 5});
  CHECK(run("one_hot", {tensor({2}, {1, -1}, kS64), tensor({2}, {0, 5})}, {{"depth", Expr(3)}}) == V{0, 5, 0, 0, 0, 5});
  CHECK(run("depth_to_space", {iota({1, 4, 1, 2})}, {{"block", Expr(2)}}) == V{0, 2, 1, 3, 4, 6, 5, 7});
  CHECK(run("space_to_depth", {iota({1, 1, 2, 2})}, {{"block", Expr(2)}}) == V{0, 1, 2, 3});
  CHECK(run("reverse_sequence", {iota({3, 2}), tensor({2}, {2, 3}, kS64)}) == V{2, 5, 0, 3, 4, 1});
  CHECK(run("shape", {iota({2, 3, 4})}, {{"end", Expr(3)}}) == V{2, 3, 4});
  CHECK(run("size", {iota({2, 3, 4})}) == V{24});
  CHECK(run("range", {scalar(3, kS64), scalar(-2, kS64)}, {{"count", Expr(3)}}) == V{3, 1, -1});
  CHECK(run("eye_like", {iota({2, 3})}, {{"k", Expr(1)}, {"to", kS32}}) == V{0, 1, 0, 0, 0, 1});
}

TEST_CASE("resampling") {
  const Tensor x = tensor({1, 1, 2, 2}, {1, 2, 3, 4});
  const AttrValue twice = std::vector<double>{1, 1, 2, 3};
  CHECK(run("resize_nearest", {x}, {{"size", ints({1, 1, 4, 6})}, {"scale", twice}}) ==
        V{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  close(run("resize_linear", {tensor({2}, {0, 4})}, {{"size", ints({4})}, {"scale", std::vector<double>{2}}}),
        {0, 1, 3, 4});
  close(run("resize_linear", {x},
            {{"size", ints({1, 1, 3, 3})},
             {"scale", std::vector<double>{1, 1, 1.5, 1.5}},
             {"coordinates", text("align_corners")}}),
        {1, 1.5, 2, 2, 2.5, 3, 3, 3.5, 4});
  close(run("resize_linear", {iota({4})},
            {{"size", ints({2})}, {"scale", std::vector<double>{0.5}}, {"coordinates", text("asymmetric")}}),
        {0, 2});
}

TEST_CASE("cubic resampling") {
  // Keys' kernel with a = -0.75, worked by hand: at 0.75 the weights are of distances 1.75, 0.75, 0.25, 1.25.
  auto weight = [](double t) {
    const double a = -0.75;
    return t <= 1 ? ((a + 2) * t - (a + 3)) * t * t + 1 : ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  };
  const V x = {1, 2, 4, 8};
  V want;
  for (int o = 0; o < 8; ++o) {
    const double at = (o + 0.5) / 2 - 0.5, base = std::floor(at);
    double sum = 0;
    for (int e = -1; e <= 2; ++e)
      sum += weight(std::abs(at - base - e)) * x[static_cast<size_t>(std::clamp(static_cast<int>(base) + e, 0, 3))];
    want.push_back(sum);
  }
  close(run("resize_cubic", {tensor({4}, x)}, {{"size", ints({8})}, {"scale", std::vector<double>{2}}}), want);
  // A scale that rounds to the same size still moves the samples.
  close(run("resize_linear", {tensor({2}, {0, 4})}, {{"size", ints({2})}, {"scale", std::vector<double>{1.25}}}),
        {0, 2.8});
}

TEST_CASE("quantisation") {
  CHECK(run("quantize_linear", {tensor({6}, {0, 2, 3, 1000, -254, -1000}), scalar(2), scalar(128, kU8)},
            {{"axis", Expr(0)}}) == V{128, 129, 130, 255, 1, 0});
  CHECK(run("quantize_linear", {tensor({1, 2, 2}, {1, 3, 1, 3}), tensor({2}, {1, 2}), tensor({2}, {0, 10}, kS8)}) ==
        V{1, 3, 10, 12});
  CHECK(run("dequantize_linear", {tensor({4}, {0, 3, 128, 255}, kU8), scalar(2), scalar(128, kU8)},
            {{"axis", Expr(0)}}) == V{-256, -250, 0, 254});
  const auto d = run_all("dynamic_quantize_linear", {tensor({6}, {0, 2, -3, -2.5, 1.34, 0.5})});
  CHECK(elements(d[0]) == V{153, 255, 0, 26, 221, 179});
  close(elements(d[1]), {0.0196078438});
  CHECK(elements(d[2]) == V{153});
  // Padding with a zero point adds nothing: the border of an all-zero-point image is 0.
  CHECK(run("int_conv", {tensor({1, 1, 2}, {7, 8}, kU8), tensor({1, 1, 3}, {1, 2, 3}, kS8), Tensor(), scalar(7, kU8)},
            {{"pad_lo", ints({1})}, {"pad_hi", ints({1})}}) == V{3, 2});
  CHECK(run("qlinear_matmul",
            {tensor({1, 2}, {208, 236}, kU8), scalar(0.0066), scalar(113, kU8), tensor({2, 1}, {152, 60}, kU8),
             scalar(0.00705), scalar(114, kU8), scalar(0.0107), scalar(118, kU8)}) ==
        V{std::nearbyint(((208 - 113) * (152 - 114) + (236 - 113) * (60 - 114)) * (0.0066 * 0.00705 / 0.0107)) + 118});
  CHECK(run("qlinear_add", {tensor({1}, {10}, kS8), scalar(0.5), scalar(0, kS8), tensor({1}, {20}, kS8), scalar(0.25),
                            scalar(4, kS8), scalar(1), scalar(-1, kS8)}) == V{8});
}

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("recurrent layers against plain loops") {
  const int64_t steps = 3, batch = 2, in = 2, hidden = 2, dirs = 2;
  const Tensor x = iota({steps, batch, in}, -1, 0.3);
  auto weights = [&](int64_t gates) {
    return std::vector<Tensor>{iota({dirs, gates * hidden, in}, -0.5, 0.1),
                               iota({dirs, gates * hidden, hidden}, 0.4, -0.07),
                               iota({dirs, 2 * gates * hidden}, -0.2, 0.05)};
  };
  const Tensor h0 = iota({dirs, batch, hidden}, 0.1, 0.1), c0 = iota({dirs, batch, hidden}, -0.3, 0.15);
  auto product = [&](const std::vector<Tensor>& w, int64_t d, int64_t row, int64_t rows, const double* v, int64_t n,
                     size_t which) {
    double s = 0;
    for (int64_t i = 0; i < n; ++i) s += v[i] * w[which].get_double((d * rows + row) * n + i);
    return s;
  };
  for (const bool gru : {false, true}) {
    for (const bool linear : {false, true}) {
      const int64_t gates = gru ? 3 : 4, rows = gates * hidden;
      const auto w = weights(gates);
      V want(static_cast<size_t>(steps * dirs * batch * hidden));
      for (int64_t d = 0; d < dirs; ++d)
        for (int64_t b = 0; b < batch; ++b) {
          V h, c;
          for (int64_t k = 0; k < hidden; ++k) {
            h.push_back(h0.get_double((d * batch + b) * hidden + k));
            c.push_back(c0.get_double((d * batch + b) * hidden + k));
          }
          for (int64_t s = 0; s < steps; ++s) {
            const int64_t t = d == 1 ? steps - 1 - s : s;
            V xt;
            for (int64_t i = 0; i < in; ++i) xt.push_back(x.get_double((t * batch + b) * in + i));
            auto wx = [&](int64_t row) {
              return product(w, d, row, rows, xt.data(), in, 0) + w[2].get_double(d * 2 * rows + row);
            };
            auto rh = [&](int64_t row, const V& v) { return product(w, d, row, rows, v.data(), hidden, 1); };
            auto rb = [&](int64_t row) { return w[2].get_double(d * 2 * rows + rows + row); };
            V next = h;
            for (int64_t k = 0; k < hidden; ++k) {
              auto gate = [&](int64_t g) { return wx(g * hidden + k) + rh(g * hidden + k, h) + rb(g * hidden + k); };
              if (!gru) {
                auto& cell = c[static_cast<size_t>(k)];
                cell = sigmoid(gate(2)) * cell + sigmoid(gate(0)) * std::tanh(gate(3));
                next[static_cast<size_t>(k)] = sigmoid(gate(1)) * std::tanh(cell);
                continue;
              }
              const int64_t row = 2 * hidden + k;
              V scaled = h;
              for (int64_t j = 0; j < hidden; ++j)
                scaled[static_cast<size_t>(j)] *= sigmoid(wx(hidden + j) + rh(hidden + j, h) + rb(hidden + j));
              const double r = sigmoid(gate(1)), z = sigmoid(gate(0));
              const double n = std::tanh(wx(row) + (linear ? r * (rh(row, h) + rb(row)) : rh(row, scaled) + rb(row)));
              next[static_cast<size_t>(k)] = (1 - z) * n + z * h[static_cast<size_t>(k)];
            }
            h = next;
            for (int64_t k = 0; k < hidden; ++k)
              want[static_cast<size_t>(((t * dirs + d) * batch + b) * hidden + k)] = h[static_cast<size_t>(k)];
          }
        }
      std::vector<Tensor> operands{x, w[0], w[1], w[2], h0};
      if (!gru) operands.push_back(c0);
      const Attrs attrs = gru ? Attrs{{"linear_before_reset", Expr(linear)}} : Attrs{};
      INFO((gru ? "gru" : "lstm") << " linear_before_reset " << linear);
      close(run(gru ? "gru" : "lstm", operands, attrs), want);
    }
  }
}

TEST_CASE("attention with shared key heads and a causal mask") {
  const int64_t h = 2, s = 3, d = 2;
  const Tensor q = iota({1, h, s, d}, 0.1, 0.2), k = iota({1, 1, s, d}, -0.3, 0.1), v = iota({1, 1, s, d}, 1, 0.5);
  V want;
  for (int64_t a = 0; a < h; ++a)
    for (int64_t i = 0; i < s; ++i) {
      V e;
      double total = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (int64_t x = 0; x < d; ++x) dot += q.get_double((a * s + i) * d + x) * k.get_double(j * d + x);
        e.push_back(std::exp(dot / std::sqrt(2.0)));
        total += e.back();
      }
      for (int64_t x = 0; x < d; ++x) {
        double y = 0;
        for (size_t j = 0; j < e.size(); ++j) y += e[j] / total * v.get_double(static_cast<int64_t>(j) * d + x);
        want.push_back(y);
      }
    }
  close(run("attention", {q, k, v}, {{"causal", Expr(1)}}), want);
}

TEST_CASE("rope turns pairs of elements") {
  const Tensor x = tensor({1, 1, 1, 4}, {1, 2, 3, 4}), at = tensor({1, 1}, {1}, kS64);
  const Tensor cosine = tensor({2, 2}, {1, 1, 0.5, 0.25}), sine = tensor({2, 2}, {0, 0, 2, 4});
  CHECK(run("rope", {x, cosine, sine, at}) == V{1 * 0.5 - 3 * 2, 2 * 0.25 - 4 * 4, 3 * 0.5 + 1 * 2, 4 * 0.25 + 2 * 4});
  CHECK(run("rope", {x, cosine, sine, at}, {{"interleaved", Expr(1)}}) ==
        V{1 * 0.5 - 2 * 2, 2 * 0.5 + 1 * 2, 3 * 0.25 - 4 * 4, 4 * 0.25 + 3 * 4});
}
