// dlc hw build-rtl: the verilated model of a description, made by the machine's own script from its own RTL.
//
// `rtl.files` of the description lies relative to the folder above the one that the description is in (a source tree
// and an installation have both); the script is build_model.sh in the folder above that of the list. It is given a
// folder with the generated constants, and writes a library, which is kept by arch_hash where the devices look for it.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "dlc/hw/check_machine.h"
#include "dlc/hw/emit.h"
#include "dlc/hw/load.h"
#include "dlc/io/file.h"
#include "dlc/io/inside.h"
#include "tools/dlc/cli.h"

extern char** environ;

namespace dlc::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string hw, folder;
  bool trace = false;
};

// lib/dlc/rtl beside the program, or the user's cache where that cannot be written.
Result<std::string> models_folder() {
  std::error_code error;
  const fs::path own = fs::path(program_folder()) / ".." / "lib" / "dlc" / "rtl";
  fs::create_directories(own, error);
  if (::access(own.c_str(), W_OK) == 0) return fs::weakly_canonical(own, error).string();
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache == nullptr && home == nullptr)
    return fail({}, own.string() + " cannot be written, and there is no HOME to keep the model in",
                "give a folder: -o DIR");
  const fs::path mine = (cache != nullptr ? fs::path(cache) : fs::path(home) / ".cache") / "dlc" / "rtl";
  return mine.string();
}

// The exit code; what the program says goes to `log`.
Result<int> run_program(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fail({words[0], 0, 0, {}}, fmt::format("cannot be run: {}", std::strerror(failed)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

std::string last_lines(const std::string& file) {
  const auto log = map_file(file);
  if (!log) return {};
  const std::string_view text = log->text();
  return std::string(text.substr(text.size() > 1500 ? text.size() - 1500 : 0));
}

// Removes a folder when it goes out of scope: what a failure has begun does not stay.
struct Scratch {
  fs::path path;
  explicit Scratch(fs::path p) : path(std::move(p)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path, error);
  }
};

Result<int> build_rtl(Options& o, Context& cx) {
  DLC_TRY(const HwDescription hw, load_hw(o.hw, cx.hw_options()));
  if (hw.rtl.files.empty() || hw.rtl.package.empty())
    return fail({hw.file, 0, 0, {}}, hw.name + " has no RTL: the description says nothing in `rtl`");
  std::error_code error;
  const fs::path root = rtl_root(hw), list = root / hw.rtl.files;
  const fs::path script = list.parent_path().parent_path() / "build_model.sh";
  DLC_CHECK(open_inside(root.string(), hw.rtl.files, "rtl.files", hw.place("rtl.files")));
  DLC_CHECK(open_inside(root.string(), script.lexically_relative(root).string(), "the script of the RTL",
                        hw.place("rtl.files")));
  if (o.folder.empty()) {
    DLC_TRY(o.folder, models_folder());
  }
  const Scratch scratch(fs::path(o.folder) / fmt::format(".build-{}", ::getpid()));
  fs::create_directories(scratch.path, error);
  if (error) return fail({o.folder, 0, 0, {}}, "cannot make the folder: " + error.message());
  const std::string config = scratch.path.string(), stem = fs::path(hw.rtl.package).stem().string();
  DLC_CHECK(write_file(config + "/" + hw.rtl.package, emit_systemverilog(hw)));
  DLC_CHECK(write_file(config + "/" + stem + ".h", emit_cpp_header(hw)));

  const std::string library = fmt::format("{}/{}{}.so", o.folder, hash_text(hw.arch_hash), o.trace ? "_trace" : "");
  std::vector<std::string> words{script.string(), config, config + "/model.so"};
  if (o.trace) words.emplace_back("--trace");
  tell(fmt::format("building {}: this takes about a minute\n", library));
  const Stopwatch watch;
  DLC_TRY(const int code, run_program(words, config + "/log"));
  if (code != 0)
    return fail({script.string(), 0, 0, {}},
                fmt::format("no model, exit code {}:\n{}", code, last_lines(config + "/log")),
                "verilator and a C++ compiler are needed");
  fs::rename(config + "/model.so", library, error);
  if (error) return fail({library, 0, 0, {}}, "cannot write the model: " + error.message());
  cx.print({{"file", hw.file},
            {"name", hw.name},
            {"arch_hash", hash_text(hw.arch_hash)},
            {"library", library},
            {"trace", o.trace},
            {"build_ms", watch.ms()}},
           library + "\n");
  return kOk;
}

}  // namespace

void add_build_rtl(CLI::App& hw, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = hw.add_subcommand("build-rtl", "Build the simulation of a machine's RTL");
  sub->add_flag("--json", cx.json, "Print the result as JSON");
  sub->add_option("description", o->hw, "A file or a name; with params: asic.yaml,R=8")
      ->required()
      ->check(hw_argument());
  sub->add_flag("--trace", o->trace, "With waveforms, which is slower; `dlc cosim` uses it for a difference");
  sub->add_option("-o,--output", o->folder, "The folder; otherwise where devices look for models")->check(file_name());
  sub->callback([o, &cx] { cx.action = [o, &cx] { return build_rtl(*o, cx); }; });
}

}  // namespace dlc::cli
