// What must not work: illegal instructions, addresses outside, semaphores, the bus; and coming back from it.
#include <algorithm>

#include "dlc_test/catch.h"
#include "dlc_test/need.h"
#include "tests/cosim/bench.h"

namespace dlc::cosim {
namespace {

using dlc_test::need;

enum Cause { kIllegal = 1, kOob = 2, kSem = 3, kAxi = 4, kWatchdog = 5 };
enum { kLd, kMac, kVec, kSt, kFetch };

const char* const kGood = R"(ld to=out seg=arena off=0 nx=60 y1=1 x1=60 sig=1
                             vec a=out n_ow=60 s_ow=1 ma=3 sh=2 lo=-128 hi=127 d_base=100 d_ow=1 wai=1 sig=2
                             st seg=io0 off=0 sp=100 nx=60 wai=2
                             end)";

// Words of a program, with fields set past every check of the encoder.
std::vector<uint32_t> raw(const Bench& b, const std::string& text,
                          const std::vector<std::tuple<int, std::string, uint64_t>>& patches = {}) {
  const std::vector<Instruction> program = b.assemble(text);
  std::vector<uint32_t> words;
  for (const Instruction& i : program) {
    const auto w = encode(b.hw(), i);
    if (!w) FAIL(to_string(w.error()));
    words.insert(words.end(), w->begin(), w->end());
  }
  for (const auto& [at, field, value] : patches) {
    const HwInsn& insn = b.hw().isa.insns[static_cast<size_t>(program[static_cast<size_t>(at)].insn)];
    const HwField& f = insn.fields[static_cast<size_t>(insn.field(field))];
    for (int bit = 0; bit < f.width; ++bit) {
      const int position = f.at + bit;
      uint32_t& word = words[static_cast<size_t>(at * b.hw().isa.words32() + position / 32)];
      word = (word & ~(1u << (position % 32))) | static_cast<uint32_t>((value >> bit) & 1) << (position % 32);
    }
  }
  return words;
}

void expect(Bench& b, const std::vector<uint32_t>& words, uint32_t cause, uint32_t queue, uint32_t index) {
  const Outcome out = b.run_rtl(words);
  CHECK(!out.done);
  CHECK(out.cause == cause);
  CHECK(out.queue == queue);
  if (cause != kWatchdog) CHECK(out.epc[queue] == index);
  // no write by the faulting instruction
  if (queue < kFetch)
    for (uint32_t retired : out.retired[queue]) CHECK(retired < index);
  b.soft_reset();
  Outcome again = b.run(kGood);
  CHECK(again.done);
}

}  // namespace

TEST_CASE("instructions that are illegal") {
  Bench b(8, {.jitter = 10});
  b.fill_dram(1);
  const std::string one = "ld to=out seg=arena off=0 nx=60 y1=1 x1=60 sig=1\n";
  expect(b, raw(b, one + "st seg=io0 off=0 nx=60 wai=1\nend", {{1, "op", 0}}), kIllegal, kFetch, 1);
  expect(b, raw(b, one + "end", {{0, "op", 15}}), kIllegal, kFetch, 0);
  SECTION("a bit that no field claims") {
    std::vector<uint32_t> words = raw(b, one + "end");
    words[1] |= 1u << 14;  // bit 46
    expect(b, words, kIllegal, kFetch, 0);
  }
  SECTION("an enumerator that does not exist") { expect(b, raw(b, one + "end", {{0, "to", 6}}), kIllegal, kLd, 0); }
  SECTION("a program without end") { expect(b, raw(b, one), kIllegal, kFetch, 1); }
  SECTION("an offset between words") { expect(b, raw(b, one + "end", {{0, "off", 4}}), kIllegal, kLd, 0); }
  SECTION("both operands of vec2 in `in`") {
    expect(b, raw(b, one + "vec2 a=out b=out\nend", {{1, "a", 0}, {1, "b", 0}}), kIllegal, kVec, 1);
  }
  SECTION("a row that ends before its last vector") {
    expect(b, raw(b, one + "row f=max a=out n_k=2 n=9\nend", {{1, "n", 7}}), kIllegal, kVec, 1);
  }
  SECTION("a fourth use of row") { expect(b, raw(b, one + "row f=var a=out\nend", {{1, "f", 3}}), kIllegal, kVec, 1); }
  SECTION("a quotient of two vectors") {
    expect(b, raw(b, one + "row f=div a=out\nend", {{1, "n_k", 1}}), kIllegal, kVec, 1);
  }
  SECTION("too many products for 32 bits") {
    expect(b, raw(b, "mac n_ci=1\nend", {{0, "n_ci", 1023}, {0, "n_kw", 31}}), kIllegal, kMac, 0);
    expect(b, raw(b, "mac n_ci=1\nend", {{0, "n_ci", 1023}, {0, "n_kw", 7}}), kOob, kMac, 0);
    expect(b, raw(b, "mac n_ci=1 zw=1\nend", {{0, "n_ci", 1023}, {0, "n_kw", 7}}), kIllegal, kMac, 0);
  }
  SECTION("three-tap mode with four taps, with another stride") {
    expect(b, raw(b, "mac wdir=tri\nend", {{0, "n_kw", 3}}), kIllegal, kMac, 0);
    expect(b, raw(b, "mac wdir=tri n_kw=2 s_kw=1 s_ow=1\nend", {{0, "s_ow", 3}}), kIllegal, kMac, 0);
  }
}

