// A crash of dlc, or of a plugin in it, leaves a folder that `dlc replay` runs again. The plugin that crashes is one of
// the tests.
#include <csignal>
#include <filesystem>
#include <set>

#include "dlc/io/numpy.h"
#include "tests/error/json.h"

using namespace dlc::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

constexpr const char* kPath = " --plugin-path " DLC_BINARY_DIR "/tests/lying";
constexpr int kBySignal = 128;

// A machine of the plugin tests/unit/plugin/lying; its text says how compiling for it goes wrong.
void machine(const Folder& f, const std::string& how) {
  f.write("m.yaml", "# " + how + "\ndlc_hw: 1\nname: liar\nplugin: lying\nclock: 1.0GHz\n");
  f.write("m.dlcg", "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x) loc \"n\"\n  out %0 \"y\"\n}\n");
  fs::create_directories(f / "crashes");
}

const std::string kHere = "export DLC_CRASH_DIR=crashes; ";

// The one folder that the crash left.
std::string bundle_of(const Folder& f) {
  std::vector<std::string> found;
  for (const auto& e : fs::directory_iterator(f / "crashes")) found.push_back(e.path().string());
  REQUIRE(found.size() == 1);
  return found[0];
}

nlohmann::json manifest_of(const std::string& bundle) {
  const auto j = nlohmann::json::parse(read_file(bundle + "/bundle.json"), nullptr, false);
  INFO(read_file(bundle + "/bundle.json"));
  REQUIRE(j.is_object());
  return j;
}

}  // namespace

#ifndef __SANITIZE_ADDRESS__  // it tells of a crash itself, and dlc leaves it to it (tools/dlc/crash.cpp)

TEST_CASE("a crash while compiling leaves a bundle, which is replayed", "[error]") {
  const Folder f("crash_compile");
  machine(f, "crash_emit");
  const std::string command = std::string("--hw=m.yaml m.dlcg -o m.dlca") + kPath;
  const Outcome o = dlc::test::dlc(f, command, kHere);
  INFO(o.err);
  CHECK(o.code == kBySignal + SIGSEGV);
  CHECK_THAT(o.err, Contains("error: internal error: signal 11 (SIGSEGV) at: compiling for lying\n"));
  const std::string bundle = bundle_of(f);
  CHECK_THAT(o.err, Contains("next: dlc replay " + bundle));
  CHECK_FALSE(fs::exists(f / "m.dlca"));

  const auto j = manifest_of(bundle);
  CHECK(j["signal"] == SIGSEGV);
  CHECK(j["step"] == "compiling for lying");
  CHECK_FALSE(j["dlc"].get<std::string>().empty());
  CHECK(j["features"].is_array());
  REQUIRE(j["files"].size() == 2);
  for (const auto& file : j["files"]) {
    CHECK(file["copied"] == true);
    CHECK(read_file(bundle + "/" + file["path"].get<std::string>()) == read_file(file["original"].get<std::string>()));
  }
  CHECK_THAT(read_file(bundle + "/hardware.yaml"), Contains("name: liar"));
  CHECK_THAT(read_file(bundle + "/stack.txt"), Contains("liblying.so"));

  const auto again = [&] {
    const Outcome r = dlc::test::dlc(f, "replay --json " + bundle, kHere);
    INFO(r.out << r.err);
    CHECK(r.code == 1);
    const auto said = nlohmann::json::parse(r.out, nullptr, false);
    REQUIRE(said.is_object());
    CHECK(said["again"] == true);
    CHECK(said["ending"] == "signal 11");
    CHECK(said["reason"] == "signal 11");
    CHECK(bundle_of(f) == bundle);  // no second one
  };
  again();
  // Elsewhere the copies are what there is.
  for (const char* file : {"m.yaml", "m.dlcg"}) fs::remove(f / file);
  again();
  // Mended: it no longer crashes, and what it writes goes nowhere.
  const Outcome r = dlc::test::dlc(f, "replay " + bundle, kHere + "export LYING_IS_MENDED=1; ");
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_THAT(r.out, Contains("not again: exit code 0, signal 11 in the bundle"));
  CHECK_FALSE(fs::exists(f / "m.dlca"));
  // Copies that are not what they were are named, all of them.
  for (const auto& file : j["files"])
    f.write("crashes/" + fs::path(bundle).filename().string() + "/" + file["path"].get<std::string>(), "x");
  must_fail(f, "replay " + bundle,
            {j["files"][0]["path"].get<std::string>(), j["files"][1]["path"].get<std::string>(),
             "is not the copy of " + f / "m.dlcg" + " any more: its hash is "});
  fs::remove(bundle + "/" + j["files"][0]["path"].get<std::string>());
  must_fail(f, "replay " + bundle, {"No such file or directory"});
}

