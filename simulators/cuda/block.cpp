#include "simulators/cuda/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace dlc::emu {

Block* Block::running = nullptr;

Block::Block(Machine& machine, const Launch& launch)
    : machine_(machine), launch_(launch), counters_(machine.counters[launch.kernel]), random_(machine.options.seed) {
  for (const auto& p : launch.params) params_.push_back(const_cast<unsigned char*>(p.data()));
  regions_ = launch.regions;
  if (regions_.empty())
    for (const auto& [begin, a] : machine.memory.allocations())
      regions_.push_back({begin, a.end, true, fmt::format("allocation of {} bytes", a.end - begin)});
  for (const Region& r : regions_)
    constant_.push_back(std::none_of(regions_.begin(), regions_.end(), [&](const Region& w) {
      return w.writable && w.begin < r.end && r.begin < w.end;
    }));
  shared_bytes_ = machine.shared_bytes_;
  shared_ = machine.shared_.get();
  threads_.resize(size_t{launch.block.x} * launch.block.y * launch.block.z);
  const size_t warps = (threads_.size() + kLanes - 1) / kLanes;
  clocks_.resize(warps);
  logs_.resize(warps);
  faults_before_ = machine.faults.size();
  running = this;
}

Block::~Block() { running = nullptr; }

void Block::entry() {
  running->launch_.thunk(running->params_.data());
  running->stop_thread(State::left);
}

void Block::stop_thread(State s) {
  Thread& t = *current_;
  t.state = s;
  fiber_switch(&t.stack, scheduler_);
}

void Block::end_thread() {
  ended_ = true;
  stop_thread(State::left);
  __builtin_unreachable();
}

bool Block::run(DlcEmuIndex index, int32_t number) {
  if (!shared_ || !machine_.stacks_.grow(threads_.size())) {
    fault(FaultKind::limit, "this machine has no memory for a block");
    return false;
  }
  number_ = number;
  epoch_ = 1;
  seen_blocks_.clear();
  DlcEmuPlace& here = place();
  here.block = index;
  here.block_dim = launch_.block;
  here.grid_dim = launch_.grid;
  here.shared = shared_;
  arrays_.assign(1, {reinterpret_cast<uintptr_t>(shared_), reinterpret_cast<uintptr_t>(shared_) + launch_.shared, -1});
  shared_used_ = launch_.shared;
  std::memset(shared_, 0xff, shared_used_);  // NaN
  shared_shadow_.reset();
  for (size_t w = 0; w < clocks_.size(); ++w) {
    clocks_[w].fill(0);
    clocks_[w][w] = 1;
    logs_[w].clear();
  }
  const DlcEmuIndex dim = launch_.block;
  for (size_t i = 0; i < threads_.size(); ++i) {
    Thread& t = threads_[i];
    t.stack = machine_.stacks_.start(i, &Block::entry);
    t.state = State::ready;
    const auto n = static_cast<unsigned>(i);
    t.index = {n % dim.x, n / dim.x % dim.y, n / dim.x / dim.y};
    t.warp = static_cast<uint8_t>(i / kLanes);
    t.lane = static_cast<uint8_t>(i % kLanes);
    t.open.clear();
    t.groups.clear();
  }
  std::vector<size_t> order(clocks_.size());
  std::iota(order.begin(), order.end(), 0);
  while (!ended_) {
    if (machine_.options.seed != 0) std::shuffle(order.begin(), order.end(), random_);
    bool moved = false;
    for (size_t w : order) moved |= run_warp(w);
    if (ended_ || std::all_of(threads_.begin(), threads_.end(), [](const Thread& t) { return t.state == State::left; }))
      break;
    moved |= release_barrier();
    if (!moved) report_deadlock();
    ended_ |= machine_.faults.size() >= faults_before_ + kMostFaults;
  }
  current_ = nullptr;
  for (AccessLog& log : logs_) log.flush(counters_);
  ++counters_.blocks;
  return !ended_;
}

bool Block::run_warp(size_t warp) {
  const size_t first = warp * kLanes, last = std::min(threads_.size(), first + kLanes);
  bool moved = false;
  do {
    for (size_t i = first; i < last; ++i) {
      Thread& t = threads_[i];
      if (t.state != State::ready) continue;
      current_ = &t;
      place().thread = t.index;
      fiber_switch(&scheduler_, t.stack);
      moved = true;
      if (ended_) return true;
    }
  } while (fire(warp) && (moved = true) && !ended_);
  return moved;
}

bool Block::release_barrier() {
  const Thread* first = nullptr;
  for (Thread& t : threads_) {
    if (t.state == State::left) continue;
    if (t.state != State::at_barrier) return false;
    if (!first) first = &t;
    if (t.line != first->line) {
      current_ = &t;
      fault(FaultKind::divergent,
            fmt::format("this thread is at the block's barrier of line {}, thread ({},{},{}) at that of line {}",
                        t.line, first->index.x, first->index.y, first->index.z, first->line));
      ended_ = true;
      return true;
    }
  }
  ++counters_.barriers;
  Clock all{};
  for (size_t w = 0; w < clocks_.size(); ++w) {
    logs_[w].flush(counters_);
    for (size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], clocks_[w][i]);
  }
  for (size_t w = 0; w < clocks_.size(); ++w) {
    clocks_[w] = all;
    ++clocks_[w][w];
  }
  for (Thread& t : threads_)
    if (t.state == State::at_barrier) t.state = State::ready;
  return true;
}

void Block::report_deadlock() {
  std::map<std::string, int> waits;
  for (const Thread& t : threads_) {
    if (t.state == State::left)
      ++waits["have left"];
    else if (t.state == State::at_barrier)
      ++waits[fmt::format("wait at the block's barrier of line {}", t.line)];
    else
      ++waits[fmt::format("wait at the warp operation of line {}", t.line)];
    if (t.state != State::left) current_ = &threads_[static_cast<size_t>(&t - threads_.data())];
  }
  std::string text;
  for (const auto& [what, n] : waits) text += fmt::format("{}{} threads {}", text.empty() ? "" : ", ", n, what);
  fault(FaultKind::deadlock, text);
  ended_ = true;
}

void Block::advance(size_t warp) {
  logs_[warp].flush(counters_);
  ++clocks_[warp][warp];
}

void Block::block_barrier(int line) {
  current_->line = line;
  stop_thread(State::at_barrier);
}

uint32_t Block::warp_operation(const Request& r) {
  Thread& t = *current_;
  t.request = r;
  t.line = r.line;
  stop_thread(State::at_warp_operation);
  return t.request.result;
}

}  // namespace dlc::emu
