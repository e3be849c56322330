// What reading or checking a description finds, so that nothing later has to: each fault at its line.
#include "dlc/hw/check_machine.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dlc/hw/emit.h"
#include "mini.h"

using namespace dlc;
using Catch::Matchers::Contains;

namespace {

constexpr const char* kFile = DLC_SOURCE_DIR "/hwdesc/asic.yaml";

std::string asic_with(const std::string& from, const std::string& to) {
  std::stringstream s;
  s << std::ifstream(kFile).rdbuf();
  std::string text = std::move(s).str();
  const size_t at = text.find(from);
  if (at == std::string::npos) FAIL("not in the description: " << from);
  return text.replace(at, from.size(), to);
}

// "asic.yaml:12": where `part` begins.
std::string line_of(const std::string& text, const std::string& part) {
  const size_t at = text.find(part);
  if (at == std::string::npos) FAIL("not in the description: " << part);
  return "asic.yaml:" +
         std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) + ":";
}

std::string problems(const std::string& text) {
  const auto hw = parse_hw(text, kFile);
  if (!hw) return to_string(hw.error());
  const auto ok = check_machine(*hw);
  return ok ? "" : to_string(ok.error());
}

struct Bad {
  const char *from, *to, *line, *message;  // the text that stands at the place of the error
};

const Bad kBad[] = {
    {"family: queue_machine/1\n", "", "name: nx16", "neither 'family' nor 'plugin'"},
    {"sync:\n  model", "like_sync:\n  model", "like_sync", "unknown key 'like_sync'"},
    {"io4: rw}", "io4: rw, io5: rw}", "dram:", "'dram' has 9 segments, and its register 'SEG' has n = 8 elements"},
    {"{st: \"B response\"", "{zork: \"B response\"", "visible: {zork", "there is no queue 'zork' for 'visible'"},
    {"container: {", "container: {zz: 1, ", "container: {zz", "unknown key 'zz'"},
    {"fix: {wdir: col}", "fix: {wdir: row}", "col:", "variants 'row' and 'col' of insn 'mac' can hold at once"},
    {"a // (ACC_W//2)", "a // 7", "bank_of", "'bank_of' does not give each of the 2 banks a part"},
    {"cycles: \"2\"", "cycles: \"-2\"", "end:", "insn 'end': 'cycles' is -2 for a legal instruction: end"},
    {"cycles: \"2\"", "cycles: \"5 // irq\"", "end:", "insn 'end': 'cycles' is not defined"},
    {"{z: nz, y: ny, x: nx, l: C}", "{z: nz - 9, y: ny, x: nx, l: C}", "st:\n      op", "insn 'st': loop 'z' is -"},
    {"words: \"nz*ny*nx\", open: 32", "words: \"nz - 4096\", open: 32",
     "cost:", "insn 'st': 'words' of 'transfers' is -"},
    {"oob: 2", "zork: 2", "faults:", "'causes' of 'faults' has no 'oob'"},
    {"watchdog: 5", "dog: 5", "faults:", "'causes' of 'faults' has no 'watchdog'"},
    {"size: 4GiB", "size: 0", "size: 0", "a memory of 0 bytes"},
    {"data_bytes: \"${AXI_B}\"", "data_bytes: 7", "rtl:", "a bus of 7 bytes: 'data_bytes' must be a power of two"},
    {"files: simulators", "files: ../simulators", "rtl:", "rtl.files '../simulators/asic/rtl/nx.f' is refused"},
    {"files: simulators", "files: /simulators", "rtl:", "the path is absolute"},
    {"files: simulators/asic/rtl/nx.f", "files: simulators/asic", "rtl:", "it is not a regular file"},
    {"package: nx_cfg.svh", "package: ../nx_cfg.svh", "rtl:", "which is not the name of a SystemVerilog file"},
    {"package: nx_cfg.svh", "package: /tmp/nx.svh", "rtl:", "'/tmp/nx' is not a name"},
    {"package: nx_cfg.svh", "package: nx_cfg", "rtl:", "'nx_cfg', which is not the name of a SystemVerilog file"},
    {"package: nx_cfg.svh", "package: logic.svh", "rtl:", "package 'logic' is a keyword"},
    {"recipes: asic.recipes", "recipes: ../asic.recipes", "recipes:", "the path leaves the folder"},
    {"CTRL:   {", "CTLR:   {", "csr:", "'csr' has no register 'CTRL', which a device needs"},
    {"irq: u1@40", "int: u1@40", "int: u1@40", "field 'int' is a keyword"},
    {"QD: 8}", "QD: 8, wire: 1}", "params:", "param 'wire' is a keyword"},
    {"QD: 8}", "QD: 8, OP_LD: 1}", "ld:\n      op", "two things would be called OP_LD in the emitted constants"},
    {"names: [cycles, mac", "names: [cycles, \"m; evil\"", "CNT:", "'m; evil' is not a name"},
    {"read_latency: 80", "read_latency: 1 s", "read_latency", "a latency of more than 1048576 cycles"},
    {"IN_W: 16384", "IN_W: 9223372036854775808", "params:", "'9223372036854775808' is too large"},
    {"IN_W: 16384", "IN_W: 0xffffffffffffffffffff", "params:", "is too large"},
    {"name: nx16", "name: \"a\\e[31mb\"", "name:", "a text with a control character"},
    {"dlc_hw: 1\n", "dlc_hw: 1\ndoc: \"\xe9\xff\"\n", "doc: \"", "the text is not UTF-8"},
    {"dlc_hw: 1\n", "dlc_hw: 1\r", "dlc_hw: 1", "a carriage return that ends no line"},
    {"R: 16,", "R: null,", "params:", "param 'R' has no value"},
    {"ACC_W: 2048", "ACC_W: 2047", "acc:", "2047 words of state 'acc' are no 2 banks of one size"},
    {"signal: {field: sig", "signal: {field: wai", "signal:", "field 'wai' is that of 'wait'"},
    {"median: 3%", "median: -3%", "error_budget:", "'median' is below 0"},
    {"CNT:    {at: 0x80", "CNT:    {at: 0x1080", "CNT:", "csr 'CNT' ends behind 0x1000"},
    {"[\"off % AXI_B == 0\"]", "[\"1 == 0\"]", "[\"1 == 0\"]", "'1 == 0' holds for no fields"},
    {"[\"off % AXI_B == 0\"]", "[\"nx > 256\"]", "[\"nx > 256\"]", "'nx > 256' holds for no fields"},
    {"(x + x0)*AXI_B + l]", "(x + x0)*AXI_B + l] + in[sp, l + R]", "ld:\n      op",
     "is l + 16, which is never within 0 .. 15"},
    {"dst[d_base + oh*d_oh + ow*d_ow, c] = x",
     "dst[d_base + oh*d_oh + ow*d_ow, c] = x + dst[d_base + oh*d_oh + ow*d_ow + 1, c]", "- \"x = if red",
     "an element that another point of its loops may write"},
};

}  // namespace

