// The conversions of narrow floats as generated code, which reads the same description (dlc/base/float_format.h).
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include "dlc/base/float_format.h"
#include "support.h"

using namespace dlc;
using namespace dlc::test;

namespace {

// All numbers of the type, what lies between two of them, and what lies outside.
std::vector<float> interesting(DType t) {
  std::vector<float> x;
  for (uint32_t bits = 0; bits < (1u << t.bits); bits += t.bits == 16 ? 37 : 1) {
    const float v = from_bits(t, bits), next = from_bits(t, (bits + 1) & ((1u << t.bits) - 1));
    const float middle = v + (next - v) / 2;
    for (const float y : {v, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e30f)}) {
      x.push_back(y);
      x.push_back(-y);
    }
  }
  for (uint32_t bits = 0; bits < 0x7f800000u; bits += 7919 * 97) x.push_back(std::bit_cast<float>(bits));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float y : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f}) x.push_back(y);
  return x;
}

uint32_t stored(const Tensor& t, int64_t i) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(t.bytes());
  return t.dtype().bytes() == 1 ? bytes[i] : static_cast<uint32_t>(bytes[2 * i] | bytes[2 * i + 1] << 8);
}

void clear(Memory& m) {
  for (size_t i = 1; i < m.tensors.size(); ++i)
    std::memset(m.tensors[i].mutable_bytes(), 0x55, m.tensors[i].byte_size());
}

}  // namespace

TEST_CASE("generated code stores and reads narrow floats bit by bit as the interpreter", "[.levels]") {
  for (const DType t : {kF16, kBF16, kF8E4M3FN, kF8E4M3FNUZ, kF8E5M2, kF8E5M2FNUZ, kF8E8M0, kF4E2M1}) {
    const std::vector<float> x = interesting(t);
    const auto n = static_cast<int64_t>(x.size());
    const Kernel k = kernel(fmt::format(R"(kernel @k {{
  in X: f32[{0}]
  out B: {1}[{0}]
  out Y: f32[{0}]
  out S: {1}[{0}]
  for i < {0}: B[i] = X[i]
  for i < {0}: Y[i] = B[i]
  for i < {0}: S[i] = sat(X[i], {1})
}}
)",
                                        n, to_string(t)));
    const float top = from_bits(t, float_format(t).largest()), bottom = t == kF8E8M0 ? from_bits(t, 0) : -top;
    const auto check = [&](const Memory& m) {
      int64_t wrong = -1;
      for (int64_t i = 0; i < n && wrong < 0; ++i) {
        const float v = x[static_cast<size_t>(i)], clamped = std::isnan(v) ? v : std::clamp(v, bottom, top);
        const float read = m.tensors[2].as<float>()[static_cast<size_t>(i)], want = rounded_to(t, v);
        const bool same_read = std::isnan(want) ? std::isnan(read) : read == want;
        if (stored(m.tensors[1], i) != to_bits(t, v) || !same_read || stored(m.tensors[3], i) != to_bits(t, clamped))
          wrong = i;
      }
      INFO(to_string(t) << ": " << (wrong < 0 ? 0.0f : x[static_cast<size_t>(wrong)]));
      CHECK(wrong == -1);
    };
    Memory m = memory(k, {});
    std::ranges::copy(x, m.tensors[0].as_mutable<float>().begin());
    for (const bool tree_walk : {false, true}) {
      INFO("interpreter, tree walk " << tree_walk);
      REQUIRE_OK(const auto prepared, PreparedKernel::prepare(k, {}, {.tree_walk = tree_walk}));
      const auto buffers = m.buffers();
      REQUIRE(prepared.run(buffers, {}).has_value());
      check(m);
      clear(m);
    }
    for (const auto& [target_name, target, opt_level] : levels()) {
      INFO(target_name);
      const cpu::Unit unit{&k, {}};
      REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target));
      REQUIRE(code.kernels()[0].entry(m.pointers().data(), nullptr) == 0);
      check(m);
      clear(m);
    }
  }
}
