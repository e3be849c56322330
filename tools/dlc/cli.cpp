#include "tools/dlc/cli.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "dlc/base/printable.h"
#include "tools/dlc/crash.h"

namespace dlc::cli {

PluginRegistry& Context::plugins() {
  if (plugins_) return *plugins_;
  PluginRegistry::Options options;
  for (const std::string& given : plugin_paths)
    for (const auto& folder : CLI::detail::split(given, ':')) options.paths.push_back(folder);
  plugins_ = std::make_unique<PluginRegistry>(options);
  return *plugins_;
}

std::string installed_descriptions() {
  return std::filesystem::path(program_folder() + "/../share/dlc/hwdesc").lexically_normal().string();
}

HwLoadOptions Context::hw_options() const {
  const std::string installed = installed_descriptions();
  std::error_code ec;  // run in the sources, both may be one folder
  if (std::filesystem::equivalent("hwdesc", installed, ec)) return {.search = {"hwdesc"}};
  return {.search = {"hwdesc", installed}};
}

void Context::print(const Json& result, const std::string& text) const {
  const std::string out = json ? result.dump(2, ' ', false, Json::error_handler_t::replace) : printable(text);
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (!out.ends_with('\n')) std::fputc('\n', stdout);
}

CLI::App* add_command(CLI::App& app, Context& cx, const std::string& name, const std::string& summary) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->add_flag("--json", cx.json, "Print the result as JSON; docs/cli.md lists the keys");
  sub->add_option("--plugin-path", cx.plugin_paths, "Folders searched for plugins before all others")
      ->allow_extra_args(false)
      ->check(existing_folders());
  return sub;
}

namespace {

constexpr size_t kLongestText = 2000;

// Messages quote the input, which may be megabytes of one word.
void shorten(std::string& text) {
  if (text.size() > kLongestText) text = fmt::format("{} ... ({} bytes)", text.substr(0, kLongestText), text.size());
}

// As it is printed: short texts, and nothing said twice.
Error readable(const Error& error) {
  Error out;
  std::set<std::string> said;
  for (Diagnostic d : error.diagnostics) {
    shorten(d.message);
    shorten(d.hint);
    if (said.insert(to_string(d)).second) out.diagnostics.push_back(std::move(d));
  }
  return out;
}

}  // namespace

void tell(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

Json to_json(const Diagnostic& d) {
  const char* severity = d.severity == Severity::error ? "error" : d.severity == Severity::warning ? "warning" : "note";
  return {{"severity", severity},   {"message", d.message}, {"file", d.loc.file}, {"line", d.loc.line},
          {"column", d.loc.column}, {"node", d.loc.node},   {"hint", d.hint}};
}

void report(const Error& given, bool json) {
  const Error error = readable(given);
  tell(to_string(error) + "\n");
  if (!json) return;
  Json first = to_json(error.diagnostics.empty() ? Diagnostic{} : error.diagnostics.front()), more = Json::array();
  for (size_t i = 1; i < error.diagnostics.size(); ++i) more.push_back(to_json(error.diagnostics[i]));
  first["more"] = std::move(more);
  const std::string out = Json{{"error", std::move(first)}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(out.data(), 1, out.size(), stdout);
}

Progress::Progress(const Context& cx, std::string what, size_t total)
    : what_(std::move(what)),
      total_(total),
      quiet_(cx.json),
      terminal_(::isatty(STDERR_FILENO) != 0),
      next_ms_(terminal_ ? 2'000 : 10'000) {
  crash::at(what_);
}

Progress::~Progress() {
  if (told_ && terminal_) tell("\r\x1b[K");
}

void Progress::step(const std::string& unit) {
  ++done_;
  crash::at(fmt::format("{}, after {} ({} of {})", what_, unit, done_, total_));
  const double ms = watch_.ms();
  if (quiet_ || ms < next_ms_) return;
  next_ms_ = ms + (terminal_ ? 200 : 10'000);
  told_ = true;
  tell(fmt::format("{}{}: {} of {} so far ({:.40}), {:.0f} s{}", terminal_ ? "\r" : "", what_, done_, total_, unit,
                   ms / 1000, terminal_ ? "\x1b[K" : "\n"));
}

CLI::Validator existing_folders() {
  return {[](const std::string& given) {
            std::error_code ec;
            for (size_t at = 0; at <= given.size();) {
              const size_t end = std::min(given.find(':', at), given.size());
              const std::string folder = given.substr(at, end - at);
              if (!std::filesystem::is_directory(folder, ec)) return fmt::format("there is no folder '{}'", folder);
              at = end + 1;
            }
            return std::string();
          },
          "DIR", kFoldersValue};
}

CLI::Validator positive_number() {
  return {[](const std::string& given) {
            double x = 0;
            const bool ok = CLI::detail::lexical_cast(given, x) && std::isfinite(x) && x >= 0;
            return ok ? std::string() : "'" + given + "' is not a number of at least 0";
          },
          "NUMBER"};
}

CLI::Validator number_in(double least, double most) {
  return {[least, most](const std::string& given) {
            double x = 0;
            const bool ok = CLI::detail::lexical_cast(given, x) && x >= least && x <= most;
            return ok ? std::string() : fmt::format("'{}' is not a number from {} to {}", given, least, most);
          },
          fmt::format("NUMBER in [{} - {}]", least, most)};
}

CLI::Validator seed_number() {
  const auto check = [](const std::string& given) {
    uint64_t n = 0;
    const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), n);
    const bool ok = error == std::errc() && end == given.data() + given.size();
    return ok ? std::string() : fmt::format("'{}' is not a number from 0 to {}", given, UINT64_MAX);
  };
  return {check, ""};
}

CLI::Option* add_seed(CLI::App& sub, uint64_t& seed, const std::string& what) {
  return sub.add_option("--seed", seed, what)->check(seed_number());
}

CLI::Validator file_name() {
  return {[](const std::string& given) { return given.empty() ? std::string("the file's name is empty") : ""; }, "FILE",
          kFileValue};
}

CLI::Validator tensor_file() {
  return {[](const std::string& given) { return given.empty() ? std::string("the file's name is empty") : ""; }, "FILE",
          kTensorValue};
}

CLI::Validator hw_argument() {
  return {[](const std::string& given) {
            const auto argument = parse_hw_argument(given);
            return argument ? std::string() : std::string(argument.error().message());
          },
          "HW", kHwValue};
}

}  // namespace dlc::cli
