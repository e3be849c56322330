// What a kernel moves, as boxes: the facts that alias sets are made of and checked with.
//
//   Y[n, c, y] = A[n, c, y] ?: B[n, c - 16, y]     two pieces: Y[n, c, y]      = A[n, c, y] for c < 16
//                                                              Y[n, c + 16, y] = B[n, c, y] for c < 8
//
// An index is a *step* when it is one loop variable plus something that does not move, or does not move at all. A
// piece's accesses are steps, so what it touches is a box, and one side of it lies in the other as a view: an
// embedding. A slice, a transpose, a squeeze, a concat are all this, whatever the op is called.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dlc/kernel/kernel.h"

namespace dlc::detail {

struct Step {
  std::string var;  // empty: no loop moves it
  Expr offset;
};
using Steps = std::vector<Step>;

// A loop of a piece: lo .. lo + extent - 1.
struct Part {
  std::string var;
  Expr lo, extent;
};

struct BoxSide {
  Expr lo, extent;
};
using Box = std::vector<BoxSide>;

Expr volume(const Box& b);
bool provably_disjoint(const Box& a, const Box& b, const Ranges& symbols);

// Y[to] = X[from] for every point of the loops; `statement` when it is no copy but something else that is kept.
struct Piece {
  int source = -1;  // tensor X; -1: the statement as it stands
  std::vector<Part> loops;
  Steps to, from;
  Box box;  // of Y
  Stmt statement;
};

// The pieces of a kernel that does nothing but move elements into one output, each element once; nullopt for others.
struct Movement {
  int target = -1;
  std::vector<Piece> pieces;
};
std::optional<Movement> movement(const Kernel& k, const Ranges& symbols);

// Statements that choose between reads by where they stand become one for each choice: Y[n, c] = f(A[n, c] ?: B[n, c -
// 8]) becomes Y[n, c] = f(A[n, c]) and Y[n, c + 8] = f(B[n, c]), whose reads need no guard. True when there was one.
bool split_choices(Kernel& k, const Ranges& symbols);

// A statement that does what the piece does.
Stmt statement_of(const Piece& p, int target, DType dtype);

// The boxes that k's statements write of tensor t; nullopt when one of them is no box.
std::optional<std::vector<Box>> boxes_written(const Kernel& k, int t);
// A box for every read of tensor t that holds at least what it reads; clipped to the tensor where bounds are caught.
std::vector<Box> boxes_read(const Kernel& k, int t, const Ranges& symbols);

// Where a tensor V lies inside a tensor B: index k of B is V's index dim[k] (nothing when -1) plus offset[k].
struct Embedding {
  std::vector<int> dim;
  std::vector<Expr> offset;
  friend bool operator==(const Embedding&, const Embedding&) = default;
};
// From the indices of the same elements of both.
std::optional<Embedding> embedding(const Steps& of_view, const Steps& of_base, const std::vector<Part>& loops,
                                   const std::vector<Expr>& view_shape, const Ranges& symbols);
// The indices are all elements of a tensor of that shape.
bool covers(const Steps& steps, const std::vector<Part>& loops, const std::vector<Expr>& shape, const Ranges& symbols);

// In elements; nullopt when V's rows do not follow each other in B.
std::optional<Expr> contiguous_offset(const Embedding& e, const std::vector<Expr>& view_shape,
                                      const std::vector<Expr>& base_shape, const Ranges& symbols);
// V's elements keep their vectors: its last dim is contiguous in B too, and no stride that was a number depends on a
// symbol.
bool keeps_rows(const Embedding& e, const std::vector<Expr>& view_shape, const std::vector<Expr>& base_shape);

// Every access to tensor t is in bounds for all values of the symbols, so that t may become part of something larger.
bool stays_inside(const Kernel& k, int t, const Ranges& symbols);
// k with tensor t seen as that part of a tensor of base_shape.
void embed(Kernel& k, int t, const Embedding& e, const std::vector<Expr>& base_shape);

// `out` may have the bytes of `in`: each element of `in` is read only where the same element of `out` is computed.
bool may_replace(const Kernel& k, int in, int out);

}  // namespace dlc::detail
