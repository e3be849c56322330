// The functional simulator as a device: the registers of `csr`, external memory from address 0, no clock.
//
// The registers that device logic needs are known by name, as the family queue_machine/1 has them: ID, CTRL (start,
// reset), STAT (busy, done, err), COUNT, SEG (one base per segment), ERR (cause, queue), EPC, IRQ_EN (done, err). A
// program runs to its end when CTRL.start is written. The other registers keep what is written to them; counters read
// 0.
#pragma once

#include <cstdint>
#include <memory>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"
#include "dlc/hw/port.h"

namespace dlc {

struct SimPortOptions {
  uint64_t seed = 0;  // of the interleaving; 0: fixed order
  uint64_t memory_bytes = uint64_t{1} << 28;
  bool track_undefined = true;  // reads of on-chip words never written end the run with an error
};

// The description must outlive the port. An error of the simulator that hardware would not notice (an undefined read)
// is the error of the wr32() that started the program.
Result<std::unique_ptr<DlcPort>> open_sim_port(const HwDescription& hw, const SimPortOptions& options = {});

}  // namespace dlc
