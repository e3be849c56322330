// Compiled code against the interpreter: same buffers, same result, on every instruction set this machine has.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/float_format.h"
#include "dlc/hw/load.h"
#include "dlc/interp/interp.h"
#include "dlc_test/catch.h"
#include "plugins/cpu/codegen/codegen.h"

namespace dlc::test {

struct Memory {
  std::vector<Tensor> tensors;  // one per kernel tensor; views are invalid

  std::vector<void*> pointers() {
    std::vector<void*> r;
    for (Tensor& t : tensors) r.push_back(t.is_valid() ? static_cast<void*>(t.mutable_bytes()) : nullptr);
    return r;
  }
  std::vector<Buffer> buffers() {
    std::vector<Buffer> r;
    for (Tensor& t : tensors)
      r.push_back(t.is_valid() ? Buffer{t.mutable_bytes(), static_cast<int64_t>(t.byte_size())} : Buffer{});
    return r;
  }
};

inline Kernel kernel(std::string_view text) {
  REQUIRE_OK(auto k, parse_kernel("dlc.kernel 1\n" + std::string(text)));
  if (const auto ok = verify(k); !ok) FAIL(to_string(ok.error()));
  return k;
}

inline void fill(Tensor& t, std::mt19937_64& random, double low, double high) {
  const DType d = t.dtype();
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (d.is_float())
      t.set_double(i, std::uniform_real_distribution(low, high)(random));
    else if (d.is_bool())
      t.set_int(i, static_cast<int64_t>(random() & 1));
    else
      t.set_int(i, static_cast<int64_t>(random()));
  }
}

// Storage for every tensor, inputs and constants (and everything else) filled at random.
inline Memory memory(const Kernel& k, const Bindings& dims, double low = -2, double high = 2) {
  std::mt19937_64 random(7);
  Memory m;
  for (const KernelTensor& t : k.tensors) {
    if (t.view) {
      m.tensors.emplace_back();
      continue;
    }
    std::vector<int64_t> shape;
    for (const Expr& e : t.shape) {
      const auto n = evaluate(e, dims);
      REQUIRE(n.has_value());
      shape.push_back(*n);
    }
    REQUIRE_OK(Tensor tensor, Tensor::make(t.dtype, shape));
    fill(tensor, random, low, high);
    m.tensors.push_back(std::move(tensor));
  }
  return m;
}

// What a description of hwdesc says, or this machine: "x86-64-v3", "native".
inline cpu::Target target(const std::string& name) {
  REQUIRE_OK(const HwDescription hw, load_hw(name, {{DLC_SOURCE_DIR "/hwdesc"}}));
  REQUIRE_OK(cpu::Target t, cpu::Target::of(hw));
  return t;
}

// What code is tested for, and at which optimisation level of the IR passes: each has another.
struct Level {
  std::string name;
  cpu::Target target;
  int opt_level = 0;
};

// The feature levels that this machine has, of those asked for: each is a ctest test of its own, which names it in
// DLC_TEST_LEVEL; by hand it is all of them. Cases that use them have the hidden tag [.levels].
inline std::vector<Level> levels() {
  static const std::vector<Level> all = {{"x86-64", target("x86-64"), 0},
                                         {"x86-64-v3", target("x86-64-v3"), 1},
                                         {"x86-64-v4", target("x86-64-v4"), 2},
                                         {"native", target("native"), 3}};
  const char* wanted = std::getenv("DLC_TEST_LEVEL");
  std::vector<Level> here;
  if (wanted != nullptr && std::ranges::find(all, std::string_view(wanted), &Level::name) == all.end())
    FAIL("no feature level is called " << wanted);
  for (const Level& level : all) {
    if (wanted != nullptr && level.name != wanted) continue;
    if (const std::string missing = level.target.missing_here(); missing.empty())
      here.push_back(level);
    else
      WARN("SKIPPED: " << level.name << ": this machine lacks " << missing);
  }
  return here;
}

inline std::vector<int64_t> dim_values(const cpu::CompiledKernel& k, const Bindings& dims) {
  std::vector<int64_t> r;
  for (const std::string& s : k.symbols) r.push_back(dims.at(s));
  return r;
}

