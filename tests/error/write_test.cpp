// Where outputs may go: refused before the work, whole files only, links stay links.
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "dlc/io/numpy.h"
#include "tests/error/run.h"

using namespace dlc;
using namespace dlc::test;

namespace {

void write_x(const Folder& f) {
  REQUIRE_OK(const Tensor t, Tensor::make(kF32, {2, 8}));
  REQUIRE(write_tensors(f / "x.npz", {{"x", t}}).has_value());
}

}  // namespace

TEST_CASE("outputs that cannot be written", "[error]") {
  const Folder f("outputs");
  f.write("m.onnx", mlp());
  write_x(f);
  must_fail(f, "m.onnx -o none/m.dlca", {"none/m.dlca: error: cannot write: No such file or directory"});
  must_fail(f, "m.onnx -o m.onnx/m.dlca", {"cannot write: Not a directory"});
  must_fail(f, "m.onnx -o m.xyz", {"m.xyz: error: the output's ending says what to write"});
  must_fail(f, "m.onnx --dump m.onnx -o m.dlca", {"m.onnx: error: "});
  std::filesystem::create_directories(f / "folder.dlca");
  std::filesystem::create_directories(f / "folder.npz");
  must_fail(f, "m.onnx -o folder.dlca", {"folder.dlca: error: cannot write: is a folder"});
  must_fail(f, "run m.onnx --input x.npz --output folder.npz", {"folder.npz: error: cannot write: is a folder"});
  must_fail(f, "hw emit asic --as c -o none/nx.h", {"none/nx.h: error: "});
  must_fail(f, "m.onnx --emit=graph -o none/g.dlct", {"none/g.dlct: error: "});
  must_succeed(f, "m.onnx --emit=graph -o g.dlct");
  must_fail(f, "opt g.dlct -o none/h.dlct", {"none/h.dlct: error: "});
}

TEST_CASE("an output is refused before the work whose result it would lose", "[error]") {
  const Folder f("early");
  f.write("broken.onnx", "no model");  // whoever reads it first says so
  for (const char* arguments : {"run broken.onnx --output none/y.npz", "run broken.onnx --output y.txt",
                                "broken.onnx -o none/m.so", "broken.onnx --emit=asm -o none/m.s"}) {
    const Outcome o = dlc::test::dlc(f, arguments);
    INFO(o.err);
    CHECK(o.code == 1);
    CHECK(o.err.find("broken.onnx") == std::string::npos);
  }
}

TEST_CASE("a folder that may not be written", "[error]") {
  if (::geteuid() == 0) {  // may write anywhere: a file system that takes no files stands for it
    const Folder f("proc");
    f.write("m.onnx", mlp());
    must_fail(f, "m.onnx -o /proc/m.dlca", {"/proc/m.dlca: error: cannot write: "});
    return;
  }
  const Folder f("read_only");
  f.write("m.onnx", mlp());
  std::filesystem::create_directories(f / "closed");
  REQUIRE(::chmod((f / "closed").c_str(), 0500) == 0);
  must_fail(f, "m.onnx -o closed/m.dlca", {"closed/m.dlca: error: cannot write: Permission denied"});
}

TEST_CASE("an output that is an input", "[error]") {
  const Folder f("same");
  f.write("m.onnx", mlp());
  write_x(f);
  must_succeed(f, "m.onnx -o m.dlca");
  must_succeed(f, "m.onnx --emit=graph -o g.dlct");
  std::filesystem::create_symlink("m.onnx", f / "link.dlca");
  for (const char* arguments : {"m.onnx --emit=graph -o m.onnx", "m.onnx -o link.dlca", "m.dlca -o m.dlca",
                                "run m.dlca --input x.npz --output x.npz", "run m.dlca --input x.npz --output ./x.npz",
                                "opt g.dlct -o g.dlct", "g.dlct --emit=program -o g.dlct"}) {
    const std::string model = read_file(f / "m.onnx"), text = read_file(f / "g.dlct");
    must_fail(f, arguments, {"is an input of this command"});
    CHECK(read_file(f / "m.onnx") == model);
    CHECK(read_file(f / "g.dlct") == text);
  }
}

TEST_CASE("a link stays a link, and the file behind it is replaced", "[error]") {
  const Folder f("links");
  f.write("m.onnx", mlp());
  std::filesystem::create_directories(f / "real");
  f.write("real/m.dlca", "old");
  std::filesystem::create_symlink("real/m.dlca", f / "m.dlca");
  must_succeed(f, "m.onnx -o m.dlca");
  CHECK(std::filesystem::is_symlink(f / "m.dlca"));
  CHECK(read_file(f / "real/m.dlca").starts_with("DLCA"));
  std::filesystem::create_symlink("real/new.dlca", f / "new.dlca");  // leads nowhere yet
  must_succeed(f, "m.onnx -o new.dlca");
  CHECK(read_file(f / "real/new.dlca") == read_file(f / "m.dlca"));
  std::filesystem::create_symlink("loop.dlca", f / "loop.dlca");
  must_fail(f, "m.onnx -o loop.dlca", {"loop.dlca: error: cannot write"});
}

TEST_CASE("several that write one file", "[error]") {
  const Folder f("concurrent");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx -o m.dlca");
  const std::string whole = read_file(f / "m.dlca");
  std::vector<int> codes(4, -1);
  {
    std::vector<std::jthread> processes;
    for (size_t i = 0; i < codes.size(); ++i)
      processes.emplace_back([&, i] {
        const std::string command =
            "cd '" + (f / ".") + "' && " DLC_BINARY_DIR "/bin/dlc m.onnx -o m.dlca >/dev/null 2>&1";
        codes[i] = std::system(command.c_str());
      });
    for (int i = 0; i < 50; ++i) CHECK(read_file(f / "m.dlca") == whole);
  }
  CHECK(codes == std::vector<int>(4, 0));
  CHECK(f.files() == std::vector<std::string>{"m.dlca", "m.onnx"});
}

TEST_CASE("a library and its header are replaced together", "[error]") {
  const Folder f("pair");
  f.write("m.onnx", mlp());
  f.write("m.h", "old header");
  std::filesystem::create_directories(f / "m.so");
  must_fail(f, "m.onnx -o m.so", {"m.so: error: cannot write: is a folder"});
  CHECK(read_file(f / "m.h") == "old header");
}
