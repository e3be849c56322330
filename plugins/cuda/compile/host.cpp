// Kernel text to a shared object for the emulator, through clang++ or g++.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>

#include "core/ops/embedded.h"
#include "dlc/hw/load.h"
#include "dlc/io/file.h"
#include "plugins/cuda/compile/compile.h"

extern char** environ;  // NOLINT: posix_spawn's

namespace dlc {

namespace detail {
extern const EmbeddedFile kCudaDeviceHeaders[];  // plugins/cuda/device/*.h
}  // namespace detail

namespace cuda {

namespace {

namespace fs = std::filesystem;

// Removes a folder when it goes out of scope.
struct Scratch {
  fs::path path;
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code error;
    if (!path.empty()) fs::remove_all(path, error);
  }
  Result<> make() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "dlc-cuda-XXXXXX").string();
    if (error || mkdtemp(name.data()) == nullptr)
      return fail({name, 0, 0, {}}, fmt::format("cannot make a folder: {}", std::strerror(errno)), "set TMPDIR");
    path = name;
    return {};
  }
};

// The compiler's path, and what tells it from another one.
struct Compiler {
  std::string path, identity;
};

Result<Compiler> find_compiler() {
  const char* own = std::getenv("DLC_HOST_CXX");
  std::vector<std::string> names = {"clang++-19", "g++", "clang++", "c++"};
  if (own != nullptr && *own != 0) names = {own};
  const char* path = std::getenv("PATH");
  for (const std::string& name : names) {
    std::string_view rest = name.find('/') != std::string::npos ? std::string_view() : path == nullptr ? "" : path;
    do {
      const size_t end = std::min(rest.find(':'), rest.size());
      const fs::path file = rest.empty() ? fs::path(name) : fs::path(rest.substr(0, end)) / name;
      rest.remove_prefix(std::min(end + 1, rest.size()));
      std::error_code error;
      if (!fs::is_regular_file(file, error) || access(file.c_str(), X_OK) != 0) continue;
      const auto size = fs::file_size(file, error);
      const auto time = fs::last_write_time(file, error).time_since_epoch().count();
      return Compiler{file.string(), fmt::format("{} {} {}", fs::weakly_canonical(file, error).string(), size, time)};
    } while (!rest.empty());
  }
  return fail({},
              own != nullptr && *own != 0 ? fmt::format("DLC_HOST_CXX is {}, which cannot be run", own)
                                          : "cuda:emu needs a C++ compiler, and none is found",
              "install clang++-19 or g++");
}

std::vector<std::string> flags(const HostOptions& options, bool is_clang) {
  std::vector<std::string> f = {"-x",
                                "c++",
                                "-std=c++17",
                                "-DDLC_HOST_EMU",
                                "-fPIC",
                                "-fvisibility=hidden",
                                "-fno-exceptions",
                                "-fwrapv",
                                "-ffp-contract=off",
                                "-w",
                                "-c"};
  for (const std::string& feature : native_features())
    if (feature == "fma" || feature == "avx2" || feature == "f16c") f.push_back("-m" + feature);
  if (!options.checks) {
    f.emplace_back("-O2");
    return f;
  }
  // The instrumentation alone: the emulator is its runtime.
  f.insert(f.end(), {"-O1", "-fsanitize=thread", "-DDLC_EMU_CHECKS"});
  // (clang leaves the read of `y[i] += x` out, as the write is seen; a kernel may read what nobody wrote.)
  if (is_clang)
    f.insert(f.end(), {"-fno-vectorize", "-fno-slp-vectorize", "-mllvm", "-tsan-instrument-read-before-write=1"});
  return f;
}

}  // namespace

const std::vector<std::pair<std::string, std::string>>& device_headers() {
  static const auto all = [] {
    std::vector<std::pair<std::string, std::string>> headers;
    for (const detail::EmbeddedFile* f = detail::kCudaDeviceHeaders; f->name != nullptr; ++f)
      headers.emplace_back(fs::path(f->name).filename().string(), f->text);
    return headers;
  }();
  return all;
}

Error does_not_compile(const std::string& compiler, const std::string& text, const std::string& log) {
  // "kernels.cu(12)" or "kernels.cu:12": the kernel is the last that begins above it.
  std::string kernel = "unknown";
  int line = 0;
  constexpr std::string_view kFile = "kernels.cu";
  if (const size_t at = log.find(kFile); at != std::string::npos && at + kFile.size() + 1 < log.size())
    std::from_chars(log.data() + at + kFile.size() + 1, log.data() + log.size(), line);
  std::istringstream lines(text);
  std::string one;
  for (int i = 0; i < line && std::getline(lines, one); ++i)
    if (constexpr std::string_view kHead = "// ---- kernel "; one.starts_with(kHead)) kernel = one.substr(kHead.size());
  Scratch left;
  std::string file = "(no folder could be made)";
  if (left.make()) {
    file = (left.path / "kernels.cu").string();
    if (!write_file(file, text)) file = "(it could not be written)";
    left.path.clear();  // it stays
  }
  return Error({{}, 0, 0, kernel},
               fmt::format("a generated kernel does not compile with {}:\n{}", compiler, log.substr(0, 4000)),
               fmt::format("this is an error of dlc: please report it with {}", file));
}

Result<Ran> run_program(const std::vector<std::string>& words) {
  Scratch scratch;
  DLC_CHECK(scratch.make());
  const std::string log = (scratch.path / "log").string();
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fail({words[0], 0, 0, {}}, fmt::format("cannot be run: {}", std::strerror(failed)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), {}};
  if (const auto file = map_file(log)) ran.output = std::string(file->text());
  return ran;
}

Result<Bytes> compile_for_host(const std::string& text, const HostOptions& options) {
  DLC_TRY(const Compiler compiler, find_compiler());
  std::vector<std::string> words = flags(options, compiler.path.find("clang") != std::string::npos);
  std::vector<std::string_view> parts = {"host", compiler.identity, text};
  for (const std::string& w : words) parts.push_back(w);
  for (const auto& [name, header] : device_headers()) parts.insert(parts.end(), {name, header});
  const std::string key = cache_key(parts);
  if (auto found = cached(key)) return std::move(*found);

  Scratch scratch;
  DLC_CHECK(scratch.make());
  const auto file = [&](const std::string& name) { return (scratch.path / name).string(); };
  for (const auto& [name, header] : device_headers()) DLC_CHECK(write_file(file(name), header));
  DLC_CHECK(write_file(file("kernels.cu"), text));
  words.insert(words.begin(), compiler.path);
  words.insert(words.end(), {"-I" + scratch.path.string(), file("kernels.cu"), "-o", file("kernels.o")});
  DLC_TRY(Ran ran, run_program(words));
  if (ran.code == 0) {
    DLC_TRY(ran, run_program({compiler.path, "-shared", file("kernels.o"), "-o", file("kernels.so")}));
  }
  if (ran.code != 0) return std::unexpected(does_not_compile(compiler.path, text, ran.output));
  DLC_TRY(const MappedFile made, map_file(file("kernels.so")));
  Bytes bytes(made.bytes.begin(), made.bytes.end());
  keep(key, bytes);
  return bytes;
}

}  // namespace cuda

}  // namespace dlc
