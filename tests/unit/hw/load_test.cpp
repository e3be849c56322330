#include "dlc/hw/load.h"

#include <algorithm>

#include "dlc/hw/check_generic.h"
#include "dlc/hw/emit.h"
#include "mini.h"

using namespace dlc;

TEST_CASE("a description is read whole") {
  const HwDescription hw = mini();
  CHECK(hw.name == "mini");
  CHECK(hw.clocks.at("base") == 1e9);
  CHECK(hw.param("WORDS") == 64);
  REQUIRE(hw.find_state("buf") >= 0);
  const HwState& buf = hw.state[static_cast<size_t>(hw.find_state("buf"))];
  CHECK(buf.elem == HwElem{kS8, 4});
  CHECK(buf.words == 64);
  CHECK(buf.ports.at(0).clients == std::vector<std::string>{"alu", "io"});
  CHECK(hw.find_space("dram.arena") >= 0);
  CHECK(hw.find_space("dram") == -1);
  CHECK(hw.spaces[static_cast<size_t>(hw.find_space("dram.weights"))].writable == false);
  const HwState& inv = hw.state[static_cast<size_t>(hw.find_state("inv"))];
  CHECK(inv.rom == std::vector<int64_t>{32768, 21845, 16384, 13107, 10923, 9362, 8192, 7282});
  CHECK(hw.defs.at(1).name == "quarter");
  REQUIRE(hw.sync);
  CHECK(hw.sync->wait_field == "wai");
  CHECK(hw.fault_code("oob") == 2);
  CHECK(hw.csr.at(1).flags.at(1).at == 1);
}

TEST_CASE("the flags of a register are found by name and cut from its first word") {
  const HwCsr r{.name = "R", .bits = 64, .flags = {{"low", 0, 1, "ro"}, {"mid", 4, 8, "ro"}, {"high", 40, 4, "ro"}}};
  REQUIRE(r.find("mid") != nullptr);
  CHECK(r.find("none") == nullptr);
  CHECK(r.find("mid")->mask() == 0xff0);
  CHECK(r.find("mid")->of(0x12345) == 0x34);
  CHECK(r.find("mid")->put(0xabc) == 0xbc0);
  CHECK(r.find("high")->mask() == 0);
  CHECK(r.find("high")->of(~0u) == 0);
  CHECK(r.find("high")->put(~0u) == 0);
  CHECK(HwCsrBits{"all", 0, 32, "ro"}.of(~0u) == ~0u);
  CHECK(HwCsrBits{"all", 0, 64, "ro"}.mask() == ~0u);
}

TEST_CASE("instructions have one form for each kind of memory") {
  const HwDescription hw = mini();
  const auto forms = [&](const char* name) {
    return hw.isa.insns[static_cast<size_t>(hw.isa.find(name))].forms.size();
  };
  CHECK(forms("ld") == 2);  // buf or tab; the segments look the same
  CHECK(forms("mul") == 1);
  CHECK(forms("post") == 4);  // acc or buf, to buf or acc
  CHECK(forms("end") == 0);
  const HwInsn& post = hw.isa.insns[static_cast<size_t>(hw.isa.find("post"))];
  for (const HwForm& f : post.forms) CHECK(verify(f.kernel).has_value());
}

TEST_CASE("params are overridden, and everything follows") {
  const HwDescription hw = mini({{"L", 8}});
  CHECK(hw.param("WORDS") == 128);
  CHECK(hw.state[static_cast<size_t>(hw.find_state("acc"))].elem.lanes == 8);
  CHECK(hw.arch_hash != mini().arch_hash);
  REQUIRE_ERROR(parse_hw(kMini, "mini.yaml", {{"WORD", 8}}),
                "mini.yaml:5:9: error: there is no param 'WORD' to override\n  next: did you mean 'WORDS'?");
}

TEST_CASE("arch_hash covers meaning, not comments, order of keys, docs or cost") {
  const uint64_t hash = mini().arch_hash;
  const auto hash_of = [](const std::string& text) {
    auto hw = parse_hw(text, "mini.yaml");
    if (!hw) FAIL(to_string(hw.error()));
    return std::pair(hw->arch_hash, hw->full_hash);
  };
  CHECK(hash_of(mini_with("family", "# a comment\nfamily")).first == hash);
  CHECK(hash_of(mini_with("{elem: \"s32[L]\", words: 32,", "{words: 32, elem: \"s32[L]\",")).first == hash);
  CHECK(hash_of(mini_with("dot products", "inner products")).first == hash);
  CHECK(hash_of(kMini + "cost: {error_budget: {median: 3%}}\n").first == hash);
  CHECK(hash_of(kMini + "cost: {error_budget: {median: 3%}}\n").second != mini().full_hash);
  CHECK(hash_of(mini_with("op: 5", "op: 6")).first != hash);
  CHECK(hash_of(mini_with("(x + 1) >> 1", "(x + 1) // 2")).first != hash);
  CHECK(hash_text(0xab) == "0x00000000000000ab");
}

