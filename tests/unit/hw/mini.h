// A small queue machine that the tests of this folder change, line by line.
#pragma once

#include <string>
#include <string_view>

#include "dlc/hw/load.h"
#include "dlc_test/catch.h"

inline const std::string kMini = R"yaml(dlc_hw: 1
name: mini
family: queue_machine/1
clock: 1.0GHz
params: {L: 4, WORDS: "${L*16}"}
state:
  dram: {elem: u8, size: 1MiB, segments: {weights: ro, arena: rw}, timing: {read_latency: 80, peak: 4 B/cy}}
  buf:  {elem: "s8[L]", words: "${WORDS}", ports: {r0: [alu, io], w0: [io]}, conflict: "stall io"}
  acc:  {elem: "s32[L]", words: 32, views: {low: "s16[L] @+1 step 2"}}
  tab:  {table: "u8 -> s8", slots: 2}
  inv:  {rom: "u3 -> u16", formula: "floor(65536/(i + 2) + 1/2)"}
  sem:  {counter: 4, count: 8, waiters: one_queue}
def:
  half: {is: "(x: s32) -> s32 = (x + 1) >> 1", ex: [[[5], 3], [[-3], -1]], laws: ["monotone in x"]}
  quarter: {is: "(x: s32) -> s32 = half(half(x))", ex: [[[9], 3]]}
queues: {io: {depth: 2, order: in}, alu: {depth: 2, order: in}}
sync: {model: semaphores, object: sem, wait: {field: wai, at: start, need: 1, take: 1}, signal: {field: sig, at: retire, give: 1}}
faults: {causes: {illegal: 1, oob: 2, sem: 3, watchdog: 5}, effect: "all queues stop"}
isa:
  word: 128
  common: {op: u4@0, wai: u8@8, sig: u8@16}
  reserved: zero
  insns:
    ld:
      op: 1
      queue: io
      fields: {to: {e: [buf, tab], at: u1@24}, seg: {e: {weights: 0, arena: 1}, at: u1@25}, off: u20@32, sp: u8@56, n: {at: u6@64, plus: 1}, pad: s8@72, lo: u6@80}
      loops: {i: n, l: L, e: 256}
      variants:
        words: {fix: {to: buf}, does: "buf[sp + i, l] = if i >= lo then seg[off + i*L + l] else pad"}
        slots: {fix: {to: tab}, does: "tab[sp + i, e] = seg[off + i*256 + e]"}
      require: ["off % L == 0"]
      cycles: "4 + n"
    mul:
      op: 2
      queue: alu
      doc: "Adds dot products of vectors to accumulators."
      fields: {accum: u1@24, a: u8@32, b: u8@40, d: u5@48, n: {at: u4@56, plus: 1}, m: {at: u4@60, plus: 1}, s: s8@64}
      loops: {i: n, k: m, l: L}
      does: "acc[d + i, l] = (if accum == 1 then acc[d + i, l] else 0) + sum:s32[k] buf[a + i*s + k, l]*buf[b + k, l]"
      cycles: "2 + n*m"
    post:
      op: 3
      queue: alu
      fields: {src: {e: [acc, buf], at: u1@24}, fn: {e: [none, half, lut], at: u2@25}, dst: {e: [buf, acc], at: u1@27}, a: u6@32, d: u6@40, n: {at: u4@48, plus: 1}, slot: u1@56}
      loops: {i: n, l: L}
      stages:
        - "x = src[a + i, l]"
        - "x = if fn == half then half(x) else if fn == lut then tab[slot, min(max(x, -128), 127) + 128] else x"
        - "dst[d + i, l] = x"
    st:
      op: 4
      queue: io
      fields: {seg: {e: [weights, arena], at: u1@24}, off: {at: u20@32, unit: 4}, sp: u8@56, n: {at: u6@64, plus: 1}}
      loops: {i: n, l: L}
      does: "seg[off + i*L + l] = buf[sp + i, l]"
    end: {op: 5, queue: io}
csr:
  ID: {at: 0, w: 64, ro: arch_hash}
  CTRL: {at: 8, bits: {start: w1, reset: w1}}
  SEG: {at: 16, w: 64, n: 2}
)yaml";

// kMini with the first `from` replaced by `to`; a `from` that is not there fails the test.
inline std::string mini_with(std::string_view from, std::string_view to) {
  std::string text = kMini;
  const size_t at = text.find(from);
  if (at == std::string::npos) FAIL("not in the description: " << from);
  return text.replace(at, from.size(), to);
}

// kMini with tokens in place of semaphores.
inline std::string mini_with_tokens() {
  std::string text = mini_with("model: semaphores", "model: tokens");
  for (const auto& [from, to] : {std::pair("count: 8, waiters: one_queue", "count: 4"),
                                 std::pair("wai: u8@8", "wai: u2@8"), std::pair("sig: u8@16", "sig: u2@16")})
    text.replace(text.find(from), std::string_view(from).size(), to);
  return text;
}

inline dlc::HwDescription mini(const dlc::HwOverrides& overrides = {}) {
  auto hw = dlc::parse_hw(kMini, "mini.yaml", overrides);
  if (!hw) FAIL(dlc::to_string(hw.error()));
  return std::move(*hw);
}
