// What a target asks of an index: where it lies in the tensor that a view is of, and which loop a division cuts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dlc/expr/expr.h"

namespace dlc::map {

// The index in a tensor of shape `to` of what `index` reads of a view of it of shape `from`, which begins with its
// element `first`. Outside the view stands its fill: an index that leaves the view must leave the whole tensor too, in
// a dim that is no part of another.
//
//   X[0, 0, y - 1, x]   of [1, 1, 1, 8], a view of [1, 1, 8, 1]:   [0, 0, x, y - 1]
//   X[0, 0, y - 1, x]   of [1, 1, 4, 8], a view of [1, 1, 32]:     none, 8 * y + x - 8 is also row 0 of x + 8
std::optional<std::vector<Expr>> unviewed(const std::vector<Expr>& index, const std::vector<int64_t>& from,
                                          const std::vector<int64_t>& to, int64_t first, const Ranges& ranges);

// The loop inside a `// c` or `% c` of e that is cut into steps of the least `by` so far (0: none yet) to make it
// affine.
void find_division(const Expr& e, const Ranges& ranges, std::string& var, int64_t& by);

}  // namespace dlc::map
