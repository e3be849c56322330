#include "tools/dlc/cli.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

namespace dlc::cli {

PluginRegistry& Context::plugins() {
  if (!plugins_) plugins_ = std::make_unique<PluginRegistry>(PluginRegistry::Options{.paths = plugin_paths});
  return *plugins_;
}

HwLoadOptions Context::hw_options() const {
  const auto installed = std::filesystem::path(program_folder() + "/../share/dlc/hwdesc").lexically_normal();
  return {.search = {"hwdesc", installed.string()}};
}

void Context::print(const Json& result, const std::string& text) const {
  const std::string out = json ? result.dump(2, ' ', false, Json::error_handler_t::replace) : text;
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (!out.ends_with('\n')) std::fputc('\n', stdout);
}

CLI::App* add_command(CLI::App& app, Context& cx, const std::string& name, const std::string& summary) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->add_flag("--json", cx.json, "Print the result as JSON; docs/cli.md lists the keys");
  sub->add_option("--plugin-path", cx.plugin_paths, "Folders searched for plugins before all others")
      ->allow_extra_args(false);
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

Json to_json(const Error& error) {
  Json list = Json::array();
  for (const Diagnostic& d : error.diagnostics) {
    const char* severity = d.severity == Severity::error     ? "error"
                           : d.severity == Severity::warning ? "warning"
                                                             : "note";
    list.push_back({{"severity", severity},
                    {"file", d.loc.file},
                    {"line", d.loc.line},
                    {"column", d.loc.column},
                    {"node", d.loc.node},
                    {"message", d.message},
                    {"next", d.hint}});
  }
  return list;
}

void report(const Error& given, bool json) {
  const Error error = readable(given);
  fmt::print(stderr, "{}\n", to_string(error));
  if (json) fmt::print("{}\n", Json{{"error", to_json(error)}}.dump(2, ' ', false, Json::error_handler_t::replace));
}

void Progress::step(const std::string& unit) {
  ++done_;
  const double ms = watch_.ms();
  if (ms < next_ms_) return;
  next_ms_ = ms + 1000;
  fmt::print(stderr, "{}: {} of {} ({}), {:.0f} s\n", what_, done_, total_, unit, ms / 1000);
}

}  // namespace dlc::cli
