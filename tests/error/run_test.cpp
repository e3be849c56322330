// Bad artifacts, inputs, outputs and command lines.
#include "tests/error/run.h"

#include "dlc/io/artifact.h"
#include "dlc/io/numpy.h"
#include "dlc_test/library.h"

using namespace dlc;
using namespace dlc::test;

namespace {

void write_input(const std::string& file, const std::string& name, DType dtype, std::vector<int64_t> shape) {
  REQUIRE_OK(Tensor t, Tensor::make(dtype, std::move(shape)));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_double(i, static_cast<double>(i) / 4 - 1);
  const auto ok = write_tensors(file, {{name, t}});
  REQUIRE(ok.has_value());
}

}  // namespace

TEST_CASE("a damaged artifact is refused", "[error]") {
  const Folder f("artifact");
  f.write("m.onnx", mlp());
  write_input(f / "x.npz", "x", kF32, {2, 8});
  must_succeed(f, "m.onnx -o m.dlca");
  must_succeed(f, "run m.dlca --input x.npz");
  const std::string whole = read_file(f / "m.dlca");

  for (size_t part = 0; part < 8; ++part) {
    f.write("bad.dlca", std::string_view(whole).substr(0, whole.size() * part / 8));
    must_fail(f, "run bad.dlca --input x.npz --output y.npz", {"bad.dlca: error: "});
  }
  // A changed byte in the header, the table and every section.
  REQUIRE_OK(const Artifact a, Artifact::open(f / "m.dlca"));
  std::vector<size_t> places = {2, 9, 17, 30};
  for (const std::string& name : a.names()) {
    REQUIRE_OK(const auto bytes, a.section(name));
    if (!bytes.empty())
      places.push_back(whole.find(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  }
  CHECK(places.size() >= 8);
  places.push_back(4095);  // between the header and the first section
  places.push_back(whole.size() - 1);
  for (const size_t at : places) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    f.write("bad.dlca", bad);
    must_fail(f, "run bad.dlca --input x.npz --output y.npz", {"bad.dlca: error: "});
  }
}

TEST_CASE("an artifact of another machine is refused", "[error]") {
  const Folder f("hash");
  f.write("m.onnx", mlp());
  write_input(f / "x.npz", "x", kF32, {2, 8});
  must_succeed(f, "--hw=x86-64 m.onnx -o m.dlca");
  must_succeed(f, "run m.dlca --hw=x86-64 --input x.npz");
  must_fail(f, "run m.dlca --hw=x86-64-v3 --input x.npz --output y.npz",
            {"m.dlca: error: was compiled for x86_64 with arch_hash 0x", "x86_64_v3"});
}

TEST_CASE("code that wants more than this CPU has is refused, with what it lacks", "[error]") {
  const Folder f("features");
  f.write("m.onnx", mlp());
  write_input(f / "x.npz", "x", kF32, {2, 8});
  must_succeed(f, "--hw=x86-64 m.onnx -o m.dlca");
  REQUIRE_OK(const Artifact a, Artifact::open(f / "m.dlca"));
  const auto rewrite = [&](std::string_view from, std::string_view to) {
    REQUIRE_OK(ArtifactWriter out, ArtifactWriter::create(f / "bad.dlca"));
    size_t changed = 0;
    for (const std::string& name : a.names()) {
      REQUIRE_OK(const auto bytes, a.section(name));
      std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (const size_t at = text.find(from); name == "p0.executable" && at != std::string::npos) {
        text.replace(at, from.size(), to);
        ++changed;
      }
      REQUIRE(out.add(name, text).has_value());
    }
    CHECK(changed == 1);
    REQUIRE(out.finish(a.meta()).has_value());
  };
  rewrite("\"+cmov,", "\"+cmov,+telepathy,");
  must_fail(f, "run bad.dlca --input x.npz --output y.npz",
            {"this machine lacks telepathy, which the model was compiled for", "--hw=native"});
  must_succeed(f, "run bad.dlca --device interp: --input x.npz");
  // A header that lies about what follows it.
  rewrite("\"object\":", "\"object\":1");
  must_fail(f, "run bad.dlca --input x.npz --output y.npz", {"the cpu code in the model is not understood"});
  rewrite(
      "\x7f"
      "ELF",
      "\x7f"
      "FLE");
  must_fail(f, "run bad.dlca --input x.npz --output y.npz", {"cannot link the compiled code"});
}

TEST_CASE("inputs that do not fit", "[error]") {
  const Folder f("inputs");
  f.write("m.onnx", mlp());
  must_succeed(f, "m.onnx -o m.dlca");
  must_fail(f, "run m.dlca --output y.npz", {"input 'x' is missing: the model takes x: f32[2,8]"});
  write_input(f / "z.npz", "z", kF32, {2, 8});
  must_fail(f, "run m.dlca --input z.npz --output y.npz", {"input 'x' is missing", "given were z"});
  must_fail(f, "run m.dlca --input x=z.npz --output y.npz", {"'x=z.npz': a .npz has its names inside"});
  write_input(f / "x.npz", "x", kF32, {2, 9});
  must_fail(f, "run m.dlca --input x.npz --output y.npz", {"input 'x' is f32[2,9], the model takes f32[2,8]"});
  write_input(f / "x.npz", "x", kF64, {2, 8});
  must_fail(f, "run m.dlca --input x.npz --output y.npz", {"input 'x' is f64[2,8], the model takes f32[2,8]"});
  must_fail(f, "run m.dlca --input none.npz --output y.npz", {"none.npz: error: "});
  f.write("bad.npz", "PK not an archive");
  must_fail(f, "run m.dlca --input bad.npz --output y.npz", {"bad.npz: error: "});
  f.write("bad.npy", "\x93NUMPY");
  must_fail(f, "run m.dlca --input x=bad.npy --output y.npz", {"bad.npy: error: "});
}

TEST_CASE("symbolic dims outside their range", "[error]") {
  const Folder f("dims");
  f.write("m.onnx", mlp("N"));
  must_succeed(f, "m.onnx --dim N=1..4 -o m.dlca");
  write_input(f / "x.npz", "x", kF32, {3, 8});
  must_succeed(f, "run m.dlca --input x.npz");
  write_input(f / "x.npz", "x", kF32, {5, 8});
  must_fail(f, "run m.dlca --input x.npz --output y.npz",
            {"dim N is 5, the model takes 1 to 4", "next: compile the model with --dim N=1..5"});
  must_fail(f, "bench m.dlca --dim N=5", {"m.dlca: error: --dim N: 5 is outside of the model's 1..4"});
  write_input(f / "x.npz", "x", kF32, {0, 8});
  must_fail(f, "run m.dlca --input x.npz --output y.npz", {"dim N is 0", "next: compile the model with --dim N=0..4"});
  must_succeed(f, "m.onnx --dim N=0..4 -o m.dlca");  // nothing is a size, too
  must_succeed(f, "run m.dlca --input x.npz");
  must_succeed(f, "run m.dlca --device interp: --input x.npz");
}

TEST_CASE("dims that the model has not", "[error]") {
  const Folder f("no_dims");
  f.write("m.onnx", mlp("batch"));
  f.write("fixed.onnx", mlp());
  must_fail(f, "m.onnx --dim Q=4 -o m.dlca", {"m.onnx: error: --dim Q: the model has no such dim, but batch"});
  must_fail(f, "m.onnx --dim bach=4 -o m.dlca", {"next: did you mean batch?"});
  must_fail(f, "fixed.onnx --dim Q=4 -o m.dlca", {"--dim Q: the model has no symbolic dims"});
  must_succeed(f, "m.onnx -o m.dlca");
  must_succeed(f, "m.onnx --emit=graph -o g.dlct");
  must_succeed(f, "m.onnx --emit=program -o p.dlct");
  for (const std::string command : {"run m.dlca", "bench m.dlca", "g.dlct -o g.dlca", "bench p.dlct", "explain g.dlct"})
    must_fail(f, command + " --dim Q=4", {"--dim Q: the model has no such dim, but batch (1..1048576)"});
  must_fail(f, "g.dlct --dim batch=2000000 -o g.dlca", {"2000000 is outside of the model's 1..1048576"});
  must_fail(f, "p.dlct --dim batch=2 -o p.dlca", {"--dim batch: a program has its dims already"});
  for (const char* command : {"run m.dlca", "explain m.dlca"})
    must_fail(f, command + std::string(" --dim batch=2"),
              {"m.dlca: error: --dim batch: an artifact has its dims already"});
  write_input(f / "x.npz", "x", kF32, {3, 8});
  must_fail(f, "bench m.dlca --input x.npz --dim batch=2", {"--dim batch: an artifact has its dims already"});
  must_fail(f, "bench m.dlca --dim batch=2..4", {"one size is wanted", "next: --dim batch=2"});
  must_succeed(f, "bench m.dlca --dim batch=2 --runs 1");
  must_succeed(f, "compare p.dlct --dim batch=2");
}

TEST_CASE("a program whose buffers share bytes while both are needed is refused", "[error]") {
  const Folder f("plan");
  const auto program = [](const std::string& t, const std::string& u) {
    const std::string kernel =
        "dlc.kernel 1\nkernel @k {\n  in  X: f32[4]\n  out Y: f32[4]\n  for i < 4: Y[i] = X[i] + 1.0\n}\n";
    return "dlc.program 1\nprogram @main {\n  input x \"x\": f32[4]\n  temp t: f32[4] at " + t +
           "\n  temp u: f32[4] at " + u +
           "\n  output y \"y\": f32[4]\n  output z \"z\": f32[4]\n  arena 32\n  call @k(x, t)\n  call @k(x, u)\n"
           "  call @k(t, y)\n  call @k(u, z)\n}\n" +
           kernel;
  };
  f.write("good.dlct", program("0", "16"));
  must_succeed(f, "good.dlct -o m.dlca");
  const std::string next = "next: dlc opt --passes=plan_memory gives every buffer a place";
  f.write("p.dlct", program("0", "0"));
  must_fail(f, "p.dlct -o m.dlca", {"p.dlct: error: buffers t and u are alive at the same time and may overlap", next});
  must_fail(f, "run p.dlct --device interp:", {"p.dlct: error: buffers t and u are alive", next});
  f.write("p.dlct", program("0", "24"));
  must_fail(f, "p.dlct -o m.dlca", {"buffer u ends at 40, beyond the arena of 32 bytes"});
  f.write("p.dlct", program("0", "-16"));
  must_fail(f, "p.dlct -o m.dlca", {"buffer u may begin before the arena, at -16"});
  f.write("p.dlct", program("0", "0"));
  must_succeed(f, "opt p.dlct --passes=plan_memory -o q.dlct");
  must_succeed(f, "q.dlct -o m.dlca");
}

TEST_CASE("dims that are no sizes are a wrong command line", "[error]") {
  const Folder f("dim_text");
  f.write("m.onnx", mlp("N"));
  must_be_usage(f, "m.onnx --dim N=4..1 -o m2.dlca", {"--dim N=4..1: the range is empty"});
  must_be_usage(f, "m.onnx --dim N -o m2.dlca", {"--dim N: a name and a size are wanted"});
  must_be_usage(f, "bench m.onnx --dim N=x", {"'x' is not a size"});
  must_be_usage(f, "run m.onnx --dim N=1 --dim N=2", {"--dim N=2: the dim is given twice"});
  must_be_usage(f, "explain m.onnx --dim N=-1", {"'-1' is not a size"});
  for (const char* size : {"9223372036854775807", "1..9223372036854775807", "68719476737"})
    must_be_usage(f, std::string("m.onnx -o m2.dlca --dim N=") + size, {"is more than the 68719476736 bytes"});
}

TEST_CASE("sizes that a compilation does not support are refused, on every way to run it", "[error]") {
  const Folder f("guard");
  f.write("m.dlcg", R"(dlc.graph 1
graph @g (N in 0..64) {
  in    %x: f32[N]
  %0: f32[4] = expand(%x) {shape = [4]} loc "wide"
  %1: f32[4] = exp(%0)
  out   %1 "y"
})");
  must_succeed(f, "m.dlcg -o m.dlca");
  write_input(f / "x.npz", "x", kF32, {4});
  must_succeed(f, "run m.dlca --input x.npz");
  write_input(f / "x.npz", "x", kF32, {1});
  const std::vector<std::string> message = {"N = 1 is not supported by this compilation: it assumes N == 4 (node wide)",
                                            "--dim N=1"};
  must_fail(f, "run m.dlca --input x.npz --output y.npz", message);
  must_fail(f, "run m.dlca --device interp: --input x.npz --output y.npz", message);

  must_succeed(f, "m.dlcg -o m.so");
  CHECK_THAT(read_file(f / "m.h"), Catch::Matchers::Contains("Compiled for N >= 0, N <= 64, N == 4."));
  const dlc_test::LoadedLibrary library(f / "m.so", "m");
  const float x[4] = {0, 0, 0, 0};
  float y[4] = {7, 7, 7, 7};
  const void* in[] = {x};
  void* out[] = {y};
  alignas(64) std::byte workspace[4096];
  for (const int64_t n : {-1, 0, 1, 3, 65}) {
    CHECK(library.workspace_bytes(&n) == -2);
    CHECK(library.run(in, out, workspace, &n, nullptr) == -2);
  }
  CHECK(y[0] == 7);
  const int64_t four = 4;
  CHECK(library.workspace_bytes(&four) >= 0);
  REQUIRE(library.workspace_bytes(&four) <= static_cast<int64_t>(sizeof(workspace)));
  CHECK(library.run(in, out, workspace, &four, nullptr) == 0);
  CHECK(y[3] == 1);
}

TEST_CASE("models that are empty or misnamed", "[error]") {
  const Folder f("empty_model");
  f.write("m.dlca", "");
  f.write("m.onnx", "");
  for (const char* command : {"run m.dlca", "explain m.dlca", "bench m.onnx", "m.onnx -o n.dlca"})
    must_fail(f, command, {"error: the file is empty"});
  f.write("m.dlca", "something else");
  for (const char* command : {"run m.dlca", "explain m.dlca", "cosim m.dlca"})
    must_fail(f, command, {"m.dlca: error: is not a dlc artifact"});
}

TEST_CASE("devices that are not there", "[error]") {
  const Folder f("devices");
  f.write("m.onnx", mlp());
  write_input(f / "x.npz", "x", kF32, {2, 8});
  must_succeed(f, "m.onnx -o m.dlca");
  must_fail(f, "run m.dlca --device tpu: --input x.npz", {"no plugin opens devices 'tpu:'", "looked in"});
  must_fail(f, "run m.dlca --device cpu --input x.npz", {"'cpu' is not a device URI"});
  must_fail(f, "run m.dlca --device cpu:7 --input x.npz", {"cpu:7"});
  must_fail(f, "cosim m.dlca", {"nothing in this model can be co-simulated"});
}
