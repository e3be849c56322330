// A verilated machine behind the C table of rtl_abi.h: clocks it, and is the memory on its AXI port. Its top has the
// pins of APB and AXI4 that are driven here; what its queues do is read from its probes (dlc_probe.sv).
//
// A cycle: inputs change while the clock is low, the model settles, handshakes are sampled, the clock rises.
#include <verilated.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "axi_memory.h"
#include "dlc_machine.h"
#include "rtl_abi.h"
#if DLC_RTL_TRACE
#include <verilated_fst_c.h>
#endif

namespace {
// An assertion of the RTL that fails calls vl_stop; the call that was running then reports it.
thread_local std::string* failure = nullptr;
void fail(const char* file, int line, const char* what) {
  if (failure != nullptr && failure->empty()) *failure = std::string(file) + ":" + std::to_string(line) + ": " + what;
}
}  // namespace

void vl_stop(const char* file, int line, const char* hier) VL_MT_UNSAFE {
  fail(file, line, (std::string("assertion failed in ") + hier).c_str());
}
void vl_fatal(const char* file, int line, const char*, const char* message) VL_MT_UNSAFE { fail(file, line, message); }

struct dlc_rtl {
  dlc_rtl_config config;
  VerilatedContext context;
  std::unique_ptr<Vdlc> top;
  dlc_port::AxiMemory<Vdlc> memory;
  uint64_t cycle = 0;
  std::string error;    // of the model: it cannot go on
  std::string refused;  // of the last call that asked for what is not there
  void (*event)(void*, const dlc_rtl_event*) = nullptr;
  void* event_context = nullptr;
  std::deque<uint64_t> started[machine::QUEUES];  // per queue: when what is in flight started
#if DLC_RTL_TRACE
  std::unique_ptr<VerilatedFstC> trace;
  std::string trace_path;
  uint64_t trace_begin = 0, trace_end = 0;
#endif

  explicit dlc_rtl(const dlc_rtl_config& c) : config(c), memory(c) {
    context.randReset(2);
    context.randSeed(static_cast<int>(c.seed & 0x7fffffff) | 1);
#if DLC_RTL_TRACE
    context.traceEverOn(true);
#endif
    top = std::make_unique<Vdlc>(&context);
    reset();
  }
  ~dlc_rtl() {
    enter();
#if DLC_RTL_TRACE
    if (trace) trace->close();  // it looks into the model
    trace.reset();
#endif
    top->final();
#if VM_COVERAGE
    if (const char* folder = std::getenv("DLC_RTL_COVERAGE")) {  // one file for each device that lived
      static std::atomic<int> count = 0;
      context.coveragep()->write((std::string(folder) + "/" + std::to_string(count++) + ".dat").c_str());
    }
#endif
    top.reset();
    failure = nullptr;
    Verilated::threadContextp(nullptr);
  }

  // Several models may live in one thread: Verilator's current context and the place for failures are this one's while
  // a call is in it.
  void enter() {
    failure = &error;
    Verilated::threadContextp(&context);
  }

  int reset() {
    enter();
    top->rst_n = 0;
    top->psel = top->penable = top->pwrite = 0;
    memory.reset();
    for (int i = 0; i < 4; ++i) step();
    top->rst_n = 1;
    return status();
  }

  int status() const { return error.empty() ? 0 : -1; }

  void step() {
    top->clk = 0;
    uint8_t stall = 0;
    if (config.stall != 0)
      for (int i = 0; i < machine::QUEUES; ++i) stall |= static_cast<uint8_t>(memory.chance(config.stall) << i);
    top->tb_stall = stall;
    memory.drive(*top, cycle);
    top->eval();
    dump(2 * cycle);
    if (top->rst_n) {
      if (event != nullptr) report();
      memory.sample(*top, cycle, [&](uint64_t address, const void* data) {
        if (event != nullptr) write(machine::STORES, machine::EXTERNAL, address, data, machine::BUS_BYTES);
      });
      if (!memory.broken().empty() && error.empty()) error = memory.broken();
    }
    top->clk = 1;
    top->eval();
    dump(2 * cycle + 1);
    ++cycle;
  }

  void write(int queue, int memory_index, uint64_t address, const void* data, uint32_t bytes) {
    const dlc_rtl_event e{0,
                          static_cast<uint32_t>(queue),
                          0,
                          bytes,
                          address,
                          0,
                          cycle,
                          machine::STATES[memory_index],
                          static_cast<const uint8_t*>(data)};
    event(event_context, &e);
  }

