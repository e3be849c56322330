#include <algorithm>
#include <cmath>
#include <map>

#include "dlc/io/numpy.h"
#include "tests/error/json.h"

using namespace dlc;
using namespace dlc::test;

namespace {

// Every key, and of lists of objects (`passes.name`) the key in each element; at least one element.
void has_keys(const nlohmann::json& j, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    INFO(key << " in " << j.dump());
    const size_t dot = key.find('.');
    REQUIRE(j.contains(key.substr(0, dot)));
    if (dot == std::string::npos) continue;
    const auto& list = j[key.substr(0, dot)];
    REQUIRE_FALSE(list.empty());
    for (const auto& element : list) CHECK(element.contains(key.substr(dot + 1)));
  }
}

// x[i] = i/8 - 1 through mlp() of run.h, in double.
std::vector<double> expected() {
  std::vector<double> y;
  for (int n = 0; n < 2; ++n)
    for (int o = 0; o < 4; ++o) {
      double sum = 0;
      for (int c = 0; c < 8; ++c) sum += (static_cast<double>(n * 8 + c) / 8 - 1) * ((c * 4 + o) % 7) * 0.25;
      y.push_back(std::max(sum + o * 0.25, 0.0));
    }
  return y;
}

void write_x(const Folder& f) {
  REQUIRE_OK(Tensor x, Tensor::make(kF32, {2, 8}));
  for (int64_t i = 0; i < 16; ++i) x.set_double(i, static_cast<double>(i) / 8 - 1);
  REQUIRE(write_tensors(f / "x.npz", {{"x", x}}).has_value());
}

void check_y(const std::string& file) {
  REQUIRE_OK(const NamedTensors y, read_tensors(file));
  REQUIRE(y.size() == 1);
  CHECK(y[0].first == "y");
  const auto want = expected();
  REQUIRE(y[0].second.elements() == 8);
  for (int64_t i = 0; i < 8; ++i) CHECK(y[0].second.get_double(i) == Approx(want[static_cast<size_t>(i)]));
}

}  // namespace

TEST_CASE("compile and run on every device", "[cli]") {
  const Folder f("cli_run");
  f.write("m.onnx", mlp());
  write_x(f);
  const auto compiled = json_of(f, "m.onnx -o m.dlca");
  has_keys(compiled, {"model", "output", "hardware", "arch_hash", "inputs.name", "inputs.type", "outputs.name",
                      "import_ms", "compile_ms", "passes.name", "passes.ms", "partitions.device", "partitions.report"});
  for (const std::string device : {"", "--device interp:", "--device cpu:", "--threads 1"})
    for (const std::string model : {"m.dlca", "m.onnx"}) {
      const auto j = json_of(f, "run " + model + " " + device + " --input x.npz --output y.npz");
      has_keys(j, {"model", "device", "run_ms", "outputs.name", "outputs.dtype", "outputs.shape", "output"});
      check_y(f / "y.npz");
      std::filesystem::remove(f / "y.npz");
    }
}

TEST_CASE("the same input gives the same artifact", "[cli]") {
  const Folder f("cli_same");
  f.write("m.onnx", mlp());
  for (const std::string hw : {"native", "x86-64", "x86-64-v3"}) {
    must_succeed(f, "--hw=" + hw + " m.onnx -o a.dlca");
    must_succeed(f, "--hw=" + hw + " m.onnx -o b.dlca");
    CHECK(read_file(f / "a.dlca") == read_file(f / "b.dlca"));
  }
}

TEST_CASE("texts of every level can be compiled again", "[cli]") {
  const Folder f("cli_emit");
  f.write("m.onnx", mlp());
  write_x(f);
  for (const char* level : {"graph", "program"}) {
    const Outcome o = must_succeed(f, std::string("m.onnx --emit=") + level);
    f.write("m.txt", o.out);
    // Constants are beside the text; the bias has become the product's own.
    REQUIRE_OK(Tensor w, Tensor::make(kF32, {8, 4}));
    for (int64_t i = 0; i < 32; ++i) w.set_double(i, static_cast<double>(i % 7) * 0.25);
    REQUIRE_OK(Tensor b, Tensor::make(kF32, {4}));
    for (int64_t i = 0; i < 4; ++i) b.set_double(i, static_cast<double>(i) * 0.25);
    REQUIRE(write_tensors(f / "w.npz", {{"w", w}, {"b", b}, {"w.bias", b}}).has_value());
    must_succeed(f, "run m.txt --weights w.npz --device cpu: --input x.npz --output y.npz");
    check_y(f / "y.npz");
  }
  CHECK_THAT(must_succeed(f, "m.onnx --emit=kernel").out, Catch::Matchers::Contains("dlc.kernel 1"));
  CHECK_THAT(must_succeed(f, "m.onnx --emit=asm").out, Catch::Matchers::Contains(".text"));
  must_succeed(f, "m.onnx -o m.dlca --dump d --timing");
  CHECK(std::filesystem::exists(f / "d/00_import.dlcg"));
}

