// Fusion: which nodes become one kernel, and that kernel.
//
//   %0 = conv(%x, @w, @b)            one group {conv, add, relu}:
//   %1 = add(%0, %r)                   acc[n, o, y, x] = sum[c, kh, kw] x[...] * w[...]
//   %2 = relu(%1)                      y[n, o, y, x]   = max(b[o] + acc[n, o, y, x] + r[n, o, y, x], 0)
//
// A group has one node that may be anything (its anchor) and element-wise users of it, the epilogue, as long as one
// result is all that the rest of the graph sees: such a group is convex, and groups never wait for each other. Groups
// of element-wise nodes alone also take permutations and slices. A reshape stays alone: it is a view, no work at all.
//
// The kernel is in normal form (dlc/kernel/normal_form.h), with every element-wise temporary inlined where that costs
// less than storing it. Inlining keeps the bounds of what it replaces: T[i] becomes `if i inside T then ... else
// undef`.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

struct FusionGroup {
  std::vector<NodeId> nodes;     // in order of execution
  std::vector<ValueId> inputs;   // read from outside, constants too, in order of first use
  std::vector<ValueId> outputs;  // seen from outside
  Kernel kernel;                 // tensors: the inputs, the outputs (both in the order above), then temporaries
  bool is_view = false;          // the output has the input's elements in the same row-major order
  bool is_extern = false;        // the kernel has a signature and no body
};

struct FusionOptions {
  bool fuse = true;       // false: one group per node
  size_t max_nodes = 32;  // of a group
  // Whether a node may join a group, e.g. because both are placed on the same device.
  std::function<bool(std::span<const NodeId> group, NodeId node)> may_join;
};

// Every live node of g in exactly one group; groups in an order that can be executed.
Result<std::vector<FusionGroup>> fuse(const Graph& g, const FusionOptions& options = {});

// One kernel that does what these nodes do in turn. They must be in order of execution, and a convex set.
Result<FusionGroup> merge_nodes(const Graph& g, std::span<const NodeId> nodes);

// Inlines temporaries as described above. The same function of the inputs.
Kernel inline_temporaries(const Kernel& k, const Ranges& ranges);

}  // namespace dlc
