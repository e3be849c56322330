#include "dlc/hw/emit.h"

#include "dlc_test/need.h"
#include "mini.h"

using namespace dlc;
using Catch::Matchers::Contains;
using dlc_test::need;

TEST_CASE("constants have the same names and values in every language") {
  const HwDescription hw = mini();
  const std::string sv = emit_systemverilog(hw), c = emit_c_header(hw), cpp = emit_cpp_header(hw);
  CHECK_THAT(sv, Contains("package mini_cfg;\n"));
  CHECK_THAT(sv, Contains("  localparam int WORDS = 64;\n"));
  CHECK_THAT(sv,
             Contains("  localparam int LD_N_L = 64;\n  localparam int LD_N_W = 6;\n  localparam int LD_N_P = 1;\n"));
  CHECK_THAT(sv, Contains("  localparam int ST_OFF_U = 4;\n"));
  CHECK_THAT(sv, Contains("  localparam int POST_FN_E_LUT = 2;\n"));
  CHECK_THAT(sv, Contains("  localparam logic [127:0] END_USED = 128'hffff0f;\n"));
  CHECK_THAT(sv, Contains("  localparam logic [63:0] ARCH_HASH = 64'h" + hash_text(hw.arch_hash).substr(2)));
  CHECK_THAT(sv, Contains("  localparam int ROM_INV_1 = 21845;\n"));
  CHECK_THAT(sv, Contains("endpackage\n"));
  CHECK_THAT(cpp, Contains("namespace mini_cfg {\n"));
  CHECK_THAT(cpp, Contains("inline constexpr int CSR_SEG_N = 2;\n"));
  CHECK_THAT(c, Contains("#define MINI_CFG_CSR_CTRL_RESET_B (1)\n"));
  CHECK_THAT(c, Contains("  mini_cfg_put(words, 64, 6, (uint64_t)((a->n - (1))));\n"));
  CHECK_THAT(c, Contains("  mini_cfg_put(words, 32, 20, (uint64_t)(a->off / 4));\n"));
}

TEST_CASE("what hardware obeys of memories, counters and registers is in its constants") {
  const std::string sv = emit_systemverilog(mini());
  CHECK_THAT(sv, Contains("  localparam int SEM_BITS = 4;\n"));
  CHECK_THAT(sv, Contains("  localparam int BUF_WORDS = 64;\n") && Contains("  localparam int TAB_WORDS = 2;\n"));
  CHECK_THAT(sv, Contains("  localparam int ACC_LOW_AT = 1;\n  localparam int ACC_LOW_STEP = 2;\n"));
  CHECK_THAT(sv, Contains("  localparam int DRAM_READ_LATENCY = 80;\n"));
  CHECK_THAT(sv, !Contains("_BOUNDARY") && !Contains("_BURST_MAX"));
  CHECK_THAT(sv, Contains("  localparam int ISSUE_IN_FLIGHT = 1;\n") && !Contains("LD_OPEN"));
  const std::string timed = emit_systemverilog(need(
      parse_hw(kMini + "cost: {issue: {ahead: 16, look: 2}, transfers: {ld: {bursts: 1, words: n, open: 9}}}\n", "m")));
  CHECK_THAT(timed, Contains("  localparam int ISSUE_AHEAD = 16;\n  localparam int ISSUE_LOOK = 2;\n"));
  CHECK_THAT(timed, Contains("  localparam int LD_OPEN = 9;\n"));
  CHECK_THAT(emit_systemverilog(need(
                 parse_hw(mini_with("read_latency: 80,", "read_latency: 80, burst_max: 16, boundary: 1KiB,"), "m"))),
             Contains("  localparam int DRAM_BOUNDARY = 1024;\n  localparam int DRAM_BURST_MAX = 16;\n"));
  CHECK_THAT(
      emit_systemverilog(need(parse_hw(mini_with("reset: w1}", "reset: w1, why: {at: 4, w: 8, access: ro}}"), "m"))),
      Contains("  localparam int CSR_CTRL_WHY_B = 4;\n  localparam int CSR_CTRL_WHY_W = 8;\n"));
}

TEST_CASE("the manual has every memory, instruction, register and fault") {
  const HwDescription hw = mini();
  const std::string text = emit_manual(hw);
  for (const HwState& s : hw.state) CHECK_THAT(text, Contains("| `" + s.name + "` |"));
  for (const HwInsn& i : hw.isa.insns) CHECK_THAT(text, Contains("### " + i.name + "\n"));
  for (const HwCsr& r : hw.csr) CHECK_THAT(text, Contains("| " + r.name));
  for (const HwFault& f : hw.faults) CHECK_THAT(text, Contains("* " + f.name + " = "));
  CHECK_THAT(text, Contains("Legal only where `off % L == 0`."));
  CHECK(emit_manual(hw) == text);
}
