// Integer interpreter == functional simulator, layer by layer, bit for bit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/unit/asic/support.h"

using namespace dlc;
using namespace dlc::asic;

namespace {

std::string device(uint64_t seed) { return "asic:func?seed=" + std::to_string(seed); }

}  // namespace

TEST_CASE("one convolution") {
  const auto& m = machine(16);
  LayerBuilder b(m, 1);
  const ValueId x = b.input({1, 20, 14, 14});
  const Graph g = b.finish({b.conv(x, 40, 3, 1, 1)});
  check_layers(m, g, b.inputs(), "asic:func");
}

TEST_CASE("convolutions of random shapes") {
  for (const int size : {8, 16})
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      INFO("array " << size << ", seed " << seed);
      const auto& m = machine(size);
      LayerBuilder b(m, seed);
      const int64_t kernel = std::array<int64_t, 4>{1, 2, 3, 5}[static_cast<size_t>(b.in(0, 3))];
      const ValueId x = b.input({b.in(1, 2), b.in(1, 40), b.in(kernel, 20), b.in(kernel, 20)});
      const bool depthwise = b.in(0, 2) == 0;
      const Graph g = b.finish({b.conv(x, b.in(1, 40), kernel, b.in(1, 2), b.in(0, kernel / 2), depthwise)});
      check_layers(m, g, b.inputs(), device(seed));
    }
}

TEST_CASE("residual blocks: convolutions, an addition of two scales, a pool") {
  for (const int size : {8, 16})
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("array " << size << ", seed " << seed);
      const auto& m = machine(size);
      LayerBuilder b(m, seed);
      const ValueId x = b.input({1, b.in(3, 20), 12, 10});
      const ValueId a = b.conv(x, 24, 3, 1, 1);
      const ValueId c = b.conv(a, 24, 3, 1, 1, seed % 2 == 0);
      const ValueId sum = b.add(c, a);
      const ValueId pool = b.node(
          "max_pool", {sum},
          {{"kernel", list({3, 3})}, {"stride", list({2, 2})}, {"pad_lo", list({1, 1})}, {"pad_hi", list({1, 1})}});
      const Graph g = b.finish({pool});
      check_layers(m, g, b.inputs(), device(seed));
    }
}

TEST_CASE("padded rows that are longer than a load's") {
  const auto& m = machine(8);
  uint64_t seed = 0;
  for (const int64_t width : {254, 255, 300, 640})
    for (const int64_t pad : {1, 2, 3}) {
      const int64_t kernel = 2 * pad + 1, stride = 1 + static_cast<int64_t>(seed % 2);
      INFO("width " << width << ", pad " << pad << ", stride " << stride);
      LayerBuilder b(m, ++seed);
      const ValueId x = b.input({1, pad == 2 ? 9 : 5, kernel + 1, width});
      const ValueId y = b.conv(x, 3, kernel, stride, pad, seed % 3 == 0);
      const ValueId pool = b.node("max_pool", {x},
                                  {{"kernel", list({kernel, kernel})},
                                   {"stride", list({stride, stride})},
                                   {"pad_lo", list({pad, pad})},
                                   {"pad_hi", list({pad, pad})}});
      const Graph g = b.finish({y, pool});
      check_layers(m, g, b.inputs(), device(seed));
    }
}

