// Every access of a kernel: where it lies, whether it may, and what it is ordered behind.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simulators/cuda/block.h"

namespace dlc::emu {
namespace {

// A site is a line of the kernel text, with a part in the bits above, or an address of its code.
constexpr uintptr_t kLineBits = 24, kSites = uintptr_t{1} << 32;
int line_of(uintptr_t site) { return site < kSites ? static_cast<int>(site & ((1u << kLineBits) - 1)) : 0; }

bool power_of_two(size_t n) { return (n & (n - 1)) == 0; }

}  // namespace

void Block::fault(FaultKind k, std::string text, uintptr_t at, size_t bytes, uintptr_t site) {
  Fault f;
  f.kind = k;
  f.text = std::move(text);
  f.kernel = launch_.kernel;
  f.block = place().block;
  if (current_) f.thread = current_->index;
  if (at) f.buffer = name_of(at, &f.offset);
  f.bytes = bytes;
  f.line = line_of(site);
  machine_.faults.push_back(std::move(f));
}

std::string Block::name_of(uintptr_t at, int64_t* offset) const {
  const auto begin = reinterpret_cast<uintptr_t>(shared_);
  if (at >= begin && at < begin + shared_bytes_) {
    const Array* nearest = &arrays_[0];  // the last that begins at or before it
    for (const Array& a : arrays_)
      if (a.begin <= at && a.begin >= nearest->begin && (a.end > a.begin || arrays_.size() == 1)) nearest = &a;
    *offset = static_cast<int64_t>(at - nearest->begin);
    const size_t size = nearest->end - nearest->begin;
    return nearest->id < 0 ? fmt::format("dynamic shared memory of {} bytes", size)
                           : fmt::format("shared array {} of {} bytes", nearest->id, size);
  }
  const Region* best = nullptr;
  constexpr uintptr_t kNear = 4096;
  for (const Region& r : regions_)
    if (at + kNear >= r.begin && at < r.end + kNear)
      if (!best || (at >= r.begin && at < r.end)) best = &r;
  if (best) {
    *offset = static_cast<int64_t>(at - best->begin);
    return best->name;
  }
  return machine_.memory.describe(at, offset);
}

Access Block::by_me(bool write) const {
  Access a;
  a.warp = current_->warp;
  a.lane = current_->lane;
  a.write = write;
  a.block = number_;
  a.epoch = epoch_;
  a.clock = &clocks_[current_->warp];
  a.seen_blocks = &seen_blocks_;
  return a;
}

void Block::access(uintptr_t at, size_t bytes, unsigned kind, uintptr_t site, bool atomic) {
  if (bytes == 0) return;
  if (machine_.stacks_.contains(reinterpret_cast<const void*>(at))) return;
  const auto within = [&](const void* p, size_t size) { return at - reinterpret_cast<uintptr_t>(p) < size; };
  if (within(&place(), sizeof(DlcEmuPlace)) || within(emulator_api(), sizeof(DlcEmuApi)))
    return;  // threadIdx and the like
  const bool write = (kind & kEmuWrite) != 0;
  Access a = by_me(write);
  a.atomic = atomic;
  const auto begin = reinterpret_cast<uintptr_t>(shared_);
  const bool shared = at >= begin && at < begin + shared_bytes_;
  if (!(shared ? touch_shared(at, bytes, a, site) : touch_global(at, bytes, a, site))) return;
  if (!(kind & kEmuAnyAlignment) && bytes <= 16 && power_of_two(bytes) && at % bytes != 0) {
    fault(FaultKind::misaligned, write ? "a write" : "a read", at, bytes, site);
    end_thread();
  }
  if (atomic) {
    ++counters_.atomics;
  } else {
    logs_[current_->warp].add(current_->lane, site, shared ? at - begin : at, static_cast<uint32_t>(bytes), write,
                              shared);
  }
  if (machine_.faults.size() >= faults_before_ + kMostFaults) end_thread();
}

bool Block::touch_shared(uintptr_t at, size_t bytes, const Access& a, uintptr_t site) {
  const bool inside =
      std::any_of(arrays_.begin(), arrays_.end(), [&](const Array& r) { return at >= r.begin && at + bytes <= r.end; });
  if (!inside) {
    fault(FaultKind::out_of_bounds, a.write ? "a write" : "a read", at, bytes, site);
    end_thread();
  }
  const Found found = shared_shadow_.touch(at, bytes, a);
  if (found.pending)
    fault(FaultKind::pending_copy,
          a.write ? "a write where an asynchronous copy may still arrive"
                  : "a read of what an asynchronous copy may not have brought yet",
          at, bytes, site);
  else if (found.race)
    fault(FaultKind::race, found.race, at, bytes, site);
  else if (!a.write && found.unwritten)
    fault(FaultKind::uninitialised, "a read of what nobody wrote", at, bytes, site);
  return true;
}

const Region* Block::region_of(uintptr_t at, size_t bytes, bool write) {
  const auto holds = [&](const Region& r) { return at >= r.begin && at < r.end && bytes <= r.end - at; };
  const Region* any = nullptr;
  if (last_region_ < regions_.size() && holds(regions_[last_region_]) && (!write || regions_[last_region_].writable))
    return &regions_[last_region_];
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (!holds(regions_[i])) continue;
    any = &regions_[i];
    if (write && !any->writable) continue;
    last_region_ = i;
    return any;
  }
  return any;
}

