// Plugins whose reports and counters are not what they should be.
#include <nlohmann/json.hpp>

#include "dlc/io/numpy.h"
#include "tests/error/json.h"
#include "tests/error/run.h"

using namespace dlc;
using namespace dlc::test;

namespace {

constexpr const char* kPath = " --plugin-path " DLC_BINARY_DIR "/tests/lying";
constexpr const char* kGraph =
    "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x) loc \"n\"\n  out %0 \"y\"\n}\n";

// A machine of the plugin tests/unit/plugin/lying; its text says how the plugin lies.
void machine(const Folder& f, const std::string& how) {
  f.write("m.yaml", "# " + how + "\ndlc_hw: 1\nname: liar\nplugin: lying\nclock: 1.0GHz\n");
  f.write("m.dlcg", std::string(kGraph));
}

}  // namespace

TEST_CASE("a plugin's reports may hold anything", "[error]") {
  const Folder f("odd_json");
  machine(f, "odd_json");
  must_succeed(f, std::string("--hw=m.yaml m.dlcg -o m.dlca --json") + kPath);
  must_succeed(f, std::string("explain m.dlca") + kPath);
}

TEST_CASE("a plugin's counters may hold anything", "[error]") {
  const Folder f("odd_counters");
  machine(f, "");
  must_succeed(f, std::string("--hw=m.yaml m.dlcg -o m.dlca") + kPath);
  for (const char* how : {"odd_counters", "deep_counters", "huge_counters"})
    for (const std::string command : {"bench m.dlca --runs 2 --warmup 0", "bench m.dlca --runs 2 --warmup 0 --json"})
      must_succeed(f, command + " --device lying:" + how + kPath);
  must_succeed(f, std::string("bench m.dlca --runs 1 --device lying:") + kPath);
  // What it calls like a key of dlc's own stays with its partition.
  REQUIRE_OK(const Tensor x, Tensor::make(kF32, {4}));
  REQUIRE(write_tensors(f / "x.npz", {{"x", x}}).has_value());
  must_succeed(f, std::string("run m.dlca --input x.npz --device lying:odd_counters") + kPath);
  const Outcome o = must_succeed(f, std::string("run m.dlca --input x.npz --json --device lying:odd_counters") + kPath);
  const auto result = nlohmann::json::parse(o.out, nullptr, false);
  REQUIRE(result.is_object());
  CHECK(result["model"] == "m.dlca");
  CHECK(result["runs"] == 1);
  CHECK(result["partitions"][0]["counters"]["model"] == 5);
  CHECK_FALSE(result.contains("odd"));
  must_fail(f, std::string("bench m.dlca --runs 1 --device lying:wrong_type") + kPath,
            {"partition on lying:wrong_type gave 'y' as s64[4], f32[4] is expected"});
}

TEST_CASE("compare names the layer where a device first differs", "[error]") {
  const Folder f("first_diverging");
  machine(f, "");  // its results are whatever the memory held: never what neg gives
  const Outcome o = dlc::test::dlc(f, std::string("compare m.dlcg --hw=m.yaml --device lying: --json") + kPath);
  CHECK(o.code == 1);
  const auto j = nlohmann::json::parse(o.out);
  CHECK(j["match"] == false);
  CHECK(j["first_diverging"] == "n");
  CHECK(j["layers"][0]["elements_wrong"] == 4);
}

TEST_CASE("a plugin that gives more than there is memory", "[error]") {
  const Folder f("huge_emit");
  machine(f, "huge_emit");
  must_fail(f, std::string("--hw=m.yaml m.dlcg -o m.dlca") + kPath, {"plugin lying: 'report.json' of"});
}
