// A statement planned for speed: straight-line code over registers that hold a strip of up to 256 points.
//
// Two loops of the statement become the lanes of a strip (rows x cols), the others run outside. Every instruction sits
// at the outermost loop level where its operands exist, so what does not change inside a loop is computed once outside.
// A register is uniform (one value for all lanes) or has one value per lane, and carries a mask of undefined lanes.
//
//   Y[n, o, y, x] = max(X[n, o, y, x] + B[o], 0)        lanes y, x
//     level o:   r0 = load B            (uniform)
//     strip:     r1 = load X; r2 = add r1, r0; r4 = max r2, r3; store r4
//
// When anything is odd (an undefined value reaches a store or a condition, a store is out of bounds), the points of
// that strip are evaluated by the tree walk, which gives the exact result or the exact error.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/interp/lower.h"
#include "core/interp/memory.h"
#include "dlc/expr/expr.h"

namespace dlc::interp {

inline constexpr int kStrip = 256;

// ---- plan --------------------------------------------------------------------------------------------------------

struct RegInfo {
  Ty ty = Ty::f32;
  bool uniform = false;
  int level = 0;
  Interval range;  // of integers; unbounded when unknown
};

struct Term {
  int slot = 0;
  ExprCode coefficient;  // over parameters only
};

// One index of a read or store: affine in all loop variables, an Expr affine at least in the lanes, or a register.
struct AccessDim {
  enum class Kind : uint8_t { affine, scalar, reg };
  Kind kind = Kind::affine;
  ExprCode base;            // affine: over parameters. scalar: the whole Expr, evaluated at the strip's first point
  std::vector<Term> terms;  // affine: every loop variable. scalar: the lanes
  int reg = -1;
  bool reg_uniform = false;
  Ty reg_ty = Ty::s64;
  bool in_bounds = false;  // proved when planned
};

struct Access {
  int tensor = -1;
  int row_slot = -1, col_slot = -1;  // the lanes in force, -1 where there are none
  std::vector<AccessDim> dims;
};

struct Nest;
struct Frame;

struct Instr {
  using Fn = void (*)(const Instr&, Frame&);
  Fn fn = nullptr;
  int dst = -1, a = -1, b = -1, c = -1;
  bool uniform = false, a_uniform = false, b_uniform = false, c_uniform = false;
  uint8_t op = 0;
  bool saturate = false;
  DType to = kF32;
  int access = -1;
  void (*move)() = nullptr;  // load: the typed row loader
  ExprCode code;             // index
  std::vector<Term> terms;   // index: the lanes
  int row_slot = -1, col_slot = -1;
  Scalar constant;
  std::unique_ptr<Nest> nest;  // reduce
};

using Block = std::vector<Instr>;

// A reduction's loops, or the two sides of a branch (blocks 0 and 1).
struct Nest {
  std::vector<LoopCode> loops;                 // run one point at a time
  std::vector<std::unique_ptr<Block>> blocks;  // blocks[d] runs at each point of loops[0 .. d]; the last holds the body
  bool own_lanes = false;                      // lanes of its own, folded into one value at the end
  std::vector<LoopCode> lanes;                 // [row,] col
  ReduceOp op = ReduceOp::sum;
  DType to = kF32;
  int body = -1;
  bool body_uniform = false;
  int acc = -1, best = -1;  // best: argmax and argmin keep the best value in acc and its position in best
  int position_slot = -1;
};

struct LoopRange {
  int64_t begin = 0, end = 0;
};

// `for loops: store value`, the last one or two loops being lanes.
struct Program {
  std::vector<LoopCode> loops;
  int outer = 0;                               // how many loops are no lanes
  std::vector<std::unique_ptr<Block>> blocks;  // [0] once; [d] at each point of loops[0 .. d-1]; [outer + 1] each strip
  std::vector<RegInfo> regs;
  std::vector<Access> accesses;
  std::vector<LoopCode> inner_loops;  // of its reductions
  int store = -1;                     // an access, or -1: the caller binds one (packing)
  int value = -1;
  Ty value_ty = Ty::f32;
  bool value_uniform = false;
  void (*put)() = nullptr;  // the typed row writer of the store
  const StmtCode* source = nullptr;
};

// ---- one run -----------------------------------------------------------------------------------------------------

struct Vec {
  std::byte* data = nullptr;
  std::byte* home = nullptr;  // its own memory; data may point at another register's
  uint8_t* undefined = nullptr;
  bool any_undefined = false;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

struct BoundTerm {
  int slot = 0;
  int64_t coefficient = 0;
};
struct BoundDim {
  const AccessDim* plan = nullptr;
  int64_t base = 0, row = 0, col = 0, extent = 0, stride = 0;
  BoundTerm* terms = nullptr;
  int n_terms = 0;
  bool check = true;
};
// An access with this run's numbers; offsets in bytes.
struct BoundAccess {
  const Memory* memory = nullptr;
  std::byte* data = nullptr;
  int64_t base = 0, row = 0, col = 0;
  BoundTerm* terms = nullptr;
  int n_terms = 0;
  BoundDim* dims = nullptr;
  int n_dims = 0;
  bool proven = false;   // affine, and every element the loops reach is in bounds
  bool has_reg = false;  // some index is data-dependent
};

// Memory that lives as long as one run.
class Arena {
 public:
  template <class T>
  T* get(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    auto* p = static_cast<T*>(bytes(n * sizeof(T)));
    for (size_t i = 0; i < n; ++i) new (p + i) T();
    return p;
  }
  std::byte* raw(size_t n) { return static_cast<std::byte*>(bytes(n)); }

