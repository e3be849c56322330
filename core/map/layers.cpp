#include <algorithm>

#include "dlc/kernel/access.h"
#include "dlc/map/compile.h"

namespace dlc {

HwArray array_of(const HwDescription& hw) {
  HwArray best;
  for (const HwInsn& insn : hw.isa.insns)
    for (const HwForm& f : insn.forms)
      for (const Stmt& s : f.kernel.body)
        walk(s.value, [&](const ValNode& n) {
          if (n.kind != ValKind::reduce || n.args[0]->kind != ValKind::binary ||
              n.args[0]->binary_op() != BinaryOp::mul)
            return;
          int64_t lanes = 1;
          for (const auto* loops : {&s.loops, &n.loops})
            for (const Loop& l : *loops) lanes *= l.extent.constant().value_or(1);
          if (lanes > best.macs_per_cycle) best = {insn.queue, lanes};
        });
  return best;
}

std::vector<int64_t> layer_cycles(const HwDescription& hw, const AcceleratorImage& image,
                                  std::span<const InstructionTime> times, int64_t total) {
  const int array = array_of(hw).queue;
  const size_t n = image.layers.size();
  std::vector<int64_t> begin(n + 1, total), retired(n, 0);
  int64_t first = total;  // when the array starts on this layer or a later one
  for (size_t l = n; l-- > 0;) {
    const AcceleratorLayer& layer = image.layers[l];
    for (int64_t i = layer.first; i < layer.end; ++i) {
      const InstructionTime& t = times[static_cast<size_t>(i)];
      retired[l] = std::max(retired[l], t.retire);
      const int insn = image.program[static_cast<size_t>(i)].insn;
      if (hw.isa.insns[static_cast<size_t>(insn)].queue == array) first = std::min(first, t.start);
    }
    begin[l] = first;
  }
  int64_t before = 0;
  for (size_t l = 0; l < n; ++l) {
    begin[l] = l == 0 ? 0 : std::min(begin[l], before);
    before = std::max(before, retired[l]);
  }
  std::vector<int64_t> out;
  for (size_t l = 0; l < n; ++l) out.push_back(begin[l + 1] - begin[l]);
  return out;
}

}  // namespace dlc
