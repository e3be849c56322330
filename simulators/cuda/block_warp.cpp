// A warp's operation: when it can happen, and what it does to its lanes.
#include <fmt/format.h>

#include <algorithm>

#include "simulators/cuda/block.h"

namespace dlc::emu {

// Whether the lanes that have not left wait for the same operation; then it is performed.
bool Block::fire(size_t warp) {
  const size_t first = warp * kLanes, last = std::min(threads_.size(), first + kLanes);
  const Request* request = nullptr;
  for (size_t i = first; i < last; ++i) {
    const Thread& t = threads_[i];
    if (t.state == State::left) continue;
    if (t.state != State::at_warp_operation) return false;
    if (!request) request = &t.request;
    if (t.request.operation != request->operation || t.request.line != request->line) return false;
  }
  if (!request) return false;
  perform(warp);
  advance(warp);
  for (size_t i = first; i < last; ++i)
    if (threads_[i].state == State::at_warp_operation) threads_[i].state = State::ready;
  return true;
}

bool Block::have_all_lanes(size_t warp) {
  const size_t first = warp * kLanes;
  size_t lanes = 0;
  for (size_t i = first; i < std::min(threads_.size(), first + kLanes); ++i) {
    if (threads_[i].state == State::left) continue;
    current_ = &threads_[i];
    ++lanes;
  }
  if (lanes == kLanes) return true;
  fault(FaultKind::divergent, fmt::format("the warp's operation needs 32 lanes, {} are there", lanes));
  ended_ = true;
  return false;
}

void Block::perform(size_t warp) {
  const size_t first = warp * kLanes, count = std::min<size_t>(threads_.size() - first, kLanes);
  Thread* const lanes = &threads_[first];
  const auto here = [&](size_t lane) { return lane < count && lanes[lane].state == State::at_warp_operation; };
  const auto some = static_cast<size_t>(
      std::find_if(lanes, lanes + count, [](const Thread& t) { return t.state == State::at_warp_operation; }) - lanes);
  switch (lanes[some].request.operation) {
    case Operation::sync:
      return;
    case Operation::vote: {
      uint32_t bits = 0;
      for (size_t l = 0; l < count; ++l) bits |= here(l) && lanes[l].request.value ? 1u << l : 0;
      for (size_t l = 0; l < count; ++l) lanes[l].request.result = bits;
      return;
    }
    case Operation::shuffle:
      ++counters_.shuffles;
      for (size_t l = 0; l < count; ++l) {
        if (!here(l)) continue;
        Request& r = lanes[l].request;
        auto source = static_cast<size_t>(shuffle_source(r.how, static_cast<int>(l), r.arg));
        if (!here(source)) {
          current_ = &lanes[l];
          fault(FaultKind::divergent, fmt::format("a shuffle reads lane {}, which is not there", source));
          source = l;
        }
        r.result = lanes[source].request.value;
      }
      return;
    case Operation::ldmatrix:
      if (have_all_lanes(warp)) load_matrices(warp);
      return;
    case Operation::mma: {
      if (!have_all_lanes(warp)) return;
      ++counters_.mma;
      std::array<MmaOperands, kLanes> operands;
      for (size_t l = 0; l < kLanes; ++l) operands[l] = lanes[l].request.operands;
      mma(lanes[0].request.a_type, lanes[0].request.b_type, operands);
      return;
    }
  }
}

void Block::load_matrices(size_t warp) {
  Thread* const lanes = &threads_[warp * kLanes];
  const Request& r = lanes[0].request;
  ++counters_.ldmatrix;
  std::array<uint32_t*, kLanes> out;
  for (size_t l = 0; l < kLanes; ++l) out[l] = lanes[l].request.registers;
  for (int m = 0; m < r.matrices; ++m) {
    std::array<const void*, 8> rows;
    for (size_t i = 0; i < 8; ++i) rows[i] = lanes[static_cast<size_t>(m) * 8 + i].request.row;
    ldmatrix(m, r.transposed, rows, out);
  }
}

}  // namespace dlc::emu