TEST_CASE("laws hold, or say where they do not") {
  CHECK(check_laws(mini(), 1, 200).has_value());
  REQUIRE_OK(const HwDescription hw, parse_hw(mini_with("monotone in x", "half(x) < x"), "mini.yaml"));
  REQUIRE_ERROR(check_laws(hw, 1, 200), "def 'half' breaks its law 'half(x) < x' at x = ");
}

TEST_CASE("the argument of --hw") {
  REQUIRE_OK(const HwArgument a, parse_hw_argument("asic.yaml,R=8,C=0x10"));
  CHECK(a.name == "asic.yaml");
  CHECK(a.params == HwOverrides{{"C", 16}, {"R", 8}});
  REQUIRE_OK(const HwArgument n, parse_hw_argument("native,max=v3"));
  CHECK(n.max == "v3");
  REQUIRE_ERROR(parse_hw_argument(""), "a file name or 'native' is wanted");
  REQUIRE_ERROR(parse_hw_argument("a.yaml,R"), "'R' is not of the form NAME=VALUE");
  REQUIRE_ERROR(parse_hw_argument("a.yaml,R=x"), "'x' is not an integer");
  REQUIRE_ERROR(parse_hw_argument("a.yaml,R=1,R=2"), "'R' is given twice");
  REQUIRE_ERROR(parse_hw_argument("native,R=1"), "--hw=native takes max=v1 .. v4");
  REQUIRE_ERROR(load_hw("no_such_machine", {{"hwdesc"}}), "looked for no_such_machine, hwdesc/no_such_machine");
}

TEST_CASE("the shipped descriptions are right") {
  const std::string folder = std::string(DLC_SOURCE_DIR) + "/hwdesc";
  for (const char* name :
       {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4.yaml", "asic", "asic.yaml,R=8", "asic.yaml,R=32"}) {
    INFO(name);
    REQUIRE_OK(const HwDescription hw, load_hw(name, {{folder}}));
    const auto laws = check_laws(hw, 1, 500);
    if (!laws) FAIL(to_string(laws.error()));
  }
  REQUIRE_OK(const HwDescription v4, load_hw("x86-64-v4", {{folder}}));
  CHECK(v4.plugin == "cpu");
  CHECK(v4.memories.at(0).name == "l2");
  for (const char* f : {"sse2", "sse4_2", "avx2", "avx512f"}) CHECK(v4.has_feature(f));  // each level adds its own
  REQUIRE(v4.vectors.size() == 3);
  CHECK(v4.vectors[2].name == "zmm");
  CHECK(v4.vectors[2].registers == 32);
}

TEST_CASE("native describes this machine, up to the level asked for") {
  REQUIRE_OK(const HwDescription v1, load_hw("native,max=v1"));
  CHECK(v1.feature_names() == std::vector<std::string>{"cmov", "cx8", "fxsr", "mmx", "sse", "sse2"});
  REQUIRE_OK(const HwDescription v2, load_hw("native,max=v2"));
  CHECK(v2.has_feature("sse2"));
  CHECK_FALSE(v2.has_feature("avx"));
  CHECK(v2.vectors.size() == 3);  // what they need decides, not the level
  CHECK(v2.memories.at(0).name == "l2");
  REQUIRE_OK(const HwDescription all, load_hw("native"));
  CHECK(all.feature_names() == native_features());
  REQUIRE_ERROR(load_hw("native,max=v9"), "max=v9 is not one of v1, v2, v3, v4");
}

TEST_CASE("the contract of the generic backend") {
  const auto outside = [](const HwDescription& hw) {
    std::string out;
    for (const Diagnostic& d : check_generic(hw)) out += to_string(d) + "\n";
    return out;
  };
  REQUIRE_OK(const HwDescription asic, load_hw("asic", {{std::string(DLC_SOURCE_DIR) + "/hwdesc"}}));
  CHECK(outside(asic).empty());
  CHECK(outside(mini()) == "mini.yaml:19:1: error: 'container' must say 'transport: fetch'\n");
  REQUIRE_OK(const HwDescription any, parse_hw(mini_with(", waiters: one_queue", ""), "mini.yaml"));
  CHECK_THAT(outside(any), Catch::Matchers::Contains("mini.yaml:12:3: error: semaphores need 'waiters: one_queue'"));
  REQUIRE_OK(const HwDescription odd,
             parse_hw(mini_with("acc[d + i, l] = (if accum == 1 then acc[d + i, l] else 0)", "acc[d + i*i, l] = accum"),
                      "mini.yaml"));
  CHECK_THAT(outside(odd), Catch::Matchers::Contains("insn 'mul' stores to 'acc' at an address that is not affine"));
  REQUIRE_OK(const HwDescription v3, load_hw("x86-64-v3", {{std::string(DLC_SOURCE_DIR) + "/hwdesc"}}));
  CHECK_THAT(outside(v3), Catch::Matchers::Contains("'isa' has no instruction words"));
  CHECK_THAT(outside(v3), Catch::Matchers::Contains("'family' is not queue_machine/1"));
}

TEST_CASE("rules for ops and memories") {
  const std::string text = R"yaml(dlc_hw: 1
name: small
plugin: cpu
memories: {l2: {size: 1MiB}}
ops:
  - {op: matmul, place: refuse, types: [s8, s32], why: "not on this board"}
  - {op: [sort, topk], place: host, why: "no unit compares"}
isa: {features: [sse2], vectors: {xmm: {bytes: 16, registers: 16, needs: [sse2]}}}
)yaml";
  REQUIRE_OK(const HwDescription hw, parse_hw(text, "small.yaml"));
  CHECK(hw.memories.at(0).size == 1 << 20);
  CHECK(hw.vectors.at(0).bytes == 16);
  CHECK(hw.vectors.at(0).needs.at(0).name == "sse2");
  CHECK(hw.ops.at(0).types == std::vector<DType>{kS8, kS32});
  CHECK(hw.ops.at(1).ops == std::vector<std::string>{"sort", "topk"});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return parse_hw(changed, "small.yaml");
  };
  REQUIRE_ERROR(with(", why: \"no unit compares\"", ""), "an entry of 'ops' needs the key 'why'");
  REQUIRE_ERROR(with("registers: 16, ", ""), "vectors 'xmm' needs the key 'registers'");
  REQUIRE_ERROR(with("bytes: 16, ", ""), "vectors 'xmm' needs the key 'bytes'");
  REQUIRE_ERROR(with("bytes: 16", "bytes: 0"), "0 is outside 1 .. 4096");
  REQUIRE_ERROR(with("place: host, ", ""), "an entry of 'ops' needs the key 'place'");
  REQUIRE_ERROR(with("place: host", "place: hst"), "'hst' is not a value of 'place' in an entry of 'ops'");
}

