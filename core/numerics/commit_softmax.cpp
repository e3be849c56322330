// softmax in integers: e = 255*exp(x - max) by a table, and e / sum of e by a reciprocal, rounded once.
#include <cmath>

#include "core/numerics/rewriter.h"
#include "core/numerics/unit.h"

namespace dlc::numerics {

namespace {

// What `quotient` shifts away for the machine's reciprocal, which is of a power of two: the S for which a number
// divided by itself, times M, is M.
Result<int64_t> unit_of_quotient(const Rewriter& r, DType m_type, DType s_type) {
  constexpr int64_t kM = 64;
  DLC_TRY(const DType type, r.operand_type("quotient", 0));
  DLC_TRY(Tensor e, Tensor::make(type, {1, 1, 1}));
  DLC_TRY(Tensor m, Tensor::make(m_type, {}));
  DLC_TRY(Tensor shift, Tensor::make(s_type, {}));
  e.set_int(0, type.max_value());
  m.set_int(0, kM);
  return unit_shift(r, "quotient", {std::move(e), std::move(m), std::move(shift)}, kM);
}

}  // namespace

RuleResult commit_softmax(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto x, r.dequantized(n.inputs[0]));
  if (!x) return Refused{"the input is not quantised per tensor"};
  const std::vector<Expr> shape = r.graph().value(x->value).type.shape;
  const auto axis = r.attributes(n).integer("axis");
  const auto rank = static_cast<int64_t>(shape.size());
  if (!axis || (*axis != -1 && *axis != rank - 1)) return Refused{"it is not along the last axis"};
  if (rank < 3) return Refused{"it is of one row"};

  DLC_TRY(const DType entry, r.operand_type("exp_rows", 1));
  DLC_TRY(const DType m_type, r.operand_type("quotient", 1));
  DLC_TRY(const DType s_type, r.operand_type("quotient", 2));
  DLC_TRY(const int64_t unit, unit_of_quotient(r, m_type, s_type));
  const auto k = choose_multiplier(1 / s.scale, m_type, s_type, s_type.max_value() - unit);
  if (!k) return Refused{"its scale has no multiplier"};
  const std::string name = s.locations.empty() ? std::string("softmax") : s.locations.front();
  std::vector<int64_t> table;
  for (int64_t below = -255; below <= 0; ++below)
    table.push_back(std::llrint(255 * std::exp(static_cast<double>(below) * x->scale)) - 128);
  DLC_TRY(const ValueId t, r.vector(entry, table, name + ".table"));
  DLC_TRY(const ValueId columns, r.columns(x->value, s));
  DLC_TRY(const ValueId e, r.add("exp_rows", {columns, t}, {}, s));
  DLC_TRY(const ValueId m, r.scalar(m_type, k->m, name + ".mul"));
  DLC_TRY(const ValueId shift, r.scalar(s_type, k->s + unit, name + ".shift"));
  DLC_TRY(const ValueId y, r.add("quotient", {e, m, shift}, r.output_attrs(s), s));
  DLC_TRY(const ValueId rows, r.rows(y, shape, s));
  return rows;
}

}  // namespace dlc::numerics
