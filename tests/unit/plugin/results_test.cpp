// Constants that a plugin lays out anew: in memory and in an artifact, in whatever order they come.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "dlc/plugin/model_file.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

constexpr const char* kGraph = R"(dlc.graph 1
graph @g (N in 1..8) {
  in    %x: f32[N,3]
  const @a: f32[3] = [1, 2, 3]
  const @b: f32[3] = [10, 20, 30]
  const @c: f32[3] = [100, 200, 300]
  %0: f32[N,3] = mul(%x, @a)
  %1: f32[N,3] = add(%0, @b)
  %2: f32[N,3] = mul(%1, @c)
  out   %2 "y"
}
)";

Program program() {
  REQUIRE_OK(const Graph g, parse_graph(kGraph));
  REQUIRE_OK(Program p, lower_to_program(g));
  return p;
}

// Puts its files in order; all elements of a constant are the number beside it.
class Fake : public Backend {
 public:
  std::vector<std::pair<std::string, float>> files;
  std::string name() const override { return "fake"; }
  Result<> emit(const EmitRequest& r, EmitResult& result) override {
    for (const auto& [file, number] : files) {
      const std::vector<float> values(file == "constant/long" ? 4 : 3, number);
      if (file == "program")
        result.put(file, print(r.program));
      else
        result.put(file == "constant/long" ? "constant/b" : file, std::as_bytes(std::span(values)));
      if (!result.forwarded) return fail({}, "the host stopped");
    }
    result.put("executable", "code");
    return {};
  }
  std::vector<DeviceListing> list() override { return {}; }
  Result<std::unique_ptr<Device>> open(const std::string&) override { return fail({}, "none"); }
};

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("dlc_results_test_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file() const { return path / "m.dlca"; }
};

std::map<std::string, float> first_values(const NamedTensors& weights) {
  std::map<std::string, float> out;
  for (const auto& [name, t] : weights) {
    CHECK(reinterpret_cast<uintptr_t>(t.bytes()) % kConstantAlign == 0);
    out[name] = t.as<float>()[0];
  }
  return out;
}

}  // namespace

TEST_CASE("a plugin's constants are kept in the program's order, in memory and in the artifact", "[plugin]") {
  Fake fake;
  std::map<std::string, float> wanted;
  SECTION("none") {}  // the request's are the model's
  SECTION("in order") {
    fake.files = {{"program", 0}, {"constant/a", 5}, {"constant/c", 6}};
    wanted = {{"a", 5}, {"b", 10}, {"c", 6}};
  }
  SECTION("backwards") {
    fake.files = {{"program", 0}, {"constant/c", 6}, {"constant/b", 7}, {"constant/a", 5}};
    wanted = {{"a", 5}, {"b", 7}, {"c", 6}};
  }
  SECTION("before the program") {
    fake.files = {{"constant/c", 6}, {"constant/a", 5}, {"program", 0}, {"constant/b", 7}};
    wanted = {{"a", 5}, {"b", 7}, {"c", 6}};
  }
  SECTION("twice") {
    fake.files = {{"program", 0}, {"constant/a", 4}, {"constant/a", 5}};
    wanted = {{"a", 5}, {"b", 10}, {"c", 100}};
  }
  REQUIRE_OK(const auto in_memory, compile_partition("fake", &fake, program(), Hardware{}, "{}"));
  CHECK(first_values(in_memory.own_weights) == wanted);

  const Folder folder;
  CompiledModel m;
  m.arch_hash = hash_text(7);
  {
    REQUIRE_OK(ModelFile file, ModelFile::create(folder.file()));
    for (int i = 0; i < 2; ++i) {
      REQUIRE_OK(auto part, compile_partition("fake", &fake, program(), Hardware{}, "{}", nullptr, file));
      CHECK(first_values(part.own_weights) == wanted);
      m.partitions.push_back(std::move(part));
    }
    REQUIRE(file.finish(m).has_value());
  }
  REQUIRE_OK(const CompiledModel back, CompiledModel::read(folder.file()));
  for (const CompiledPartition& p : back.partitions)
    CHECK(first_values(p.weights) == (wanted.empty() ? first_values(in_memory.weights) : wanted));
}

TEST_CASE("a plugin's constants that do not fit its program are errors, and leave no file", "[plugin]") {
  Fake fake;
  std::string message;
  SECTION("of another size") {
    fake.files = {{"program", 0}, {"constant/long", 1}};
    message = "plugin fake: constant b has 16 bytes, 12 are expected";
  }
  SECTION("of another size, before the program") {
    fake.files = {{"constant/long", 1}, {"program", 0}};
    message = "plugin fake: constant b has 16 bytes, 12 are expected";
  }
  const Folder folder;
  {
    REQUIRE_OK(ModelFile file, ModelFile::create(folder.file()));
    REQUIRE_ERROR(compile_partition("fake", &fake, program(), Hardware{}, "{}", nullptr, file), message);
  }
  CHECK(std::filesystem::is_empty(folder.path));
}