TEST_CASE("what compiling, running or building the RTL would find wanting is found before") {
  CHECK(problems(asic_with("nx16", "nx16")) == "");
  for (const Bad& b : kBad) {
    const std::string text = asic_with(b.from, b.to);
    INFO(b.from << "  ->  " << b.to);
    const std::string said = problems(text);
    CHECK_THAT(said, Contains(b.message));
    CHECK_THAT(said, Contains(line_of(text, b.line)));
  }
}

TEST_CASE("a machine has an instruction that ends a program") {
  std::string text = asic_with("    end:\n", "    end:\n");
  const size_t from = text.find("    end:\n");
  text.erase(from, text.find("\nops:") - from);
  CHECK_THAT(problems(text), Contains("no instruction ends a program"));
}

TEST_CASE("many defs cost what they use, and one that is wrong is told once") {
  std::string defs;
  for (int i = 0; i < 1000; ++i)
    defs += "  b" + std::to_string(i) +
            ":\n    is: \"(x: s64) -> s64 = " + (i == 0 ? std::string("x + y") : "b" + std::to_string(i - 1) + "(x)") +
            "\"\n    ex: [[[1], 1]]\n";
  const std::string said = problems(asic_with("queues: {ld", defs + "queues: {ld"));
  CHECK_THAT(said, Contains("`y`"));
  CHECK(said.find("error:") == said.rfind("error:"));
}

TEST_CASE("a machine without what its family promises says so at the family") {
  std::string text = asic_with("sync:", "sync:");
  const size_t from = text.find("\nsync:"), to = text.find("\nfaults:");
  text.erase(from, to - from);
  CHECK_THAT(problems(text), Contains("asic.yaml:8:1: error: 'sync' is missing") || Contains("'sync' is missing"));
  CHECK_THAT(problems(text), Contains(line_of(text, "family:")));
}

