// The one place that knows which Catch2 is installed (2.x has one header, 3.x another).
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include "dlc/base/diag.h"

// Unwraps a Result in a test, failing with its diagnostics.
#define REQUIRE_OK(decl, ...) REQUIRE_OK_IMPL(DLC_CONCAT(ok_, __LINE__), decl, __VA_ARGS__)
#define REQUIRE_OK_IMPL(tmp, decl, ...)        \
  auto tmp = (__VA_ARGS__);                    \
  if (!tmp) FAIL(dlc::to_string(tmp.error())); \
  decl = std::move(*tmp)

// Requires an error whose text contains `part`.
#define REQUIRE_ERROR(result, part)                                              \
  do {                                                                           \
    auto dlc_r_ = (result);                                                      \
    REQUIRE_FALSE(dlc_r_.has_value());                                           \
    CHECK_THAT(dlc::to_string(dlc_r_.error()), Catch::Matchers::Contains(part)); \
  } while (false)
