// Exact formulas of ROM contents: + - * / **, floor(), parentheses, integers and the index i, in rationals of 128 bits.
//
//   DLC_TRY(const Formula f, Formula::parse("floor(65536/(i + 2) + 1/2)", where));
//   f.at(0);  // 32768
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"

namespace dlc {

class Formula {
 public:
  static constexpr size_t kMaxLength = 1000;  // of the text

  static Result<Formula> parse(std::string_view text, const Loc& where);

  // The value must be an integer: floor(x + 1/2) rounds.
  Result<int64_t> at(int64_t i) const;

  // Postfix code: number and index push, floor and negate change the top, the others take two values.
  struct Step {
    enum class Kind : uint8_t { number, index, negate, floor, add, sub, mul, div, power };
    Kind kind = Kind::number;
    int64_t number = 0;
  };

 private:
  std::string text_;
  Loc where_;
  std::vector<Step> code_;
};

}  // namespace dlc
