#include "simulators/cuda/faults.h"

#include <fmt/format.h>

namespace dlc::emu {

const char* to_string(FaultKind k) {
  switch (k) {
    case FaultKind::out_of_bounds:
      return "out of bounds";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::read_only:
      return "read only";
    case FaultKind::uninitialised:
      return "uninitialised";
    case FaultKind::race:
      return "race";
    case FaultKind::pending_copy:
      return "pending copy";
    case FaultKind::deadlock:
      return "deadlock";
    case FaultKind::divergent:
      return "divergent";
    case FaultKind::limit:
      return "limit";
  }
  return "";
}

std::string to_string(const Fault& f) {
  std::string s = fmt::format("{}: {}", to_string(f.kind), f.text);
  if (!f.buffer.empty()) s += fmt::format(": {} bytes at {} + {}", f.bytes, f.buffer, f.offset);
  s += fmt::format(", kernel {}, block ({},{},{}), thread ({},{},{})", f.kernel, f.block.x, f.block.y, f.block.z,
                   f.thread.x, f.thread.y, f.thread.z);
  if (f.line) s += fmt::format(", line {}", f.line);
  return s;
}

}  // namespace dlc::emu
