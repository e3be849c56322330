// What a record says of the elements of its operands: the indices of a gather lie in [-d, d - 1], a scale in (0, inf).
// Random operands are drawn from there, and a constant must lie there, unless the record says `from` instead of `in`.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/ops/ast.h"
#include "dlc/ops/record.h"

namespace dlc::detail {

struct ElementDomain {
  double lo = -std::numeric_limits<double>::infinity();  // infinite where the bound is not known, too
  double hi = std::numeric_limits<double>::infinity();
  bool open = false;  // without its ends
  bool contains(double x) const { return open ? lo < x && x < hi : lo <= x && x <= hi; }
};

// One entry for each operand that the record declares.
Result<std::vector<std::optional<ElementDomain>>> element_domains(const RecordAst& ast,
                                                                  std::span<const Operand> operands, const Attrs& attrs,
                                                                  const Ranges& ranges, const DefTable& defs);

// A constant operand of one use: its place among the record's operands, its name in the model.
struct ConstantOperand {
  size_t operand = 0;
  std::string name;
  const Tensor* value = nullptr;
};
bool has_domain(const Record& record, size_t operand);
// Every element of every constant is in its domain.
Result<> check_elements(const RecordSet& set, const Record& record, std::span<const Operand> operands,
                        const Attrs& attrs, const Ranges& ranges, std::span<const ConstantOperand> constants,
                        const Loc& where);

}  // namespace dlc::detail
