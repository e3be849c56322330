// Plugins that cannot be opened: one whose library was cut short, and what is taken in its place.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "dlc/io/file.h"
#include "dlc/plugin/compiled.h"
#include "dlc_test/catch.h"

using namespace dlc;
namespace fs = std::filesystem;

namespace {

const fs::path kPlugins = DLC_BINARY_DIR "/lib/dlc/plugins";

// An empty folder, and nothing of it afterwards.
struct Scratch {
  fs::path path;
  Scratch() {
    std::string name = (fs::temp_directory_path() / "dlc-plugins-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { fs::remove_all(path); }
};

// The CPU's plugin; its manifest may promise more devices than it has, which is seen when it is opened.
std::string add_cpu(const fs::path& folder, const char* schemes = "cpu") {
  fs::create_directories(folder);
  std::ofstream(folder / "cpu.plugin.yaml") << "dlc_plugin: 1\nname: cpu\nabi: 1\nschemes: [" << schemes << "]\n";
  fs::create_symlink(kPlugins / "libcpu.so", folder / "libcpu.so");
  return folder.string();
}

}  // namespace

TEST_CASE("a library that was cut short", "[plugin]") {
  const Scratch scratch;
  const fs::path& folder = scratch.path;
  REQUIRE_OK(const MappedFile whole, map_file((kPlugins / "libcpu.so").string()));
  fs::copy_file(kPlugins / "cpu.plugin.yaml", folder / "cpu.plugin.yaml");
  const auto* bytes = reinterpret_cast<const char*>(whole.bytes.data());
  for (const size_t size : {size_t{0}, size_t{10}, size_t{64}, size_t{200}, size_t{1000}, size_t{3000},
                            whole.bytes.size() / 2, whole.bytes.size() - whole.bytes.size() / 8}) {
    std::ofstream(folder / "libcpu.so", std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
    PluginRegistry plugins({.paths = {folder.string()}, .defaults = false});
    plugins.open_all();
    REQUIRE(plugins.candidates().size() == 1);
    INFO(size << " bytes");
    CHECK_THAT(to_string(plugins.candidates()[0].refused), Catch::Matchers::Contains("is no whole shared library"));
  }
}

TEST_CASE("of two plugins of one name the first that can be opened is used", "[plugin]") {
  const Scratch scratch;
  const std::string wrong = add_cpu(scratch.path / "wrong", "cpu, gpu");
  const std::string good = add_cpu(scratch.path / "good");
  const std::string again = add_cpu(scratch.path / "again");
  HwDescription hw;
  hw.plugin = "cpu";
  for (int how = 0; how < 4; ++how) {
    PluginRegistry plugins({.paths = {wrong, good, again}, .defaults = false});
    if (how == 0) CHECK(plugins.find("cpu").has_value());
    if (how == 1) CHECK(plugins.for_scheme("cpu").has_value());
    if (how == 2) CHECK(plugins.for_hardware(hw).has_value());
    plugins.open_all();
    const auto& c = plugins.candidates();
    REQUIRE(c.size() == 3);
    CHECK_THAT(to_string(c[0].refused), Catch::Matchers::Contains("its manifest promises devices"));
    CHECK(c[1].refused.empty());
    CHECK_THAT(to_string(c[2].refused),
               Catch::Matchers::Contains("'cpu' was found before it in " + good + "/libcpu.so"));
  }
}

TEST_CASE("the reason why the only plugin of a name was refused is the error", "[plugin]") {
  const Scratch scratch;
  PluginRegistry plugins({.paths = {add_cpu(scratch.path / "wrong", "cpu, gpu")}, .defaults = false});
  for (int i = 0; i < 2; ++i) {
    const auto cpu = plugins.find("cpu");
    REQUIRE(!cpu);
    CHECK_THAT(to_string(cpu.error()), Catch::Matchers::Contains("libcpu.so: error: its manifest promises"));
  }
}
