// What the checks found, in words and as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/cuda/device/dlc_emu.h"

namespace dlc::emu {

enum class FaultKind : uint8_t {
  out_of_bounds,
  misaligned,
  read_only,      // a write through a const parameter
  uninitialised,  // a read of bytes nobody wrote
  race,
  pending_copy,  // an access to the target of an asynchronous copy that was not waited for
  deadlock,
  divergent,  // threads meet at different places of the text, or lanes that a warp operation needs have left
  limit       // more than the machine has
};
const char* to_string(FaultKind k);

struct Fault {
  FaultKind kind = FaultKind::out_of_bounds;
  std::string text;  // what happened
  std::string kernel;
  DlcEmuIndex block{}, thread{};
  std::string buffer;  // empty: none
  int64_t offset = 0;
  size_t bytes = 0;
  int line = 0;  // of the kernel text; 0: not known
};

// "race: a write after an unordered read: 4 bytes at shared array 0 + 16, kernel softmax, block (0,0,0), thread
// (33,0,0)"
std::string to_string(const Fault& f);

}  // namespace dlc::emu
