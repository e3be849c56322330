// Wrong command lines: exit code 2, one message, and with --json one object.
#include "tests/error/run.h"

using namespace dlc::test;

TEST_CASE("wrong command lines have exit code 2", "[error]") {
  const Folder f("usage");
  for (const char* arguments : {"--nonsense m.onnx", "run", "run --device", "hw", "hw frobnicate x", "opt",
                                "m.onnx --emit=nothing", "bench m.onnx --threads 0", "bench m.onnx --runs many",
                                "bench m.onnx --seconds nan", "opt --list m.dlct", "opt --list -o x.dlct", "cosim ''",
                                "compare m.onnx --tolerance nan", "compare m.onnx --tolerance -1", "m.onnx n.onnx"})
    must_be_usage(f, arguments, {"next: "});
  for (const char* command : {"bench m.onnx", "compare m.onnx", "bisect m.onnx", "cosim m.dlca",
                              "report m.dlca -o r.html", "export-vectors m.dlca -o v", "quantize m.onnx -o q.onnx"})
    for (const char* seed : {"-1", "99999999999999999999", "1.5", "nan"})
      must_be_usage(f, std::string(command) + " --seed " + seed, {"is not a number from 0 to"});
  must_be_usage(f, "hw frobnicate x", {"dlc hw has no command 'frobnicate'", "next: dlc hw --help"});
  must_be_usage(f, "hw chek x", {"dlc hw has no command 'chek'", "next: did you mean dlc hw check?"});
  CHECK(dlc::test::dlc(f, "--help").code == 0);
  CHECK(dlc::test::dlc(f, "--version").code == 0);
}

TEST_CASE("dlc alone prints its help", "[error]") {
  const Folder f("alone");
  const Outcome o = dlc::test::dlc(f, "");
  CHECK(o.code == 2);
  CHECK(o.out.empty());
  for (const char* part : {"compile", "run", "bench", "Without a command"})
    CHECK_THAT(o.err, Catch::Matchers::Contains(part));
}

TEST_CASE("a description whose params are no numbers is a wrong command line", "[error]") {
  const Folder f("hw_argument");
  for (const char* command : {"m.onnx -o m.dlca --hw=asic,R=abc", "explain m.onnx --hw=asic,R=abc",
                              "hw check asic,R=abc", "hw build-rtl asic,R=abc", "opt m.onnx --hw=asic,R=abc"})
    must_be_usage(f, command, {"'abc' is not an integer"});
  must_be_usage(f, "hw check asic,R=", {"'' is not an integer"});
  must_be_usage(f, "hw check asic,R=99999999999999999999", {"is too large"});
}

TEST_CASE("a command that comes after options", "[error]") {
  const Folder f("late_command");
  must_be_usage(f, "--plugin-path . run m.dlca", {"the command comes first: dlc run ..."});
}

TEST_CASE("a command that is misspelt", "[error]") {
  const Folder f("misspelt");
  must_be_usage(f, "benhc m.onnx", {"next: did you mean dlc bench?"});
}

TEST_CASE("empty file names, folders that are not there", "[error]") {
  const Folder f("empty_names");
  f.write("m.onnx", mlp());
  const std::vector<std::string> empty = {
      "m.onnx -o ''",       "'' -o m.dlca", "m.onnx --emit=graph -o ''", "run m.onnx --output ''",
      "hw emit asic -o ''", "opt ''",       "m.onnx --dump ''",          "run m.onnx --weights ''"};
  for (const std::string& arguments : empty) must_be_usage(f, arguments, {"the file's name is empty"});
  for (const char* command : {"m.onnx -o m.dlca", "targets", "plugins", "hw check asic", "opt --list"})
    must_be_usage(f, command + std::string(" --plugin-path nope"), {"there is no folder 'nope'"});
  must_be_usage(f, "targets --plugin-path .:nope", {"there is no folder 'nope'"});
  must_succeed(f, "targets --plugin-path .:.");
}

TEST_CASE("errors as JSON", "[error]") {
  const Folder f("json");
  const Outcome missing = dlc::test::dlc(f, "none.onnx -o m.dlca --json");
  CHECK(missing.code == 1);
  CHECK_THAT(missing.out, Catch::Matchers::Contains("\"error\": {") &&
                              Catch::Matchers::Contains("\"file\": \"none.onnx\"") &&
                              Catch::Matchers::Contains("\"message\": \"cannot open"));
  const Outcome usage = dlc::test::dlc(f, "bench --runs many --json");
  CHECK(usage.code == 2);
  CHECK_THAT(usage.out,
             Catch::Matchers::StartsWith("{") && Catch::Matchers::Contains("\"hint\": \"dlc bench --help\""));
}

TEST_CASE("a pass that does not exist is an error, for cases too", "[error]") {
  const Folder f("no_pass");
  f.write("c.dlct", "# level: graph\n");
  must_fail(f, "opt c.dlct --passes=fuld -o d.dlct", {"no pass is called 'fuld'", "did you mean 'fold'?"});
  CHECK_FALSE(std::filesystem::exists(f / "d.dlct"));
}
