// The memory on the AXI port: answers with latency, jitter, backpressure and errors, all of it from one seed, and
// checks the rules of the protocol from outside.
//
// Reads of one id are answered in order, those of different ids in any order; a beat that waits does not change.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "dlc_machine.h"
#include "rtl_abi.h"

namespace dlc_port {

template <class Top>
class AxiMemory {
 public:
  explicit AxiMemory(const dlc_rtl_config& config)
      : config_(config), random_(config.seed * 2654435761u + 88172645463325252u) {
    // pages appear when they are touched, so that a large memory costs what is used of it
    void* p =
        mmap(nullptr, config.memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bytes_ = p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
    if (bytes_ == nullptr) broken_ = "no memory for the device's memory";
  }
  ~AxiMemory() {
    if (bytes_ != nullptr) munmap(bytes_, config_.memory_bytes);
  }
  AxiMemory(const AxiMemory&) = delete;
  AxiMemory& operator=(const AxiMemory&) = delete;

  uint8_t* bytes() { return bytes_; }
  const std::string& broken() const { return broken_; }
  bool chance(uint32_t percent) { return percent != 0 && next() % 100 < percent; }

  void reset() {
    for (auto& q : reads_) q.clear();
    writes_.clear();
    answers_.clear();
    current_ = -1;
    answering_ = false;
    held_ar_ = held_aw_ = held_w_ = false;
  }

  // Sets the memory's outputs for this cycle.
  void drive(Top& t, uint64_t cycle) {
    t.arready = reads_[0].size() + reads_[1].size() < config_.outstanding && !busy();
    if (current_ < 0) {  // the next beat: of any id whose oldest read is due
      const bool due0 = !reads_[0].empty() && reads_[0].front().due <= cycle;
      const bool due1 = !reads_[1].empty() && reads_[1].front().due <= cycle;
      if ((due0 || due1) && !busy()) {
        current_ = due0 && due1 ? (config_.jitter != 0 ? static_cast<int>(next() & 1) : 0) : due1;
      }
    }
    t.rvalid = current_ >= 0;
    if (current_ >= 0) {
      const Burst& b = reads_[current_].front();
      const uint64_t a = b.address + uint64_t{b.beat} * kBytes;
      const uint8_t response = answer(a, kBytes);
      if (response == 0)
        std::memcpy(&t.rdata, bytes_ + a, kBytes);
      else
        std::memset(&t.rdata, 0xa5, kBytes);
      t.rid = static_cast<uint8_t>(current_);
      t.rresp = response;
      t.rlast = b.beat == b.length;
    }
    t.awready = writes_.size() < 8 && !busy();
    t.wready = !writes_.empty() && !busy();
    if (!answering_ && !answers_.empty() && answers_.front().due <= cycle && !busy()) answering_ = true;
    t.bvalid = answering_;
    t.bid = 0;
    t.bresp = answering_ ? answers_.front().response : 0;
  }

  // Takes the handshakes of this cycle; on_write(address, data) for each beat that is written.
  template <class OnWrite>
  void sample(Top& t, uint64_t cycle, const OnWrite& on_write) {
    check(held_ar_, t.arvalid, t.arready, ar_, {t.araddr, t.arlen, t.arid}, "AR changes while it waits");
    check(held_aw_, t.awvalid, t.awready, aw_, {t.awaddr, t.awlen, 0}, "AW changes while it waits");
    check(held_w_, t.wvalid, t.wready, w_, {0, t.wlast, 0}, "W changes while it waits");
    if (t.arvalid && t.arready) {
      boundary(t.araddr, t.arlen, t.arsize, t.arburst);
      reads_[t.arid & 1].push_back({t.araddr, t.arlen, 0, cycle + delay(), 0});
    }
    if (t.rvalid && t.rready) {
      auto& q = reads_[current_];
      if (q.front().beat++ == q.front().length) q.pop_front();
      current_ = -1;
    }
    if (t.wvalid && t.wready) {
      Burst& b = writes_.front();
      const uint64_t a = b.address + uint64_t{b.beat} * kBytes;
      const uint64_t strobe = t.wstrb;
      if (strobe != 0 && strobe != kAllBytes) broken_ = "a write beat with some of its bytes";
      if (strobe != 0) {
        const uint8_t response = answer(a, kBytes);
        b.response = b.response != 0 ? b.response : response;
        if (response == 0) {
          std::memcpy(bytes_ + a, &t.wdata, kBytes);
          on_write(a, &t.wdata);
        }
      }
      if (t.wlast != (b.beat == b.length)) broken_ = "WLAST is not on the last beat";
      if (b.beat++ == b.length) {
        answers_.push_back({0, 0, 0, cycle + delay(), b.response});
        writes_.pop_front();
      }
    }
    if (t.awvalid && t.awready) {
      boundary(t.awaddr, t.awlen, t.awsize, t.awburst);
      writes_.push_back({t.awaddr, t.awlen, 0, 0, 0});
    }
    if (t.bvalid && t.bready) {
      answers_.pop_front();
      answering_ = false;
    }
  }

 private:
  static constexpr uint64_t kBytes = machine::BUS_BYTES;
  static constexpr uint64_t kAllBytes = kBytes == 64 ? ~uint64_t{0} : (uint64_t{1} << kBytes) - 1;
  struct Burst {
    uint64_t address;
    uint32_t length;  // beats - 1
    uint32_t beat;
    uint64_t due;
    uint8_t response;
  };
  struct Address {
    uint64_t address;
    uint32_t length, id;
    bool operator==(const Address&) const = default;
  };

  uint64_t next() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ >> 11;
  }
  bool busy() { return chance(config_.backpressure); }
  uint64_t delay() { return config_.latency + (config_.jitter != 0 ? next() % (config_.jitter + 1) : 0); }
  uint8_t answer(uint64_t address, uint64_t bytes) const {
    if (address + bytes > config_.memory_bytes) return 3;  // DECERR
    return address < config_.error_end && address + bytes > config_.error_begin ? 2 : 0;
  }
  void boundary(uint64_t address, uint32_t length, uint32_t size, uint32_t burst) {
    const uint64_t last = address + (uint64_t{length} + 1) * kBytes - 1;
    if (address / 4096 != last / 4096) broken_ = "a burst crosses 4 KiB";
    if (address % kBytes != 0 || (uint64_t{1} << size) != kBytes || burst != 1)
      broken_ = "an address, size or burst type";
  }
  void check(bool& held, bool valid, bool ready, Address& was, const Address& is, const char* what) {
    if (held && (!valid || was != is)) broken_ = what;
    held = valid && !ready;
    was = is;
  }

  dlc_rtl_config config_;
  uint8_t* bytes_ = nullptr;
  uint64_t random_;
  std::deque<Burst> reads_[2], writes_, answers_;
  int current_ = -1;  // id of the beat on the R channel
  bool answering_ = false;
  bool held_ar_ = false, held_aw_ = false, held_w_ = false;
  Address ar_{}, aw_{}, w_{};
  std::string broken_;
};

}  // namespace dlc_port
