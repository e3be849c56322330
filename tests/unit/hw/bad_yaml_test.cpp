// Wrong descriptions, each with the whole message it must give.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "dlc/hw/check_machine.h"
#include "dlc/hw/load.h"
#include "mini.h"

using namespace dlc;

namespace {

struct Bad {
  const char* from;
  const char* to;
  const char* message;
};

const Bad kBad[] = {
    {"family: queue_machine/1", "name: other", "mini.yaml:3:1: error: key 'name' appears twice; first at line 2"},
    {"family:", "famly:",
     "mini.yaml:3:1: error: unknown key 'famly' in the description\n  next: did you mean 'family'?"},
    {"clock: 1.0GHz", "clock: 1.0GiB",
     "mini.yaml:4:8: error: '1.0GiB' is not a frequency: its unit is 'GiB'\n  next: use one of Hz kHz MHz GHz"},
    {"clock: 1.0GHz", "clock: 1000",
     "mini.yaml:4:8: error: '1000' is not a frequency: it has no unit\n  next: use one of Hz kHz MHz GHz"},
    {"size: 1MiB", "size: 1 GHz",
     "mini.yaml:7:26: error: '1 GHz' is not a size: its unit is 'GHz'\n  next: use one of B KB MB GB TB KiB MiB GiB "
     "TiB"},
    {"peak: 4 B/cy", "peak: 4 KiB",
     "mini.yaml:7:101: error: '4 KiB' is not a rate: its unit is 'KiB'\n  next: use one of B/cy KiB/cy B/s KB/s MB/s "
     "GB/s TB/s"},
    {"read_latency: 80", "read_latency: 80 B",
     "mini.yaml:7:91: error: '80 B' is not a time: its unit is 'B'\n  next: use one of cycles ns us ms s"},
    {"${L*16}", "${K*16}", "mini.yaml:5:26: error: unknown name 'K' (did you mean 'L'?) in 'K*16'"},
    {"${WORDS}", "${WORDS", "mini.yaml:8:33: error: '${' without '}'"},
    {"views: {low", "viws: {low",
     "mini.yaml:9:37: error: unknown key 'viws' in state 'acc'\n  next: did you mean 'views'?"},
    {"s8[L]", "s8[0*L]", "mini.yaml:8:16: error: 's8[0*L]' has 0 lanes, which is outside 1 .. 65536"},
    {"s8[L]", "q8[L]", "mini.yaml:8:16: error: 'q8' is not an element type\n  next: s8, u31, f32, bf16 ... or bool"},
    {"w0: [io]", "w0: [dma]",
     "mini.yaml:8:72: error: there is no queue 'dma' for port 'w0' of state 'buf'\n  next: one of io, alu"},
    {"stall io", "stall me",
     "mini.yaml:8:95: error: there is no queue 'me' for 'conflict' of state 'buf'\n  next: one of io, alu"},
    {"i + 2", "i - 2", "mini.yaml:11:37: error: entry 0 of rom 'inv' is -32768, which u16 does not hold"},
    {"i + 2", "i",
     "mini.yaml:11:38: error: overflow, division by zero or a power beyond 0 .. 120 in "
     "'floor(65536/(i) + 1/2)' at i = 0"},
    {"[[5], 3]", "[[5], 2]", "mini.yaml:14:53: error: the example says half(5) = 2, the definition gives 3"},
    {"[[9], 3]", "[[9, 1], 3]", "mini.yaml:15:57: error: example with 2 arguments; def 'quarter' has 1"},
    {"object: sem", "object: acc", "mini.yaml:17:35: error: there is no counter 'acc' in 'state'\n  next: one of sem"},
    {"wai: u8@8", "wai: u4@8", "mini.yaml:17:54: error: field 'wai' has 4 bits for 8 semaphores"},
    {"{illegal: 1, oob: 2", "{illegal: 1, oob: 1",
     "mini.yaml:18:31: error: causes 'illegal' and 'oob' both have code 1"},
    {"word: 128", "word: 100", "mini.yaml:20:9: error: 'word' must be a multiple of 32 bits"},
    {"sp: u8@56, n: {at: u6@64, plus: 1}, pad", "sp: u8@56, n: {at: u6@60, plus: 1}, pad",
     "mini.yaml:27:117: error: fields 'sp' and 'n' of insn 'ld' overlap at bit 60"},
    {"lo: u6@80", "lo: u6@124",
     "mini.yaml:27:154: error: field 'lo' of insn 'ld' takes bits 124 .. 129; the word has 128"},
    {"pad: s8@72", "pad: x8@72", "mini.yaml:27:147: error: field 'pad': 'x8@72' is not of the form u14@80 or s16@152"},
    {"fn: {e: [none, half, lut], at: u2@25}", "fn: {e: [none, half, lut], at: u1@25}",
     "mini.yaml:45:70: error: enumerator 'lut' = 2 of field 'fn' does not fit 1 bits"},
    {"{weights: 0, arena: 1}", "{weights: 0, arena: 0}",
     "mini.yaml:27:70: error: enumerators 'weights' and 'arena' of field 'seg' are both number 0"},
    {"op: 3", "op: 2", "mini.yaml:43:11: error: insns 'mul' and 'post' both have opcode 2"},
    {"op: 3", "op: 16", "mini.yaml:43:11: error: 16 is outside 0 .. 15"},
    {"queue: alu\n      doc", "queue: alux\n      doc",
     "mini.yaml:36:14: error: there is no queue 'alux'\n  next: did you mean 'alu'?"},
    {"fix: {to: tab}", "fix: {to: tib}",
     "mini.yaml:31:27: error: there is no enumerator 'tib' of field 'to'\n  next: did you mean 'tab'?"},
    {"\"off % L == 0\"", "\"off % L\"", "mini.yaml:32:18: error: a condition is wanted here, not a number: off % L"},
    {"\"4 + n\"", "\"4 + nn\"", "mini.yaml:33:20: error: unknown name 'nn' (did you mean 'n'?) in '4 + nn'"},
    {"loops: {i: n, k: m, l: L}", "loops: {i: n, k: m, a: L}",
     "mini.yaml:39:27: error: loop 'a' of insn 'mul' has the name of a field, param or memory"},
    {"CTRL: {at: 8,", "CTRL: {at: 4,", "mini.yaml:60:3: error: csr 'ID' and csr 'CTRL' overlap"},
    {"reset: w1}", "reset: w2}",
     "mini.yaml:60:42: error: 'w2' is not a value of 'reset' in bits of csr 'CTRL'\n  next: did you mean 'w1'?"},
    {"SEG: {at: 16, w: 64, n: 2}", "SEG: {at: 16, w: 64, n: 2, names: [a]}",
     "mini.yaml:61:3: error: csr 'SEG' has n = 2 and 1 names"},
    {"end: {op: 5", "end: {like: stt, op: 5",
     "mini.yaml:57:17: error: 'like: stt' names no entry beside it\n  next: did you mean 'st'?"},
};

}  // namespace

