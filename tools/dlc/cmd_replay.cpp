// dlc replay: the command of a crash bundle again, on the files that lie in the bundle. They are laid out under a
// folder for temporary files as they lay under /, so that what is found beside a file, or by a name, is found again.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>

#include "dlc/hw/load.h"
#include "dlc/io/file.h"
#include "tools/dlc/cli.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/json.h"
#include "tools/dlc/scratch.h"
#include "tools/dlc/shell.h"
#include "tools/dlc/subprocess.h"

namespace dlc::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string bundle;
  double seconds = 600;
};

struct Replay {
  std::vector<std::string> said, command;  // as it was given, and with the copies' paths
  std::string reason;                      // "signal 11", or the message of an internal error
  int64_t signal = 0;
  std::string folder;              // where it runs
  std::vector<std::string> notes;  // what is not as it was
};

std::string hash_of(std::span<const std::byte> bytes) {
  return fmt::format("{:x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::vector<std::string> strings_in(const Json& j, const char* key) {
  std::vector<std::string> out;
  if (j.contains(key) && j[key].is_array())
    for (const Json& s : j[key])
      if (s.is_string()) out.push_back(s.get<std::string>());
  return out;
}

// A bundle's files again, each where it was, under a folder instead of /.
class Restored {
 public:
  Restored(std::string bundle, const Json& manifest, std::string root)
      : bundle_(std::move(bundle)), j_(manifest), root_(std::move(root)) {}

  Result<> run() {
    const auto here = field<std::string>(j_, "folder"), installation = field<std::string>(j_, "installation") + "/";
    DLC_CHECK(make_folder(here));
    for (const std::string& folder : strings_in(j_, "folders")) DLC_CHECK(make_folder(folder));
    Error errors;
    for (const Json& f : objects_in(j_, "files")) {
      const auto original = field<std::string>(f, "original");
      const auto source = unchanged(f);
      if (!source) {
        const Error& e = source.error();
        errors.diagnostics.insert(errors.diagnostics.end(), e.diagnostics.begin(), e.diagnostics.end());
        continue;
      }
      DLC_CHECK(place(*source, original));
      // Descriptions are looked for in the current folder before the installation, which may be another one here.
      if (original.starts_with(installation))
        DLC_CHECK(place(*source, here + "/hwdesc/" + original.substr(installation.size())));
    }
    if (!errors.empty()) return std::unexpected(std::move(errors));
    return {};
  }

  std::string path_of(const std::string& original) const { return root_ + original; }

 private:
  // The bundle's copy, or of a large file the original; either only as it was.
  Result<std::string> unchanged(const Json& f) const {
    const bool is_copied = field<bool>(f, "copied");
    const auto original = field<std::string>(f, "original"), hash = field<std::string>(f, "hash");
    const std::string source = is_copied ? bundle_ + "/" + field<std::string>(f, "path") : original;
    const auto now = map_file(source);
    if (now && hash_of(now->bytes) == hash) return source;
    if (is_copied)
      return fail({source, 0, 0, {}},
                  now ? fmt::format("is not the copy of {} any more: its hash is {}, the bundle says {}", original,
                                    hash_of(now->bytes), hash)
                      : fmt::format("is the copy of {}: {}", original, now.error().message()),
                  "take the bundle as dlc wrote it");
    return fail(
        {bundle_, 0, 0, {}},
        fmt::format("has no copy of {}, and that file is {}", original, now ? "another one now" : "not there any more"),
        "put it back; larger files are not copied");
  }

  Result<> make_folder(const std::string& original) const {
    std::error_code ec;
    fs::create_directories(path_of(original), ec);
    if (ec) return fail({path_of(original), 0, 0, {}}, "cannot make the folder: " + ec.message());
    return {};
  }

  Result<> place(const std::string& source, const std::string& original) const {
    DLC_CHECK(make_folder(fs::path(original).parent_path().string()));
    std::error_code ec;
    fs::copy_file(source, path_of(original), fs::copy_options::skip_existing, ec);
    if (ec) return fail({path_of(original), 0, 0, {}}, fmt::format("cannot copy {}: {}", source, ec.message()));
    return {};
  }

  std::string bundle_;
  const Json& j_;
  std::string root_;
};

std::vector<std::string> notes_on(const Json& j) {
  std::vector<std::string> notes;
  if (const auto version = field<std::string>(j, "dlc"); version != DLC_VERSION)
    notes.push_back(fmt::format("dlc {} crashed, this is {}", version, DLC_VERSION));
  std::vector<std::string> lacking;
  const auto here = native_features();
  for (const std::string& f : strings_in(j, "features"))
    if (std::ranges::count(here, f) == 0) lacking.push_back(f);
  if (!lacking.empty())
    notes.push_back(fmt::format("this machine lacks {}, so that native is another one", fmt::join(lacking, ", ")));
  return notes;
}

Result<Replay> read_bundle(const std::string& bundle, const Scratch& results) {
  const std::string manifest = bundle + "/" + crash::kManifest;
  DLC_TRY(const MappedFile file, map_file(manifest));
  const Json j = object_of(file.text());
  const bool has_words = j.contains("arguments") && j["arguments"].is_array() && !j["arguments"].empty();
  if (!has_words || !has<std::string>(j, "folder"))
    return fail({manifest, 0, 0, {}}, "is no manifest of a crash bundle", "dlc names the folder when it crashes");
  Replay r{{"dlc"}, {"/proc/self/exe"}, field<std::string>(j, "message"), field<int64_t>(j, "signal"), {}, notes_on(j)};
  if (r.signal != 0) r.reason = fmt::format("signal {}", r.signal);
  Restored files(bundle, j, results.path());
  DLC_CHECK(files.run());
  r.folder = files.path_of(j["folder"].get<std::string>());
  for (const Json& w : j["arguments"]) {
    if (w.is_string()) {
      r.said.push_back(w.get<std::string>());
      r.command.push_back(r.said.back());
      continue;
    }
    const auto before = field<std::string>(w, "before"), path = field<std::string>(w, "path"),
               after = field<std::string>(w, "after");
    r.said.push_back(before + path + after);
    r.command.push_back(before + files.path_of(path) + after);
  }
  if (j.contains("environment") && j["environment"].is_object())
    for (const auto& [name, value] : j["environment"].items())
      if (value.is_string()) setenv(name.c_str(), value.get<std::string>().c_str(), 0);
  return r;
}

Result<int> replay(const Options& o, Context& cx) {
  DLC_TRY(const Scratch results, Scratch::make());
  std::error_code ec;
  DLC_TRY(const Replay r, read_bundle(fs::absolute(o.bundle, ec).string(), results));
  setenv(crash::kFolderVariable, "", 1);  // one bundle is enough
  // What the command writes lies among the copies, and goes with them.
  fs::current_path(r.folder, ec);
  if (ec) return fail({r.folder, 0, 0, {}}, "cannot be entered: " + ec.message());
  DLC_TRY(const Ran ran, run_program(r.command, o.seconds));
  const bool again = r.signal != 0 ? ran.signal == r.signal : ran.code == kInternal;
  if (ran.code == kUsage && ran.signal == 0)
    return fail({o.bundle, 0, 0, {}}, "this dlc does not take the command of the bundle: " + ran.output,
                "a folder of --plugin-path has to be there; or try the dlc that crashed");
  const std::string ending = ran.timed_out     ? fmt::format("not done after {} s", o.seconds)
                             : ran.signal != 0 ? fmt::format("signal {}", ran.signal)
                                               : fmt::format("exit code {}", ran.code);
  std::string notes;
  for (const std::string& note : r.notes) notes += "note: " + note + "\n";
  cx.print({{"bundle", o.bundle},
            {"command", r.said},
            {"reason", r.reason},
            {"again", again},
            {"ending", ending},
            {"output", ran.output},
            {"notes", r.notes}},
           fmt::format("{}\n{}{}{}{}: {}, {} in the bundle\n", shell_command(r.said), ran.output,
                       ran.output.empty() || ran.output.ends_with('\n') ? "" : "\n", notes,
                       again ? "again" : "not again", ending, r.reason));
  return again ? kFailed : kOk;
}

}  // namespace

void add_replay(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "replay", "Run the command of a crash bundle again");
  sub->add_option("bundle", o->bundle, "The folder that dlc named when it crashed")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->check(file_name());
  sub->add_option("--time-limit", o->seconds, "Seconds after which it is stopped")
      ->check(number_in(0.1, 86400))
      ->capture_default_str();
  sub->callback([o, &cx] { cx.action = [o, &cx] { return replay(*o, cx); }; });
}

}  // namespace dlc::cli
