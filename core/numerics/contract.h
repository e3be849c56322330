// The contract between commit_numerics and a machine's recipes: contract.ops says what each record computes, and the
// names and the order of its operands and attributes. Both sides take it from there: commit_numerics the operands that
// scale, check_recipes what a machine's record must give.
//
//   DLC_TRY(const Scaling s, scaling_of(recipes, "rescale"));   // M: u31, S: u6 of this machine
//   const auto k = choose_scale(s, {{0.0123, 32385}});          // M and S, and what they move a result by
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/ops/record.h"

namespace dlc::numerics {

const RecordSet& contract();
// Empty, or the unit tests fail.
const Error& contract_errors();

// The multipliers (M, or Ma and Mb) and the shift S of a machine's record.
struct Scaling {
  std::vector<DType> m;
  DType s = kS64;
  int64_t max_shift = 0;  // of the contract and of the type
  int64_t unit = 0;       // what S takes away besides: what the machine's reciprocal is of
};
// The record must be there and have the contract's operands (check_recipes).
Result<Scaling> scaling_of(const RecordSet& recipes, std::string_view recipe);

// A scale ratio, and the largest value that it multiplies.
struct Ratio {
  double ratio = 1;
  double reach = 0;
};
struct Scale {
  std::vector<int64_t> m;
  int64_t s = 0;
  double off = 0;  // by how many steps at most a result is not what the ratios themselves give, before its rounding
};
// The nearest scale there is, a ratio for each multiplier. nullopt: choose_multipliers finds none.
std::optional<Scale> choose_scale(const Scaling& s, std::span<const Ratio> ratios);
// So much is let through: one of four results at most is rounded to the other side.
inline constexpr double kMostOff = 0.25;

// Whether the recipes, those of the records that are of this file, have the operands and the meaning of the contract,
// on seeded operands and scales.
Result<> check_recipes(const RecordSet& recipes, const std::string& file);

}  // namespace dlc::numerics
