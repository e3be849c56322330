// The work of one question to the prover or the simplifier, with all that they ask each other on the way. It is
// bounded: when it is used up, what is not yet known stays unproven and as it is. It is counted in steps that depend on
// nothing but the question, so that every run has the same answer. Questions of the models at hand take at most 30,000.
//
//   const Effort effort;                     // the outermost one is the question
//   if (Effort::left()) Effort::spend(256);  // a step
#pragma once

#include <cstdint>

namespace dlc::detail {

class Effort {
 public:
  static constexpr int64_t kMost = int64_t{1} << 18;

  Effort() { ++depth_; }  // the outermost one begins to count
  ~Effort() {
    if (--depth_ == 0) spent_ = 0;
  }
  Effort(const Effort&) = delete;
  Effort& operator=(const Effort&) = delete;

  static bool left() { return spent_ < kMost; }
  static void spend(int64_t steps) {
    if (depth_ > 0) spent_ += steps;
  }
  static int64_t spent() { return spent_; }

 private:
  inline static thread_local int64_t spent_ = 0;
  inline static thread_local int depth_ = 0;
};

}  // namespace dlc::detail
