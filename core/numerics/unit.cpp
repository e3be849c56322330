#include "core/numerics/unit.h"

#include <fmt/format.h>

#include "dlc/interp/interp.h"

namespace dlc::numerics {

Result<int64_t> unit_shift(const Rewriter& r, std::string_view recipe, std::vector<Tensor> operands, int64_t wanted) {
  std::vector<Operand> types;
  for (const Tensor& t : operands)
    types.push_back(Operand::of({t.dtype(), std::vector<Expr>(t.shape().begin(), t.shape().end())}));
  const RecordSet& records = r.records();
  DLC_TRY(const Kernel kernel, records.instantiate(*records.find(recipe), types, {}));
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
  return fail({}, fmt::format("recipe '{}': with no shift is what should be {} that", recipe, wanted),
              "see docs/numerics.md for the recipes a machine provides");
}

}  // namespace dlc::numerics
