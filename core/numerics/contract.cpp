#include "core/numerics/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/numerics/multiplier.h"
#include "core/numerics/unit.h"
#include "core/ops/ast.h"
#include "core/ops/embedded.h"

namespace dlc {

namespace detail {
extern const EmbeddedFile kContract[];
}

namespace numerics {

namespace {

const Result<RecordSet>& parsed() {
  static const Result<RecordSet> set =
      RecordSet::parse(detail::kContract[0].text, detail::kContract[0].name, &RecordSet::builtin());
  return set;
}

// What `quotient` shifts away for the machine's reciprocal, which is of a power of two: the S for which a number
// divided by itself, times M, is M.
Result<int64_t> unit_of_quotient(const RecordSet& recipes, const Scaling& scaling) {
  constexpr int64_t kM = 64;
  DLC_TRY(Tensor e, Tensor::make(kS8, {1, 1, 1}));
  DLC_TRY(Tensor m, Tensor::make(scaling.m[0], {}));
  DLC_TRY(Tensor shift, Tensor::make(scaling.s, {}));
  e.set_int(0, kS8.max_value());
  m.set_int(0, kM);
  return unit_shift(recipes, "quotient", {std::move(e), std::move(m), std::move(shift)}, kM);
}

}  // namespace

const RecordSet& contract() {
  static const RecordSet kNone;
  return parsed() ? *parsed() : kNone;
}

const Error& contract_errors() {
  static const Error kNone;
  return parsed() ? kNone : parsed().error();
}

Result<Scaling> scaling_of(const RecordSet& recipes, std::string_view recipe) {
  const Record *own = recipes.find(recipe), *meaning = contract().find(recipe);
  if (own == nullptr || meaning == nullptr || own->operands().size() != meaning->operands().size())
    return fail({}, fmt::format("the machine's recipes have no '{}' as the contract has it", recipe));
  Scaling s;
  for (size_t i = 0; i < meaning->operands().size(); ++i) {
    const std::string& name = meaning->operands()[i].name;
    const DType type = parse_dtype(own->operands()[i].type).value_or(kF32);
    if (name.starts_with('M')) s.m.push_back(type);
    if (name != "S") continue;
    s.s = type;
    s.max_shift = std::min(meaning->ast().operands[i].domain.values[1].integer, type.max_value());
  }
  if (recipe == "quotient") {
    DLC_TRY(s.unit, unit_of_quotient(recipes, s));
  }
  return s;
}

std::optional<Scale> choose_scale(const Scaling& s, std::span<const Ratio> ratios) {
  std::vector<double> numbers;
  for (const Ratio& r : ratios) numbers.push_back(r.ratio);
  const auto k = choose_multipliers(numbers, s.m, s.max_shift - s.unit);
  if (!k) return std::nullopt;
  Scale out{k->m, k->s + s.unit, 0};
  for (size_t i = 0; i < ratios.size(); ++i) {
    const double got = std::ldexp(static_cast<double>(k->m[i]), -static_cast<int>(k->s));
    // Of one value alone, what is beyond 256 steps is clamped.
    const double reach =
        ratios.size() > 1 ? ratios[i].reach : std::min(ratios[i].reach, 256 / std::max(got, ratios[i].ratio));
    out.off += std::abs(got - ratios[i].ratio) * reach;
  }
  return out;
}

}  // namespace numerics
}  // namespace dlc
