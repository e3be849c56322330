// The device's bodies of the primitives go through NVRTC for every architecture, without a warning and without a spill.
#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "dlc_test/catch.h"
#include "dlc_test/skip.h"

namespace dlc::test {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& p) {
  std::ifstream in(p);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void* find_nvrtc() {
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                    "/usr/local/cuda/lib64/libnvrtc.so"};
  if (const char* named = std::getenv("DLC_NVRTC")) names.insert(names.begin(), named);
  for (const std::string& name : names)
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

// The compiler's log; NVRTC's functions by their names, as facts of its interface.
struct Nvrtc {
  void* library = find_nvrtc();

  template <class... T>
  int call(const char* name, T... args) const {
    void* f = dlsym(library, name);
    REQUIRE(f);
    return reinterpret_cast<int (*)(T...)>(f)(args...);
  }

  std::string compile(const std::string& text, const char* architecture) const {
    std::vector<std::string> names, texts;
    for (const auto& e : fs::directory_iterator(DLC_SOURCE_DIR "/plugins/cuda/device"))
      if (e.path().extension() == ".h") {
        names.push_back(e.path().filename().string());
        texts.push_back(read_file(e.path()));
      }
    std::vector<const char*> name_of, text_of;
    for (size_t i = 0; i < names.size(); ++i) {
      name_of.push_back(names[i].c_str());
      text_of.push_back(texts[i].c_str());
    }
    void* program = nullptr;
    REQUIRE(call("nvrtcCreateProgram", &program, text.c_str(), "primitives.cu", static_cast<int>(names.size()),
                 text_of.data(), name_of.data()) == 0);
    const std::string arch = std::string("-arch=") + architecture;
    const char* options[] = {arch.c_str(), "-std=c++17", "--fmad=false", "--ptxas-options=-v"};
    const int result = call("nvrtcCompileProgram", program, 4, static_cast<const char**>(options));
    size_t bytes = 0;
    call("nvrtcGetProgramLogSize", program, &bytes);
    std::string log(bytes, '\0');
    call("nvrtcGetProgramLog", program, log.data());
    call("nvrtcDestroyProgram", &program);
    INFO(log);
    REQUIRE(result == 0);
    return log;
  }
};

}  // namespace

TEST_CASE("every primitive compiles for the device", "[.nvrtc]") {
  const Nvrtc nvrtc;
  if (!nvrtc.library) DLC_SKIP("libnvrtc is not found (DLC_NVRTC names one)");
  const char* architecture = GENERATE("sm_80", "sm_89", "sm_90a");
  const std::string file = GENERATE("primitives.cu", "planted.cu");
  const std::string log = nvrtc.compile(read_file(DLC_SOURCE_DIR "/tests/cuda/emulator/kernels/" + file), architecture);
  CAPTURE(architecture, file);
  INFO(log);
  CHECK(log.find("warning") == std::string::npos);
  CHECK(log.find("Performance") == std::string::npos);
  const std::regex spills(R"((\d+) bytes spill stores, (\d+) bytes spill loads)");
  size_t kernels = 0;
  for (std::sregex_iterator it(log.begin(), log.end(), spills), end; it != end; ++it, ++kernels) {
    CHECK((*it)[1] == "0");
    CHECK((*it)[2] == "0");
  }
  CHECK(kernels > 30);
}

}  // namespace dlc::test
