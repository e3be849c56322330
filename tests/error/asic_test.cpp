// Models that the accelerator cannot take, and what is said of them.

#include <algorithm>
#include <tuple>

#include "tests/error/json.h"
#include "tests/error/quantised.h"

using namespace dlc::test;

namespace {

const std::string kFashion = DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_int8.onnx";

constexpr const char* kLeaves = "nothing of this model runs on nx16: its description leaves to the host what could";

onnx::ModelProto global_pool(int64_t size) {
  return quantised({1, 16, size, size}, {1, 16, 1, 1},
                   [](onnx::ModelProto& m) { node(m, "GlobalAveragePool", "mean", {"xf"}, "yf"); });
}

// The accelerator's description with one more entry of `ops`, the first; where that is.
std::string machine_with_rule(const Folder& f, const std::string& rule) {
  std::string yaml = read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml");
  const size_t at = yaml.find("ops:\n");
  REQUIRE(at != std::string::npos);
  yaml.insert(at + 5, "  - " + rule + "\n");
  f.write("my.yaml", yaml);
  f.write("asic.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  return "my.yaml:" +
         std::to_string(std::count(yaml.begin(), yaml.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 2);
}

}  // namespace

TEST_CASE("a convolution that does not fit the accelerator", "[error]") {
  const Folder f("asic_fit");
  f.write("m.onnx", convolution());
  must_succeed(f, "--hw=asic m.onnx -o fits.dlca");
  // 16 x 16 weights of one tap are 256 bytes
  must_fail(f, "--hw=asic,W_W=4 m.onnx -o m.dlca",
            {"asic.yaml:", "does not fit", "256 bytes of memory w, which has 64, 192 short", "s8[32,16,3,3] 256",
             "(node conv)", "give w at least 16 words", "ops: - {op: int_conv, place: host"});
  // The description may say that the host does it.
  machine_with_rule(f, "{op: int_conv, place: host, why: small weights}");
  must_succeed(f, "--hw=my.yaml,W_W=4 m.onnx -o m.dlca");
  CHECK(dlc::test::dlc(f, "explain --hw=my.yaml,W_W=4 m.onnx").out.find("small weights (my.yaml:") !=
        std::string::npos);
}

TEST_CASE("a pool that does not fit the accelerator by its size", "[error]") {
  const Folder f("asic_pool");
  f.write("small.onnx", global_pool(14));
  must_succeed(f, "--hw=asic small.onnx -o small.dlca");
  must_fail(f, "--hw=asic,IN_W=100 small.onnx -o m.dlca",
            {"asic.yaml:", "3136 bytes of memory in, which has 1600, 1536 short", "s8[1,16,14,14] 3136", "(node mean)",
             "give in at least 196 words"});
  f.write("large.onnx", global_pool(160));
  // A field that is too small is no memory that is too small: the host does it.
  must_fail(f, "--hw=asic large.onnx -o m.dlca", {"nothing of this model runs on nx16"});
  CHECK_THAT(dlc::test::dlc(f, "explain --hw=asic large.onnx").out,
             Catch::Matchers::Contains("n_kh = 160 is outside 1 .. 32"));
}

TEST_CASE("sizes that are not known", "[error]") {
  const Folder f("asic_symbolic");
  must_fail(f, "--hw=asic " + kFashion + " -o m.dlca",
            {"depend on N", "programs for nx16 have fixed sizes", "next: --dim N=1"});
  must_succeed(f, "--hw=asic --dim N=1 " + kFashion + " -o m.dlca");
  const auto j = json_of(f, "explain --hw=asic " + kFashion);
  REQUIRE(j["problems"].size() == 1);
  CHECK(j["problems"][0]["hint"] == "--dim N=1");
}

TEST_CASE("a model of which nothing runs on the accelerator", "[error]") {
  const Folder f("asic_nothing");
  f.write("m.onnx", mlp());
  must_fail(f, "--hw=asic m.onnx -o m.dlca", {"nothing of this model runs on nx16", "floats", "QuantizeLinear"});
  auto m = convolution();
  m.mutable_graph()->mutable_initializer(1)->set_int32_data(0, 3);  // the weights' zero point too
  f.write("odd.onnx", m);
  must_fail(f, "--hw=asic odd.onnx -o m.dlca",
            {"nothing of this model runs on nx16; conv stays in float: the weight is not a quantised constant",
             "(node conv)"});
  f.write("empty.onnx", quantised({0, 16, 8, 8}, {0, 16, 1, 1},
                                  [](onnx::ModelProto& e) { node(e, "GlobalAveragePool", "mean", {"xf"}, "yf"); }));
  must_fail(f, "--hw=asic empty.onnx -o m.dlca",
            {"nothing of this model runs on nx16: its results have no elements (y is f32[0,16,1,1])"});
  f.write("q.onnx", convolution());
  machine_with_rule(f, "{op: '*', place: host, why: the board is away}");
  const Outcome o = must_succeed(f, "--hw=my.yaml q.onnx -o q.dlca");
  CHECK_THAT(o.err, Catch::Matchers::Contains("warning: nothing of this model runs on nx16"));
  CHECK_THAT(o.out, Catch::Matchers::Contains("0 of 4 nodes on nx16, 4 on the host"));
  // What was said then is said again where the accelerator is asked for.
  must_succeed(f, "bench q.dlca --runs 1 --warmup 0");
  CHECK_THAT(must_succeed(f, "explain q.dlca").out, Catch::Matchers::Contains(kLeaves));
  for (const char* command : {"run q.dlca --device asic:func", "bench q.dlca --device asic:rtl", "cosim q.dlca"})
    must_fail(f, command,
              {"all of the model 'q' is on the host, nothing on nx16", "next: --device cpu: runs it; dlc explain",
               std::string("note: when it was compiled: ") + kLeaves});
}

TEST_CASE("a float network on the accelerator is told so by every command", "[error]") {
  const Folder f("asic_float");
  auto m = mlp();
  node(m, "Softmax", "last", {"y"}, "p");  // which the description places on the host
  m.mutable_graph()->mutable_output(0)->set_name("p");
  f.write("m.onnx", m);
  for (const char* command : {"--hw=asic m.onnx -o m.dlca", "run --hw=asic m.onnx --device asic:func",
                              "compare --hw=asic m.onnx", "bench --hw=asic m.onnx"})
    must_fail(f, command,
              {"nothing of this model runs on nx16: it computes in floats, nx16 in integers", "quantise it first",
               "or compile it for the CPU: --hw=native"});
  const auto said = json_of(f, "explain --hw=asic m.onnx");
  REQUIRE(said["problems"].size() == 1);
  CHECK_THAT(said["problems"][0]["message"].get<std::string>(), Catch::Matchers::Contains("it computes in floats"));
}

TEST_CASE("options of devices", "[error]") {
  const Folder f("device_options");
  f.write("q.onnx", convolution());
  must_succeed(f, "--hw=asic q.onnx -o 'a&b.dlca'");
  must_succeed(f, "cosim 'a&b.dlca'");  // the name is part of the URI
  for (const auto& [options, part] :
       std::vector<std::pair<std::string, std::string>>{{"jitter=4294967295", "'jitter' is at most 10000"},
                                                        {"jitter=4294967296", "'jitter' is at most 10000"},
                                                        {"backpressure=100", "'backpressure' is at most 99"},
                                                        {"seed=1&seed=2", "'seed' is given twice"},
                                                        {"latency=", "'latency' needs a number"},
                                                        {"latency=x", "'latency' needs a number, not 'x'"},
                                                        {"speed=3", "has no option 'speed'"}})
    must_fail(f, "bench 'a&b.dlca' --device 'asic:rtl?" + options + "'", {part});
  must_fail(f, "cosim 'a&b.dlca' --device 'asic:cosim?bundle=x'", {"--bundle DIR"});
}

TEST_CASE("a scale that is none has the model's name", "[error]") {
  const Folder f("scale_of_zero");
  auto m = convolution();
  for (auto& t : *m.mutable_graph()->mutable_initializer())
    if (t.name() == "s") t.set_float_data(0, 0);
  f.write("q.onnx", m);
  must_fail(f, "--hw=asic q.onnx -o q.dlca", {"of the constant 's' is 0"});
}

TEST_CASE("cosim is for one device", "[error]") {
  const Folder f("cosim_device");
  f.write("q.onnx", convolution());
  must_succeed(f, "--hw=asic q.onnx -o q.dlca");
  for (const char* device : {"cpu:", "asic:func", "asic:rtl?jitter=3", "tpu:"})
    must_fail(f, std::string("cosim q.dlca --device '") + device + "'",
              {std::string("cosim compares on asic:cosim, not on ") + device, "asic:cosim?jitter=32"});
}

TEST_CASE("an op that the description refuses", "[error]") {
  const Folder f("asic_refuse");
  f.write("m.onnx", convolution());
  const std::string line = machine_with_rule(f, "{op: int_conv, place: refuse, why: not on this board}");
  must_fail(f, "--hw=my.yaml m.onnx -o m.dlca", {line + ":", "int_conv is refused: not on this board (node conv)"});
}

TEST_CASE("a rule names an op as the model has it, or as the machine does", "[error]") {
  const Folder f("asic_rule_names");
  f.write("m.onnx", convolution());
  const std::string line = machine_with_rule(f, "{op: conv, place: refuse, why: not on this board}");
  must_fail(f, "--hw=my.yaml m.onnx -o m.dlca", {line + ":", "conv is refused: not on this board (node conv)"});
  machine_with_rule(f, "{op: conv, place: host, why: not on this board}");
  const Outcome o = must_succeed(f, "--hw=my.yaml m.onnx -o m.dlca");
  CHECK_THAT(o.err, Catch::Matchers::Contains("leaves to the host what could"));
}

TEST_CASE("a machine that has too little says of what, and where", "[error]") {
  const Folder f("asic_too_little");
  f.write("m.onnx", convolution());
  f.write("asic.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"size: 4GiB", "size: 1KiB", "my.yaml:12:3: error: the program needs "},
      {"size: 4GiB", "size: 12KiB", "of 'dram', which has 12288 (bytes of each segment"}};
  for (const auto& [from, to, message] : cases) {
    std::string yaml = read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml");
    f.write("my.yaml", yaml.replace(yaml.find(from), std::string(from).size(), to));
    must_fail(f, "--hw=my.yaml m.onnx -o m.dlca", {message, "next: "});
  }
  // Of counters it can have as few as there are: queues wait for each other more often.
  std::string yaml = read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml");
  f.write("my.yaml", yaml.replace(yaml.find("counter: 8"), 10, "counter: 1"));
  must_succeed(f, "--hw=my.yaml m.onnx -o m.dlca");
}
