// What puts tensors together, takes them apart and repeats them: interpreter == functional simulator == RTL.
#include "tests/cosim_layers/networks.h"

using namespace dlc;
using namespace dlc::asic;

namespace {

const DType kU31{DType::Kind::unsigned_int, 31}, kU24{DType::Kind::unsigned_int, 24}, kU6{DType::Kind::unsigned_int, 6};

ValueId rescaled(LayerBuilder& b, ValueId acc, int64_t shift) {
  return b.node("rescale", {acc, b.scalar(kU31, b.in(1 << 29, 1 << 30)), b.scalar(kU6, shift)}, {{"zero", Expr(3)}});
}

ValueId concat(LayerBuilder& b, std::vector<ValueId> parts, int64_t axis) {
  return b.node("concat", std::move(parts), {{"axis", Expr(axis)}});
}

ValueId slice(LayerBuilder& b, ValueId x, int64_t first, int64_t end) {
  const auto one = [](int64_t c, int64_t rest) { return list({0, c, rest, rest}); };
  std::vector<Expr> stop{b.shape(x)[0], Expr(end), b.shape(x)[2], b.shape(x)[3]};
  return b.node("slice", {x}, {{"start", one(first, 0)}, {"stop", stop}});
}

std::vector<std::string> plans(const TestMachine& m, const Graph& g) {
  std::vector<std::string> out;
  for (const AcceleratorLayer& l : need(compile_for(*m.hw, need(lower_to_program(g)))).layers) out.push_back(l.plan);
  return out;
}

}  // namespace

// x * sigmoid(conv(swish(conv(mean(x))))): the product repeats one element of each channel over its map.
TEST_CASE("squeeze and excite on the RTL") {
  for (const int size : {8, 16})
    for (const bool first : {false, true}) {
      INFO("array " << size << ", the map is operand " << first);
      const auto& m = machine(size);
      LayerBuilder b(m, 21);
      const ValueId x = b.conv(b.input({1, 20, 9, 7}), 40, 3, 1, 1);
      const ValueId sum =
          b.node("window_sum", {x}, {{"kernel", list({9, 7})}, {"stride", list({1, 1})}, {"zero", Expr(-4)}});
      const auto lookup = [&](ValueId v) { return b.node("lookup", {v, b.constant(kS8, {256}, -128, 127)}, {}); };
      const ValueId gate = lookup(b.conv(lookup(b.conv(rescaled(b, sum, 36), 10, 1, 1, 0)), 40, 1, 1, 0));
      const ValueId y =
          b.node("mul_s8", {first ? gate : x, first ? x : gate, b.scalar(kU24, 9000000), b.scalar(kU6, 30)},
                 {{"a_zero", Expr(-5)}, {"b_zero", Expr(7)}, {"zero", Expr(2)}});
      cosim(m, b.finish({b.conv(y, 8, 1, 1, 0)}), b.inputs(), 5);
    }
}

// The operands of a concatenation are written where it wants them; one that somebody else joins too is copied.
TEST_CASE("channels put together on the RTL") {
  for (const int size : {8, 16})
    for (const int64_t batch : {1, 2}) {
      INFO("array " << size << ", batch " << batch);
      const auto& m = machine(size);
      LayerBuilder b(m, 22);
      const ValueId x = b.input({batch, 12, 7, 9});
      const ValueId a = b.conv(x, 16, 3, 1, 1), c = b.conv(x, 32, 1, 1, 0), d = b.conv(a, 20, 3, 1, 1);
      const ValueId y = b.conv(concat(b, {a, c, d}, 1), 24, 3, 1, 1);
      Graph g = b.finish({y, b.conv(d, 9, 3, 2, 1)});
      // Nothing is moved; of two batches only what no padding is read of.
      CHECK(std::ranges::count(plans(m, g), "vec") == (batch == 1 ? 0 : 1));
      cosim(m, g, b.inputs(), 6);
      LayerBuilder twice(m, 23);
      const ValueId in = twice.input({batch, 16, 6, 5});
      const ValueId p = twice.conv(in, 16, 3, 1, 1), q = twice.conv(in, 16, 1, 1, 0);
      const ValueId one = twice.conv(concat(twice, {p, q}, 1), 8, 1, 1, 0);
      const ValueId other = twice.conv(concat(twice, {q, p, in}, 1), 8, 3, 1, 1);
      cosim(m, twice.finish({one, other, concat(twice, {p, one}, 1)}), twice.inputs(), 7);
    }
}

