// What every implementation of a sample must agree on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dlc/passes/reduce.h"

namespace dlc::fuzz {

// How a sample is compiled and where it runs. One of each is drawn per sample; replaying a case tries them all.
struct Way {
  std::vector<std::string> passes;
  bool fuse = true;
  std::string hardware = "x86-64";  // x86-64, x86-64-v3, x86-64-v4; "asic" commits the numerics first
  int threads = 1;
};
Way random_way(uint64_t seed);
std::string to_string(const Way& w);

struct Failure {
  std::string stage;  // "passes", "program", "cpu", ...: a reduction keeps it
  std::string message;
};

// The graph by itself: text, verifier, f32 and f64 interpreters; after the passes; as a program; on the device.
// Nothing when all agree. Without `compile`, up to the program.
std::optional<Failure> check(const Sample& s, const Way& w, bool compile = true);

}  // namespace dlc::fuzz
