// Sums of products of two factors, wherever they stand in a value: matrix products, convolutions of every kind,
// attention, gates. Nothing here knows which.
//
// The loops are classed by the factors that use them: in both and in the result (batch), in one (s or v), summed (k).
// For each batch point, tiles of both factors are evaluated by strip programs into dense panels (guards, zero points,
// casts and gathers vanish there), and a register-blocked kernel multiplies the panels. The sums land in a scratch
// tensor, which the rest of the statement reads like any other.
//
//   Y[o, x] = B[o] + sum[c, k] (X[c, x + k - 1] ?: 0) * W[o, c, k]
//     v = x, s = o, k = (c, k):  scratch[o, x] = sum ...;  then  Y[o, x] = B[o] + scratch[o, x]
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/interp/plan.h"
#include "core/interp/program.h"

namespace dlc::interp {

struct Contraction {
  std::vector<LoopCode> batch, s, v, k;
  Program s_program, v_program;  // the factors, over s x k and k x v
  Ty panel = Ty::f32, acc = Ty::f32;
  int scratch = -1;  // tensor
};

// Replaces the contractions of a statement's value by reads of scratch tensors, which it appends to the kernel's.
// Gives them; empty when there are none.
std::vector<Contraction> extract_contractions(Lowered& code, const StmtCode& s, const std::vector<LoopCode>& around,
                                              Node& value);

// A contraction bound to one run.
class BoundContraction {
 public:
  // nullptr when its loops are too short to gain from panels.
  static std::unique_ptr<BoundContraction> bind(const Contraction& c, RunState& run,
                                                const std::vector<LoopCode>& around, Arena& arena);
  // Fills the scratch tensor; false when a factor is undefined somewhere.
  bool run();

 private:
  struct Side;
  explicit BoundContraction(const Contraction& c) : plan_(c) {}
  bool batch(size_t depth, int64_t offset);
  template <class Panel, class Acc>
  bool multiply(int64_t offset,
                void (*kernel)(const Panel*, int64_t, int64_t, const Panel*, int64_t, int64_t, int64_t, Acc*, int64_t));
  bool dispatch(int64_t offset);
  bool fill(const Program& p, Frame& f, std::byte* panel, const std::vector<BoundTerm>& strides);

  const Contraction& plan_;
  RunState* run_ = nullptr;
  Frame s_frame_, v_frame_;
  std::vector<int64_t> batch_extents_, s_extents_, v_extents_, k_extents_;
  std::vector<BoundTerm> s_strides_, v_strides_;  // of the panels, in bytes, by slot
  std::vector<LoopRange> box_;                    // by slot: the tile
  Memory panel_memory_;
  std::unique_ptr<std::byte[]> s_panel_, v_panel_, scratch_;
  int64_t s_total_ = 1, v_total_ = 1, k_total_ = 1, s_stride_ = 0, v_stride_ = 0;
};

}  // namespace dlc::interp
