// Bad hardware descriptions.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "tests/error/run.h"

using namespace dlc::test;

TEST_CASE("a description with an unknown key", "[error]") {
  const Folder f("key");
  f.write("a.yaml", "dlc_hw: 1\nname: a\nclock: 1.0GHz\nstate:\n  in: {elem: s8, wrods: 16}\n");
  must_fail(f, "hw check a.yaml", {"a.yaml:5:", "error: unknown key 'wrods'", "words"});
}

TEST_CASE("what follows from a misspelt key is not told", "[error]") {
  const Folder f("key_alone");
  std::string yaml = read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml");
  yaml.replace(yaml.find("\nstate:"), 7, "\nstaet:");
  f.write("a.yaml", yaml);
  must_fail(f, "hw check a.yaml", {"error: unknown key 'staet' in the description", "did you mean 'state'?"});
  const std::string err = dlc::test::dlc(f, "hw check a.yaml").err;
  CHECK(err.find("error: ") == err.rfind("error: "));
}

TEST_CASE("a description of a family that no plugin compiles for", "[error]") {
  const Folder f("family");
  std::string yaml = read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml");
  yaml.replace(yaml.find("queue_machine/1"), 15, "queue_machine/9");
  f.write("a.yaml", yaml);
  f.write("asic.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  must_fail(f, "hw check a.yaml",
            {"a.yaml:7:1: error: no plugin compiles for machines of family 'queue_machine/9', but for queue_machine/1",
             "did you mean 'queue_machine/1'?"});
}