// Integers must agree, floats within `tolerance` relative to the larger of 1 and the value; NaN with NaN. A narrow
// float may also be its neighbour, since a last-bit difference before the rounding can decide it.
inline void check_same(const Kernel& k, const Memory& want, const Memory& got, double tolerance) {
  for (size_t i = 0; i < k.tensors.size(); ++i) {
    const Role role = k.tensors[i].role;
    if (!want.tensors[i].is_valid() || role == Role::temp) continue;
    const Tensor &a = want.tensors[i], &b = got.tensors[i];
    const double unit = a.dtype().is_narrow_float() ? std::ldexp(1, -float_format(a.dtype()).mantissa) : 0;
    int64_t wrong = 0;
    for (int64_t e = 0; e < a.elements() && wrong < 3; ++e) {
      if (a.dtype().is_float()) {
        const double x = a.get_double(e), y = b.get_double(e);
        const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                          std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x)) + unit * std::abs(x);
        if (same) continue;
        FAIL_CHECK("kernel " << k.name << ", tensor " << k.tensors[i].name << "[" << e << "]: interpreter " << x
                             << ", compiled " << y);
      } else {
        if (a.get_int(e) == b.get_int(e)) continue;
        FAIL_CHECK("kernel " << k.name << ", tensor " << k.tensors[i].name << "[" << e << "]: interpreter "
                             << a.get_int(e) << ", compiled " << b.get_int(e));
      }
      ++wrong;
    }
  }
}

// Integers must agree; floats may be at most twice as far from the exact values as plain f32 arithmetic is.
inline void check_as_good_as(const Kernel& k, const Memory& exact, const Memory& plain, const Memory& got) {
  for (size_t i = 0; i < k.tensors.size(); ++i) {
    if (k.tensors[i].role != Role::output) continue;
    const Tensor &x = exact.tensors[i], &p = plain.tensors[i], &g = got.tensors[i];
    double worst_plain = 0, worst = 0, largest = 1;
    for (int64_t e = 0; e < x.elements(); ++e) {
      if (!x.dtype().is_float()) {
        REQUIRE(g.get_int(e) == p.get_int(e));
        continue;
      }
      REQUIRE_FALSE(std::isnan(g.get_double(e)));
      worst_plain = std::max(worst_plain, std::abs(p.get_double(e) - x.get_double(e)));
      worst = std::max(worst, std::abs(g.get_double(e) - x.get_double(e)));
      largest = std::max(largest, std::abs(x.get_double(e)));
    }
    INFO("kernel " << k.name << ", tensor " << k.tensors[i].name << ": error " << worst << ", plain f32 "
                   << worst_plain);
    CHECK(worst <= 2 * worst_plain + 1e-6 * largest);
  }
}

struct Compare {
  Bindings dims = {};
  double tolerance = 2e-6;
  double low = -2, high = 2;
  std::vector<cpu::Schedule> schedules = {};
};

inline void check_against_interpreter(const Kernel& k, const Compare& c = {}) {
  Memory want = memory(k, c.dims, c.low, c.high);
  {
    REQUIRE_OK(const auto prepared, PreparedKernel::prepare(k, {}, {.tree_walk = true}));
    const auto buffers = want.buffers();
    if (const auto ok = prepared.run(buffers, c.dims); !ok) FAIL(to_string(ok.error()));
  }
  for (const auto& [name, target, opt_level] : levels()) {
    INFO("target " << name << ", optimisation level " << opt_level);
    const cpu::Unit unit{&k, c.schedules};
    REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target, {.opt_level = opt_level}));
    Memory got = memory(k, c.dims, c.low, c.high);
    const auto pointers = got.pointers();
    const auto dims = dim_values(code.kernels()[0], c.dims);
    REQUIRE(code.kernels()[0].entry(pointers.data(), dims.data()) == 0);
    check_same(k, want, got, c.tolerance);
  }
}

inline void check_against_interpreter(std::string_view text, const Compare& c = {}) {
  check_against_interpreter(kernel(text), c);
}

}  // namespace dlc::test
