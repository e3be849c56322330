// HwDescription: everything a `dlc_hw: 1` file says about a machine, checked and with params put in. docs/hardware.md
// is the manual of the schema.
//
// It comes from load_hw() in load.h and is never changed afterwards. Lists keep the file's order, so that everything
// derived from them is the same in every run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/dtype.h"
#include "dlc/expr/expr.h"
#include "dlc/hw/isa.h"

namespace dlc {

struct HwTime {
  double value = 0;  // cycles, or seconds
  bool in_cycles = true;
};
struct HwRate {
  double bytes = 0;
  bool per_cycle = true;  // otherwise per second
};

struct HwParam {
  std::string name;
  int64_t value = 0;
  Loc loc;
};

// ---- state

struct HwElem {
  DType dtype = kU8;
  int64_t lanes = 0;  // 0: a word is one element and takes one index
  int64_t bytes() const { return dtype.bytes() * (lanes == 0 ? 1 : lanes); }
  friend bool operator==(const HwElem&, const HwElem&) = default;
};

struct HwView {
  std::string name;
  HwElem elem;
  int64_t offset = 0;  // words of the memory
  int64_t step = 1;    // words between consecutive first indices
};

struct HwPort {
  std::string name;
  bool write = false;
  std::vector<std::string> clients;  // queues
};

struct HwTiming {
  std::optional<HwTime> read_latency;
  std::optional<int64_t> burst_max, boundary;
  std::string split_by;
  std::optional<HwRate> peak;
};

struct HwSegment {
  std::string name;
  bool writable = false;
};

struct HwState {
  enum class Kind : uint8_t { memory, external, table, rom, counter };
  std::string name;
  Kind kind = Kind::memory;
  HwElem elem;          // table, rom: of an entry
  int64_t words = 0;    // external: of the largest segment; table: slots; rom: entries; counter: how many
  int64_t entries = 0;  // table: entries of a slot
  std::vector<HwView> views;
  std::vector<HwSegment> segments;
  std::vector<HwPort> ports;
  std::string conflict, doc;
  std::string base;  // the register that holds the segments' bases
  int64_t banks = 1;
  bool ports_per_bank = false;
  int64_t align = 1;
  std::optional<int64_t> reset;  // nullopt: undefined
  HwTiming timing;
  std::vector<int64_t> rom;  // values, in index order
  int counter_bits = 0;
  bool one_waiting_queue = false;
  Loc loc;

  int64_t word_bytes() const { return kind == Kind::table ? elem.bytes() * entries : elem.bytes(); }
};

// What a kernel's tensor can be bound to: a memory, a table, a ROM, or one segment of an external memory.
struct HwSpace {
  std::string name;  // "acc", "dram.weights"
  int state = -1;
  int segment = -1;
  bool writable = true;
};

// ---- def

struct HwDefArg {
  std::string name;
  DType dtype = kS64;
};
struct HwExample {
  std::vector<int64_t> args;
  int64_t result = 0;
  Loc loc;
};
struct HwDef {
  std::string name;
  std::vector<HwDefArg> args;
  DType result = kS64;
  std::string body;
  std::vector<HwExample> examples;
  std::vector<std::string> laws;
  Loc loc;
};

// ---- control

struct HwQueue {
  std::string name;
  int64_t depth = 1;
};

// What the bits of a mask in the wait and signal fields of an instruction mean. With semaphores bit s is counter s.
// With tokens there is a counter for each ordered pair of queues: bit p of the wait field takes a token from queue p,
// bit p of the signal field gives one to it.
struct HwSync {
  int object = -1;  // index of the counter state
  int queues = 0;   // of a machine with tokens; 0: semaphores
  std::string wait_field, signal_field;
  std::map<std::string, std::string> visible;  // queue -> when its stores are

  bool tokens() const { return queues > 0; }
  int token(int from, int to) const { return from * queues + to; }  // the counter
  // The counters that a mask of an instruction of `queue` means, bit s for counter s.
  uint64_t waits(uint64_t mask, int queue) const;
  uint64_t signals(uint64_t mask, int queue) const;
};

struct HwFault {
  std::string name;
  int64_t code = 0;
};

struct HwCsrBits {
  std::string name;
  int at = 0;
  int width = 1;
  std::string access;  // ro rw w1 w1c

