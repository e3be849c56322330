// The normal form every analysis starts from.
//
//   Y[i, j] = E[i, j] / sum[k < n] E[i, k]      becomes      Y_1[i]  = sum[k < n] E[i, k]
//                                                            Y[i, j] = E[i, j] / Y_1[i]
//
// 1. A reduction directly inside a reduction of the same kind joins it: sum[i] sum[j] x is sum[i, j] x.
// 2. Every reduction is the whole right-hand side of its own statement, over exactly the loops it depends on. One under
//    a condition or `?:` stays where it is unless it is provably defined without the guard.
// 3. A reduction that reads nothing written in its seq leaves the seq: its seq loops become loops of its own. An LSTM's
//    product of inputs and weights becomes one matrix product by this rule.
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc {

// The same function of the inputs. New temporaries are named after the statement they came from.
Result<Kernel> normalise(const Kernel& k);

}  // namespace dlc
