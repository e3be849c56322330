// Helpers of the interpreter's tests: run a kernel's text on values, both ways.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "dlc/interp/interp.h"
#include "dlc_test/tensors.h"

namespace dlc::test {

using dlc_test::elements;

template <class T>
Tensor tensor(DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  auto t = Tensor::make(dtype, std::move(shape));
  REQUIRE(t.has_value());
  REQUIRE(t->elements() == static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>)
      t->set_double(static_cast<int64_t>(i), values[i]);
    else
      t->set_int(static_cast<int64_t>(i), values[i]);
  }
  return *t;
}

inline Tensor floats(std::vector<int64_t> shape, const std::vector<double>& values) {
  return tensor<double>(kF32, std::move(shape), values);
}

inline Kernel kernel(std::string_view text) {
  REQUIRE_OK(auto k, parse_kernel(text));
  if (const auto ok = verify(k); !ok) FAIL(to_string(ok.error()));
  return k;
}

// The first result of the kernel, which must be the same from the tree walk and from the fast interpreter.
inline std::vector<double> run_both(std::string_view text, const std::vector<Tensor>& inputs) {
  const Kernel k = kernel(text);
  REQUIRE_OK(const auto slow, run_kernel(k, inputs, {.tree_walk = true}));
  REQUIRE_OK(const auto fast, run_kernel(k, inputs));
  REQUIRE(slow.size() == fast.size());
  for (size_t i = 0; i < slow.size(); ++i) {
    const auto a = elements(slow[i]), b = elements(fast[i]);
    REQUIRE(a.size() == b.size());
    for (size_t j = 0; j < a.size(); ++j) {
      INFO("result " << i << ", element " << j);
      if (std::isnan(a[j]))
        CHECK(std::isnan(b[j]));
      else if (slow[i].dtype().is_float())
        CHECK(b[j] == Approx(a[j]).epsilon(1e-5).margin(1e-6));
      else
        CHECK(b[j] == a[j]);
    }
  }
  return elements(fast[0]);
}

// The error both ways give.
inline std::string error_of(std::string_view text, const std::vector<Tensor>& inputs) {
  const Kernel k = kernel(text);
  const auto slow = run_kernel(k, inputs, {.tree_walk = true});
  const auto fast = run_kernel(k, inputs);
  REQUIRE_FALSE(slow.has_value());
  REQUIRE_FALSE(fast.has_value());
  CHECK(to_string(slow.error()) == to_string(fast.error()));
  return to_string(fast.error());
}

}  // namespace dlc::test
