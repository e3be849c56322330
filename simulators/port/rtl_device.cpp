#include "simulators/port/rtl_device.h"

#include <dlfcn.h>

#include "dlc/io/library.h"
#include "simulators/port/rtl_abi.h"

namespace dlc {
namespace {

class Device final : public RtlPort {
 public:
  Device(const dlc_rtl_table* table, dlc_rtl* rtl, uint64_t memory_bytes)
      : table_(table), rtl_(rtl), memory_bytes_(memory_bytes) {}
  ~Device() override { table_->destroy(rtl_); }

  Result<uint32_t> rd32(uint32_t offset) override {
    uint32_t value = 0;
    DLC_CHECK(check(table_->rd32(rtl_, offset, &value)));
    return value;
  }
  Result<> wr32(uint32_t offset, uint32_t value) override { return check(table_->wr32(rtl_, offset, value)); }
  Result<> mem_rd(uint64_t address, std::span<std::byte> data) override {
    return check(table_->mem_rd(rtl_, address, data.data(), data.size()));
  }
  Result<> mem_wr(uint64_t address, std::span<const std::byte> data) override {
    return check(table_->mem_wr(rtl_, address, data.data(), data.size()));
  }
  Result<> wait_irq(uint64_t max_cycles) override {
    int irq = 0;
    DLC_CHECK(check(table_->run(rtl_, max_cycles, &irq)));
    if (irq == 0) return fail({}, "no interrupt within " + std::to_string(max_cycles) + " cycles");
    return {};
  }
  uint64_t now() const override { return table_->now(rtl_); }
  Result<> reset() override { return check(table_->reset(rtl_)); }
  uint64_t memory_bytes() const override { return memory_bytes_; }
  uint64_t arch_hash() const override { return table_->arch_hash; }

  void observe(PortObserver* observer) override {
    observer_ = observer;
    table_->observe(rtl_, observer == nullptr ? nullptr : &Device::event, this);
  }
  Result<> trace(const std::string& path, uint64_t begin, uint64_t end) override {
    return check(table_->trace(rtl_, path.c_str(), begin, end));
  }

 private:
  Result<> check(int rc) const {
    if (rc != 0) return fail({}, std::string("RTL: ") + table_->error(rtl_) + " (cycle " + std::to_string(now()) + ")");
    return {};
  }
  static void event(void* self, const dlc_rtl_event* e) {
    PortObserver* observer = static_cast<Device*>(self)->observer_;
    const int queue = static_cast<int>(e->queue);
    if (e->retire != 0)
      observer->on_retire({queue, e->index, e->start, e->cycle});
    else
      observer->on_write({queue, e->memory, e->address, std::as_bytes(std::span(e->data, e->bytes)), e->cycle});
  }

  const dlc_rtl_table* table_;
  dlc_rtl* rtl_;
  uint64_t memory_bytes_;
  PortObserver* observer_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<RtlPort>> RtlPort::open(const std::string& library, const RtlOptions& options) {
  const char* build = "build the model of this configuration again: dlc hw build-rtl";
  if (auto whole = check_library(library); !whole)
    return fail({.file = library}, "cannot load the RTL model: " + std::string(whole.error().message()), build);
  // never closed: a model's code may still be on some thread's way out
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return fail({.file = library}, std::string("cannot load the RTL model: ") + (why != nullptr ? why : "unknown"),
                build);
  }
  const auto entry = reinterpret_cast<const dlc_rtl_table* (*)()>(dlsym(handle, "dlc_rtl_v2"));
  if (entry == nullptr) return fail({.file = library}, "not an RTL model: it has no dlc_rtl_v2");
  const dlc_rtl_table* table = entry();
  if (table->size != sizeof(dlc_rtl_table))
    return fail({.file = library}, "the RTL model was built for another version of dlc", "build it again");
  const uint32_t latency =
      options.latency == kOwnLatency ? static_cast<uint32_t>(table->read_latency) : options.latency;
  const dlc_rtl_config config = {options.seed,   options.memory_bytes, latency,
                                 options.jitter, options.backpressure, options.outstanding,
                                 options.stall,  options.error_begin,  options.error_end};
  dlc_rtl* rtl = table->create(&config);
  auto device = std::make_unique<Device>(table, rtl, options.memory_bytes);
  if (const char* error = table->error(rtl); *error != 0)
    return fail({.file = library}, std::string("the RTL model does not start: ") + error);
  return std::unique_ptr<RtlPort>(std::move(device));
}

}  // namespace dlc