// A convolution and a pool of 3x3, of x seen in another shape.
TEST_CASE("windows of a view go over its tensor, padding too, or there is no instruction for it") {
  const auto& m = machine(8);
  using Shape = std::initializer_list<int64_t>;
  struct Seen {
    Shape of, as;
    int64_t pad;
    bool taken;
  };
  for (const auto& [of, as, pad, taken] :
       {Seen{{1, 20, 9, 1}, {1, 20, 1, 9}, 1, true}, Seen{{2, 20, 1, 7}, {2, 20, 7, 1}, 1, true},
        Seen{{1, 1, 2, 1}, {1, 1, 1, 2}, 1, true}, Seen{{1, 20, 4, 5, 1}, {1, 20, 4, 5}, 1, true},
        Seen{{1, 20, 18}, {1, 20, 3, 6}, 0, true}, Seen{{1, 20, 18}, {1, 20, 3, 6}, 1, false},
        Seen{{1, 20, 3, 6}, {1, 20, 18, 1}, 1, false}, Seen{{1, 20, 3, 6}, {1, 20, 6, 3}, 1, false},
        Seen{{20, 3, 6}, {1, 20, 3, 6}, 1, false}, Seen{{20, 16, 6}, {1, 20, 16, 6}, 1, false}})
    for (const bool pool : {true, false}) {
      INFO(fmt::format("{} of [{}] as [{}]", pool ? "pool" : "conv", fmt::join(of, ","), fmt::join(as, ",")));
      LayerBuilder b(m, 7);
      const ValueId x = b.node("reshape", {b.input(of)}, {{"shape", list(as)}});
      const Attrs window{{"kernel", list({3, 3})},
                         {"stride", list({1, 1})},
                         {"pad_lo", list({pad, pad})},
                         {"pad_hi", list({pad, pad})}};
      const Graph g = b.finish({pool ? b.node("max_pool", {x}, window) : b.conv(x, 24, 3, 1, pad)});
      if (taken) {
        check_layers(m, g, b.inputs(), device(1));
        continue;
      }
      const auto image = compile_for(*m.hw, need(lower_to_program(g)));
      REQUIRE(!image);
      CHECK(to_string(image.error()).find("padded where the tensor it is a view of") != std::string::npos);
    }
}

TEST_CASE("average pool and a matrix product") {
  for (const int size : {8, 16}) {
    const auto& m = machine(size);
    LayerBuilder b(m, 5);
    const ValueId x = b.input({1, 37, 6, 5});
    const ValueId sum = b.node("window_sum", {x}, {{"kernel", list({6, 5})}, {"zero", Expr(3)}});
    const DType u31{DType::Kind::unsigned_int, 31}, u6{DType::Kind::unsigned_int, 6};
    const ValueId mean =
        b.node("rescale", {sum, b.scalar(u31, (int64_t{1} << 31) / 3), b.scalar(u6, 33)}, {{"zero", Expr(-4)}});
    const ValueId flat = b.node("reshape", {mean}, {{"shape", list({1, 37})}});
    const ValueId acc = b.node("int_matmul", {flat, b.constant(kS8, {37, 11}, -128, 127), b.scalar(kS8, -4)}, {});
    const ValueId y = b.node(
        "requantize", {acc, b.constant(u31, {11}, 1 << 30, (int64_t{1} << 31) - 1), b.constant(u6, {11}, 38, 40)},
        {{"axis", Expr(1)}});
    const Graph g = b.finish({y});
    check_layers(m, g, b.inputs(), "asic:func");
  }
}

TEST_CASE("a table and a product") {
  const auto& m = machine(8);
  LayerBuilder b(m, 9);
  const ValueId x = b.input({1, 12, 7, 9});
  const ValueId t = b.node("lookup", {x, b.constant(kS8, {256}, -128, 127)}, {});
  const DType u24{DType::Kind::unsigned_int, 24}, u6{DType::Kind::unsigned_int, 6};
  const ValueId y = b.node("mul_s8", {t, x, b.scalar(u24, 5000000), b.scalar(u6, 30)}, {{"a_zero", Expr(3)}});
  check_layers(m, b.finish({y}), b.inputs(), "asic:func");
}

