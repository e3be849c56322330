// What the commands share: options that every one has, results as text or JSON, progress.
//
// A command is a function in its own file: it adds a subcommand with its options to the app and says what to do when
// it is the one that was called.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/plugin/compiled.h"

namespace dlc::cli {

using Json = nlohmann::ordered_json;

// Exit codes; the same for every command.
inline constexpr int kOk = 0, kFailed = 1, kUsage = 2, kInternal = 3;

class Context {
 public:
  bool json = false;
  std::vector<std::string> plugin_paths;
  std::function<Result<int>()> action;  // of the chosen command

  PluginRegistry& plugins();
  HwLoadOptions hw_options() const;
  // The result: as JSON with --json, otherwise the text.
  void print(const Json& result, const std::string& text) const;

 private:
  std::unique_ptr<PluginRegistry> plugins_;
};

// Where an installed dlc has its descriptions of machines.
std::string installed_descriptions();

// A subcommand with the options that all have.
CLI::App* add_command(CLI::App& app, Context& cx, const std::string& name, const std::string& summary);

// Text to stderr, which may be closed or full: that is no failure of the command.
void tell(const std::string& text);
// Errors that name no file are of this one.
template <class T>
Result<T> of_file(Result<T> result, const std::string& file) {
  if (!result)
    for (Diagnostic& d : result.error().diagnostics)
      if (d.loc.file.empty()) d.loc.file = file;
  return result;
}
// To stderr, with the next steps; with --json also to stdout: {"error": {...}}.
void report(const Error& error, bool json);
Json to_json(const Diagnostic& diagnostic);

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Work in units, told on stderr: on a terminal once it has taken two seconds, in one line; into a file every ten
// seconds; not with --json.
class Progress {
 public:
  Progress(const Context& cx, std::string what, size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step(const std::string& unit);

 private:
  std::string what_;
  size_t total_, done_ = 0;
  bool quiet_, terminal_;
  bool told_ = false;
  Stopwatch watch_;
  double next_ms_;
};

// What an option's value is, said by its validator: what is a path can be found by its name (crash_arguments.h).
inline constexpr const char *kFileValue = "file", *kTensorValue = "tensor", *kHwValue = "hw",
                            *kFoldersValue = "folders";
// A folder or folders (with colons between) that exist; a path that is not empty; FILE or NAME=FILE.
CLI::Validator existing_folders();
CLI::Validator file_name();
CLI::Validator tensor_file();
// A description and its params: what can be said before the file is read.
CLI::Validator hw_argument();
// Of options: finite, not negative.
CLI::Validator positive_number();
// Finite, at least `least` and at most `most` (of which CLI11's own takes a NaN for one).
CLI::Validator number_in(double least, double most);
// Seeds are of 64 bits: what is larger or negative would be taken for another one.
CLI::Validator seed_number();
CLI::Option* add_seed(CLI::App& sub, uint64_t& seed, const std::string& what = "Of the inputs");

void add_compile(CLI::App& app, Context& cx);
void add_run(CLI::App& app, Context& cx);
void add_bench(CLI::App& app, Context& cx);
void add_compare(CLI::App& app, Context& cx);
void add_bisect(CLI::App& app, Context& cx);
void add_reduce(CLI::App& app, Context& cx);
void add_explain(CLI::App& app, Context& cx);
void add_replay(CLI::App& app, Context& cx);
void add_cosim(CLI::App& app, Context& cx);
void add_report(CLI::App& app, Context& cx);
void add_hw(CLI::App& app, Context& cx);
void add_build_rtl(CLI::App& hw, Context& cx);  // a subcommand of `hw`
void add_targets(CLI::App& app, Context& cx);
void add_plugins(CLI::App& app, Context& cx);
void add_ops(CLI::App& app, Context& cx);
void add_opt(CLI::App& app, Context& cx);

}  // namespace dlc::cli
