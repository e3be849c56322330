// The host's body of every device primitive against a reference written out here, from the documents of the
// instructions.
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "dlc/base/dtype.h"
#include "dlc_test/catch.h"
#include "emu.h"

namespace dlc::test {
namespace {

const std::string& image(bool checks) { return module_of("kernels/primitives.cu", checks); }

std::vector<uint32_t> random_words(size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<uint32_t> v(n);
  for (uint32_t& w : v) w = random();
  return v;
}

// The primitives on a device with and without checks.
struct Primitives {
  bool checks;
  Device device{checks ? R"({"seed": 2})" : R"({"checks": false})"};
  Kernels kernels{image(checks)};
  void run(const char* name, Size grid, Size block, unsigned shared, const std::vector<Param>& params) const {
    CAPTURE(name);
    REQUIRE(kernels.launch(name, grid, block, shared, params) == CUDA_SUCCESS);
    const CUresult r = device.finish();
    INFO(device.first_text());
    REQUIRE(r == CUDA_SUCCESS);
  }
};

}  // namespace

TEST_CASE("lanes exchange words") {
  const Primitives p{GENERATE(true, false)};
  const auto x = random_words(32);
  const Buffer dx = p.device.upload(x), dy = p.device.buffer(4 * 160);
  p.run("shuffles", {1, 1, 1}, {32, 1, 1}, 0, {dx, dy});
  const auto y = p.device.download<uint32_t>(dy);
  uint32_t votes = 0;
  for (unsigned l = 0; l < 32; ++l) votes |= (x[l] % 3 == 0 ? 1u : 0u) << l;
  for (unsigned l = 0; l < 32; ++l) {
    CHECK(y[l] == x[l ^ 5]);
    CHECK(y[32 + l] == x[l + 3 < 32 ? l + 3 : l]);
    CHECK(y[64 + l] == x[l >= 4 ? l - 4 : l]);
    CHECK(y[96 + l] == x[7 * l % 32]);
    CHECK(y[128 + l] == votes);
  }
}

TEST_CASE("lanes exchange values of every type") {
  const Primitives p{GENERATE(true, false)};
  std::vector<unsigned long long> x(32);
  std::iota(x.begin(), x.end(), 100ull);
  x[9] = 0;
  const Buffer dx = p.device.upload(x), dy = p.device.buffer(8 * 7 * 32);
  p.run("shuffle_types", {1, 1, 1}, {32, 1, 1}, 0, {dx, dy});
  const auto y = p.device.download<unsigned long long>(dy);
  for (size_t type = 0; type < 7; ++type)
    for (size_t l = 0; l < 32; ++l) CHECK(y[32 * type + l] == (type < 6 ? x[l ^ 9] : x[l ^ 9] != 0));
}

TEST_CASE("a block adds up, and atomics count") {
  const Primitives p{GENERATE(true, false)};
  const unsigned threads = GENERATE(32u, 96u, 1024u);
  std::vector<int> x(2 * threads);
  std::iota(x.begin(), x.end(), -50);
  const Buffer dx = p.device.upload(x), dy = p.device.buffer(4 * x.size());
  p.run("block_sum", {2, 1, 1}, {threads, 1, 1}, 0, {dx, dy});
  const auto y = p.device.download<int>(dy);
  for (unsigned b = 0; b < 2; ++b) {
    const int sum = std::accumulate(x.begin() + b * threads, x.begin() + (b + 1) * threads, 0);
    for (unsigned t = 0; t < threads; ++t) CHECK(y[b * threads + t] == sum);
  }

  const Buffer sum = p.device.upload(std::vector<float>{1}), counter = p.device.upload(std::vector<unsigned>{10});
  const Buffer before = p.device.buffer(8 * threads), status = p.device.upload(std::vector<unsigned>{0});
  p.run("atomics", {2, 1, 1}, {threads, 1, 1}, 0, {sum, counter, before, status});
  CHECK(p.device.download<float>(sum)[0] == 1 + 1.5f * 2 * static_cast<float>(threads));
  CHECK(p.device.download<unsigned>(counter)[0] == 10 + 4 * threads);
  auto seen = p.device.download<unsigned>(before);
  std::sort(seen.begin(), seen.end());
  for (unsigned i = 0; i < 2 * threads; ++i) CHECK(seen[i] == 10 + 2 * i);
  CHECK(p.device.download<unsigned>(status)[0] % 32 == 4);
}

TEST_CASE("several elements move at once") {
  const Primitives p{GENERATE(true, false)};
  const auto x = random_words(64);
  const Buffer dx = p.device.upload(x);
  const struct {
    const char* name;
    unsigned bytes;
  } kinds[] = {{"move_u8_2", 2},  {"move_u8_16", 16}, {"move_f16_2", 4}, {"move_f16_8", 16},
               {"move_f32_2", 8}, {"move_f32_4", 16}, {"move_s64_2", 16}};
  for (const auto& k : kinds) {
    const Buffer dy = p.device.buffer(4 * x.size());
    p.run(k.name, {1, 1, 1}, {128, 1, 1}, 0, {dx, dy, 64});
    CHECK(p.device.download<uint32_t>(dy) == x);
    if (!p.checks) continue;
    const auto c = p.device.counters(k.name);
    CHECK(c["loads"]["requests"] == std::max(1u, 256 / k.bytes / 32));  // one request a warp
    CHECK(c["loads"]["sectors"] == 8);
    CHECK(c["stores"]["sectors"] == 8);
  }
}

TEST_CASE("asynchronous copies arrive") {
  const Primitives p{GENERATE(true, false)};
  std::vector<unsigned char> x(512);
  std::iota(x.begin(), x.end(), static_cast<unsigned char>(1));
  const Buffer dx = p.device.upload(x), dy = p.device.buffer(896);
  p.run("copies", {1, 1, 1}, {32, 1, 1}, 896, {dx, dy});
  const auto y = p.device.download<unsigned char>(dy);
  for (size_t i = 0; i < 512; ++i) CHECK(y[i] == (i < 24 * 16 ? x[i] : 0));
  for (size_t i = 0; i < 256; ++i) CHECK(y[512 + i] == (i < 24 * 8 ? x[i] : 0));
  for (size_t i = 0; i < 128; ++i) CHECK(y[768 + i] == (i < 24 * 4 ? x[i] : 0));
}

TEST_CASE("matrices are loaded") {
  const Primitives p{GENERATE(true, false)};
  std::vector<uint16_t> x(256);
  std::iota(x.begin(), x.end(), uint16_t{1000});
  const Buffer dx = p.device.upload(x), dy = p.device.buffer(4 * 13 * 32);
  p.run("matrices", {1, 1, 1}, {32, 1, 1}, 0, {dx, dy});
  const auto y = p.device.download<uint32_t>(dy);
  const auto at = [&](unsigned matrix, unsigned row, unsigned column) { return x[64 * matrix + 8 * row + column]; };
  for (unsigned l = 0; l < 32; ++l) {
    const unsigned r = l / 4, c = l % 4 * 2;
    const auto straight = [&](unsigned m) { return at(m, r, c) | static_cast<uint32_t>(at(m, r, c + 1)) << 16; };
    const auto transposed = [&](unsigned m) { return at(m, c, r) | static_cast<uint32_t>(at(m, c + 1, r)) << 16; };
    const std::vector<uint32_t> expected = {straight(0),   straight(0),   straight(1),   straight(0),   straight(1),
                                            straight(2),   straight(3),   transposed(0), transposed(1), transposed(0),
                                            transposed(1), transposed(2), transposed(3)};
    CHECK(std::vector<uint32_t>(y.begin() + 13 * l, y.begin() + 13 * (l + 1)) == expected);
  }
}

namespace {

// Element i of a lane's fragments, as the instructions' documents number them, to its place in A [16, K] and B [K, 8].
struct Fragments {
  int per;  // elements in a word
  std::pair<int, int> a(int lane, int i) const {
    const int group = lane / 4, thread = lane % 4, half = i / per;  // words 0..3
    const int row = half == 0 || half == 2 ? group : group + 8;
    return {row, thread * per + i % per + (half >= 2 ? 4 * per : 0)};
  }
  std::pair<int, int> b(int lane, int i) const {
    return {lane % 4 * per + i % per + (i >= per ? 4 * per : 0), lane / 4};
  }
};

double value_of(const std::string& type, uint32_t bits) {
  if (type == "f16") return from_bits(kF16, bits);
  if (type == "bf16") return from_bits(kBF16, bits);
  if (type == "tf32") return std::bit_cast<float>(bits);
  if (type == "e4m3") return from_bits(kF8E4M3FN, bits);
  if (type == "e5m2") return from_bits(kF8E5M2, bits);
  return type == "s8" ? static_cast<int8_t>(bits) : static_cast<uint8_t>(bits);
}

// Random elements of moderate size.
uint32_t element_of(const std::string& type, std::mt19937& random) {
  const float x = static_cast<float>(static_cast<int>(random() % 33) - 16) / 4;
  if (type == "f16") return to_bits(kF16, x);
  if (type == "bf16") return to_bits(kBF16, x);
  if (type == "tf32") return std::bit_cast<uint32_t>(x);
  if (type == "e4m3") return to_bits(kF8E4M3FN, x);
  if (type == "e5m2") return to_bits(kF8E5M2, x);
  return random() & 255u;
}

int per_word(const std::string& type) { return type == "tf32" ? 1 : type == "f16" || type == "bf16" ? 2 : 4; }

template <class Sum>
void check_mma(const Primitives& p, const std::string& a_type, const std::string& b_type, const std::string& kernel) {
  std::mt19937 random(7);
  const int per = per_word(a_type), bits = 32 / per;
  const Fragments f{per};
  std::vector<uint32_t> a(128), b(64);
  std::vector<Sum> c(128);
  double ma[16][32] = {}, mb[32][8] = {};
  for (int l = 0; l < 32; ++l) {
    for (int i = 0; i < 4 * per; ++i) {
      const uint32_t e = element_of(a_type, random);
      a[static_cast<size_t>(4 * l + i / per)] |= e << (bits * (i % per) % 32);
      const auto [row, column] = f.a(l, i);
      ma[row][column] = value_of(a_type, e);
    }
    for (int i = 0; i < 2 * per; ++i) {
      const uint32_t e = element_of(b_type, random);
      b[static_cast<size_t>(2 * l + i / per)] |= e << (bits * (i % per) % 32);
      const auto [row, column] = f.b(l, i);
      mb[row][column] = value_of(b_type, e);
    }
    for (int i = 0; i < 4; ++i) c[static_cast<size_t>(4 * l + i)] = static_cast<Sum>(random() % 100);
  }
  const Buffer da = p.device.upload(a), db = p.device.upload(b), dc = p.device.upload(c), dy = p.device.buffer(4 * 128);
  p.run(kernel.c_str(), {1, 1, 1}, {32, 1, 1}, 0, {da, db, dc, dy});
  const auto y = p.device.download<Sum>(dy);
  for (int l = 0; l < 32; ++l)
    for (int i = 0; i < 4; ++i) {
      const int row = i < 2 ? l / 4 : l / 4 + 8, column = l % 4 * 2 + (i & 1);
      double sum = static_cast<double>(c[static_cast<size_t>(4 * l + i)]);
      for (int k = 0; k < 8 * per; ++k) sum += ma[row][k] * mb[k][column];
      CAPTURE(kernel, row, column);
      CHECK(static_cast<double>(y[static_cast<size_t>(4 * l + i)]) == sum);  // all values are small multiples of 1/16
    }
}

}  // namespace

TEST_CASE("a warp multiplies matrices") {
  const Primitives p{GENERATE(true, false)};
  for (const char* type : {"f16", "bf16", "tf32", "e4m3", "e5m2"})
    check_mma<float>(p, type, type, std::string("mma_") + type);
  for (const char* a : {"s8", "u8"})
    for (const char* b : {"s8", "u8"}) check_mma<int>(p, a, b, std::string("mma_") + a + "_" + b);
}

TEST_CASE("integer products wrap") {
  const Primitives p{false};
  const Buffer a = p.device.upload(std::vector<uint32_t>(128, 0x7f7f7f7fu)),
               b = p.device.upload(std::vector<uint32_t>(64, 0x7f7f7f7fu));
  const Buffer c = p.device.upload(std::vector<int>(128, 0x7fffffff)), y = p.device.buffer(4 * 128);
  p.run("mma_s8_s8", {1, 1, 1}, {32, 1, 1}, 0, {a, b, c, y});
  CHECK(p.device.download<int>(y) == std::vector<int>(128, static_cast<int>(0x7fffffffu + 32 * 127 * 127)));
}

namespace {

// What decides about rounding: every exponent, mantissas around the places where narrow formats cut.
std::vector<float> deciding_floats() {
  std::vector<float> v;
  for (uint32_t sign : {0u, 0x80000000u})
    for (uint32_t exponent = 0; exponent < 256; ++exponent)
      for (int place = 0; place <= 23; ++place)
        for (uint32_t more : {0u, 1u, 0x3fffffu, 0x400000u, 0x400001u, 0x7fffffu})
          v.push_back(std::bit_cast<float>(sign | exponent << 23 | ((((1u << place) >> 1) + more) & 0x7fffffu)));
  return v;
}

bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}
bool same_bits(DType t, uint32_t a, uint32_t b) {
  return a == b || (std::isnan(from_bits(t, a)) && std::isnan(from_bits(t, b)));
}

template <class Word>
void check_narrow(const Primitives& p, DType t, const std::string& name) {
  CAPTURE(name);
  std::vector<Word> all(size_t{1} << t.bits);
  std::iota(all.begin(), all.end(), Word{0});
  const Buffer dx = p.device.upload(all), dy = p.device.buffer(4 * all.size());
  p.run(("decode_" + name).c_str(), {4, 1, 1}, {64, 1, 1}, 0, {dx, dy, static_cast<int>(all.size())});
  const auto decoded = p.device.download<float>(dy);
  size_t wrong = 0;
  for (size_t i = 0; i < all.size(); ++i) wrong += !same(decoded[i], from_bits(t, static_cast<uint32_t>(i)));
  CHECK(wrong == 0);

  static const std::vector<float> floats = deciding_floats();
  const Buffer df = p.device.upload(floats), db = p.device.buffer(sizeof(Word) * floats.size());
  p.run(("encode_" + name).c_str(), {4, 1, 1}, {64, 1, 1}, 0, {df, db, static_cast<int>(floats.size())});
  const auto encoded = p.device.download<Word>(db);
  wrong = 0;
  for (size_t i = 0; i < floats.size(); ++i) wrong += !same_bits(t, encoded[i], to_bits(t, floats[i]));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("narrow floats are those of the language") {
  const Primitives p{false};
  check_narrow<uint16_t>(p, kF16, "f16");
  check_narrow<uint16_t>(p, kBF16, "bf16");
  check_narrow<uint8_t>(p, kF8E4M3FN, "f8e4m3fn");
  check_narrow<uint8_t>(p, kF8E4M3FNUZ, "f8e4m3fnuz");
  check_narrow<uint8_t>(p, kF8E5M2, "f8e5m2");
  check_narrow<uint8_t>(p, kF8E5M2FNUZ, "f8e5m2fnuz");
  check_narrow<uint8_t>(p, kF8E8M0, "f8e8m0");
  check_narrow<uint8_t>(p, kF4E2M1, "f4e2m1");
}

TEST_CASE("numbers are packed into words") {
  const Primitives p{GENERATE(true, false)};
  std::vector<float> x;
  for (int i = -300; i < 300; ++i) x.push_back(std::ldexp(1.0f + static_cast<float>(i % 17) / 4096, i / 3));
  const auto n = x.size();
  const Buffer dx = p.device.upload(x), dy = p.device.buffer(12 * n);
  p.run("packs", {1, 1, 1}, {64, 1, 1}, 0, {dx, dy, static_cast<int>(n)});
  const auto y = p.device.download<uint32_t>(dy);
  for (size_t i = 0; i < n; ++i) {
    const float next = x[i + 1 < n ? i + 1 : 0];
    CHECK(y[i] == (to_bits(kF16, x[i]) | to_bits(kF16, next) << 16));
    CHECK(y[n + i] == (to_bits(kBF16, x[i]) | to_bits(kBF16, next) << 16));
    // Ten bits of mantissa, ties away from zero.
    int exponent = 0;
    const double mantissa = std::frexp(static_cast<double>(x[i]), &exponent);
    CHECK(std::bit_cast<float>(y[2 * n + i]) ==
          static_cast<float>(std::ldexp(std::round(std::ldexp(mantissa, 11)), exponent - 11)));
  }
  const auto words = random_words(32);
  const Buffer dw = p.device.upload(words), dn = p.device.buffer(4 * 512);
  p.run("nibbles", {1, 1, 1}, {32, 1, 1}, 0, {dw, dn});
  const auto nibbles = p.device.download<int>(dn);
  for (size_t l = 0; l < 32; ++l)
    for (size_t i = 0; i < 8; ++i) {
      const int u = static_cast<int>(words[l] >> (4 * i) & 15u);
      CHECK(nibbles[16 * l + i] == (u < 8 ? u : u - 16));
      CHECK(nibbles[16 * l + 8 + i] == u);
    }
}

}  // namespace dlc::test
