// Random sums of products that are large enough for the panels: against the tree walk, integers bit for bit.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "support.h"

using namespace dlc;
using namespace dlc::test;

namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : rng_(seed) {}

  // Y[b, o, y, x] (in some order) = epilogue(sum[c, h, w] X-factor * W-factor)
  std::string kernel() {
    const bool floats = chance(50);
    const std::string xt = floats ? any({"f32", "f16", "f64"}) : any({"s8", "u8", "s16", "s32"});
    const std::string wt = floats ? any({"f32", "bf16"}) : any({"s8", "s5", "s16"});
    const std::string acc = floats ? any({"f32", "f64"}) : any({"s32", "s64", "s16", "u32"});
    const std::string yt = floats ? any({"f32", "f64", "f16"}) : any({"s32", "s64", "s8"});
    const int groups = chance(30) ? pick(2, 3) : 1, inside = pick(groups > 1 ? 2 : 3, 9);
    const int b = pick(1, 2), o = inside * groups, y = pick(1, 5), x = pick(5, 12), c = chance(10) ? 300 : pick(3, 9);
    const int h = pick(1, 3), w = pick(1, 3), stride = pick(1, 2), dilation = pick(1, 2), pad = pick(0, 2);
    const int ih = (y - 1) * stride + (h - 1) * dilation + 1 - (chance(50) ? pad : 0);
    const int iw = (x - 1) * stride + (w - 1) * dilation + 1 - (chance(50) ? pad : 0);
    const std::string at = fmt::format("y*{0} + h*{1} - {2}, x*{0} + w*{1} - {2}", stride, dilation, pad);
    const std::string channel = groups > 1 ? fmt::format("(o // {})*{} + c", inside, c) : "c";
    const bool channels_first = chance(50);
    const std::string read =
        channels_first ? fmt::format("X[b, {}, {}]", channel, at) : fmt::format("X[{}, {}, b]", channel, at);
    const std::string lack = floats || chance(50) ? "0" : "Z[]";
    std::string fx = fmt::format("({} ?: {})", read, lack);
    if (chance(30)) fx = fmt::format("(({} - Z[]) ?: 0)", read);
    if (chance(15)) fx = fmt::format("(if x + w >= 2 then {} else 0)", fx);
    if (chance(10)) fx = read;
    std::string fw = chance(50) ? "W[o, c, h, w]" : "W[c, h, w, o]";
    const bool out_first = fw[2] == 'o';
    const std::string w_shape =
        out_first ? fmt::format("{},{},{},{}", o, c, h, w) : fmt::format("{},{},{},{}", c, h, w, o);
    if (chance(20)) fw = fmt::format("({} + S[o])", fw);
    const std::string product = chance(50) ? fmt::format("{} * {}", fx, fw) : fmt::format("{} * {}", fw, fx);
    std::string value = fmt::format("(sum:{}[c < {}, h < {}, w < {}] ({}))", acc, c, h, w, product);
    if (chance(40)) value = fmt::format("(S[o] + {})", value);
    if (chance(30)) value = fmt::format("max({}, 0)", value);
    if (chance(20)) value = fmt::format("({0} + {0}*2)", value);
    const bool last = chance(50);
    const std::string y_index = last ? "b, o, y, x" : "b, y, x, o";
    const std::string y_shape = last ? fmt::format("{},{},{},{}", b, o, y, x) : fmt::format("{},{},{},{}", b, y, x, o);
    const std::string x_shape = channels_first
                                    ? fmt::format("{},{},{},{}", b, c * groups, std::max(1, ih), std::max(1, iw))
                                    : fmt::format("{},{},{},{}", c * groups, std::max(1, ih), std::max(1, iw), b);
    const std::string loops = last ? fmt::format("b < {}, o < {}, y < {}, x < {}", b, o, y, x)
                                   : fmt::format("b < {}, y < {}, x < {}, o < {}", b, y, x, o);
    return fmt::format(R"(dlc.kernel 1
kernel @random {{
  in X: {0}[{1}]
  in W: {2}[{3}]
  in S: {2}[{4}]
  in Z: {0}[]
  out Y: {5}[{6}]
  for {7}: Y[{8}] = {9}
}}
)",
                       xt, x_shape, wt, w_shape, o, yt, y_shape, loops, y_index, value);
  }

  Tensor operand(const KernelTensor& t) {
    std::vector<int64_t> shape;
    for (const Expr& d : t.shape) shape.push_back(*d.constant());
    auto r = Tensor::make(t.dtype, shape);
    REQUIRE(r.has_value());
    for (int64_t i = 0; i < r->elements(); ++i) {
      if (t.dtype.is_float())
        r->set_double(i, pick(-16, 16) / 4.0);
      else
        r->set_int(i, pick(-40000, 40000));
    }
    return *r;
  }

 private:
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  std::string any(const std::vector<std::string>& v) {
    return v[static_cast<size_t>(pick(0, static_cast<int>(v.size()) - 1))];
  }

  std::mt19937_64 rng_;
};

}  // namespace

TEST_CASE("random contractions agree with the tree walk") {
  int agreed = 0, failed = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Generator g(seed);
    const std::string text = g.kernel();
    INFO("seed " << seed << "\n" << text);
    const auto k = parse_kernel(text);
    if (!k) FAIL(to_string(k.error()));
    std::vector<Tensor> operands;
    for (const int i : k->inputs) operands.push_back(g.operand(k->tensors[static_cast<size_t>(i)]));
    const auto slow = run_kernel(*k, operands, {.tree_walk = true});
    const auto fast = run_kernel(*k, operands);
    REQUIRE(slow.has_value() == fast.has_value());
    if (!slow) {
      ++failed;
      continue;
    }
    ++agreed;
    const Tensor &a = slow->at(0), &b = fast->at(0);
    for (int64_t i = 0; i < a.elements(); ++i) {
      INFO("element " << i << ": " << a.get_double(i) << " and " << b.get_double(i));
      // Operands are multiples of 1/4 and sums are short: exact in f32, whatever the order.
      REQUIRE(a.get_double(i) == b.get_double(i));
    }
  }
  CHECK(agreed > 100);
  CHECK(failed > 5);
}

TEST_CASE("an undefined factor of a contraction is found") {
  // Row 9 of B does not exist; only k = 9 reads it.
  const std::string text = R"(dlc.kernel 1
kernel @k {
  in A: f32[32,10]
  in B: f32[9,32]
  out Y: f32[32,32]
  for i < 32, j < 32: Y[i, j] = sum:f32[k < 10] A[i, k] * B[k, j]
}
)";
  const auto e =
      error_of(text, {floats({32, 10}, std::vector<double>(320, 1)), floats({9, 32}, std::vector<double>(288, 1))});
  CHECK_THAT(e,
             Catch::Matchers::Contains("an undefined value is stored to Y") && Catch::Matchers::Contains("i=0, j=0"));
}
