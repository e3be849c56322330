#include <algorithm>

#include "dlc/hw/simulator.h"

namespace dlc {

QueueModel::QueueModel(const HwDescription& hw, std::span<const Instruction> program) {
  const size_t n = std::max<size_t>(hw.queues.size(), 1);
  lists_.resize(n);
  heads_.assign(n, 0);
  fetched_.assign(n, 0);
  depth_.assign(n, 1);
  for (size_t q = 0; q < hw.queues.size(); ++q) depth_[q] = hw.queues[q].depth;
  if (hw.sync) {
    const HwState& s = hw.state[static_cast<size_t>(hw.sync->object)];
    semaphores_.assign(static_cast<size_t>(s.words), s.reset.value_or(0));
    limit_ = (int64_t{1} << s.counter_bits) - 1;
    owners_.assign(semaphores_.size(), -1);
    one_owner_ = s.one_waiting_queue;
  }
  std::vector<std::pair<int, int>> masks;  // of each kind of instruction: the fields of waits and of signals, or -1
  for (const HwInsn& insn : hw.isa.insns)
    masks.emplace_back(hw.sync ? insn.field(hw.sync->wait_field) : -1,
                       hw.sync ? insn.field(hw.sync->signal_field) : -1);
  for (size_t k = 0; k < program.size(); ++k) {
    const auto kind = static_cast<size_t>(program[k].insn);
    const auto mask = [&](int field) {
      return field < 0 ? uint64_t{0} : static_cast<uint64_t>(program[k].fields[static_cast<size_t>(field)]);
    };
    queue_.push_back(std::max(hw.isa.insns[kind].queue, 0));
    waits_.push_back(hw.sync ? hw.sync->waits(mask(masks[kind].first), queue_.back()) : 0);
    signals_.push_back(hw.sync ? hw.sync->signals(mask(masks[kind].second), queue_.back()) : 0);
    lists_[static_cast<size_t>(queue_.back())].push_back(static_cast<int64_t>(k));
  }
  fetch();
}

void QueueModel::fetch() {
  while (next_ < static_cast<int64_t>(queue_.size())) {
    const auto q = static_cast<size_t>(queue_[static_cast<size_t>(next_)]);
    if (static_cast<int64_t>(fetched_[q] - heads_[q]) >= depth_[q]) return;
    ++fetched_[q];
    ++next_;
  }
}

int64_t QueueModel::head(size_t q) const { return heads_[q] < fetched_[q] ? lists_[q][heads_[q]] : -1; }

bool QueueModel::ready(size_t q) const {
  const int64_t i = head(q);
  if (i < 0) return false;
  for (size_t s = 0; s < semaphores_.size(); ++s)
    if ((waits_[static_cast<size_t>(i)] >> s & 1) && semaphores_[s] == 0) return false;
  return true;
}

std::optional<QueueModel::Claim> QueueModel::claim(size_t q) {
  const auto i = static_cast<size_t>(head(q));
  for (size_t s = 0; s < semaphores_.size(); ++s) {
    if (!(waits_[i] >> s & 1)) continue;
    if (one_owner_ && owners_[s] >= 0 && owners_[s] != static_cast<int>(q))
      return Claim{s, static_cast<size_t>(owners_[s])};
    owners_[s] = static_cast<int>(q);
  }
  return std::nullopt;
}

void QueueModel::take(size_t q) {
  const auto i = static_cast<size_t>(head(q));
  for (size_t s = 0; s < semaphores_.size(); ++s)
    if (waits_[i] >> s & 1) --semaphores_[s];
}

bool QueueModel::retire(size_t q) {
  const auto i = static_cast<size_t>(head(q));
  ++heads_[q];
  bool fits = true;
  for (size_t s = 0; s < semaphores_.size(); ++s) {
    if (!(signals_[i] >> s & 1)) continue;
    if (semaphores_[s] == limit_)
      fits = false;
    else
      ++semaphores_[s];
  }
  return fits;
}

bool QueueModel::finished() const {
  if (next_ < static_cast<int64_t>(queue_.size())) return false;
  for (size_t q = 0; q < heads_.size(); ++q)
    if (heads_[q] < fetched_[q]) return false;
  return true;
}

}  // namespace dlc
