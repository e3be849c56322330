// One block: a fiber a thread, a round of all warps until every thread has left.
//
// A thread runs until it must wait. A warp's operation happens when all its lanes that have not left wait for it at the
// same line, the block's barrier when all threads do. When nothing can go on, that is a deadlock.
#pragma once

#include <deque>
#include <random>
#include <vector>

#include "simulators/cuda/machine.h"
#include "simulators/cuda/warp_ops.h"

namespace dlc::emu {

enum class State : uint8_t { ready, at_barrier, at_warp_operation, left };
enum class Operation : uint8_t { sync, shuffle, vote, ldmatrix, mma };

struct Copy {
  unsigned char* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0, present = 0;  // the rest is zeros
};

// What a lane brings to an operation of its warp, and what it gets.
struct Request {
  Operation operation = Operation::sync;
  int line = 0;
  DlcEmuShuffle how = kEmuShuffleXor;
  uint32_t value = 0, arg = 0, result = 0;
  const void* row = nullptr;  // ldmatrix
  int matrices = 0;
  bool transposed = false;
  uint32_t* registers = nullptr;
  DlcEmuElement a_type = kEmuF16, b_type = kEmuF16;  // mma
  MmaOperands operands;
};

struct Thread {
  void* stack = nullptr;
  State state = State::ready;
  DlcEmuIndex index{};
  uint8_t warp = 0, lane = 0;
  int line = 0;  // where it waits
  Request request;
  std::vector<Copy> open;                // not committed
  std::deque<std::vector<Copy>> groups;  // oldest first
};

class Block {
 public:
  Block(Machine& machine, const Launch& launch);
  ~Block();

  bool run(DlcEmuIndex index, int32_t number);  // false: the launch ends here

  // What the running thread asks for: the functions behind DlcEmuApi.
  void access(uintptr_t at, size_t bytes, unsigned kind, uintptr_t site, bool atomic = false);  // kind: DlcEmuAccess
  void* shared_array(int id, size_t bytes, size_t alignment);
  void block_barrier(int line);
  uint32_t warp_operation(const Request& r);
  void read_row(const void* row, int matrices, int line);  // what ldmatrix reads from this lane's address
  void copy_async(const Copy& c, int line);
  void commit_copies();
  void wait_for_copies(int groups);
  uint32_t add_to_counter(uint32_t* p, uint32_t v, int line);
  void atomic(void* p, int line);  // checks; the caller does it

  static Block* running;  // the one whose threads run; there is one at a time

 private:
  struct Array {
    uintptr_t begin, end;
    int id;  // -1: the dynamic bytes
  };

  static void entry();
  void stop_thread(State s);
  bool run_warp(size_t warp);
  bool fire(size_t warp);
  bool have_all_lanes(size_t warp);
  void perform(size_t warp);
  void load_matrices(size_t warp);
  bool release_barrier();
  void report_deadlock();
  void advance(size_t warp);

  void fault(FaultKind k, std::string text, uintptr_t at = 0, size_t bytes = 0, uintptr_t site = 0);
  [[noreturn]] void end_thread();  // by a fault after which it cannot go on
  Access by_me(bool write) const;
  bool touch_shared(uintptr_t at, size_t bytes, const Access& a, uintptr_t site);
  bool touch_global(uintptr_t at, size_t bytes, const Access& a, uintptr_t site);
  const Region* region_of(uintptr_t at, size_t bytes, bool write);
  std::string name_of(uintptr_t at, int64_t* offset) const;
  void join_blocks(const void* counter);

  Machine& machine_;
  const Launch& launch_;
  Counters& counters_;
  std::vector<void*> params_;
  std::vector<Region> regions_;
  std::vector<bool> constant_;  // by region: nobody writes it in this launch
  size_t last_region_ = 0;

  unsigned char* shared_ = nullptr;
  size_t shared_bytes_ = 0, shared_used_ = 0;
  std::vector<Array> arrays_;
  Shadow shared_shadow_;

  std::vector<Thread> threads_;
  std::vector<Clock> clocks_;  // by warp
  std::vector<AccessLog> logs_;
  std::unordered_map<int32_t, uint32_t> seen_blocks_;
  int32_t number_ = 0;
  uint32_t epoch_ = 1;
  size_t faults_before_ = 0;
  bool ended_ = false;
  Thread* current_ = nullptr;
  void* scheduler_ = nullptr;
  std::mt19937 random_;
};

DlcEmuPlace& place();             // of the thread that runs
const DlcEmuApi* emulator_api();  // what modules are bound to

}  // namespace dlc::emu