TEST_CASE("a copy of a description in another folder is right, without RTL", "[error]") {
  const Folder f("copy");
  f.write("a.yaml", read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml"));
  f.write("asic.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  for (const char* params : {"", ",R=8", ",R=4,IN_W=4096"})
    CHECK_THAT(must_succeed(f, std::string("hw check a.yaml") + params).out,
               Catch::Matchers::Contains("nx16 is right") && Catch::Matchers::Contains("no RTL can be built"));
  must_fail(f, "hw build-rtl a.yaml -o out", {"rtl.files"});
}

TEST_CASE("a machine without instructions has nothing to emit", "[error]") {
  const Folder f("emit");
  for (const char* as : {"sv", "c", "cpp", "manual"})
    must_fail(f, std::string("hw emit native -o out --as ") + as, {"native has no instructions", "dlc hw explain"});
}

TEST_CASE("a rule that would rule nothing", "[error]") {
  const Folder f("rule");
  f.write("m.dlcg", "dlc.graph 1\ngraph @g {\n  in %x: f32[2]\n  %0: f32[2] = relu(%x)\n  out %0 \"y\"\n}\n");
  f.write("when.yaml", read_file(DLC_SOURCE_DIR "/hwdesc/x86-64.yaml") +
                           "ops:\n  - {op: relu, place: host, when: \"1 == 0\", why: never}\n");
  f.write("relv.yaml", read_file(DLC_SOURCE_DIR "/hwdesc/x86-64.yaml") + "ops:\n  - {op: relv, place: host, why: w}\n");
  for (const char* command : {"hw check ", "m.dlcg -o m.dlca --hw=", "explain m.dlcg --hw="}) {
    must_fail(f, std::string(command) + "when.yaml",
              {"when.yaml:13:29: error: unknown key 'when' in an entry of 'ops'"});
    must_fail(f, std::string(command) + "relv.yaml",
              {"relv.yaml:13:5: error: 'ops' names 'relv', which is no op", "did you mean 'relu'?"});
  }
}

TEST_CASE("a description with a wrong unit", "[error]") {
  const Folder f("unit");
  f.write("a.yaml", "dlc_hw: 1\nname: a\nclock: 1.0 KiB\n");
  must_fail(f, "hw check a.yaml",
            {"a.yaml:3:8: error: '1.0 KiB' is not a frequency: its unit is 'KiB'", "next: use one of Hz kHz MHz GHz"});
}

TEST_CASE("a description with overlapping fields", "[error]") {
  const Folder f("fields");
  f.write("a.yaml",
          "dlc_hw: 1\nname: a\nclock: 1.0GHz\nstate:\n  m: {elem: s8, words: 16}\nqueues: {q: {depth: 1}}\nisa:\n"
          "  word: 32\n  common: {op: u4@0}\n  insns:\n    nop: {op: 1, queue: q, fields: {a: u8@4, b: u8@8}}\n");
  must_fail(f, "hw check a.yaml", {"a.yaml:11:", "error: ", "overlap", "'a'", "'b'"});
}

TEST_CASE("an instruction whose points depend on each other", "[error]") {
  const Folder f("dependent");
  f.write("a.yaml",
          "dlc_hw: 1\nname: a\nclock: 1.0GHz\nstate:\n  m: {elem: s8, words: 16}\nqueues: {q: {depth: 1}}\nisa:\n"
          "  word: 32\n  common: {op: u4@0}\n  insns:\n"
          "    shift: {op: 1, queue: q, fields: {n: u3@4}, loops: {i: n}, cycles: 1, does: \"m[i + 1] = m[i]\"}\n");
  must_fail(f, "hw check a.yaml",
            {"a.yaml:11:82: error: kernel @shift: statement of m reads m[i]", "make a loop a 'seq'"});
  f.write("m.onnx", mlp());
  must_fail(f, "--hw=a.yaml m.onnx -o m.dlca", {"a.yaml:11:82: error: kernel @shift: statement of m reads m[i]"});
}

TEST_CASE("a def that is wrong is told once, at its place", "[error]") {
  const Folder f("def");
  f.write("a.yaml",
          "dlc_hw: 1\nname: a\nclock: 1.0GHz\ndef:\n  f: {is: \"(x: s32) -> s32 = x + 1\", ex: [[[1], 2]]}\n"
          "  g: {is: \"(x: s32) -> s32 = x + g(x)\", ex: [[[1], 2]]}\n"
          "  h: {is: \"(x: s32) -> s32 = f(x)\", ex: [[[1], 2]]}\n");
  must_fail(f, "hw check a.yaml", {"a.yaml:6:34: error: `g` calls itself"});
  const std::string err = dlc::test::dlc(f, "hw check a.yaml").err;
  CHECK(err.find("calls itself") == err.rfind("calls itself"));
}

TEST_CASE("a message does not repeat megabytes of the input", "[error]") {
  const Folder f("long_text");
  f.write("a.yaml", "dlc_hw: 1\nname: " + std::string(1000000, '-') + "\n");
  must_fail(f, "hw check a.yaml", {"(1000", "bytes)"});
  CHECK(dlc::test::dlc(f, "hw check a.yaml").err.size() < 10000);
}

TEST_CASE("an alias bomb", "[error]") {
  const Folder f("bomb");
  std::string text = "dlc_hw: 1\nname: a\nclock: 1.0GHz\nx0: &x0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string p = "*x" + std::to_string(i - 1);
    text += "x" + std::to_string(i) + ": &x" + std::to_string(i) + " [" + p;
    for (int k = 0; k < 9; ++k) text += ", " + p;
    text += "]\n";
  }
  f.write("a.yaml", text);
  must_fail(f, "hw check a.yaml", {"a.yaml:", "error: "});
}

namespace {

// What can be said after --hw= wherever dlc is: the descriptions that are shipped, and native. Sorted.
std::vector<std::string> shipped() {
  std::vector<std::string> all{"native"};
  for (const auto& entry : std::filesystem::directory_iterator(DLC_SOURCE_DIR "/hwdesc"))
    if (entry.path().extension() == ".yaml") all.push_back(entry.path().stem());
  std::ranges::sort(all);
  return all;
}

// "--hw=a, --hw=b": of those that begin with one of `starts`.
std::string shipped_as_choices(const std::vector<std::string>& starts) {
  std::string list;
  for (const std::string& name : shipped()) {
    if (std::ranges::none_of(starts, [&](const std::string& s) { return name.starts_with(s); })) continue;
    list += (list.empty() ? "--hw=" : ", --hw=") + name;
  }
  return list;
}

}  // namespace

TEST_CASE("all shipped descriptions are right", "[error]") {
  const Folder f("shipped");
  REQUIRE(shipped().size() > 1);
  for (const std::string& name : shipped())
    CHECK_THAT(must_succeed(f, "hw check " + name).out, Catch::Matchers::Contains(" is right"));
}

TEST_CASE("descriptions that are not there, or not text", "[error]") {
  const Folder f("none");
  must_fail(f, "hw check none", {"no hardware description 'none'", "looked for none, "});
  must_fail(f, "hw check asci.yaml", {"next: did you mean 'asic.yaml'? looked for asci.yaml, "});
  // The name of a machine or of a plugin is none of a file: the files are named. Otherwise all there are.
  must_fail(f, "hw check nx16", {"next: nx16 is a machine or a plugin, whose descriptions are --hw=asic; looked for"});
  must_fail(f, "hw check cpu",
            {"cpu is a machine or a plugin, whose descriptions are " + shipped_as_choices({"native", "x86"})});
  must_fail(f, "hw check zzzzzz", {"next: there are " + shipped_as_choices({""}) + "; looked for zzzzzz"});
  must_fail(f, "hw check natve", {"next: did you mean 'native'? looked for natve, "});
  f.write("a.yaml", std::string("dlc_hw: 1\n\0\xff", 12));
  must_fail(f, "hw check a.yaml", {"a.yaml", "error: "});
  f.write("m.onnx", mlp());
  f.write("avx22.yaml", "like: " DLC_SOURCE_DIR "/hwdesc/x86-64.yaml\nname: odd\nisa:\n  features: {mine: [avx22]}\n");
  must_fail(f, "--hw=avx22.yaml m.onnx -o m.dlca",
            {"avx22.yaml:4:21: error: x86-64 has no feature 'avx22'", "did you mean 'avx2'?"});
  must_fail(f, "--hw=asic,NOPE=3 m.onnx -o m.dlca", {"NOPE"});
  must_be_usage(f, "--hw=native,max=v2,max=v3 m.onnx -o m.dlca", {"max is given twice"});
  must_fail(f, "--hw=native,max=v9 m.onnx -o m.dlca", {"max=v9 is not one of v1, v2, v3, v4"});
}

namespace {

std::string asic_with(const std::string& from, const std::string& to) {
  std::string yaml = read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml");
  const size_t at = yaml.find(from);
  REQUIRE(at != std::string::npos);
  return yaml.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("what is read must be a file: a pipe is refused and not waited for", "[error]") {
  const Folder f("fifo");
  std::filesystem::create_directory(f / "plugins");
  for (const char* pipe : {"p.yaml", "p.onnx", "p.npz", "p.npy", "p.recipes", "p.dlca", "p.dlct", "plugins/p.so",
                           "plugins/p.plugin.yaml", "plugins/q.plugin.yaml"})
    REQUIRE(mkfifo((f / pipe).c_str(), 0600) == 0);
  f.write("plugins/q.so", "x");
  f.write("m.onnx", mlp());
  f.write("like.yaml", "dlc_hw: 1\nname: a\nlike: p.yaml\n");
  f.write("recipes.yaml", asic_with("recipes: asic.recipes", "recipes: p.recipes"));
  for (const char* arguments :
       {"hw check p.yaml", "hw check like.yaml", "hw check recipes.yaml", "--hw=p.yaml m.onnx -o m.dlca",
        "p.onnx -o m.dlca", "explain p.onnx", "run p.dlca", "opt p.dlct", "run m.onnx --input p.npz",
        "run m.onnx --input x=p.npy", "compare m.onnx --input p.npz"})
    must_fail(f, arguments, {"not a regular file"}, "timeout 20");
  const Outcome o = dlc::test::dlc(f, "plugins --why --plugin-path plugins", "timeout 20");
  CHECK(o.code == 0);
  for (const char* part :
       {"q.plugin.yaml: error: is not a regular file", "p.plugin.yaml: error: is not a regular file"})
    CHECK_THAT(o.out, Catch::Matchers::Contains(part));
}

TEST_CASE("what a description names stays in its folder", "[error]") {
  const Folder f("inside");
  std::filesystem::create_directory(f / "hw");
  f.write("victim.txt", "precious");
  f.write("secret.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  std::filesystem::create_symlink("../secret.recipes", f / "hw/link.recipes");
  const std::string recipes = "recipes: asic.recipes", package = "package: nx_cfg.svh";
  const std::string absolute = f / "secret.recipes";
  const std::tuple<std::string, std::string, std::string> cases[] = {
      {recipes, "recipes: ../secret.recipes", "the path leaves the folder"},
      {recipes, "recipes: " + absolute, "the path is absolute"},
      {recipes, "recipes: link.recipes", "a symbolic link"},
      {package, "package: ../../victim.txt", "is not the name of a SystemVerilog file"},
      {package, "package: " + (f / "victim.svh"), "is not a name"}};
  for (const auto& [from, to, why] : cases) {
    f.write("hw/a.yaml", asic_with(from, to));
    f.write("hw/asic.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
    must_fail(f, "hw check hw/a.yaml", {"hw/a.yaml:", why});
    if (from == package) must_fail(f, "hw build-rtl hw/a.yaml -o built", {"hw/a.yaml:", why});
  }
  CHECK(read_file(f / "victim.txt") == "precious");
}

TEST_CASE("a manifest without its library is mentioned", "[error]") {
  const Folder f("alone");
  f.write("gone.plugin.yaml", "dlc_plugin: 1\nname: gone\nversion: 1\nabi: 1\nschemes: [gone]\n");
  const Outcome o = must_succeed(f, "plugins --why --plugin-path .");
  CHECK_THAT(o.out, Catch::Matchers::Contains("its library is not beside it: there is no libgone.so"));
}

TEST_CASE("features that LLVM does not know", "[error]") {
  const Folder f("features");
  f.write("m.onnx", mlp());
  f.write("a.yaml", "dlc_hw: 1\nname: a\nplugin: cpu\nisa: {features: [sse2, nonsense]}\n");
  f.write("b.yaml", "dlc_hw: 1\nname: a\nplugin: cpu\nisa: {features: [sse2, \"avx2,-sse2\"]}\n");
  f.write("c.yaml", "dlc_hw: 1\nname: a\nplugin: cpu\nisa: {features: [sse2], triple: aarch64-linux-gnu}\n");
  for (const char* command : {"hw check ", "m.onnx -o m.dlca --hw="}) {
    must_fail(f, std::string(command) + "a.yaml", {"a.yaml:4:24: error: x86-64 has no feature 'nonsense'"});
    must_fail(f, std::string(command) + "b.yaml", {"b.yaml:4:24: error: x86-64 has no feature 'avx2,-sse2'"});
    must_fail(f, std::string(command) + "c.yaml", {"c.yaml:4:25: error: unknown key 'triple'"});
  }
}

TEST_CASE("names with control characters are shown, not obeyed", "[error]") {
  const Folder f("escape");
  auto m = mlp();
  m.mutable_graph()->mutable_node(0)->set_op_type("No\x1b[31mSuch");
  f.write("m.onnx", m);
  must_fail(f, "m.onnx -o m.dlca", {"No\\x1b[31mSuch"});
  f.write("a.yaml", "dlc_hw: 1\nname: \"a\\e[31mb\"\n");
  must_fail(f, "hw check a.yaml", {"a.yaml:2:7: error: a text with a control character"});
}