TEST_CASE("a replay writes nothing where the command did: results named in one word, or not at all", "[error]") {
  for (const std::string result : {"-oinner.dlca", "", "-o /DIR/inner.dlca"}) {
    const Folder f("crash_result");
    machine(f, "crash_emit");
    std::string named = result;
    if (const size_t at = named.find("/DIR/"); at != std::string::npos) named.replace(at, 5, f / "");
    CHECK(dlc::test::dlc(f, "--hw=m.yaml m.dlcg " + named + kPath, kHere).code == kBySignal + SIGSEGV);
    f.write("inner.dlca", "mine");
    const auto files = f.files();
    const Outcome r = dlc::test::dlc(f, "replay " + bundle_of(f), kHere + "export LYING_IS_MENDED=1; ");
    INFO(r.out << r.err);
    CHECK(r.code == 0);
    CHECK(f.files() == files);
    CHECK(read_file(f / "inner.dlca") == "mine");
  }
}

TEST_CASE("a bundle has every file that was read, and is replayed elsewhere", "[error]") {
  const Folder f("crash_complete"), away("crash_away");
  machine(f, "crash_emit");
  fs::create_directories(f / "hwdesc");
  fs::create_directories(f / "models and 'more'/parts");
  fs::rename(f / "m.yaml", f / "hwdesc/base.yaml");
  f.write("hwdesc/liar.yaml", "# crash_emit\nlike: base.yaml\n");
  auto m = model();
  input(m, "x", {4});
  auto* w = m.mutable_graph()->add_initializer();
  w->set_name("w");
  w->set_data_type(onnx::TensorProto::FLOAT);
  w->add_dims(4);
  w->set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = w->add_external_data();
  location->set_key("location");
  location->set_value("parts/w.bin");
  f.write("models and 'more'/parts/w.bin", std::string(16, '\0'));
  node(m, "Add", "sum", {"x", "w"}, "y");
  output(m, "y", {4});
  f.write("models and 'more'/m.onnx", m);
  f.write("4", "and one as a number of threads");
  const std::string bench = "bench --hw=liar --threads 4 \"models and 'more'/m.onnx\"";
  const Outcome o = dlc::test::dlc(f, bench + kPath, kHere);
  INFO(o.err);
  CHECK(o.code == kBySignal + SIGSEGV);
  const std::string bundle = bundle_of(f), name = fs::path(bundle).filename().string();
  std::set<std::string> kept;
  const auto manifest = manifest_of(bundle);
  for (const auto& file : manifest["files"]) {
    const fs::path original = file["original"].get<std::string>();
    kept.insert(original.filename().string());
    CHECK(read_file(bundle + "/" + file["path"].get<std::string>()) == read_file(original));
  }
  CHECK(kept == std::set<std::string>{"base.yaml", "liar.yaml", "m.onnx", "w.bin"});
  fs::rename(bundle, away / name);
  for (const char* gone : {"hwdesc", "models and 'more'"}) fs::remove_all(f / gone);
  const auto files = away.files();
  const Outcome r = dlc::test::dlc(away, "replay " + name + " --json", kHere);
  INFO(r.out << r.err);
  CHECK(r.code == 1);
  const auto said = nlohmann::json::parse(r.out, nullptr, false);
  REQUIRE(said.is_object());
  CHECK(said["again"] == true);
  CHECK(said["notes"].empty());
  CHECK(away.files() == files);
  // Its command can be pasted.
  const Outcome text = dlc::test::dlc(away, "replay " + name, kHere);
  CHECK_THAT(text.out, Contains("--threads=4 --hw=liar") || Contains("--hw=liar --threads=4"));
  CHECK_THAT(text.out, Contains("'models and '\\''more'\\''/m.onnx'"));
}

