// Random valid uses of a record, from the record alone: the domains of its attributes and operands and its requires say
// what is valid. Serves differential fuzzing: every record, with no line written per op.
//
//   REQUIRE_OK(Instance use, generate(set, *set.find("conv"), 7));
//   auto k = set.instantiate(*set.find("conv"), use.operands, use.attrs);
//   auto in = random_operands(use, 7);   // one tensor per input of k; absent ones are invalid
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dlc/base/tensor.h"
#include "dlc/ops/record.h"

namespace dlc {

struct Instance {
  std::vector<Operand> operands;
  Attrs attrs;
  // The range of the elements of each operand, where its record states one (the indices of a gather).
  std::vector<std::optional<Interval>> values;
};

struct GenerateOptions {
  int max_pack = 2;        // dims a pack stands for
  int64_t max_extent = 5;  // of one dim; a require may make some larger
  int zero_percent = 0;    // of the dims that are empty
  int tries = 300;         // before it is an error
  // The operand at this position has this type, of constant dims: how ops are chained. Most records fit most types.
  std::optional<TensorType> given = {};
  size_t given_operand = 0;
};

// The same seed gives the same instance. Fails only when no valid instance was found in many tries.
Result<Instance> generate(const RecordSet& set, const Record& record, uint64_t seed,
                          const GenerateOptions& options = {});

// Elements for the operands: within their ranges; floats in [-2, 2], other integers small and not 0.
Result<std::vector<Tensor>> random_operands(const Instance& instance, uint64_t seed);

}  // namespace dlc