TEST_CASE("addresses outside a memory: the last word is inside, the next is not") {
  Bench b(8, {});
  b.fill_dram(1);
  const auto check = [&](const std::string& fits, const std::string& field, uint64_t value, uint32_t queue) {
    INFO(fits << " " << field);
    Outcome ok = b.run_rtl(raw(b, fits + "\nend"));
    CHECK(ok.done);
    expect(b, raw(b, fits + "\nend", {{0, field, value}}), kOob, queue, 0);
  };
  check("ld to=out seg=arena sp=2044 nx=2 ny=2 sy=2 y1=2 x1=2", "sp", 2045, kLd);
  check("ld to=in seg=arena sp=16380 nx=2 ny=2 sy=2 y1=2 x1=2", "sp", 16381, kLd);
  check("ld to=w seg=arena sp=16380 nx=4 y1=2 x1=2", "nx", 4, kLd);
  check("ld to=par seg=arena sp=1020 nx=2 nz=2 y1=2 x1=2", "nz", 2, kLd);
  check("ld to=tab seg=arena sp=0 nx=128 y1=2 x1=2", "nx", 128, kLd);
  check("st seg=io0 sp=2044 nx=2 ny=2", "ny", 2, kSt);
  check("mac in_base=16380 n_ow=4 s_ow=1", "in_base", 16381, kMac);
  check("mac in_base=3 n_ow=4 s_ow=-1", "in_base", 2, kMac);
  check("mac in_base=3 n_ow=4 s_ow=-1 n_ci=2 s_ci=16380", "s_ci", 16381, kMac);
  check("mac w_base=16376", "w_base", 16377, kMac);
  check("mac wdir=diag w_base=16383", "n_kh", 1, kMac);
  check("mac acc_base=2044 n_ow=2 n_oh=2", "n_oh", 2, kMac);
  check("vec a=acc a_base=2047", "a_base", 2048, kVec);
  check("vec a=out a_base=2040 n_kw=8 s_kw=1", "s_kw", 2, kVec);
  check("vec a=in a_base=16380 dst=out d_base=2040 n_ow=4 n_oh=2 d_ow=1 d_oh=4", "d_oh", 5, kVec);
  check("vec a=in dst=in d_base=16383", "dst", 0, kVec);
  check("vec a=out scl=lane p_base=1015", "p_base", 1016, kVec);
  check("vec2 a=out b=in b_base=16383", "b", 1, kVec);
  check("row f=max a=in a_base=16381 n_k=3 a_k=1 n=30", "n_k", 3, kVec);
  check("row f=div a=out b_base=2040 n_ow=8 b_ow=1", "b_base", 2041, kVec);
  check("row f=var a=out b_base=2040 n_ow=8 b_ow=1", "b_base", 2041, kVec);
  check("row f=var a=out d_base=2040 n_ow=8 d_ow=1", "d_base", 2041, kVec);
  check("norm a=out a_base=2040 n_ow=2 n_k=4 a_ow=4 a_k=1", "a_base", 2042, kVec);
  check("norm a=out b_base=2040 n_ow=8 b_ow=1", "b_base", 2041, kVec);
  check("norm a=out c_base=2033 n_ow=8 c_ow=2", "c_base", 2034, kVec);
  check("norm a=out p_base=1012 n_k=3", "p_base", 1013, kVec);
  check("norm a=out dst=in d_base=16376 n_ow=2 n_k=4 d_ow=4 d_k=1", "d_base", 16377, kVec);
}

