// Test cases that need what may not be here.
#pragma once

#include "dlc_test/catch.h"

// Leaves the case. It has a hidden tag, and dlc_test_tag() in CMake makes it a ctest test of its own, so that ctest
// shows it as skipped.
#define DLC_SKIP(why)         \
  do {                        \
    WARN("SKIPPED: " << why); \
    return;                   \
  } while (false)
