// The `cycles` of the description against the RTL: exact for the engines that do not touch the bus.
#include <map>

#include "dlc_test/catch.h"
#include "tests/cosim/bench.h"

namespace dlc::cosim {
namespace {

struct Retires final : PortObserver {
  std::vector<std::vector<uint64_t>> at{4};
  void on_write(const PortWrite&) override {}
  void on_retire(const PortRetire& r) override { at[static_cast<size_t>(r.queue)].push_back(r.cycle); }
};

int64_t predicted(const HwDescription& hw, const Instruction& i) {
  const HwInsn& insn = hw.isa.insns[static_cast<size_t>(i.insn)];
  std::map<std::string, Expr, std::less<>> values;
  for (size_t f = 0; f < insn.fields.size(); ++f) values.emplace(insn.fields[f].name, Expr(i.fields[f]));
  const auto value = substitute(*insn.cycles, values).constant();
  REQUIRE(value.has_value());
  return *value;
}

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
    CHECK(static_cast<int64_t>(at[2] - at[1]) == predicted(b.hw(), program[0]));
  }
}

}  // namespace

TEST_CASE("cycles of mac, vec and vec2 are those of the description") {
  for (int size : {8, 16})
    check(size, {"mac wdir=row n_ow=10 n_oh=4 n_ci=3 s_ow=1", "mac wdir=row n_ow=3 n_kw=3 n_kh=2",
                 "mac wdir=row n_ow=100", "mac wdir=col n_ow=2 n_ci=4 accum=1", "mac wdir=diag n_ow=1 n_kw=3 n_kh=3",
                 "mac wdir=diag n_ow=9 n_oh=2 n_kw=3 n_kh=3 s_ow=1", "mac wdir=tri n_ow=1 n_kw=3 n_kh=3 s_ow=1 s_kw=1",
                 "mac wdir=tri n_ow=9 n_oh=5 n_kw=3 n_kh=3 s_ow=1 s_kw=1",
                 "mac wdir=tri n_ow=9 n_oh=5 n_kw=2 n_ci=2 s_ow=2 s_kw=1", "mac wdir=tri n_ow=1 n_kw=1 n_kh=9",
                 "vec a=out n_ow=20 n_oh=3 s_ow=1 ma=1", "vec a=acc scl=lane n_ow=20 s_ow=1",
                 "vec a=in red=max n_ow=5 n_oh=2 n_kw=3 n_kh=3", "vec2 a=out b=in n_ow=30 n_oh=2", "vec a=out dst=in"});
}

}  // namespace dlc::cosim
