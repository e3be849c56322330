// Outputs that cannot be written, or not wholly; archives that are more than they seem.
#include <fmt/format.h>
#include <sys/stat.h>
#include <zip.h>

#include "dlc/io/numpy.h"
#include "tests/error/run.h"

using namespace dlc;
using namespace dlc::test;

namespace {

// [2, 8] of zeros under each name.
void write_inputs(const std::string& file, const std::vector<std::string>& names) {
  REQUIRE_OK(const Tensor t, Tensor::make(kF32, {2, 8}));
  NamedTensors tensors;
  for (const std::string& name : names) tensors.emplace_back(name, t);
  REQUIRE(write_tensors(file, tensors).has_value());
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;) text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a name as long as the file system takes", "[error]") {
  const Folder f("long_name");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx -o " + std::string(250, 'a') + ".dlca");
  CHECK(f.files().size() == 2);
}

TEST_CASE("what is no regular file is not replaced by one", "[error]") {
  const Folder f("device_file");
  f.write("m.onnx", mlp());
  REQUIRE(mkfifo((f / "pipe.dlca").c_str(), 0600) == 0);
  must_fail(f, "m.onnx -o pipe.dlca", {"pipe.dlca: error: cannot write: is not a regular file"});
  REQUIRE(mkfifo((f / "pipe.txt").c_str(), 0600) == 0);
  must_fail(f, "m.onnx --emit=graph -o pipe.txt", {"is not a regular file"});
  CHECK(std::filesystem::is_fifo(f / "pipe.dlca"));
}

TEST_CASE("a full disk", "[error]") {
  const Folder f("full");
  f.write("m.onnx", mlp());
  write_inputs(f / "x.npz", {"x"});
  must_succeed(f, "m.onnx -o m.dlca");
  const std::string whole = read_file(f / "m.dlca");
  for (const char* limit : {"ulimit -f 1;", "ulimit -f 8;"}) {
    must_fail(f, "m.onnx -o m.dlca", {"m.dlca: error: cannot write: File too large"}, limit);
    CHECK(read_file(f / "m.dlca") == whole);
  }
  for (const char* arguments : {"m.onnx --emit=graph", "targets", "run m.dlca --input x.npz --json"}) {
    const Outcome o = dlc::test::dlc(f, arguments + std::string(" >/dev/full; echo code $?"));
    INFO(arguments << "\n" << o.err);
    CHECK_THAT(o.err, Catch::Matchers::Contains("error: cannot print: No space left on device"));
    CHECK(o.out == "code 1\n");
  }
}

TEST_CASE("messages that nobody can be given", "[error]") {
  const Folder f("no_stderr");
  for (const char* arguments : {"none.onnx", "run none.onnx --json"})
    for (const char* to : {"2>/dev/full", "2>&-"})
      CHECK_THAT(dlc::test::dlc(f, fmt::format("{} {}; echo code $?", arguments, to)).out,
                 Catch::Matchers::EndsWith("code 1\n"));
  for (const char* arguments : {"--help", "--version", "run --help"}) {
    const Outcome o = dlc::test::dlc(f, arguments + std::string(" >/dev/full; echo code $?"));
    CHECK_THAT(o.err, Catch::Matchers::Contains("error: cannot print: No space left on device"));
    CHECK(o.out == "code 1\n");
  }
}

