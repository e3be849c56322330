// The functional simulator of a queue machine, generated from its description: memories are bytes, an instruction is
// its kernel run with the fields as parameters, queues run in order and meet at semaphores.
//
//   DLC_TRY(auto sim, Simulator::make(hw, {.seed = 7}));
//   DLC_CHECK(sim.bind(hw.find_space("dram.weights"), weights, true));
//   DLC_TRY(SimResult r, sim.run(program));      // r.fault: what the machine reports
//
// Instructions are atomic and run one at a time; `seed` chooses which ready queue goes next, adversarially: queues are
// starved and rushed in turn. In a race-free program every seed gives the same memories and the same writes per queue.
//
// A Result error is a fault of the program that hardware would not notice (a read of an undefined word) or of the
// caller; a SimFault is what the machine itself reports: no write by the faulting instruction, all queues stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"
#include "dlc/hw/encode.h"

namespace dlc {

struct SimOptions {
  bool track_undefined = true;  // reads of bytes never written are errors; off for speed
  bool record_writes = false;   // see Simulator::writes()
  uint64_t seed = 0;            // 0: the lowest ready queue runs, which is deterministic and fair enough
};

// The machine's own report.
struct SimFault {
  std::string cause;  // illegal, oob, sem, watchdog
  int64_t code = 0;   // as in `faults`; 0 when the description does not list the cause
  int64_t instruction = -1;
  int queue = -1;
  std::string detail;
};

struct SimResult {
  std::optional<SimFault> fault;
  int64_t retired = 0;
  std::vector<int64_t> order;       // the retired instructions, in the order of this interleaving
  std::vector<int64_t> epc;         // per queue: index of its oldest instruction that has not retired; -1: none
  std::vector<int64_t> semaphores;  // at the end
};

// What one instruction left in one contiguous piece of memory. Pieces of an instruction are ordered by space and
// address.
struct SimWrite {
  int64_t instruction = 0;
  int space = -1;
  int64_t begin = 0;  // byte offset
  std::vector<std::byte> bytes;
};

class Simulator {
 public:
  // The description must outlive the simulator.
  static Result<Simulator> make(const HwDescription& hw, const SimOptions& options = {});

  // On-chip memories to their reset values, undefined bytes to seeded noise; semaphores to theirs. Bindings stay.
  void reset();

  // A segment of external memory, owned by the caller. `defined`: its bytes have been written.
  Result<> bind(int space, std::span<std::byte> bytes, bool defined);
  // Any memory, for loading and comparing. Writing through it does not make bytes defined: see define().
  std::span<std::byte> memory(int space);
  std::span<const std::byte> memory(int space) const;
  void define(int space, int64_t begin, int64_t end);
  bool is_defined(int space, int64_t begin, int64_t end) const;

  Result<SimResult> run(std::span<const Instruction> program);
  // From words, as fetched: an illegal word is a fault.
  Result<SimResult> run_words(std::span<const uint32_t> words);

  void record_writes(bool on);
  // Per queue, in the order in which it wrote; only while recorded. run() clears it first.
  const std::vector<std::vector<SimWrite>>& writes() const;

  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;
  ~Simulator();

 private:
  struct Impl;
  explicit Simulator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The order in which queues fetch, wait and signal, apart from what instructions do: shared with the program checker.
class QueueModel {
 public:
  QueueModel(const HwDescription& hw, std::span<const Instruction> program);

  size_t queues() const { return heads_.size(); }
  // Fetches as far as queue depths allow; call after every pop().
  void fetch();
  // The instruction at the head of q, or -1.
  int64_t head(size_t q) const;
  // Its waits can be taken now.
  bool ready(size_t q) const;
  // The queue of the head becomes the owner of the semaphores it waits on; the other owner where one has it already and
  // the description wants one waiting queue.
  struct Claim {
    size_t semaphore = 0, owner = 0;
  };
  std::optional<Claim> claim(size_t q);
  void take(size_t q);  // the waits of the head
  // Signals of the head, which leaves the queue. False: a semaphore overflows.
  bool retire(size_t q);
  bool finished() const;
  const std::vector<int64_t>& semaphores() const { return semaphores_; }
  uint64_t waits(int64_t instruction) const { return waits_[static_cast<size_t>(instruction)]; }
  uint64_t signals(int64_t instruction) const { return signals_[static_cast<size_t>(instruction)]; }
  int queue_of(int64_t instruction) const { return queue_[static_cast<size_t>(instruction)]; }

 private:
  std::vector<int> queue_;                   // of each instruction
  std::vector<uint64_t> waits_, signals_;    // of each instruction
  std::vector<std::vector<int64_t>> lists_;  // per queue: its instructions in order
  std::vector<size_t> heads_, fetched_;      // per queue: positions in lists_
  std::vector<int64_t> depth_, semaphores_;
  std::vector<int> owners_;  // per semaphore: the queue that waits on it, or -1
  bool one_owner_ = false;
  int64_t next_ = 0, limit_ = 0;
};

}  // namespace dlc