TEST_CASE("crashes of every kind while running are told, also as JSON", "[error]") {
  const Folder f("crash_run");
  machine(f, "");
  must_succeed(f, std::string("--hw=m.yaml m.dlcg -o m.dlca") + kPath);
  REQUIRE_OK(const dlc::Tensor x, dlc::Tensor::make(dlc::kF32, {4}));
  REQUIRE(dlc::write_tensors(f / "x.npz", {{"x", x}}).has_value());
  for (const auto& [how, signal] : {std::pair("crash_read", SIGSEGV),
                                    {"crash_abort", SIGABRT},
                                    {"crash_divide", SIGFPE},
                                    {"crash_deep", SIGSEGV}}) {
    INFO(how);
    fs::remove_all(f / "crashes");
    fs::create_directories(f / "crashes");
    const Outcome o =
        dlc::test::dlc(f, "run m.dlca --input x.npz --json --device lying:" + std::string(how) + kPath, kHere);
    INFO(o.err << o.out);
    CHECK(o.code == kBySignal + signal);
    CHECK_THAT(o.err, Contains(") at: running\n"));
    const auto j = nlohmann::json::parse(o.out, nullptr, false);
    REQUIRE(j.is_object());
    CHECK_THAT(j["error"]["hint"].get<std::string>(), Contains("dlc replay "));
    CHECK(manifest_of(bundle_of(f))["signal"] == signal);
    CHECK(dlc::test::dlc(f, "replay " + bundle_of(f), kHere).code == 1);
  }
}

TEST_CASE("a bundle that cannot be written changes nothing else, and none is left in half", "[error]") {
  const Folder f("crash_unwritable");
  machine(f, "crash_emit");
  std::string graph = "dlc.graph 1\n";
  for (int i = 0; i < 200; ++i)
    graph += "# a text of more than some blocks of a disk, of which there will be none left\n";
  f.write("m.dlcg", graph + read_file(f / "m.dlcg").substr(12));
  const std::string command = std::string("--hw=m.yaml m.dlcg -o m.dlca") + kPath;
  const std::tuple<std::string, std::string> cases[] = {
      {"export DLC_CRASH_DIR=/proc/nowhere; ", "No such file or directory"},
      {"export DLC_CRASH_DIR=m.yaml; ", "Not a directory"},
      {kHere + "ulimit -f 4; ", "File too large"}};
  for (const auto& [before, why] : cases) {
    const Outcome o = dlc::test::dlc(f, command, before);
    INFO(o.err);
    CHECK(o.code == kBySignal + SIGSEGV);
    CHECK_THAT(o.err, Contains("no reproducer could be written to ") && Contains(why));
    CHECK(fs::is_empty(f / "crashes"));
  }
  const Outcome none = dlc::test::dlc(f, command, "export DLC_CRASH_DIR=; ");
  CHECK(none.code == kBySignal + SIGSEGV);
  CHECK_THAT(none.err, !Contains("dlc replay"));
}

#endif

TEST_CASE("an internal error leaves a bundle too", "[error]") {
  const Folder f("crash_internal");
  machine(f, "internal_emit");
  const Outcome o = dlc::test::dlc(f, std::string("--hw=m.yaml m.dlcg -o m.dlca") + kPath, kHere);
  INFO(o.err);
  CHECK(o.code == 3);
  CHECK_THAT(o.err, Contains("error: internal error in plugin: two and two") && Contains("next: dlc replay "));
  const auto j = manifest_of(bundle_of(f));
  CHECK(j["signal"] == 0);
  CHECK(j["message"] == "internal error in plugin: two and two");
  CHECK(dlc::test::dlc(f, "replay " + bundle_of(f), kHere).code == 1);
}

TEST_CASE("what is no bundle is refused", "[error]") {
  const Folder f("crash_none");
  must_be_usage(f, "replay nowhere", {"nowhere"});
  fs::create_directories(f / "b");
  must_fail(f, "replay b", {"b/bundle.json"});
  f.write("b/bundle.json", "{\"arguments\": 3}");
  must_fail(f, "replay b", {"is no manifest of a crash bundle"});
  f.write(
      "b/bundle.json",
      R"({"folder": "/", "arguments": ["run"], "files": [{"path": "files/1", "original": "/gone", "copied": false}]})");
  must_fail(f, "replay b", {"has no copy of /gone"});
}