TEST_CASE("wrong descriptions are refused with their place and reason") {
  for (const Bad& b : kBad) {
    INFO(b.from << "  ->  " << b.to);
    const auto hw = parse_hw(mini_with(b.from, b.to), "mini.yaml");
    REQUIRE_FALSE(hw.has_value());
    CHECK(to_string(hw.error()) == b.message);
  }
}

TEST_CASE("a misspelt name is told at its place, with the nearest that there is") {
  struct Misspelt {
    const char *from, *to;  // of the accelerator's description; ^ stands where the error must be
    const char *message, *near;
  };
  const Misspelt misspelt[] = {
      {"r0: [mac, vec], w0: [ld, vec]}", "r0: [mac, ^vecc], w0: [ld, vec]}",
       "there is no queue 'vecc' for port 'r0' of state 'in'", "vec"},
      {"conflict: \"stall vec\"", "conflict: \"stall ^vecc\"", "there is no queue 'vecc' for 'conflict' of state 'in'",
       "vec"},
      {"conflict: \"stall vec\"", "conflict: ^\"stal vec\"", "'conflict' of state 'in' is neither", "stall"},
      {"visible: {st:", "visible: {^stt:", "there is no queue 'stt' for 'visible'", "st"},
      {"fix: {wdir: row}", "fix: {wdir: ^rwo}", "there is no enumerator 'rwo' of field 'wdir'", "row"},
      {"fix: {wdir: row}", "fix: {^wdri: row}", "there is no field 'wdri' in insn 'mac'", "wdir"},
      {"to:   {at: u3@40, e: [in, w, par,", "^to:   {at: u3@40, e: [in, w, parr,",
       "insn 'ld' uses field 'to' as a memory where it is 'parr', which names none", "par"},
      {"\"csr.SEG\"", "\"csr.^SGE\"", "there is no register 'SGE' in 'csr' for 'base' of state 'dram'", "SEG"},
      {"object: sem", "object: ^sme", "there is no counter 'sme' in 'state'", "sem"},
      {"field: wai", "field: ^wia", "there is no common field 'wia' in 'isa'", "wai"},
      {"queue: mac", "queue: ^mca", "there is no queue 'mca'", "mac"},
      {"    st: {bursts", "    ^stt: {bursts", "there is no instruction 'stt' for 'transfers' of 'cost'", "st"},
      {"x = if scl == lane", "x = if scl == ^lan", "`lan` is not declared", "lane"},
      {"\"x = if lut == t8", "\"x = if ^ult == t8", "`ult` is not declared", "lut"},
      {"\"dst[d_base + oh", "\"^dts[d_base + oh", "`dts` is not declared", "dst"},
      {"requant(x + par.bias", "requant(x + ^pra.bias", "`pra.bias` is not ", "par.bias"},
      {"requant(x + par.bias", "requant(x + ^par.bais", "there is no view 'bais' of memory 'par'", "bias"},
      {"requant(x + par", "^requan(x + par", "`requan` is not a function", "requant"},
      {"] = out[sp + (z", "] = out[^ps + (z", "`ps` is not declared", "sp"},
      {"wdir != tri or n_kw <= 3", "wdir != ^tir or n_kw <= 3", "unknown name 'tir' (did you mean 'tri'?)", ""},
      {"\"monotone in x\"", "\"^monoton in x\"", "there is no law 'monoton' of def 'sat8'", "monotone"},
      {"\"monotone in x\"", "\"monotone in ^hj\"", "there is no argument 'hj' of def 'sat8'", "hi"},
      {"watchdog: 5", "^watchdg: 5", "'causes' of 'faults' has no 'watchdog'", "watchdg"},
      {"axi: 4", "^ax: 4", "nothing here gives the constant FAULT_AXI that nx_core.sv uses", "FAULT_AX"},
      {"[cycles, mac,", "[^cycle, mac,", "nothing here gives the constant CNT_CYCLES that nx_core.sv uses",
       "CNT_CYCLE"},
  };
  std::stringstream s;
  s << std::ifstream(DLC_SOURCE_DIR "/hwdesc/asic.yaml").rdbuf();
  for (const Misspelt& m : misspelt) {
    INFO(m.from << "  ->  " << m.to);
    std::string text = s.str();
    const size_t from = text.find(m.from);
    REQUIRE(from != std::string::npos);
    text.replace(from, std::string_view(m.from).size(), m.to);
    const size_t at = text.find('^', from);
    text.erase(at, 1);
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
    const auto column = at - text.rfind('\n', at);
    const auto hw = parse_hw(text, DLC_SOURCE_DIR "/hwdesc/asic.yaml");
    Result<> ok = hw ? check_machine(*hw) : Result<>(std::unexpected(hw.error()));
    REQUIRE_FALSE(ok.has_value());
    const Diagnostic& d = ok.error().diagnostics.front();
    CHECK(std::to_string(d.loc.line) + ":" + std::to_string(d.loc.column) ==
          std::to_string(line) + ":" + std::to_string(column));
    CHECK_THAT(d.message, Catch::Matchers::StartsWith(m.message));
    const std::string near = m.near;
    if (!near.empty())
      CHECK((d.hint == "did you mean '" + near + "'?" || d.hint.starts_with("rename what gives " + near + " here") ||
             d.hint == "call '" + near + "' so?"));
  }
}