TEST_CASE("no input of a command is overwritten, whichever way it is found", "[error]") {
  const Folder f("inputs_kept");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx --emit=graph -o g.dlct");
  f.write("a.yaml", read_file(DLC_SOURCE_DIR "/hwdesc/x86-64.yaml"));
  f.write("q.yaml", read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml"));
  f.write("asic.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  const std::string weights = read_file(f / "g.weights.npz");
  for (const char* arguments :
       {"opt g.dlct -o g.weights.npz", "opt g.dlct -o g.txt", "g.dlct --emit=graph -o g.txt",
        "g.dlct --emit=graph -o a.yaml --hw=a.yaml", "hw emit q.yaml -o q.yaml", "hw emit ./q.yaml,R=8 -o q.yaml"})
    must_fail(f, arguments, {"is an input of this command"});
  CHECK(read_file(f / "g.weights.npz") == weights);
  must_succeed(f, "m.onnx -o m.dlca --dump .");
  const std::string dumped = read_file(f / "00_import.dlcg");
  REQUIRE_FALSE(dumped.empty());
  std::filesystem::copy_file(f / "g.weights.npz", f / "00_import.weights.npz");
  must_fail(f, "00_import.dlcg --dump . -o n.dlca", {"00_import.dlcg: error: is an input of this command"});
  CHECK(read_file(f / "00_import.dlcg") == dumped);
}

TEST_CASE("a file keeps its mode when it is replaced", "[error]") {
  const Folder f("mode");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx -o m.dlca");
  const auto mine = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(f / "m.dlca", mine);
  must_succeed(f, "m.onnx -o m.dlca");
  CHECK(std::filesystem::status(f / "m.dlca").permissions() == mine);
  if (geteuid() == 0) return;  // who may write everything
  std::filesystem::permissions(f / "m.dlca", std::filesystem::perms::owner_read);
  must_fail(f, "m.onnx -o m.dlca", {"m.dlca: error: cannot write: Permission denied"});
}

TEST_CASE("a level's text is not named like an artifact or a library", "[error]") {
  const Folder f("emit_name");
  f.write("m.onnx", mlp());
  for (const char* name : {"x.dlca", "x.so", "x.o", "x.a"})
    must_fail(f, std::string("m.onnx --emit=asm -o ") + name, {"--emit=asm writes text"});
}

TEST_CASE("a process killed at any time leaves the old file, and at most one other", "[error]") {
  const Folder f("killed");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx -o m.dlca");
  const std::string whole = read_file(f / "m.dlca");
  for (int i = 1; i <= 12; ++i) {
    dlc::test::dlc(f, "m.onnx -o m.dlca", fmt::format("timeout -s KILL 0.{:03}", 15 * i));
    CHECK(read_file(f / "m.dlca") == whole);
    CHECK(f.files().size() <= 3);
  }
  must_succeed(f, "m.onnx -o m.dlca");  // takes what was left
  CHECK(f.files() == std::vector<std::string>{"m.dlca", "m.onnx"});
}

TEST_CASE("inputs that are given twice", "[error]") {
  const Folder f("twice");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx -o m.dlca");
  write_inputs(f / "x.npz", {"x"});
  must_fail(f, "run m.dlca --input x.npz --input x.npz --output y.npz", {"input 'x' is given twice"});
  write_inputs(f / "two.npz", {"x", "v"});
  must_fail(f, "run m.dlca --input two.npz --output y.npz", {"the model has no input 'v'"});
  std::string bytes = read_file(f / "two.npz");
  replace(bytes, "v.npy", "x.npy");
  f.write("two.npz", bytes);
  must_fail(f, "run m.dlca --input two.npz --output y.npz", {"two.npz: error: ", "'x'"});
}

TEST_CASE("an archive of many arrays is not listed whole", "[error]") {
  const Folder f("many");
  f.write("m.onnx", mlp());
  std::vector<std::string> names;
  for (int i = 0; i < 500; ++i) names.push_back(fmt::format("v{}", i));
  write_inputs(f / "many.npz", names);
  must_succeed(f, "m.onnx -o m.dlca");
  must_fail(f, "run m.dlca --input many.npz --output y.npz", {"input 'x' is missing", "v7 and 492 more"});
}

TEST_CASE("a zip bomb", "[error]") {
  const Folder f("zip_bomb");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx -o m.dlca");
  const std::string zeros(size_t{256} << 20, '\0');
  int code = 0;
  zip_t* zip = zip_open((f / "x.npz").c_str(), ZIP_CREATE, &code);
  REQUIRE(zip != nullptr);
  REQUIRE(zip_file_add(zip, "x.npy", zip_source_buffer(zip, zeros.data(), zeros.size(), 0), 0) == 0);
  zip_set_file_compression(zip, 0, ZIP_CM_DEFLATE, 1);
  REQUIRE(zip_close(zip) == 0);
  must_fail(f, "run m.dlca --input x.npz --output y.npz", {"x.npz: error: entry 'x.npy' unpacks to 268435456 bytes"});
}