TEST_CASE("a value in the bytes of another is loaded anew") {
  const auto& m = machine(8);
  LayerBuilder b(m, 3);
  const ValueId x = b.input({1, 8, 4, 4}), y = b.input({1, 8, 4, 4});
  const ValueId first = b.add(x, y), second = b.add(first, x), third = b.add(second, y);
  Program p = need(lower_to_program(b.finish({third}), {.fuse = false, .max_nodes = 1, .may_join = {}}));
  REQUIRE(p.calls.size() == 3);
  const int of_first = p.calls[0].buffers.back(), of_second = p.calls[1].buffers.back();
  p.buffers[static_cast<size_t>(of_second)].alias = BufferAlias{of_first, Expr(0), true};
  need(verify(p));
  check_layers(m, p, b.inputs(), "asic:func");
}

TEST_CASE("attention: products of two activations, whose places do not fill vectors") {
  const DType u31{DType::Kind::unsigned_int, 31}, u6{DType::Kind::unsigned_int, 6};
  for (const int size : {8, 16})
    for (const int64_t places : {5, 16, 37}) {
      INFO("array " << size << ", places " << places);
      const auto& m = machine(size);
      LayerBuilder b(m, static_cast<uint64_t>(places));
      const int64_t heads = 3, depth = 16;
      const ValueId x = b.input({1, 3 * heads * depth, places});
      const auto scaled = [&](ValueId acc, int64_t by) {
        return b.node("rescale", {acc, b.scalar(u31, (int64_t{1} << 30) / by), b.scalar(u6, 36)}, {{"zero", Expr(5)}});
      };
      const ValueId a = scaled(b.node("scores", {x, x},
                                      {{"heads", Expr(heads)},
                                       {"depth", Expr(depth)},
                                       {"b_at", Expr(heads * depth)},
                                       {"a_zero", Expr(-7)},
                                       {"b_zero", Expr(90)}}),
                               9);
      const ValueId y = scaled(b.node("mix", {a, x},
                                      {{"depth", Expr(depth)},
                                       {"b_at", Expr(2 * heads * depth)},
                                       {"a_zero", Expr(-128)},
                                       {"b_zero", Expr(-33)}}),
                               20);
      check_layers(m, b.finish({y}), b.inputs(), device(3));
    }
}

namespace {

// Instructions called `name` whose fields hold `fields`.
std::vector<Instruction> all(const HwDescription& hw, const AcceleratorImage& image, std::string_view name,
                             const std::map<std::string, int64_t>& fields = {}) {
  std::vector<Instruction> out;
  for (const Instruction& i : image.program) {
    const HwInsn& insn = hw.isa.insns[static_cast<size_t>(i.insn)];
    const bool same = std::ranges::all_of(fields, [&](const auto& f) {
      const int at = insn.field(f.first);
      return at >= 0 && i.fields[static_cast<size_t>(at)] == f.second;
    });
    if (insn.name == name && same) out.push_back(i);
  }
  return out;
}

int64_t words(const HwDescription& hw, const std::vector<Instruction>& copies) {
  int64_t n = 0;
  for (const Instruction& i : copies) {
    const HwInsn& insn = hw.isa.insns[static_cast<size_t>(i.insn)];
    const auto get = [&](const char* f) { return i.fields[static_cast<size_t>(insn.field(f))]; };
    n += get("nx") * get("ny") * get("nz");
  }
  return n;
}

}  // namespace

TEST_CASE("constants of many tiles are one load, and rows that a stride passes over are not loaded") {
  const auto& m = machine(16);
  LayerBuilder b(m, 11);
  const ValueId x = b.input({1, 64, 32, 32});
  const Graph g = b.finish({b.conv(x, 256, 1, 2, 0)});
  const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
  const auto to = [&](int64_t memory) { return all(*m.hw, image, "ld", {{"to", memory}}); };
  const size_t tiles = all(*m.hw, image, "mac").size();
  CHECK(tiles >= 16);                         // one for each 16 channels of the result
  CHECK(words(*m.hw, to(0)) == 4 * 16 * 31);  // of each 16 channels every other row, as far as the last column
  CHECK(words(*m.hw, to(1)) == 16 * 64);
  CHECK(words(*m.hw, to(2)) == 16 * 9);
  CHECK(to(1).size() <= tiles / 4);
  CHECK(to(2).size() <= tiles / 8);
}

