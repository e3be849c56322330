#include "core/numerics/unit.h"

#include <fmt/format.h>

#include "core/ops/ast.h"
#include "dlc/interp/interp.h"

namespace dlc::numerics {

Result<int64_t> unit_shift(const RecordSet& recipes, std::string_view recipe, std::vector<Tensor> operands,
                           int64_t wanted) {
  const Record& record = *recipes.find(recipe);
  const Loc where = detail::loc_of(record.ast().file, record.ast().pos);
  std::vector<Operand> types;
  for (const Tensor& t : operands)
    types.push_back(Operand::of({t.dtype(), std::vector<Expr>(t.shape().begin(), t.shape().end())}));
  DLC_TRY(const Kernel kernel, recipes.instantiate(record, types, {}, {}, where));
  const auto at = [&](int64_t s) -> Result<int64_t> {
    operands.back().set_int(0, s);
    DLC_TRY(const std::vector<Tensor> y, run_kernel(kernel, operands));
    return y[0].get_int(0);
  };
  int64_t low = 0, high = operands.back().dtype().max_value();
  while (low < high) {
    const int64_t s = (low + high) / 2;
    DLC_TRY(const int64_t y, at(s));
    y > wanted ? low = s + 1 : high = s;
  }
  DLC_TRY(const int64_t y, at(low));
  if (y == wanted) return low;
  return fail(where, fmt::format("recipe '{}': with no shift is what should be {} that", recipe, wanted),
              "see docs/numerics.md for the recipes a machine provides");
}

}  // namespace dlc::numerics