  // The write ports, starts and retires of this cycle, queue by queue.
  void report() {
    auto& r = *top->rootp;
#define DLC_SHOW_WRITE(q)  \
  if (DLC_PROBE(r, q, we)) \
    write(q, DLC_PROBE(r, q, memory), DLC_PROBE(r, q, at), &DLC_PROBE(r, q, data), word_bytes(DLC_PROBE(r, q, memory)));
#define DLC_SHOW_RETIRE(q) progress(q, DLC_PROBE(r, q, start), DLC_PROBE(r, q, retire), DLC_PROBE(r, q, index));
    DLC_PROBES(DLC_SHOW_WRITE)
    DLC_PROBES(DLC_SHOW_RETIRE)
#undef DLC_SHOW_WRITE
#undef DLC_SHOW_RETIRE
  }
  static uint32_t word_bytes(int memory_index) { return static_cast<uint32_t>(machine::WORD_BYTES[memory_index]); }

  void progress(uint32_t q, bool start, bool retire, uint32_t index) {
    if (start) started[q].push_back(cycle);
    if (!retire) return;
    const uint64_t from = started[q].empty() ? cycle : started[q].front();
    if (!started[q].empty()) started[q].pop_front();
    const dlc_rtl_event e{1, q, index, 0, 0, from, cycle, nullptr, nullptr};
    event(event_context, &e);
  }

  void dump([[maybe_unused]] uint64_t time) {
#if DLC_RTL_TRACE
    if (trace_path.empty() || cycle < trace_begin) return;
    if (cycle >= trace_end) {
      if (trace) trace->close();
      trace.reset();
      trace_path.clear();
      return;
    }
    if (!trace) {
      trace = std::make_unique<VerilatedFstC>();
      top->trace(trace.get(), 99);
      trace->open(trace_path.c_str());
    }
    trace->dump(time);
#endif
  }
};

namespace {
// APB: a set-up cycle, then the access.
int access(dlc_rtl* d, uint32_t offset, bool write, uint32_t value) {
  d->enter();
  d->top->psel = 1;
  d->top->pwrite = write;
  d->top->paddr = offset & 0xfff;
  d->top->pwdata = value;
  d->top->penable = 0;
  d->step();
  d->top->penable = 1;
  d->step();
  return d->status();
}
int wr32(dlc_rtl* d, uint32_t offset, uint32_t value) {
  access(d, offset, true, value);
  d->top->psel = d->top->penable = 0;
  return d->status();
}
int rd32(dlc_rtl* d, uint32_t offset, uint32_t* value) {
  access(d, offset, false, 0);
  *value = d->top->prdata;
  d->top->psel = d->top->penable = 0;
  return d->status();
}
int mem(dlc_rtl* d, uint64_t address, uint64_t bytes) {
  if (bytes <= d->config.memory_bytes && address <= d->config.memory_bytes - bytes) return 0;
  d->refused = "address " + std::to_string(address) + " is outside the device's memory";
  return -1;
}
int mem_rd(dlc_rtl* d, uint64_t address, void* data, uint64_t bytes) {
  if (mem(d, address, bytes) != 0) return -1;
  std::memcpy(data, d->memory.bytes() + address, bytes);
  return 0;
}
int mem_wr(dlc_rtl* d, uint64_t address, const void* data, uint64_t bytes) {
  if (mem(d, address, bytes) != 0) return -1;
  std::memcpy(d->memory.bytes() + address, data, bytes);
  return 0;
}
int run(dlc_rtl* d, uint64_t max_cycles, int* irq) {
  d->enter();
  for (uint64_t i = 0; i < max_cycles && !d->top->irq && d->error.empty(); ++i) d->step();
  *irq = d->top->irq;
  return d->status();
}
int trace(dlc_rtl* d, [[maybe_unused]] const char* path, [[maybe_unused]] uint64_t begin,
          [[maybe_unused]] uint64_t end) {
#if DLC_RTL_TRACE
  d->trace_path = path;
  d->trace_begin = begin;
  d->trace_end = end;
  return 0;
#else
  d->refused = "this model was built without tracing";
  return -1;
#endif
}
void observe(dlc_rtl* d, void (*event)(void*, const dlc_rtl_event*), void* context) {
  for (auto& q : d->started) q.clear();
  d->event = event;
  d->event_context = context;
}
}  // namespace

extern "C" __attribute__((visibility("default"))) const dlc_rtl_table* dlc_rtl_v2(void) {
  static const dlc_rtl_table table = {
      sizeof(dlc_rtl_table),
      constants::ARCH_HASH,
      machine::READ_LATENCY,
      [](const dlc_rtl_config* c) { return new dlc_rtl(*c); },
      [](dlc_rtl* d) { delete d; },
      rd32,
      wr32,
      mem_rd,
      mem_wr,
      run,
      [](dlc_rtl* d) { return d->reset(); },
      [](const dlc_rtl* d) { return d->cycle; },
      [](const dlc_rtl* d) { return (d->error.empty() ? d->refused : d->error).c_str(); },
      observe,
      trace};
  return &table;
}
