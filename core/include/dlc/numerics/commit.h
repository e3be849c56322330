// commit_numerics: a quantised model's float meaning becomes a machine's integers, once. It is the only pass that may
// change values; after it everything is bit-exact.
//
//   %1 = dequantize_linear(%xq, sx, zx)                       %acc = int_conv(%xq, @wq, @b32, zx)
//   %2 = conv(%1, dequantize_linear(@wq, sw), @b)       ->    %yq  = requantize(%acc, @M, @S) {zero = zy, lo = zy}
//   %yq = quantize_linear(relu(%2), sy, zy)
//
// Which integers a machine can do is said by its recipes: op records over its own bit-exact functions (`def`), in the
// file that `recipes:` of its YAML names. commit_numerics chooses multiplier and shift, as wide as the recipe's
// operands are. A scale ratio r becomes M / 2^S with M as large as fits, so that |M / 2^S - r| <= r / 2^(bits of M).
//
// Quantised tensors are s8 inside: u8 ones are shifted by 128 where they come in and go out. Ops that only move or
// select elements work on the integers as they are. What is left in float is reported with its reason and runs on the
// host.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/graph/graph.h"
#include "dlc/hw/description.h"

namespace dlc {

struct NumericsReport {
  struct Committed {
    std::string name;          // the model's node
    std::string rule;          // conv, matmul, add, pool, ...
    ValueId value = kNoValue;  // the integer result
    std::string reference;     // name of the quantize_linear result it stands for
  };
  struct Kept {
    std::string name, op, why;
  };
  std::vector<Committed> committed;
  std::vector<Kept> kept;  // float work that stays
  // The ops that each of the model's nodes was before, by its name.
  std::map<std::string, std::set<std::string>, std::less<>> ops;
};

// The built-in records, the machine's defs and its recipes. Fails when the YAML names none.
Result<std::shared_ptr<const RecordSet>> load_recipes(const HwDescription& hw);

// Rewrites g, which must hold its quantize_linear and dequantize_linear nodes as imported (not folded). g.records
// becomes `recipes`.
Result<NumericsReport> commit_numerics(Graph& g, std::shared_ptr<const RecordSet> recipes);

}  // namespace dlc
