// Blocked layouts: activations in blocks of channels with a halo, so that convolutions read and write whole vectors and
// have neither divisions nor bounds checks in their addresses.
//
//   temp t: f32[1,64,56,56]        ->   temp t: f32[1,4,58,58,16]         "n c/16 h+1+1 w+1+1 c16"
//   X[n, c, y + kh - 1, x + kw - 1] ?: 0   ->   X[n, c_1, y + kh, x + kw, c_0]
//
// The producer fills the halo with the value its readers want outside (0), so their guards vanish; a guard with another
// default becomes an explicit condition. Layouts are chosen per buffer and only where every reader and the writer can
// follow: the channel index of each access must split. Inputs, outputs and views keep their plain layout; kernels
// between read one and write the other, no copies are added. Constants that are read by split channels only (depthwise
// weights, bias of every channel) are re-laid at compile time.
#pragma once

#include "dlc/base/diag.h"
#include "dlc/program/program.h"

namespace dlc {

struct LayoutOptions {
  int64_t block = 16;  // elements of one vector; half of it where only that divides the channels
};

// Rewrites p: buffer types, kernels, constants, memory plan. The same function of the inputs. Returns how many buffers
// were blocked.
Result<int> assign_layouts(Program& p, const LayoutOptions& options = {});

}  // namespace dlc
