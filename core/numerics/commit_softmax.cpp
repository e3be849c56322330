// softmax in integers: e = 255*exp(x - max) by a table, and e / sum of e by a reciprocal, rounded once.
#include <cmath>

#include "core/numerics/rewriter.h"

namespace dlc::numerics {

RuleResult commit_softmax(Rewriter& r, const Site& s) {
  const Node n = r.graph().node(s.root);
  DLC_TRY(const auto x, r.dequantized(n.inputs[0]));
  if (!x) return Refused{"the input is not quantised per tensor"};
  const std::vector<Expr> shape = r.graph().value(x->value).type.shape;
  const auto axis = r.attributes(n).integer("axis");
  const auto rank = static_cast<int64_t>(shape.size());
  if (!axis || (*axis != -1 && *axis != rank - 1)) return Refused{"it is not along the last axis"};
  if (rank < 3) return Refused{"it has fewer than 3 dims"};

  if (const auto no = r.without({"exp_rows", "quotient"})) return *no;
  DLC_TRY(const DType entry, r.operand_type("exp_rows", "T"));
  DLC_TRY(const auto scale, r.scale("quotient", {{1 / s.scale, 1}}, s));
  if (!scale) return Refused{scale.why()};
  const std::string name = s.locations.empty() ? std::string("softmax") : s.locations.front();
  std::vector<int64_t> table;
  for (int64_t below = -255; below <= 0; ++below)
    table.push_back(std::llrint(255 * std::exp(static_cast<double>(below) * x->scale)) - 128);
  DLC_TRY(const ValueId t, r.vector(entry, table, name + ".table"));
  DLC_TRY(const ValueId columns, r.columns(x->value, s));
  DLC_TRY(const ValueId e, r.add("exp_rows", {columns, t}, {}, s));
  DLC_TRY(const ValueId y, r.add("quotient", {e, (*scale)[0], (*scale)[1]}, r.output_attrs(s), s));
  DLC_TRY(const ValueId rows, r.rows(y, shape, s));
  return rows;
}

}  // namespace dlc::numerics