TEST_CASE("semaphores") {
  Bench b(8, {});
  b.fill_dram(1);
  const std::string give = "ld to=out seg=arena nx=1 y1=1 x1=1 sig=0x8000\n";
  std::string many;
  for (int i = 0; i < 255; ++i) many += give;
  SECTION("255 fit") { CHECK(b.run_rtl(raw(b, many + "end")).done); }
  SECTION("256 overflow") { expect(b, raw(b, many + give + "end"), kSem, kLd, 255); }
  SECTION("256 overflow, given by another queue") {
    const std::pair<const char*, uint32_t> givers[] = {
        {"mac sig=0x8000\n", kMac}, {"vec a=out sig=0x8000\n", kVec}, {"st seg=io0 sig=0x8000\n", kSt}};
    for (const auto& [line, queue] : givers) {
      INFO(line);
      std::string all;
      for (int i = 0; i < 256; ++i) all += line;
      expect(b, raw(b, all + "end"), kSem, queue, 255);
    }
  }
  SECTION("a second queue that waits") {
    const Outcome out = b.run_rtl(raw(b, R"(ld to=out seg=arena nx=1 y1=1 x1=1 sig=1
                                            ld to=out seg=arena nx=200 y1=1 x1=200 sig=1
                                            vec a=out wai=1
                                            st seg=io0 wai=1
                                            end)"));
    CHECK(out.cause == kSem);
    CHECK((out.queue == kVec || out.queue == kSt));
    b.soft_reset();
    b.run(kGood);
  }
  SECTION("nobody gives: the watchdog") { expect(b, raw(b, "st seg=io0 wai=1\nend"), kWatchdog, kFetch, 0); }
  SECTION("all sixteen") {
    b.run(R"(ld to=out seg=arena nx=4 y1=1 x1=4 sig=0xffff
             st seg=io0 nx=4 wai=0xffff
             end)");
  }
}

TEST_CASE("bus errors") {
  const uint64_t at = 0x10000 + 0x20000 * 1;  // arena
  SECTION("SLVERR on a read") {
    Bench b(8, {.latency = 20, .error_begin = at + 256, .error_end = at + 257});
    b.fill_dram(1);
    const Outcome out = b.run_rtl(raw(b, kGood));
    CHECK(out.cause == kAxi);
    CHECK(out.queue == kLd);
    CHECK(out.epc[kLd] == 0);
    CHECK(out.writes[kSt].empty());
  }
  SECTION("SLVERR on a write") {
    const uint64_t io0 = 0x10000 + 0x20000 * 2;
    Bench b(8, {.latency = 20, .error_begin = io0 + 256, .error_end = io0 + 257});
    b.fill_dram(1);
    const Outcome out = b.run_rtl(raw(b, kGood));
    CHECK(out.cause == kAxi);
    CHECK(out.queue == kSt);
    CHECK(out.epc[kSt] == 2);
  }
  SECTION("DECERR: outside the device's memory") {
    Bench b(8, {.latency = 20});
    b.fill_dram(1);
    const Outcome out = b.run_rtl(raw(b, "ld to=out seg=io4 off=0xff00000 nx=60 y1=1 x1=60\nend"));
    CHECK(out.cause == kAxi);
    CHECK(out.queue == kLd);
    b.soft_reset();
    b.run(kGood);
  }
  SECTION("DECERR on the program itself") {
    Bench b(8, {.latency = 20});
    b.fill_dram(1);
    b.write_csr("SEG", 0x7fff0000, 0);
    const Outcome out = b.run_rtl(raw(b, kGood));
    CHECK(out.cause == kAxi);
    CHECK(out.queue == kFetch);
  }
}

TEST_CASE("two programs without reset between them") {
  Bench b(8, {.jitter = 20, .backpressure = 20});
  b.fill_dram(1);
  b.run(kGood);
  b.fill_dram(2);
  b.run(kGood);
  // instructions after `end` are fetched and forgotten
  const Outcome out = b.run_rtl(raw(b, "end\nend\nld to=out seg=arena nx=1 y1=1 x1=1\nend"));
  CHECK(out.done);
  CHECK(out.retired[kLd].empty());
  b.run(kGood);
}

TEST_CASE("start while busy is ignored") {
  Bench b(8, {.latency = 100});
  b.fill_dram(1);
  const std::vector<Instruction> program = b.assemble(kGood);
  b.start(raw(b, kGood));
  b.write_csr("CTRL", 1);
  if (auto r = b.port().wait_irq(100000); !r) FAIL(to_string(r.error()));
  CHECK(b.read_csr("STAT") == 2);
  b.write_csr("STAT", 2);
  CHECK(b.read_csr("STAT") == 0);
  b.run(kGood);
}

TEST_CASE("reset with reads and writes open, at every phase of a program") {
  for (int wait = 0; wait < 300; wait += 7) {
    Bench b(8, {.seed = static_cast<uint64_t>(wait + 1), .latency = 60, .jitter = 20, .backpressure = 30});
    b.fill_dram(1);
    b.start(raw(b, kGood));
    for (int i = 0; i < wait / 2; ++i) b.read_csr("STAT");  // two cycles each
    b.soft_reset();
    b.run(kGood);
  }
}

TEST_CASE("a reset in the middle of a store leaves each word old or new") {
  const char* const store = R"(ld to=out seg=arena off=0 nx=120 y1=1 x1=120 sig=1
                               st seg=io1 off=0 nx=120 wai=1
                               end)";
  Bench whole(8);
  whole.fill_dram(1);
  const std::vector<uint8_t> before = whole.golden().dram;
  whole.run(store);
  const std::vector<uint8_t>& after = whole.golden().dram;
  int partial = 0;
  for (int wait = 60; wait < 260; wait += 11) {
    Bench b(8, {.seed = static_cast<uint64_t>(wait), .latency = 30, .backpressure = 40});
    b.fill_dram(1);
    b.start(raw(b, store));
    for (int i = 0; i < wait; ++i) b.read_csr("STAT");
    b.soft_reset();
    std::vector<uint8_t> words(120 * 8);
    const uint64_t at = b.segment("io1");
    if (auto r = b.port().mem_rd(at, std::as_writable_bytes(std::span(words))); !r) FAIL(to_string(r.error()));
    int fresh = 0;
    for (size_t w = 0; w < words.size(); w += 8) {
      const auto same = [&](const std::vector<uint8_t>& memory) {
        return std::equal(words.begin() + w, words.begin() + w + 8, memory.begin() + static_cast<int64_t>(at + w));
      };
      INFO("word " << w / 8);
      CHECK((same(before) || same(after)));
      fresh += same(after) ? 1 : 0;
    }
    partial += fresh > 0 && fresh < 120 ? 1 : 0;
  }
  CHECK(partial > 0);  // at least one reset fell into the store
}