 private:
  void* bytes(size_t n);
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  size_t used_ = 0, size_ = 0;
};

// A program bound to one run.
struct Frame {
  RunState* run = nullptr;
  int64_t* env = nullptr;
  Vec* regs = nullptr;
  BoundAccess* accesses = nullptr;
  int rows = 1, cols = 1, n = 1;
  bool odd = false;
};

inline void execute(const Block& block, Frame& f) {
  for (const Instr& i : block) i.fn(i, f);
}

// Evaluates address maps for this run. `around` are the seq loops the program's statement stands in. nullopt when an
// extent is negative or undefined: the tree walk reports it.
std::optional<Frame> bind(const Program& p, RunState& run, const std::vector<LoopCode>& around, Arena& arena);

// The strips of one box of the program's loops; `strip` stores a strip's value and gives false to stop.
template <class Strip>
bool for_strips(const Program& p, Frame& f, const LoopRange* ranges, Strip&& strip) {
  bool sticky = false;  // odd outside the strips: every strip below is odd
  const auto lanes = [&] {
    const int n_lanes = static_cast<int>(p.loops.size()) - p.outer;
    const LoopRange one{0, 1};
    const LoopRange row = n_lanes == 2 ? ranges[p.outer] : one;
    const LoopRange col = n_lanes >= 1 ? ranges[p.loops.size() - 1] : one;
    const int64_t width = std::min<int64_t>(kStrip, std::max<int64_t>(1, col.end - col.begin));
    const int64_t height = std::max<int64_t>(1, kStrip / width);
    for (int64_t r = row.begin; r < row.end; r += height) {
      for (int64_t c = col.begin; c < col.end; c += width) {
        if (n_lanes == 2) f.env[p.loops[p.loops.size() - 2].slot] = r;
        if (n_lanes >= 1) f.env[p.loops.back().slot] = c;
        f.rows = static_cast<int>(std::min(height, row.end - r));
        f.cols = static_cast<int>(std::min(width, col.end - c));
        f.n = f.rows * f.cols;
        f.odd = sticky;
        execute(*p.blocks.back(), f);
        if (!strip(r, c)) return false;
      }
    }
    return true;
  };
  const auto nest = [&](auto& self, int depth) -> bool {
    f.odd = false;
    execute(*p.blocks[static_cast<size_t>(depth)], f);
    const bool before = sticky;
    sticky |= f.odd;
    bool ok = true;
    if (depth == p.outer) {
      ok = lanes();
    } else {
      for (int64_t i = ranges[depth].begin; ok && i < ranges[depth].end; ++i) {
        f.env[p.loops[static_cast<size_t>(depth)].slot] = i;
        ok = self(self, depth + 1);
      }
    }
    sticky = before;
    return ok;
  };
  return nest(nest, 0);
}

}  // namespace dlc::interp
