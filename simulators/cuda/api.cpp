// What kernel modules call: each function leads to the block that runs.
#include "simulators/cuda/block.h"

namespace dlc::emu {
namespace {

Block& block() { return *Block::running; }

uint32_t shuffle(DlcEmuShuffle how, uint32_t value, uint32_t arg, int line) {
  Request r;
  r.operation = Operation::shuffle;
  r.how = how;
  r.value = value;
  r.arg = arg;
  r.line = line;
  return block().warp_operation(r);
}

uint32_t vote(bool value, int line) {
  Request r;
  r.operation = Operation::vote;
  r.value = value;
  r.line = line;
  return block().warp_operation(r);
}

void warp_barrier(int line) {
  Request r;
  r.line = line;
  block().warp_operation(r);
}

void ldmatrix(uint32_t* registers, int matrices, const void* row, bool transposed, int line) {
  Request r;
  r.operation = Operation::ldmatrix;
  r.registers = registers;
  r.matrices = matrices;
  r.row = row;
  r.transposed = transposed;
  r.line = line;
  block().read_row(row, matrices, line);
  block().warp_operation(r);
}

void mma(DlcEmuElement a_type, DlcEmuElement b_type, void* c, const uint32_t* a, const uint32_t* b, int line) {
  Request r;
  r.operation = Operation::mma;
  r.a_type = a_type;
  r.b_type = b_type;
  r.operands = {c, a, b};
  r.line = line;
  block().warp_operation(r);
}

void cp_async(void* shared, const void* global, size_t bytes, size_t present, int line) {
  block().copy_async({static_cast<unsigned char*>(shared), global, bytes, present}, line);
}

}  // namespace

DlcEmuPlace& place() {
  static DlcEmuPlace here{};
  return here;
}

const DlcEmuApi* emulator_api() {
  static const DlcEmuApi api = {
      .version = kDlcEmuVersion,
      .place = &place(),
      .access = [](const void* p, size_t bytes, unsigned kind,
                   uintptr_t site) { block().access(reinterpret_cast<uintptr_t>(p), bytes, kind, site); },
      .shared_array = [](int id, size_t bytes, size_t alignment) { return block().shared_array(id, bytes, alignment); },
      .block_barrier = [](int line) { block().block_barrier(line); },
      .warp_barrier = warp_barrier,
      .shuffle = shuffle,
      .vote = vote,
      .cp_async = cp_async,
      .cp_async_commit = [] { block().commit_copies(); },
      .cp_async_wait = [](int groups) { block().wait_for_copies(groups); },
      .ldmatrix = ldmatrix,
      .mma = mma,
      .atomic_add_f32 =
          [](float* p, float v, int line) {
            block().atomic(p, line);
            *p += v;
          },
      .atomic_add_u32 = [](uint32_t* p, uint32_t v, int line) { return block().add_to_counter(p, v, line); },
      .atomic_set_if_zero =
          [](uint32_t* p, uint32_t v, int line) {
            block().atomic(p, line);
            if (*p == 0) *p = v;
          },
  };
  return &api;
}

}  // namespace dlc::emu
