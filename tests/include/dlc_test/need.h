// The value of a Result as an expression; the test fails with its diagnostics if there is none.
#pragma once

#include <utility>

#include "dlc_test/catch.h"

namespace dlc_test {

template <class T>
T need(dlc::Result<T> r) {
  if (!r) FAIL(dlc::to_string(r.error()));
  return std::move(*r);
}
inline void need(dlc::Result<> r) {
  if (!r) FAIL(dlc::to_string(r.error()));
}

}  // namespace dlc_test