TEST_CASE("a latency may be a time") {
  for (const char* latency : {"80", "80 cycles", "80ns", "0.08us", "79.2ns"}) {
    INFO(latency);
    REQUIRE_OK(const HwDescription hw,
               parse_hw(asic_with("read_latency: 80", std::string("read_latency: ") + latency), kFile));
    CHECK(hw.state[0].timing.read_latency->value == 80);
    CHECK(hw.cost.issue.fetch == 84);
  }
  REQUIRE_ERROR(parse_hw(asic_with("read_latency: 80", "read_latency: 80parsecs"), kFile), "is not a time");
  std::string text = asic_with("read_latency: 80", "read_latency: 80ns");
  text.replace(text.find("clock: 1.0GHz\n"), 14, "\n");
  REQUIRE_ERROR(parse_hw(text, kFile), "there is no clock to count it by");
}

TEST_CASE("arch_hash does not depend on how values are spelt") {
  const auto hash = [](const std::string& text) {
    const auto hw = parse_hw(text, kFile);
    if (!hw) FAIL(to_string(hw.error()));
    return hw->arch_hash;
  };
  const uint64_t as_it_is = hash(asic_with("nx16", "nx16"));
  const std::pair<const char*, const char*> same[] = {
      {"size: 4GiB", "size: 4096MiB"},
      {"COUNT:  {at: 0x10}", "COUNT:  {at: 16, w: 32}"},
      {"n_kw <= 3\"", "n_kw<=3\""},
      {"read_latency: 80", "read_latency: 80cycles"},
      {"y0:   s8@176", "y0:   {at: s8@176}"},
      {"e: [row, col, diag, tri]", "e: {row: 0, col: 1, diag: 2, tri: 3}"},
      {"oob: error, ports: {r0: [mac], w0: [ld]}", "ports: {w0: [ld], r0: [mac]}"},
      {"no write by the", "nothing is written by the"},
      {"B response", "the answer"},
      {"QD: 8}", "QD: 0x8}"},
      {"x = sat8(x + zp, lo, hi)", "x  =  sat8( x+zp , lo,hi )"}};
  for (const auto& [from, to] : same) {
    INFO(from << "  ->  " << to);
    CHECK(hash(asic_with(from, to)) == as_it_is);
  }
  const std::pair<const char*, const char*> other[] = {{"size: 4GiB", "size: 2GiB"},
                                                       {"n_kw <= 3", "n_kw <= 4"},
                                                       {"QD: 8}", "QD: 4}"},
                                                       {"cycles: \"2\"", "cycles: \"3\""},
                                                       {"{code: ro, weights: ro,", "{weights: ro, code: ro,"},
                                                       {"watchdog: 5", "watchdog: 6"},
                                                       {"x + zp, lo, hi", "x - zp, lo, hi"},
                                                       {"fill: s8@216", "fill: s8@224"},
                                                       {"done: w1c", "done: ro"}};
  for (const auto& [from, to] : other) {
    INFO(from << "  ->  " << to);
    CHECK(hash(asic_with(from, to)) != as_it_is);
  }
}

// Compiles a text; what the compiler says.
static std::string compiled(const std::string& compiler, const std::string& suffix, const std::string& text) {
  char folder[] = "/tmp/dlc_emit_XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string file = std::string(folder) + "/m." + suffix, log = std::string(folder) + "/log";
  std::ofstream(file) << text;
  const int code = std::system((compiler + " -fsyntax-only -Wall -Werror " + file + " >" + log + " 2>&1").c_str());
  std::stringstream said;
  said << std::ifstream(log).rdbuf();
  std::filesystem::remove_all(folder);
  return code == 0 ? "" : "exit code not 0: " + said.str();
}

TEST_CASE("headers of any description compile") {
  const std::string docs[] = {"\"x */ int evil; /* y\"", "\"a\\nint evil;\"", "\"*\\n/ int evil;\"", "\"a // b \\\\\"",
                              "\"/*/ /*/\""};
  for (const std::string& doc : docs) {
    INFO(doc);
    REQUIRE_OK(const HwDescription hw,
               parse_hw(asic_with("\"Copies nz*ny rows of nx words to DRAM.\"", doc), "a\nint b;.yaml"));
    // If the text got out of its comment, `evil` is declared twice.
    CHECK(compiled("gcc -std=c99 -Wno-unused-function", "c",
                   emit_c_header(hw) + "static char* evil;\nchar** p(void);\nchar** p(void) { return &evil; }\n") ==
          "");
    CHECK(compiled("g++ -std=c++17 -w", "cpp", emit_cpp_header(hw) + "char* evil;\n") == "");
    CHECK_THAT(emit_manual(hw), !Contains("\nint evil;"));
  }
}
