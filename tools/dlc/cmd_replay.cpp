// dlc replay: the command of a crash bundle again, on the files that lie in the bundle.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <filesystem>
#include <map>

#include "dlc/io/file.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/json.h"
#include "tools/dlc/scratch.h"
#include "tools/dlc/subprocess.h"

namespace dlc::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string bundle;
  double seconds = 600;
};

struct Replay {
  std::vector<std::string> command;
  std::string reason;  // "signal 11", or the message of an internal error
  int64_t signal = 0;
};

std::string hash_of(std::span<const std::byte> bytes) {
  return fmt::format("{:x}", XXH3_64bits(bytes.data(), bytes.size()));
}

// The original where it is still the same, since other files may lie beside it; otherwise the bundle's copy.
Result<std::string> file_for(const Json& word, const Json& files, const std::string& bundle) {
  const auto original = field<std::string>(word, "original"), path = field<std::string>(word, "file");
  for (const Json& f : files) {
    if (field<std::string>(f, "path") != path) continue;
    if (const auto now = map_file(original); now && hash_of(now->bytes) == field<std::string>(f, "hash"))
      return original;
    if (field<bool>(f, "copied")) return fs::absolute(bundle + "/" + path).string();
  }
  return fail({bundle, 0, 0, {}},
              fmt::format("has no copy of {}, and that file is not there any more or another one", original),
              "put it back; larger files are not copied");
}

Result<Replay> read_bundle(const std::string& bundle, const Scratch& results) {
  const std::string manifest = bundle + "/" + crash::kManifest;
  DLC_TRY(const MappedFile file, map_file(manifest));
  const Json j = object_of(file.text());
  const Json words = objects_in(j, "arguments");
  if (words.empty())
    return fail({manifest, 0, 0, {}}, "is no manifest of a crash bundle", "dlc names the folder when it crashes");
  Replay r{{"/proc/self/exe"}, field<std::string>(j, "message"), field<int64_t>(j, "signal")};
  if (r.signal != 0) r.reason = fmt::format("signal {}", r.signal);
  for (const Json& w : words) {
    std::string middle;
    if (has<std::string>(w, "file")) {
      DLC_TRY(middle, file_for(w, objects_in(j, "files"), bundle));
    } else if (has<std::string>(w, "output")) {  // never over the file that the command once wrote
      middle = results / fs::path(field<std::string>(w, "output")).filename().string();
    }
    r.command.push_back(field<std::string>(w, "before") + middle + field<std::string>(w, "after"));
  }
  return r;
}

Result<int> replay(const Options& o, Context& cx) {
  DLC_TRY(const Scratch results, Scratch::make());
  DLC_TRY(const Replay r, read_bundle(o.bundle, results));
  setenv(crash::kFolderVariable, "", 1);  // one bundle is enough
  // Results without a name of their own go where the command runs.
  std::error_code ec;
  fs::current_path(results.path(), ec);
  if (ec) return fail({results.path(), 0, 0, {}}, "cannot be entered: " + ec.message());
  DLC_TRY(const Ran ran, run_program(r.command, o.seconds));
  const bool again = r.signal != 0 ? ran.signal == r.signal : ran.code == kInternal;
  const std::string ending = ran.timed_out     ? fmt::format("not done after {} s", o.seconds)
                             : ran.signal != 0 ? fmt::format("signal {}", ran.signal)
                                               : fmt::format("exit code {}", ran.code);
  std::vector<std::string> command = r.command;
  command[0] = "dlc";
  cx.print({{"bundle", o.bundle},
            {"command", command},
            {"reason", r.reason},
            {"again", again},
            {"ending", ending},
            {"output", ran.output}},
           fmt::format("{}\n{}{}{}: {}, {} in the bundle\n", fmt::join(command, " "), ran.output,
                       ran.output.empty() || ran.output.ends_with('\n') ? "" : "\n", again ? "again" : "not again",
                       ending, r.reason));
  return again ? kFailed : kOk;
}

}  // namespace

void add_replay(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "replay", "Run the command of a crash bundle again");
  sub->add_option("bundle", o->bundle, "The folder that dlc named when it crashed")
      ->required()
      ->check(CLI::ExistingDirectory);
  sub->add_option("--time-limit", o->seconds, "Seconds after which it is stopped")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  sub->callback([o, &cx] { cx.action = [o, &cx] { return replay(*o, cx); }; });
}

}  // namespace dlc::cli