TEST_CASE("the other operand of a sum is loaded where the array does not read, and the sum takes its operand's place") {
  const auto& m = machine(16);
  LayerBuilder b(m, 12);
  const ValueId x = b.input({1, 16, 20, 20}), y = b.input({1, 16, 20, 20});
  const Graph g = b.finish({b.add(b.conv(x, 16, 1, 1, 0), y)});
  const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
  CHECK(words(*m.hw, all(*m.hw, image, "ld", {{"to", 0}})) == 400);
  CHECK(words(*m.hw, all(*m.hw, image, "ld", {{"to", 3}})) == 400);
  const auto sums = all(*m.hw, image, "vec2");
  REQUIRE(!sums.empty());
  for (const Instruction& i : sums) {
    const HwInsn& insn = m.hw->isa.insns[static_cast<size_t>(i.insn)];
    const auto get = [&](const char* f) { return i.fields[static_cast<size_t>(insn.field(f))]; };
    CHECK((get("d_base") == get("a_base") || get("d_base") == get("b_base")));
  }
}

TEST_CASE("layer norm down columns") {
  const DType u16{DType::Kind::unsigned_int, 16}, u6{DType::Kind::unsigned_int, 6}, u24{DType::Kind::unsigned_int, 24},
      s16{DType::Kind::signed_int, 16};
  for (const int size : {8, 16})
    for (const int64_t row : {16, 48, 208}) {
      INFO("array " << size << ", row " << row);
      const auto& m = machine(size);
      LayerBuilder b(m, static_cast<uint64_t>(row));
      const ValueId x = b.input({2, row, 190});
      const ValueId y = b.node(
          "normalize",
          {x, b.constant(s16, {row}, -30000, 30000), b.constant(s16, {row}, -2000, 2000),
           b.scalar(u16, row == 16 ? 0 : 7), b.scalar(u6, row == 48 ? 2 : 0), b.scalar(u24, 1 << 16), b.scalar(u6, 23)},
          {{"from", Expr(-5)}, {"zero", Expr(3)}});
      check_layers(m, b.finish({y}), b.inputs(), device(3));
    }
}

TEST_CASE(
    "an instruction walks the loops that the one before it walks: scores of 128 places are one mac for 16 of them") {
  const auto& m = machine(16);
  LayerBuilder b(m, 4);
  const DType u31{DType::Kind::unsigned_int, 31}, u6{DType::Kind::unsigned_int, 6};
  const ValueId x = b.input({1, 192, 128});
  const ValueId a = b.node("scores", {x, x}, {{"heads", Expr(2)}, {"depth", Expr(32)}, {"b_at", Expr(64)}});
  const Graph g = b.finish({b.node("rescale", {a, b.scalar(u31, 1000000000), b.scalar(u6, 36)}, {})});
  const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
  CHECK(all(*m.hw, image, "mac").size() == 2 * 128 / 16);
  CHECK(all(*m.hw, image, "vec").size() == 2 * 128 / 16);
}

TEST_CASE("softmax down columns, whose rows do not fill vectors") {
  const DType u16{DType::Kind::unsigned_int, 16}, u6{DType::Kind::unsigned_int, 6};
  for (const int size : {8, 16})
    for (const int64_t row : {5, 16, 37}) {
      INFO("array " << size << ", row " << row);
      const auto& m = machine(size);
      LayerBuilder b(m, static_cast<uint64_t>(row));
      const ValueId x = b.input({2, row, 19});
      const ValueId e = b.node("exp_rows", {x, b.constant(kS8, {256}, -128, 127)}, {});
      const ValueId y = b.node("quotient", {e, b.scalar(u16, 40000), b.scalar(u6, 38)}, {{"zero", Expr(-128)}});
      check_layers(m, b.finish({y}), b.inputs(), device(3));
    }
}
