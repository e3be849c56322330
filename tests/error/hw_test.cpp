// Bad hardware descriptions.
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
            {"no plugin compiles for machines of family 'queue_machine/9' (a.yaml), but for queue_machine/1"});
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
              {"when.yaml:8:29: error: unknown key 'when' in an entry of 'ops'"});
    must_fail(f, std::string(command) + "relv.yaml",
              {"relv.yaml:8:5: error: 'ops' names 'relv', which is no op", "did you mean 'relu'?"});
  }
}

TEST_CASE("a description with a wrong unit", "[error]") {
  const Folder f("unit");
  f.write("a.yaml", "dlc_hw: 1\nname: a\nclock: 1.0 KiB\n");
  must_fail(f, "hw check a.yaml", {"a.yaml:3:", "error: "});
}

TEST_CASE("a description with overlapping fields", "[error]") {
  const Folder f("fields");
  f.write("a.yaml",
          "dlc_hw: 1\nname: a\nclock: 1.0GHz\nstate:\n  m: {elem: s8, words: 16}\nqueues: {q: {depth: 1}}\nisa:\n"
          "  word: 32\n  common: {op: u4@0}\n  insns:\n    nop: {op: 1, queue: q, fields: {a: u8@4, b: u8@8}}\n");
  must_fail(f, "hw check a.yaml", {"a.yaml:11:", "error: ", "overlap", "'a'", "'b'"});
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

TEST_CASE("descriptions that are not there, or not text", "[error]") {
  const Folder f("none");
  must_fail(f, "hw check none", {"no hardware description 'none'", "looked for none, "});
  must_fail(f, "hw check asci.yaml", {"next: did you mean 'asic.yaml'? looked for asci.yaml, "});
  must_fail(f, "hw check natve", {"next: did you mean 'native'? looked for natve, "});
  f.write("a.yaml", std::string("dlc_hw: 1\n\0\xff", 12));
  must_fail(f, "hw check a.yaml", {"a.yaml", "error: "});
  f.write("m.onnx", mlp());
  must_fail(f, "--hw=asic,NOPE=3 m.onnx -o m.dlca", {"NOPE"});
  must_fail(f, "--hw=native,max=v2,max=v3 m.onnx -o m.dlca", {"max is given twice"});
  must_fail(f, "--hw=native,max=v9 m.onnx -o m.dlca", {"max=v9 is not one of v1, v2, v3, v4"});
}
