// Facts derived from a kernel: which elements a value touches, whether it can be undefined, what class of computation a
// statement is, how much work and traffic it is, which part of a tensor a tile needs.
//
// Classes, contractions and counts are meant for kernels in normal form (normal_form.h); before it, softmax's last
// statement looks like a reduction and a convolution with bias like no contraction.
//
//   acc[n, o, y, x] = sum:s32[c < 64, kh < 3, kw < 3] X[n, c, y + kh, x + kw] * W[o, c, kh, kw]
//   classify(...) is contraction;  footprint of X under {y: 14, x: 56}: 16 rows, 58 columns
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dlc/kernel/kernel.h"

namespace dlc {

// One Expr per dim; nullopt where the index depends on data.
using AccessMap = std::vector<std::optional<Expr>>;
AccessMap access_map(const std::vector<Val>& indices);

// Loop variables, dims and fields that v depends on, also inside its reads; its own reductions' loops are bound.
using SymbolSet = std::set<std::string, std::less<>>;
SymbolSet free_symbols(const Val& v);

// What is known at a place in a value: ranges of symbols, and Exprs that are >= 0 because an enclosing condition says
// so.
struct Known {
  Ranges ranges;
  std::vector<Expr> nonnegative;
};
// `outer` and the facts that hold where `condition` is true (or false).
Known assuming(const Known& outer, const Val& condition, bool holds = true);
bool provably_nonnegative(const Expr& e, const Known& known);

// A read inside a value, with what holds wherever it is evaluated.
struct ReadSite {
  Val read;
  AccessMap access;
  Known known;          // outer knowledge, loops of enclosing reductions, enclosing conditions
  bool caught = false;  // under the left side of a `?:`, which is where it may be out of bounds
};
// In order of evaluation. `known` has the ranges of the statement's loops.
std::vector<ReadSite> reads(const Val& v, const Known& known);

// Every index of the access lies inside shape, for all values of the symbols.
bool provably_in_bounds(const AccessMap& access, const std::vector<Expr>& shape, const Known& known);
// v is defined for all values of the symbols: its reads are in bounds or caught, its divisors are not 0.
bool provably_defined(const Val& v, const Kernel& k, const Known& known);

// ---- classes

enum class StmtClass : uint8_t {
  constant,     // reads nothing
  elementwise,  // every read is at the statement's own loops, in order
  broadcast,    // some read uses fewer loops, in order
  permute,      // some read uses the loops in another order
  remap,        // some read has other index arithmetic: slice, stride, reshape, padding
  gather,       // some index depends on data
  reduction,
  contraction,  // a sum of products of two reads; inside a seq, each step's is one
  scan,         // anything else that reads what its seq writes
  scatter,      // writes at computed or data-dependent places
};
std::string_view to_string(StmtClass c);
inline bool is_injective(StmtClass c) { return c <= StmtClass::gather; }

// `seq_written`: the tensors written in the enclosing seq, empty outside one.
StmtClass classify(const Stmt& s, const std::vector<int>& seq_written = {});

// One factor of a contraction: the read at its heart, and the factor as it stands (with casts, zero point, guards).
struct Factor {
  Val read;
  Val factor;
};
struct Contraction {
  Factor lhs, rhs;
  std::vector<Val> scales;      // other factors: constants, masks, reads without reduction loops
  std::vector<Val> conditions;  // `if condition then product else 0`, taken off
};
std::optional<Contraction> contraction(const Val& reduce);

// ---- counts, as Exprs over the dims

// Additions, multiplications, comparisons and calls on values that are not index arithmetic; a reduction's combining
// step is one. Conversions are free.
Expr flops(const Kernel& k);
// Points of the contractions.
Expr macs(const Kernel& k);
// Bytes of the tensors that enter and leave the kernel, each once; views are part of their base.
Expr bytes(const Kernel& k);
Expr elements(const std::vector<Expr>& shape);

// ---- footprints

// The indices [base, base + extent) of one dim that a tile touches.
struct Span {
  Expr base;  // the tile's variables stand for its first point here
  Expr extent;
};
// What an access touches while each variable v of `tile` runs over v .. v + tile[v] - 1. nullopt where the index
// depends on data or has no bound that is known.
std::vector<std::optional<Span>> footprint(const AccessMap& access,
                                           const std::map<std::string, Expr, std::less<>>& tile, const Ranges& ranges);

}  // namespace dlc