TEST_CASE("the reset pin in flight") {
  for (int wait = 0; wait < 200; wait += 13) {
    Bench b(8, {.seed = static_cast<uint64_t>(wait + 1), .latency = 60});
    b.fill_dram(1);
    b.start(raw(b, kGood));
    for (int i = 0; i < wait; ++i) b.read_csr("STAT");
    if (auto r = b.port().reset(); !r) FAIL(to_string(r.error()));
    CHECK(b.read_csr("STAT") == 0);
    CHECK(b.read_csr("COUNT") == 0);
    b.configure();
    b.run(kGood);
  }
}

TEST_CASE("registers") {
  Bench b(8, {});
  CHECK((uint64_t{b.read_csr("ID", 0)} | 0) == (b.port().arch_hash() & 0xffffffff));
  const auto at = [&](const char* name) {
    return static_cast<uint32_t>(b.hw().csr[static_cast<size_t>(b.hw().find_csr(name))].at);
  };
  CHECK(need(b.port().rd32(at("ID") + 4)) == b.port().arch_hash() >> 32);
  const uint32_t high = at("SEG") + 12;  // half of the second base
  need(b.port().wr32(high, 0x89abcdef));
  CHECK(need(b.port().rd32(high)) == 0x89abcdef);
  b.configure();
  need(b.port().wr32(high, 0));
  b.fill_dram(1);
  b.run(kGood);
  CHECK(b.read_csr("CNT", 0) > 60);            // cycles
  CHECK(b.read_csr("CNT", 10) == 60 + 4 * 4);  // read beats: data and four instructions
  CHECK(b.read_csr("CNT", 11) == 60);
}

}  // namespace dlc::cosim
