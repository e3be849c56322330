#include "simulators/cuda/shadow.h"

#include <algorithm>

namespace dlc::emu {

void Shadow::reset() { ++generation_; }

Shadow::Page& Shadow::page(uintptr_t at, bool fine) {
  const uintptr_t number = at / kPageBytes;
  if (number != last_number_) {
    last_ = &pages_[number];
    last_number_ = number;
  }
  Page& p = *last_;
  if (p.generation != generation_) {
    p.generation = generation_;
    p.cells.assign(kPageBytes / p.grain, Cell());
  }
  if (fine && p.grain == 4) {
    std::vector<Cell> cells(kPageBytes);
    for (size_t i = 0; i < kPageBytes; ++i) cells[i] = p.cells[i / 4];
    p.cells = std::move(cells);
    p.grain = 1;
  }
  return p;
}

template <class F>
void Shadow::each_cell(uintptr_t at, size_t bytes, F f) {
  const bool fine = at % 4 != 0 || bytes % 4 != 0;
  while (bytes > 0) {
    Page& p = page(at, fine);
    const size_t first = at % kPageBytes, n = std::min(bytes, kPageBytes - first);
    for (size_t i = first / p.grain; i * p.grain < first + n; ++i) f(p.cells[i]);
    at += n;
    bytes -= n;
  }
}

bool Shadow::ordered(const Who& before, const Access& a) {
  if (before.warp == kNobody) return true;
  const uint32_t seen = (*a.clock)[before.warp];
  return before.warp == a.warp ? before.lane == a.lane || before.clock < seen : before.clock <= seen;
}

bool Shadow::ordered_block(int32_t block, uint32_t epoch, const Access& a) {
  if (block < 0 || block == a.block) return true;
  const auto seen = a.seen_blocks->find(block);
  return seen != a.seen_blocks->end() && epoch <= seen->second;
}

const char* Shadow::check(Cell& c, const Access& a) {
  const char* problem = nullptr;
  if (!ordered_block(c.write_block, c.write_epoch, a)) {
    if (!(a.atomic && c.atomic)) problem = a.write ? "two blocks write" : "a read of what another block writes";
  } else if (a.write && !ordered_block(c.read_block, c.read_epoch, a)) {
    problem = "a write of what another block reads";
  }
  if (c.write_block != a.block) c.writer.warp = kNobody;
  if (c.read_block != a.block) c.readers[0].warp = c.readers[1].warp = kNobody;
  if (!problem && !ordered(c.writer, a) && !(a.atomic && c.atomic))
    problem = a.write ? "a write after an unordered write" : "a read after an unordered write";
  const Who me{(*a.clock)[a.warp], a.warp, a.lane};
  if (a.write) {
    for (Who& r : c.readers) {
      if (!problem && !ordered(r, a)) problem = "a write after an unordered read";
      r.warp = kNobody;
    }
    c.writer = me;
    c.write_block = a.block;
    c.write_epoch = a.epoch;
    c.written = true;
    c.atomic = a.atomic;
  } else {
    Who& slot = c.readers[0].warp == kNobody || c.readers[0].warp == a.warp ? c.readers[0] : c.readers[1];
    const bool several = slot.warp == a.warp && slot.clock == me.clock && slot.lane != a.lane;
    slot = me;
    if (several) slot.lane = kSeveral;
    c.read_block = a.block;
    c.read_epoch = a.epoch;
  }
  return problem;
}

Found Shadow::touch(uintptr_t at, size_t bytes, const Access& a) {
  Found found;
  each_cell(at, bytes, [&](Cell& c) {
    found.pending |= c.pending;
    found.unwritten |= !c.written;
    const char* race = check(c, a);
    if (!found.race) found.race = race;
  });
  return found;
}

void Shadow::set_pending(uintptr_t at, size_t bytes, bool pending) {
  each_cell(at, bytes, [&](Cell& c) { c.pending = pending; });
}

}  // namespace dlc::emu
