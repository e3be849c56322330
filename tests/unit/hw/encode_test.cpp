#include "dlc/hw/encode.h"

#include <random>

#include "dlc_test/need.h"
#include "mini.h"

using namespace dlc;
using dlc_test::need;

namespace {

// A random legal instruction: fields uniform over their values, tried until `require` holds.
Instruction random_instruction(const HwDescription& hw, std::mt19937_64& rng) {
  while (true) {
    Instruction i = make_instruction(hw, static_cast<int>(rng() % hw.isa.insns.size()));
    const HwInsn& insn = hw.isa.insns[static_cast<size_t>(i.insn)];
    for (size_t f = 0; f < insn.fields.size(); ++f) {
      const HwField& field = insn.fields[f];
      if (field.name == hw.isa.opcode_field) continue;
      if (!field.enumerators.empty()) {
        i.fields[f] = field.enumerators[rng() % field.enumerators.size()].value;
        continue;
      }
      const auto span = static_cast<uint64_t>(field.raw_max()) - static_cast<uint64_t>(field.raw_min());
      const auto raw = static_cast<int64_t>(static_cast<uint64_t>(field.raw_min()) + rng() % (span + 1));
      i.fields[f] = (rng() % 4 == 0 ? field.raw_max() : raw) * field.unit + field.plus;
    }
    if (check_instruction(hw, i)) return i;
  }
}

}  // namespace

TEST_CASE("fields land on their bits") {
  const HwDescription hw = mini();
  REQUIRE_OK(const auto program, assemble(hw, "ld to=buf seg=arena off=8 sp=3 n=5 pad=-2 wai=0x1 sig=0x82"));
  REQUIRE_OK(const auto words, encode(hw, program[0]));
  // op 1, wai 1 << 8, sig 0x82 << 16, to 0, seg 1 << 25 | off 8, sp 3 << 56 | n 5 - 1, pad 0xfe << 8
  CHECK(words == std::vector<uint32_t>{0x02820101u, 0x03000008u, 0x0000fe04u, 0});
  REQUIRE_OK(const Instruction back, decode(hw, words));
  CHECK(back == program[0]);
}

TEST_CASE("a field may lie in two words") {
  REQUIRE_OK(const auto hw, parse_hw(mini_with("s: s8@64}", "s: s8@92}"), "m"));
  REQUIRE_OK(const auto program, assemble(hw, "mul s=-2"));
  REQUIRE_OK(const auto words, encode(hw, program[0]));
  CHECK(words == std::vector<uint32_t>{2, 0, 0xe0000000u, 0xfu});
  REQUIRE_OK(const Instruction back, decode(hw, words));
  CHECK(back == program[0]);
}

TEST_CASE("formulas over fields: conditions at their boundary, and no answer where a product overflows") {
  const auto cycles = [](const char* formula, const char* line) {
    const HwDescription hw = need(parse_hw(mini_with("4 + n", formula), "m"));
    return instruction_cycles(hw, need(assemble(hw, line))[0]);
  };
  const char* choice = "if sp >= 7 then 100 else n";
  CHECK(cycles(choice, "ld sp=6 n=3") == 3);
  CHECK(cycles(choice, "ld sp=7 n=3") == 100);
  CHECK(cycles("off*off*off", "ld off=1048572") == 1048572LL * 1048572 * 1048572);
  CHECK(cycles("off*off*off*off", "ld off=1048572") == std::nullopt);
}

TEST_CASE("encode, decode, assemble and disassemble are inverse") {
  const HwDescription hw = mini();
  std::mt19937_64 rng(7);
  for (int k = 0; k < 500; ++k) {
    const Instruction i = random_instruction(hw, rng);
    REQUIRE_OK(const auto words, encode(hw, i));
    REQUIRE_OK(const Instruction back, decode(hw, words));
    CHECK(back == i);
    REQUIRE_OK(const auto again, assemble(hw, disassemble(hw, i)));
    REQUIRE(again.size() == 1);
    CHECK(again[0] == i);
  }
}

TEST_CASE("values that a field cannot hold are refused with the range") {
  const HwDescription hw = mini();
  Instruction mul = make_instruction(hw, hw.isa.find("mul"));
  CHECK(set_field(hw, mul, "n", 16).has_value());
  REQUIRE_ERROR(set_field(hw, mul, "n", 17), "mul.n = 17 is outside 1 .. 16");
  REQUIRE_ERROR(set_field(hw, mul, "n", 0), "mul.n = 0 is outside 1 .. 16");
  REQUIRE_ERROR(set_field(hw, mul, "s", -129), "mul.s = -129 is outside -128 .. 127");
  REQUIRE_ERROR(set_field(hw, mul, "accun", 1), "mul has no field 'accun'\n  next: did you mean 'accum'?");
  Instruction st = make_instruction(hw, hw.isa.find("st"));
  REQUIRE_ERROR(set_field(hw, st, "off", 6), "st.off = 6 is not 0 plus a multiple of 4");
  REQUIRE_ERROR(set_field(hw, st, "seg", 2), "st.seg");
  Instruction ld = make_instruction(hw, hw.isa.find("ld"));
  REQUIRE(set_field(hw, ld, "off", 2).has_value());
  REQUIRE_ERROR(encode(hw, ld), "ld: 'off % L == 0' does not hold");
  mul.fields[0] = 3;
  REQUIRE_ERROR(encode(hw, mul), "mul has opcode 2, not 3");
}

TEST_CASE("words that mean nothing are refused") {
  const HwDescription hw = mini();
  const auto message = [&](std::vector<uint32_t> words) {
    const auto i = decode(hw, words);
    return i ? std::string("decoded") : std::string(i.error().message());
  };
  CHECK(message({9, 0, 0, 0}) == "opcode 9 is not an instruction");
  CHECK(message({5, 0, 0, 0}) == "decoded");
  CHECK(message({5, 0, 0, 0x80000000u}) == "end: reserved bit 127 is 1");
  CHECK(message({3 | 3u << 25, 0, 0, 0}) == "post.fn = 3 is not an enumerator");
  CHECK(message({1, 1, 0, 0}) == "ld: 'off % L == 0' does not hold");
  CHECK(message({1, 0}) == "an instruction has 4 words of 32 bits, not 2");
}

TEST_CASE("assembler errors name line and nearest word") {
  const HwDescription hw = mini();
  REQUIRE_ERROR(assemble(hw, "\n  mull n=1", "p.s"),
                "p.s:2:3: error: there is no instruction 'mull'\n  next: did you mean 'mul'?");
  REQUIRE_ERROR(assemble(hw, "mul n=99", "p.s"), "p.s:1:1: error: mul.n = 99 is outside 1 .. 16");
  REQUIRE_ERROR(assemble(hw, "mul n", "p.s"), "'n' is not of the form field=value");
  REQUIRE_ERROR(assemble(hw, "mul n=1 n=2", "p.s"), "field 'n' is given twice");
  REQUIRE_ERROR(assemble(hw, "ld to=acc", "p.s"), "'acc' is not an integer");
  REQUIRE_OK(const auto none, assemble(hw, "# nothing\n\n"));
  CHECK(none.empty());
}