TEST_CASE("large maps and formulas are read at once, or refused") {
  std::string text = kMini + "memories:\n";
  for (int i = 0; i < 15'000; ++i) text += "  m" + std::to_string(i) + ": {size: 1}\n";
  REQUIRE_OK(const HwDescription hw, parse_hw(text, "mini.yaml"));
  CHECK(hw.memories.size() == 15'000);
  for (int i = 15'000; i < 20'001; ++i) text += "  m" + std::to_string(i) + ": {size: 1}\n";
  REQUIRE_ERROR(parse_hw(text, "mini.yaml"), "a map of more than 20000 keys");

  std::string sum = "i", tower = "1";
  while (sum.size() < 900) sum += "+i";
  while (tower.size() < 900) tower += "**1";
  const auto rom = [](const std::string& type, const std::string& formula) {
    return parse_hw(mini_with("{rom: \"u3 -> u16\", formula: \"floor(65536/(i + 2) + 1/2)\"}",
                              "{rom: \"" + type + "\", formula: \"" + formula + "\"}"),
                    "mini.yaml");
  };
  REQUIRE_OK(const HwDescription wide, rom("u16 -> s32", sum));
  CHECK(wide.state[static_cast<size_t>(wide.find_state("inv"))].rom.back() == 65535 * 451);
  REQUIRE_ERROR(rom("u3 -> u16", sum + "+" + sum), "a formula of 1803 characters; the limit is 1000");
  REQUIRE_ERROR(rom("u3 -> u16", tower), "cannot read the formula");
  REQUIRE_ERROR(rom("u3 -> u16", "2**121"), "a power beyond 0 .. 120");
}

TEST_CASE("what a description says beside its instructions is checked and in the manual") {
  REQUIRE_OK(const HwDescription asic, load_hw("asic", {{std::string(DLC_SOURCE_DIR) + "/hwdesc"}}));
  const std::string manual = emit_manual(asic);
  for (const char* part : {"Clock base: 1000 MHz", "bursts of at most 256", "no burst crosses 4096 bytes",
                           "peak 16 bytes per cycle", "segments begin at `SEG`", "* st: B response"})
    CHECK_THAT(manual, Catch::Matchers::Contains(part));
  REQUIRE_ERROR(parse_hw(mini_with("{elem: \"s32[L]\", words: 32,",
                                   "{elem: \"s32[L]\", words: 32, banks: 2, bank_of: \"a % 2\","),
                         "mini.yaml"),
                "'bank_of' does not give each of the 2 banks a part of its own");
  REQUIRE_ERROR(parse_hw(mini_with("size: 1MiB,", "size: 1MiB, base: \"csr.NONE\","), "mini.yaml"),
                "there is no register 'NONE' in 'csr' for 'base' of state 'dram'");
  REQUIRE_ERROR(parse_hw(mini_with("size: 1MiB,", "size: 1MiB, base: SEG,"), "mini.yaml"),
                "'base' is not of the form csr.REGISTER");
  REQUIRE_ERROR(parse_hw(mini_with("model: semaphores,", "model: semaphores, visible: {dma: soon},"), "mini.yaml"),
                "there is no queue 'dma' for 'visible'");
}