// False: not memory of the device, but a constant of the module's.
bool Block::touch_global(uintptr_t at, size_t bytes, const Access& a, uintptr_t site) {
  const Region* r = region_of(at, bytes, a.write);
  if (!r) {
    if (!a.write && !a.atomic && launch_.constants.begin <= at && at + bytes <= launch_.constants.end) return false;
    fault(FaultKind::out_of_bounds, a.write ? "a write" : "a read", at, bytes, site);
    end_thread();
  }
  if (a.write && !r->writable) {
    fault(FaultKind::read_only, "a write through a const parameter", at, bytes, site);
    end_thread();
  }
  Allocation* memory = machine_.memory.find(at);
  if (!memory) {
    fault(FaultKind::out_of_bounds, "memory that is not allocated", at, bytes, site);
    end_thread();
  }
  const auto first = memory->written.begin() + static_cast<ptrdiff_t>(at - memory->begin);
  const auto last = first + static_cast<ptrdiff_t>(bytes);
  const bool unwritten = (!a.write || a.atomic) && std::find(first, last, false) != last;
  if (a.write) std::fill(first, last, true);
  const bool constant = !a.write && constant_[static_cast<size_t>(r - regions_.data())];
  const Found found = constant ? Found() : machine_.global_.touch(at, bytes, a);
  if (found.race)
    fault(FaultKind::race, found.race, at, bytes, site);
  else if (unwritten)
    fault(FaultKind::uninitialised, "a read of what nobody wrote", at, bytes, site);
  return true;
}

void Block::read_row(const void* row, int matrices, int line) {
  const int matrix = current_->lane / 8;
  if (!machine_.options.checks || matrix >= matrices) return;
  access(reinterpret_cast<uintptr_t>(row), 16, kEmuRead,
         static_cast<uintptr_t>(line) | static_cast<uintptr_t>(matrix + 1) << kLineBits);
}

void* Block::shared_array(int id, size_t bytes, size_t alignment) {
  for (const Array& a : arrays_)
    if (a.id == id) return reinterpret_cast<void*>(a.begin);
  // Arrays lie apart, so that what leaves one does not enter the next.
  constexpr size_t kApart = 256;
  const size_t at =
      (arrays_.back().end - reinterpret_cast<uintptr_t>(shared_) + kApart + alignment - 1) / alignment * alignment;
  shared_used_ += bytes;
  if (shared_used_ > machine_.options.shared_per_block || at + bytes + kApart > shared_bytes_) {
    fault(FaultKind::limit, fmt::format("{} bytes of shared memory, the machine has {} for a block", shared_used_,
                                        machine_.options.shared_per_block));
    end_thread();
  }
  const uintptr_t begin = reinterpret_cast<uintptr_t>(shared_) + at;
  std::memset(shared_ + at, 0xff, bytes);
  arrays_.push_back({begin, begin + bytes, id});
  return shared_ + at;
}

void Block::copy_async(const Copy& c, int line) {
  const auto to = reinterpret_cast<uintptr_t>(c.to), from = reinterpret_cast<uintptr_t>(c.from);
  const auto site = static_cast<uintptr_t>(line);
  ++counters_.async_copies;
  if (machine_.options.checks) {
    if (to < reinterpret_cast<uintptr_t>(shared_) || to >= reinterpret_cast<uintptr_t>(shared_) + shared_bytes_) {
      fault(FaultKind::out_of_bounds, "an asynchronous copy to what is not shared memory", to, c.bytes, site);
      end_thread();
    }
    if (c.present) access(from, c.present, kEmuRead, site);
    access(to, c.bytes, kEmuWrite, site);  // from now on it may be written
    shared_shadow_.set_pending(to, c.bytes, true);
  }
  current_->open.push_back(c);
}

void Block::commit_copies() {
  current_->groups.push_back(std::move(current_->open));
  current_->open.clear();
}

// Copies happen here, as late as the program allows.
void Block::wait_for_copies(int groups) {
  Thread& t = *current_;
  while (t.groups.size() > static_cast<size_t>(groups)) {
    for (const Copy& c : t.groups.front()) {
      std::memcpy(c.to, c.from, c.present);
      std::memset(c.to + c.present, 0, c.bytes - c.present);
      if (!machine_.options.checks) continue;
      const auto to = reinterpret_cast<uintptr_t>(c.to);
      shared_shadow_.set_pending(to, c.bytes, false);
      shared_shadow_.touch(to, c.bytes, by_me(true));
    }
    t.groups.pop_front();
  }
}

void Block::atomic(void* p, int line) {
  if (machine_.options.checks) access(reinterpret_cast<uintptr_t>(p), 4, kEmuWrite, static_cast<uintptr_t>(line), true);
}

uint32_t Block::add_to_counter(uint32_t* p, uint32_t v, int line) {
  atomic(p, line);
  // What the blocks before released here is seen; what this block did is released.
  auto& released = machine_.released_[reinterpret_cast<uintptr_t>(p)];
  for (const auto& [block, epoch] : released) seen_blocks_[block] = std::max(seen_blocks_[block], epoch);
  for (const auto& [block, epoch] : seen_blocks_) released[block] = std::max(released[block], epoch);
  released[number_] = epoch_++;
  const uint32_t before = *p;
  *p += v;
  return before;
}

}  // namespace dlc::emu
