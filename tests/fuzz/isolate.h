// A check in a process of its own: a crash, a broken invariant or a hang is a failure with a name, like any other.
#pragma once

#include <functional>
#include <optional>

#include "tests/fuzz/check.h"

namespace dlc::fuzz {

inline constexpr int kSeconds = 20;  // of CPU time, that one sample may take

// This process dies of SIGPROF after so many seconds of CPU time from now, of SIGALRM when it waits for ever.
void limit_time(int seconds);

// Runs `job` in a child and returns what it returned, or how the child died.
std::optional<Failure> isolated(const std::function<std::optional<Failure>()>& job, int seconds = kSeconds);

}  // namespace dlc::fuzz