// A slice of whole vectors is read where it comes from, and what is cut and put together again costs nothing.
TEST_CASE("channels taken apart on the RTL") {
  for (const int size : {8, 16}) {
    INFO("array " << size);
    const auto& m = machine(size);
    LayerBuilder b(m, 24);
    const ValueId x = b.conv(b.input({1, 9, 8, 8}), 48, 1, 1, 0);
    const ValueId left = slice(b, x, 0, 32), right = slice(b, x, 32, 48);
    const ValueId more = b.conv(right, 16, 3, 1, 1);
    const Graph g = b.finish({b.conv(concat(b, {left, right, more, b.add(right, more)}, 1), 16, 3, 1, 1)});
    const auto all = plans(m, g);
    CHECK(std::ranges::count(all, "vec") <= 2);  // right and left are parts of x and cannot be parts of the rest too
    cosim(m, g, b.inputs(), 8);
  }
}

// Whatever the channels, where maps are put together along other axes.
TEST_CASE("rows put together on the RTL") {
  for (const int size : {8, 16})
    for (const int64_t axis : {2, 3}) {
      INFO("array " << size << ", axis " << axis);
      LayerBuilder b(machine(size), 25);
      const ValueId x = b.input({1, 11, 6, 6});
      const ValueId y = concat(b, {b.conv(x, 19, 3, 1, 1), b.conv(x, 19, 1, 1, 0)}, axis);
      cosim(machine(size), b.finish({y, b.conv(y, 7, 3, 1, 1)}), b.inputs(), 9);
    }
}

// Operands that end inside a vector cannot follow each other: refused, so that the host does it.
TEST_CASE("a concatenation inside a vector is not the machine's") {
  const auto& m = machine(16);
  LayerBuilder b(m, 26);
  const ValueId x = b.input({1, 16, 4, 4});
  const Graph g = b.finish({concat(b, {b.conv(x, 20, 1, 1, 0), b.conv(x, 16, 1, 1, 0)}, 1)});
  const auto refused = compile_for(*m.hw, need(lower_to_program(g)));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message().find("begins inside a vector of 16 channels") != std::string::npos);
}

TEST_CASE("transposed convolutions on the RTL") {
  struct Case {
    int64_t kernel, stride, lo, hi;
  };
  for (const int size : {8, 16})
    for (const Case& c : {Case{2, 2, 0, 0}, Case{4, 2, 2, 1}, Case{3, 3, 0, -1}, Case{3, 1, 1, 1}}) {
      INFO("array " << size << ", kernel " << c.kernel << ", stride " << c.stride);
      LayerBuilder b(machine(size), 27);
      const ValueId x = b.input({1, 20, 5, 6});
      const int64_t out = 18;
      const ValueId acc =
          b.node("int_conv_transpose",
                 {x, b.constant(kS8, {20, out, c.kernel, c.kernel}, -127, 127), b.constant(kS32, {out}, -2000, 2000)},
                 {{"zero", Expr(-3)},
                  {"stride", list({c.stride, c.stride})},
                  {"pad_lo", list({c.lo, c.lo})},
                  {"pad_hi", list({c.hi, c.hi})}});
      const ValueId y = b.node(
          "requantize", {acc, b.constant(kU31, {out}, 1 << 30, (int64_t{1} << 31) - 1), b.constant(kU6, {out}, 39, 41)},
          {{"axis", Expr(1)}, {"zero", Expr(4)}});
      cosim(machine(size), b.finish({y, b.conv(y, 9, 3, 1, 1)}), b.inputs(), 10);
    }
}

TEST_CASE("nearest neighbours on the RTL") {
  for (const int size : {8, 16})
    for (const char* coordinates : {"asymmetric", "half_pixel"}) {
      INFO("array " << size << ", " << coordinates);
      LayerBuilder b(machine(size), 28);
      const ValueId x = b.conv(b.input({1, 9, 5, 6}), 16, 1, 1, 0);
      const ValueId y = b.node("resize_nearest", {x},
                               {{"size", list({1, 16, 10, 18})},
                                {"scale", std::vector<double>{1, 1, 2, 3}},
                                {"coordinates", std::string(coordinates)},
                                {"rounding", std::string(coordinates[0] == 'a' ? "floor" : "round_prefer_floor")}});
      const ValueId z = b.conv(concat(b, {y, b.conv(b.input({1, 8, 10, 18}), 16, 1, 1, 0)}, 1), 8, 3, 1, 1);
      cosim(machine(size), b.finish({z, b.conv(y, 8, 3, 1, 1)}), b.inputs(), 11);
    }
}
