// Target: one store of a call of a program as the matcher sees it: one value over numeric loops.
//
//   acc[n, o, y, x] = sum[ci, kh, kw] ((X[n, ci, y + kh - 1, x + kw - 1] - 3) ?: 0) * W[o, ci, kh, kw]
//   Y[n, o, y, x]   = sat8(requant(acc[n, o, y, x] + B[o], M[o], S[o]) + 5, -128, 127)
//
// becomes Y[...] = sat8(requant(sum(...) + B[...], M[...], S[...]) + 5, ...) with o -> 16*o.1 + o.0 and ci likewise, X
// filled with 3 outside its bounds, and scalar constants as literals. Temporaries are gone: the instructions decide
// what is kept. A call that puts its result together has one for each part: Y[n, c] = A[n, c] ?: B[n, c - 16] is
// Y[n, c] = A[n, c] and Y[n, c + 16] = B[n, c]. Activations are blocked: [n][c / lanes][h][w][lanes], their dim 1 (dim
// 0 of a vector) by lanes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dlc/program/program.h"

namespace dlc::map {

// The dim of a tensor of that rank that is divided by lanes; -1: a scalar has none.
constexpr int blocked_dim(size_t rank) { return rank == 0 ? -1 : rank == 1 ? 0 : 1; }

// How a buffer lies in external memory. `dims` are in memory order, outermost first, in words.
struct Layout {
  std::vector<int64_t> shape;  // logical
  int blocked = -1;            // logical dim that is divided by lanes; -1: a scalar
  int64_t lanes = 1;
  int64_t element_bytes = 1;

  static Layout of(const TensorType& type, int64_t lanes);
  std::vector<int64_t> words() const;  // extents of the dims
  int64_t bytes() const;
};

// Dense row-major to the layout and back; what pads a vector becomes 0.
void pack(const Layout& layout, const Tensor& from, std::byte* to);
void unpack(const Layout& layout, const std::byte* from, Tensor& to);

struct TargetLoop {
  std::string var;
  int64_t extent = 1;
  bool reduction = false;
  bool lane = false;  // runs over the elements of a vector
};

struct Target {
  Kernel kernel;             // its tensors; the body is not used
  std::vector<int> buffers;  // per tensor: the program's buffer that holds it (views resolved), or -1
  std::vector<TargetLoop> loops;
  Ranges ranges;
  std::vector<std::pair<Expr, int64_t>> valid;  // each Expr < bound, or the point is padding
  int output = -1;                              // tensor
  std::vector<Expr> output_index;               // in the buffer's own dims
  Val value;                                    // reads of data have one Expr per dim of the buffer
  std::map<int, int64_t> fill;                  // per tensor: what stands outside its bounds

  const std::vector<int64_t>& shape(int tensor) const { return shapes[static_cast<size_t>(tensor)]; }
  std::vector<std::vector<int64_t>> shapes;  // per tensor: of the buffer that holds it
  std::map<int, Tensor> constants;           // per tensor
};

// What holds `buffer` in the end, after aliases.
int root_buffer(const Program& p, int buffer);

Result<std::vector<Target>> make_targets(const Program& p, const Call& call, int64_t lanes);

}  // namespace dlc::map
