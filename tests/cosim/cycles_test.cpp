// The times that the description predicts against the RTL: `cycles` is exact for the engines that do not touch the bus,
// and a replay of a whole program through `cost` comes within a few cycles. When one of the two changes, this fails.
#include <algorithm>
#include <cstdlib>

#include "dlc/hw/timing.h"
#include "dlc_test/catch.h"
#include "tests/cosim/bench.h"

namespace dlc::cosim {
namespace {

struct Retires final : PortObserver {
  std::vector<std::vector<PortRetire>> at{4};
  void on_write(const PortWrite&) override {}
  void on_retire(const PortRetire& r) override { at[static_cast<size_t>(r.queue)].push_back(r); }
};

// Each line three times: the distance of the last two retires is that of their starts.
void check(int size, const std::vector<std::string>& lines) {
  Bench b(size);
  b.fill_dram(1);
  for (const std::string& line : lines) {
    INFO(line);
    Retires retires;
    const std::vector<Instruction> program = b.assemble(line + "\n" + line + "\n" + line + "\nend");
    b.port().observe(&retires);
    const auto words = encode_program(b.hw(), program);
    REQUIRE(words.has_value());
    b.start(*words);
    REQUIRE(b.port().wait_irq(1000000).has_value());
    b.port().observe(nullptr);
    REQUIRE(b.read_csr("STAT") == 2);
    b.write_csr("STAT", 2);
    const auto& at = retires.at[static_cast<size_t>(b.hw().isa.insns[static_cast<size_t>(program[0].insn)].queue)];
    REQUIRE(at.size() >= 3);
    CHECK(static_cast<int64_t>(at[2].cycle - at[1].cycle) == instruction_cycles(b.hw(), program[0]));
  }
}

}  // namespace

TEST_CASE("cycles of mac, vec, vec2, row and norm are those of the description") {
  for (int size : {8, 16})
    check(size, {"mac wdir=row n_ow=10 n_oh=4 n_ci=3 s_ow=1",
                 "mac wdir=row n_ow=3 n_kw=3 n_kh=2",
                 "mac wdir=row n_ow=100",
                 "mac wdir=col n_ow=2 n_ci=4 accum=1",
                 "mac wdir=diag n_ow=1 n_kw=3 n_kh=3",
                 "mac wdir=diag n_ow=9 n_oh=2 n_kw=3 n_kh=3 s_ow=1",
                 "mac wdir=tri n_ow=1 n_kw=3 n_kh=3 s_ow=1 s_kw=1",
                 "mac wdir=tri n_ow=9 n_oh=5 n_kw=3 n_kh=3 s_ow=1 s_kw=1",
                 "mac wdir=tri n_ow=9 n_oh=5 n_kw=2 n_ci=2 s_ow=2 s_kw=1",
                 "mac wdir=tri n_ow=1 n_kw=1 n_kh=9",
                 "vec a=out n_ow=20 n_oh=3 s_ow=1 ma=1",
                 "vec a=acc scl=lane n_ow=20 s_ow=1",
                 "vec a=in red=max n_ow=5 n_oh=2 n_kw=3 n_kh=3",
                 "vec2 a=out b=in n_ow=30 n_oh=2",
                 "row f=max a=in n_ow=5 n_oh=2 n_k=4 n=64",
                 "row f=div a=out n_ow=30 n_oh=2",
                 "row f=var a=out n_ow=5 n_oh=2 n_k=4",
                 "norm a=in n_ow=7 n_k=3",
                 "norm a=out dst=in n_ow=1 n_k=1",
                 "vec a=out dst=in"});
}

namespace {

// Every instruction retires when it was said to, within 24 cycles or 4 % of the time since the start. `single`: that
// instruction also takes as long as it was said to, within 4 cycles or 5 %.
void check_program_times(int size, const std::string& text, int64_t single = -1) {
  Bench b(size);
  b.fill_dram(1);
  INFO(size << "x" << size << ":\n" << text);
  const std::vector<Instruction> program = b.assemble(text);
  const auto words = encode_program(b.hw(), program);
  REQUIRE(words.has_value());
  const auto times = predict_times(b.hw(), program);
  REQUIRE(times.size() == program.size());
  Retires retires;
  b.port().observe(&retires);
  b.start(*words);
  const auto begin = static_cast<int64_t>(b.port().now()) - 2;  // the write of CTRL takes two
  REQUIRE(b.port().wait_irq(1000000).has_value());
  b.port().observe(nullptr);
  REQUIRE(b.read_csr("STAT") == 2);
  b.write_csr("STAT", 2);
  size_t seen = 0;
  for (const auto& queue : retires.at)
    for (const PortRetire& r : queue) {
      const InstructionTime& t = times[r.index];
      const auto start = static_cast<int64_t>(r.start) - begin, retire = static_cast<int64_t>(r.cycle) - begin;
      INFO(r.index << ": " << disassemble(b.hw(), program[r.index]) << "\npredicted " << t.start << " to " << t.retire
                   << ", measured " << start << " to " << retire);
      CHECK(std::abs(t.retire - retire) <= std::max<int64_t>(24, retire / 25));
      const int64_t length = retire - start;
      if (r.index == single) CHECK(std::abs(t.retire - t.start - length) <= 4 + length / 20);
      ++seen;
    }
  CHECK(seen == program.size());
}

}  // namespace

TEST_CASE("single loads and stores take the time that the description gives them") {
  const std::string io = "ld to=in seg=arena off=0", st = "st seg=io0 off=0x400";
  for (const int size : {8, 16})
    for (const std::string& line :
         {io + " y1=1 x1=1", io + " nx=60 y1=1 x1=60", io + " nx=256 ny=8 sy=256 y1=8 x1=256",
          io + " nx=4 ny=40 sy=8 y1=40 x1=4", io + " nx=1 ny=100 nz=2 sy=2 sz=256 y1=100 x1=1",
          io + " nx=18 ny=18 sy=16 y0=-1 y1=16 x0=-1 x1=16", io + " nx=200 fill=3",
          std::string("ld to=par seg=weights off=0 nx=9 y1=1 x1=9"), st, st + " nx=100", st + " nx=7 ny=30 sy=16",
          st + " nx=1 ny=60 sy=2", st + " nx=250 ny=3 sy=256"})
      check_program_times(size, "vec a=out n_ow=800 sig=1\n" + line + " wai=1\nend", 1);  // after the fetches
}

TEST_CASE("programs whose queues wait for each other take the time that the description gives them") {
  // loads run ahead of the array, a vector unit that reads `in` meets it there, stores and the next loads wait
  std::string text = "ld to=par seg=weights off=0 nx=9 y1=1 x1=9\n", pool;
  for (int t = 0; t < 12; ++t) {
    const bool later = t >= 2;
    const std::string half = std::to_string(t % 2 * 1024), at = std::to_string(t % 2 * 400);
    text += "ld to=in seg=arena off=0 sp=" + at + " nx=20 ny=10 sy=24 y1=10 x1=20 sig=1" + (later ? " wai=2\n" : "\n");
    text += "ld to=w seg=weights off=512 sp=" + at + " nx=144 y1=1 x1=144 sig=1\n";
    text += "mac in_base=" + at + " w_base=" + at + " acc_base=" + half +
            " n_ow=18 n_oh=8 n_kw=3 n_kh=3 s_ow=1 s_oh=20 s_kw=1 s_kh=20 sig=6 wai=" + (later ? "9" : "1") + "\n";
    text += "vec a=acc scl=lane a_base=" + half + " n_ow=144 s_ow=1 d_ow=1 sig=24 wai=4\n";
    text += "st seg=io0 off=0 nx=144 wai=16\n";
    pool += "vec a=in red=max a_base=" + at +
            " d_base=512 n_ow=9 n_oh=4 n_kw=2 n_kh=2 s_ow=2 s_oh=40 s_kw=1 s_kh=20 d_ow=1 d_oh=9\n";
  }
  for (const int size : {8, 16}) {
    check_program_times(size, text + "end");
    check_program_times(
        size,
        pool + "mac n_ow=30 n_oh=30 n_ci=4 s_ow=1 s_oh=30 s_ci=1\nmac n_ow=30 n_oh=30 n_ci=4 s_ow=1 s_oh=30 s_ci=1\n" +
            pool + "end");
  }
}

}  // namespace dlc::cosim