TEST_CASE("a key that nobody would obey is refused at its place") {
  struct Refused {
    std::string line, what;  // KEY stands for each of the keys
    std::vector<std::string> keys;
  };
  const Refused refused[] = {
      {"KEY: {}", "the description", {"scopes", "links", "units", "limits", "sim", "probe", "host"}},
      {"memories: {l2: {size: 1MiB, KEY: 8}}",
       "memory 'l2'",
       {"scope", "managed", "line", "ways", "ports", "timing", "swizzle", "double_buffer", "needs"}},
      {"ops: [{op: relu, place: host, why: w, KEY: \"1 == 0\"}]",
       "an entry of 'ops'",
       {"when", "unit", "recipe", "lower", "epilogue"}},
      {"isa: {features: [sse2], KEY: x}", "'isa'", {"kind", "codegen", "triple", "cpu", "probe", "missing"}},
      {"isa: {vectors: {xmm: {bytes: 16, registers: 16, needs: [sse2], KEY: x}}}", "vectors 'xmm'", {"name", "masks"}},
      {"cost: {KEY: {}}", "'cost'", {"calibration", "parallel", "launch"}},
      {"rtl: {KEY: x}", "'rtl'", {"top", "sim"}},
      {"rtl: {bus: {KEY: 40}}", "'bus'", {"kind", "addr_bits"}},
      {"state: {m: {elem: s8, words: 16, timing: {KEY: 4 B/cy}}}", "timing of state 'm'", {"measured"}},
      {"state: {m: {table: \"u8 -> s8\", slots: 2, KEY: compiler}}", "state 'm'", {"fill", "words"}},
  };
  for (const Refused& r : refused)
    for (const std::string& key : r.keys) {
      std::string text = "dlc_hw: 1\nname: small\nplugin: cpu\n" + r.line + "\n";
      const size_t at = text.find("KEY"), column = at - text.rfind('\n', at);
      text.replace(at, 3, key);
      INFO(text);
      REQUIRE_ERROR(parse_hw(text, "small.yaml"),
                    "small.yaml:4:" + std::to_string(column) + ": error: unknown key '" + key + "' in " + r.what);
    }
}