  uint32_t mask() const;  // in the register's first 32 bits, and so are the next two
  uint32_t of(uint32_t word) const { return static_cast<uint32_t>(uint64_t{word & mask()} >> at); }
  uint32_t put(uint32_t value) const { return static_cast<uint32_t>(uint64_t{value} << at) & mask(); }
};
struct HwCsr {
  std::string name;
  int64_t at = 0;  // byte offset
  int bits = 32;
  int64_t count = 1;
  std::string access = "rw";
  std::string value;  // what a read-only register holds: arch_hash
  std::vector<HwCsrBits> flags;
  std::vector<std::string> names;  // of the elements
  Loc loc;

  const HwCsrBits* find(std::string_view flag) const;  // nullptr when absent
};

// ---- machines without instruction words

struct HwFeature {
  std::string name;  // "avx2"
  Loc loc;
};

// Registers of one width, for code that may use all of `needs`.
struct HwVectors {
  std::string name;  // "ymm"
  int64_t bytes = 0, registers = 0;
  std::vector<HwFeature> needs;
  Loc loc;
};

struct HwMemory {
  std::string name;
  int64_t size = 0;  // bytes
};

// ---- placement, cost, rtl

// Keeps ops from the device. The first that names the op, and has its types, decides.
struct HwOpRule {
  std::vector<std::string> ops;  // "*" is any
  std::string place;             // host, refuse
  std::string why;
  std::vector<DType> types;
  Loc loc;
};

// What happens to an instruction between memory and its engine, in cycles.
struct HwIssueCost {
  int64_t fetch = 0;      // from asking for an instruction to its dispatch
  int64_t beats = 1;      // at least so many between two of them
  int64_t ahead = 8;      // instructions asked for and not dispatched, at most
  int64_t look = 0;       // from the head of a queue to the start
  int64_t in_flight = 1;  // started and not retired, per queue, at most
};

// An instruction that goes over the bus: a request stage asks for bursts, `gap` cycles apart and at most `open` at
// once; a data stage moves words, one a cycle, those of a burst from `first` cycles after its request on; the last is
// followed by `answer` cycles.
struct HwTransferCost {
  int insn = -1;
  Expr bursts, words;  // of fields
  int64_t gap = 1, open = 1, first = 0, answer = 0;
};

struct HwCost {
  HwIssueCost issue;
  std::vector<HwTransferCost> transfers;
  std::map<std::string, double> error_budget;  // median, p95
};

struct HwRtl {
  std::string files, package;
  std::optional<int64_t> bus_bytes;
};

// ----------------------------------------------------------------------------------------------------------------------

struct HwDescription {
  std::string file, name, family, plugin, doc;
  std::map<std::string, double> clocks;  // Hz; the only one is "base"
  std::vector<HwParam> params;

  std::vector<HwState> state;
  std::vector<HwSpace> spaces;
  std::vector<HwDef> defs;
  std::string defs_text;  // the defs as text of the op language, for FragmentContext::defs
  HwIsa isa;
  std::vector<HwQueue> queues;
  std::optional<HwSync> sync;
  std::vector<HwFault> faults;
  std::string fault_effect;
  std::vector<HwCsr> csr;

  std::vector<HwMemory> memories;
  std::vector<HwFeature> features;  // of a machine without instruction words
  std::vector<HwVectors> vectors;   // of such a machine

  std::string recipes;  // file name, relative to this file
  std::vector<HwOpRule> ops;
  HwCost cost;
  HwRtl rtl;

  // Where the file says things: sections ("sync") and the values that name files ("recipes", "rtl.files").
  std::map<std::string, Loc, std::less<>> places;

  uint64_t arch_hash = 0;  // params, state, def, isa, queues, sync, faults, csr
  uint64_t full_hash = 0;  // everything

  std::optional<int64_t> param(std::string_view name) const;
  int find_state(std::string_view name) const;  // -1 when absent, as all below
  int find_space(std::string_view name) const;  // "acc", "dram.weights"
  int find_queue(std::string_view name) const;
  int find_csr(std::string_view name) const;
  std::optional<int64_t> fault_code(std::string_view name) const;
  Loc place(std::string_view key) const;  // the file, where it does not say it
  std::vector<std::string> feature_names() const;
  bool has_feature(std::string_view name) const;
  const HwState& state_of(int space) const {
    return state[static_cast<size_t>(spaces[static_cast<size_t>(space)].state)];
  }
};

// "0x0123456789abcdef", as hashes are written everywhere.
std::string hash_text(uint64_t hash);

}  // namespace dlc
