// Guards: what a program assumes of its symbols beyond their ranges. They are checked when a run begins.
//
// A record that is instantiated for symbolic dims may need facts that no proof decides: where N is broadcast against 4,
// the kernel is right for N == 4, and N == 1 would be another kernel. Kernels state such facts (Kernel::assumptions);
// the program has each of them once, with the nodes that need it:
//
//     guard N == 4, loc "mul_3"
//     guard S >= 2, loc "conv_1"
//
// Every entry of a compiled program (the interpreter, an executable, a C library) takes the symbols' values and refuses
// those that break a range or a guard. What a pass does to kernels later does not matter to the guards.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/expr/expr.h"

namespace dlc {

struct Guard {
  Expr excess;  // of the left side over the right one
  bool is_equality = false;
  std::vector<std::string> locations;  // the model's nodes that need it
};

// "N == 4", "S <= 2"
std::string to_string(const Guard& g);

// Whether these guards and ranges say that e >= 0.
bool implies_nonnegative(std::span<const Guard> guards, const Ranges& symbols, const Expr& e);

// Adds what must hold for every e of `assumptions` to be >= 0 and is not known yet.
void add_guards(std::vector<Guard>& guards, const Ranges& symbols, std::span<const Expr> assumptions,
                const std::vector<std::string>& locations);

// A symbol's range as guards: each may rely on those before it.
std::vector<Guard> guards_of(const Ranges::value_type& symbol);

}  // namespace dlc