TEST_CASE("several faults are reported at once") {
  std::string text = mini_with("words: 32,", "words: many,");
  text.replace(text.find("op: 3"), 5, "op: x");
  const auto hw = parse_hw(text, "mini.yaml");
  REQUIRE_FALSE(hw.has_value());
  CHECK(hw.error().diagnostics.size() == 2);
}

TEST_CASE("texts that are not descriptions") {
  REQUIRE_ERROR(parse_hw("", "t.yaml"), "t.yaml: error: the file is empty");
  REQUIRE_ERROR(parse_hw("- a\n", "t.yaml"), "t.yaml:1:1: error: a hardware description is a map");
  REQUIRE_ERROR(parse_hw("a: [1, 2\n", "t.yaml"), "error: not valid YAML: ");
  REQUIRE_ERROR(parse_hw("a: !!int 3\n", "t.yaml"), "t.yaml:1:4: error: tag 'tag:yaml.org,2002:int' is not allowed");
  REQUIRE_ERROR(parse_hw("a: 1\n---\nb: 2\n", "t.yaml"), "a second YAML document");
  REQUIRE_ERROR(parse_hw("a: &x {p: 1}\nb: {<<: *x}\n", "t.yaml"), "t.yaml:2:5: error: merge key '<<' is not allowed");
  REQUIRE_ERROR(parse_hw("a: &x [*x]\n", "t.yaml"), "alias");
  REQUIRE_ERROR(parse_hw("? [a]\n: b\n", "t.yaml"), "a key must be text");
  REQUIRE_ERROR(parse_hw(std::string("a: \0b", 5), "t.yaml"), "it holds a zero byte");
  REQUIRE_ERROR(parse_hw(std::string(5 << 20, '#'), "t.yaml"), "the limit is 4194304");
  REQUIRE_ERROR(parse_hw("like: nowhere.yaml\nname: x\n", "t.yaml"), "t.yaml:1:7: error: 'like: nowhere.yaml': ");
}

TEST_CASE("an alias bomb and deep nesting are bounded") {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  REQUIRE_ERROR(parse_hw(bomb, "t.yaml"), "more than 200000 values after expanding aliases");
  REQUIRE_ERROR(parse_hw("a: " + std::string(100, '[') + std::string(100, ']'), "t.yaml"),
                "nested deeper than 64 levels");
  REQUIRE_ERROR(parse_hw("a: " + std::string(100000, '['), "t.yaml"), "nested deeper than 64 levels");
}

TEST_CASE("a formula nests no deeper than is sensible") {
  const auto formula = [](const std::string& before, const std::string& after, int n) {
    std::string f;
    for (int i = 0; i < n; ++i) f += before;
    f += "1";
    for (int i = 0; i < n; ++i) f += after;
    return "dlc_hw: 1\nname: x\nstate:\n  r: {rom: \"u2 -> s16\", formula: \"" + f + "\"}\n";
  };
  for (const auto& [before, after] :
       {std::pair("1**", ""), std::pair("-", ""), std::pair("(", ")"), std::pair("floor(", ")")}) {
    CHECK(parse_hw(formula(before, after, 50), "t.yaml").has_value());
    REQUIRE_ERROR(parse_hw(formula(before, after, 100), "t.yaml"), "cannot read the formula");
    REQUIRE_ERROR(parse_hw(formula(before, after, 100000), "t.yaml"), "the limit is 1000");
  }
}