TEST_CASE("bench, compare, explain", "[cli]") {
  const Folder f("cli_bench");
  f.write("m.onnx", mlp());
  const auto bench = json_of(f, "bench m.onnx --threads 1 --runs 20");
  has_keys(bench, {"p50_ms", "p99_ms", "mean_ms", "min_ms", "runs", "threads", "load_ms", "layers.name", "layers.ms"});
  CHECK(bench["runs"] == 20);
  CHECK(bench["p50_ms"] <= bench["p99_ms"]);
  const auto compare = json_of(f, "compare m.onnx");
  has_keys(compare, {"match", "first_diverging", "tolerance", "layers.name", "layers.largest_difference"});
  CHECK(compare["match"] == true);
  CHECK(compare["first_diverging"].is_null());
  const auto explain = json_of(f, "explain m.onnx");
  has_keys(explain, {"hardware", "nodes.node", "nodes.op", "nodes.device", "nodes.kernel", "nodes.how"});
  CHECK(explain["nodes"].size() == 3);
}

TEST_CASE("symbolic dims", "[cli]") {
  const Folder f("cli_dims");
  auto m = mlp();
  for (auto* v : {m.mutable_graph()->mutable_input(0), m.mutable_graph()->mutable_output(0)})
    v->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("N");
  f.write("m.onnx", m);
  write_x(f);
  must_succeed(f, "m.onnx --dim N=1..4 -o m.dlca");
  for (const std::string device : {"interp:", "cpu:"}) {
    must_succeed(f, "run m.dlca --device " + device + " --input x.npz --output y.npz");
    check_y(f / "y.npz");
  }
  CHECK(json_of(f, "bench m.dlca --dim N=3 --runs 10")["runs"] == 10);
  CHECK_THAT(must_succeed(f, "m.onnx --dim N=2 --emit=graph").out, Catch::Matchers::Contains("%x: f32[2,8]"));
}

TEST_CASE("hw, targets, plugins, opt", "[cli]") {
  const Folder f("cli_hw");
  const auto check = json_of(f, "hw check asic");
  has_keys(check, {"file", "name", "arch_hash", "full_hash", "instructions", "ok"});
  CHECK(check["name"] == "nx16");
  CHECK(check["arch_hash"] != json_of(f, "hw check asic,R=8")["arch_hash"]);
  CHECK_THAT(must_succeed(f, "hw explain asic").out, Catch::Matchers::Contains("mac"));
  must_succeed(f, "hw emit asic --as c -o nx.h");
  CHECK_THAT(read_file(f / "nx.h"), Catch::Matchers::Contains("#define"));
  has_keys(json_of(f, "targets"), {"hardware.name", "devices.uri", "devices.available"});
  // In the sources, and where a dlc that is not installed has them, are the same files: each is listed once.
  const auto listed = json_of(f, "targets")["hardware"];
  std::filesystem::create_directory_symlink(DLC_SOURCE_DIR "/hwdesc", f / "hwdesc");
  CHECK(json_of(f, "targets")["hardware"].size() == listed.size());
  std::filesystem::remove(f / "hwdesc");
  has_keys(json_of(f, "plugins --why"), {"plugins.name", "plugins.ok", "plugins.why", "folders"});
  has_keys(json_of(f, "opt --list"), {"passes.name", "default"});
  f.write("g.dlcg",
          "dlc.graph 1\ngraph @g {\n  in %x: f32[2]\n  %0: f32[2] = relu(%x)\n  %1: f32[2] = relu(%x)\n"
          "  %2: f32[2] = add(%0, %1)\n  out %2 \"y\"\n}\n");
  CHECK_THAT(must_succeed(f, "opt --passes=cse,dce g.dlcg").out, Catch::Matchers::Contains("add(%0, %0)"));
}

TEST_CASE("explain cites the rules that hold, and no others", "[cli]") {
  const Folder f("explain_rules");
  const std::string machine = read_file(DLC_SOURCE_DIR "/hwdesc/x86-64.yaml") +
                              "ops:\n"
                              "  - {op: relu, place: host, types: [s64], why: integers}\n"
                              "  - {op: [neg, exp], place: host, types: [f32], why: floats}\n"
                              "  - {op: relu, place: host, why: any other}\n";
  f.write("m.yaml", machine);
  f.write("m.dlcg", std::string(R"(dlc.graph 1
graph @g {
  in %x: f32[4]
  in %i: s64[4]
  %0: f32[4] = relu(%x) loc "other types"
  %1: f32[4] = neg(%x) loc "one of a list"
  %2: s64[4] = add(%i, %i) loc "integers"
  %3: s64[4] = relu(%i) loc "types"
  out %0 "a"
  out %1 "b"
  out %2 "c"
  out %3 "d"
})"));
  const auto line_of = [&](const char* text) {
    return std::count(machine.begin(), machine.begin() + static_cast<std::ptrdiff_t>(machine.find(text)), '\n') + 1;
  };
  std::map<std::string, std::pair<std::string, int64_t>> cited;
  const auto said = json_of(f, "explain m.dlcg --hw=m.yaml");
  for (const auto& n : said["nodes"]) cited[n["node"]] = {n["rule"].get<std::string>(), n["line"].get<int64_t>()};
  CHECK(cited == decltype(cited){{"other types", {"ops", line_of("{op: relu, place: host, why")}},
                                 {"one of a list", {"ops", line_of("{op: [neg")}},
                                 {"integers", {"", 0}},
                                 {"types", {"ops", line_of("{op: relu, place: host, types")}}});
}