const char* const kTooLarge = "the expression is too large once its lets and defs are expanded";

TEST_CASE("texts and memories that would grow without bound are refused at once") {
  std::string defs = "dlc_hw: 1\nname: bomb\ndef:\n  f0: {is: \"(x: s32) -> s32 = (x >> 1) ^ x\", ex: [[[0], 0]]}\n";
  const auto def = [&](int i, const std::string& body) {
    defs += "  f" + std::to_string(i) + ": {is: \"(x: s32) -> s32 = " + body + "\", ex: [[[0], 0]]}\n";
  };
  SECTION("defs that call each other twice") {
    for (int i = 1; i < 60; ++i) def(i, "f" + std::to_string(i - 1) + "(x) ^ (f" + std::to_string(i - 1) + "(x) >> 1)");
    REQUIRE_ERROR(parse_hw(defs, "t.yaml"), kTooLarge);
  }
  SECTION("defs nested in their own arguments") {
    std::string nested = "x";
    for (int i = 0; i < 40; ++i) nested = "f0(" + nested + ")";
    def(1, nested);
    REQUIRE_ERROR(parse_hw(defs, "t.yaml"), kTooLarge);
  }
  SECTION("stages that use the one before twice") {
    std::string stages = "- \"x = src[a + i, l]\"\n";
    for (int i = 0; i < 60; ++i) stages += "        - \"x = (x >> 1) ^ x\"\n";
    REQUIRE_ERROR(parse_hw(mini_with("- \"x = src[a + i, l]\"\n", stages), "t.yaml"), kTooLarge);
  }
  SECTION("values over several lines") {
    std::string lets = "let x0 = buf[b + 0, l];";
    for (int i = 0; i < 60; ++i)
      lets +=
          " let x" + std::to_string(i + 1) + " = x" + std::to_string(i) + " ^\n\n (x" + std::to_string(i) + " >> 1);";
    REQUIRE_ERROR(
        parse_hw(mini_with("does: \"acc[d + i, l] =", "does: \"" + lets + " acc[d + i, l] = x60 +"), "t.yaml"),
        kTooLarge);
  }
  SECTION("an on-chip memory of terabytes") {
    REQUIRE_ERROR(parse_hw(mini_with("words: 32, views", "words: 4000000000, views"), "t.yaml"),
                  "state 'acc' is larger than 1 GiB, which only external memory may be");
  }
  SECTION("selectors by the dozen") {
    std::string memories, fields, sum = "0";
    for (int i = 0; i < 12; ++i) {
      memories += "  m" + std::to_string(i) + ": {elem: s8, words: " + std::to_string(i + 8) + "}\n";
    }
    for (int i = 0; i < 12; ++i) {
      fields +=
          ", z" + std::to_string(i) + ": {e: [m0, m1, m2, m3, m4, m5], at: u3@" + std::to_string(72 + 3 * i) + "}";
      sum += " + z" + std::to_string(i) + "[0]";
    }
    std::string text = mini_with("  acc:  {", memories + "  acc:  {");
    text.replace(text.find(", s: s8@64"), 10, ", s: s8@64" + fields);
    text.replace(text.find("= (if accum"), 11, "= " + sum + " + (if accum");
    REQUIRE_ERROR(parse_hw(text, "t.yaml"), "insn 'mul' has more than 1024 combinations of selected memories");
  }
}

TEST_CASE("damaged descriptions end with a message, never otherwise") {
  uint64_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text = kMini;
    for (int k = 0; k < 3; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const size_t at = (state >> 33) % text.size();
      const int kind = static_cast<int>(state >> 61);
      if (kind < 3)
        text[at] = static_cast<char>(state >> 40);
      else if (kind < 5)
        text.erase(at, (state >> 20) % 40);
      else
        text.insert(at, text.substr((state >> 10) % text.size(), 20));
    }
    const auto hw = parse_hw(text, "t.yaml");
    if (!hw) CHECK_FALSE(hw.error().empty());
  }
}
