// dlc targets: the machines there are descriptions of, and the devices that can be opened here.
// dlc plugins: what was found, and with --why what was refused.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "dlc/hw/load.h"
#include "tools/dlc/cli.h"

namespace dlc::cli {

namespace {

Result<int> targets(Context& cx) {
  Json hardware = Json::array(), devices = Json::array();
  std::string text = "--hw=\n  native           this machine\n";
  hardware.push_back({{"name", "native"}, {"file", "native"}, {"ok", true}});
  for (const std::string& folder : cx.hw_options().search) {
    std::error_code ec;
    std::vector<std::string> files;
    for (const auto& e : std::filesystem::directory_iterator(folder, ec))
      if (e.path().extension() == ".yaml") files.push_back(e.path().string());
    std::ranges::sort(files);
    for (const std::string& f : files) {
      const auto hw = load_hw(f);
      hardware.push_back({{"name", hw ? hw->name : ""}, {"file", f}, {"ok", hw.has_value()}});
      text += fmt::format("  {:<16} {}{}\n", std::filesystem::path(f).filename().string(), f,
                          hw ? "" : ": " + std::string(hw.error().message()));
    }
  }
  text += "--device\n";
  const auto list = [&](Backend& b) {
    for (const DeviceListing& d : b.list()) {
      devices.push_back({{"uri", d.uri}, {"plugin", b.name()}, {"available", d.available}, {"why", d.why}});
      text += fmt::format("  {:<16} {}{}\n", d.uri, b.name(), d.available ? "" : ": not available: " + d.why);
    }
  };
  list(interpreter_backend());
  cx.plugins().open_all();
  for (const PluginCandidate& c : cx.plugins().candidates())
    if (c.refused.empty())
      if (auto b = cx.plugins().find(c.manifest.name)) list(**b);
  cx.print({{"hardware", hardware}, {"devices", devices}}, text);
  return kOk;
}

Result<int> plugins(Context& cx, bool why) {
  cx.plugins().open_all();
  Json list = Json::array();
  std::string text;
  for (const PluginCandidate& c : cx.plugins().candidates()) {
    const bool ok = c.refused.empty();
    std::string devices;
    for (const auto& s : c.manifest.schemes) devices += (devices.empty() ? "" : " ") + s + ":";
    Json reasons = Json::array();
    for (const Diagnostic& d : c.refused.diagnostics) reasons.push_back(to_json(d));
    list.push_back({{"name", c.manifest.name},
                    {"version", c.manifest.version},
                    {"library", c.library},
                    {"ok", ok},
                    {"schemes", c.manifest.schemes},
                    {"families", c.manifest.families},
                    {"why", std::move(reasons)}});
    if (ok) text += fmt::format("{} {}  {}  {}\n", c.manifest.name, c.manifest.version, devices, c.library);
    if (!ok && why) text += fmt::format("refused: {}\n  {}\n", c.library, to_string(c.refused));
  }
  if (why) {
    text += "looked in\n";
    for (const std::string& f : cx.plugins().folders()) text += "  " + f + "\n";
  }
  cx.print({{"plugins", list}, {"folders", cx.plugins().folders()}}, text);
  return kOk;
}

}  // namespace

void add_targets(CLI::App& app, Context& cx) {
  CLI::App* sub = add_command(app, cx, "targets", "List machines and devices");
  sub->callback([&cx] { cx.action = [&cx] { return targets(cx); }; });
}

void add_plugins(CLI::App& app, Context& cx) {
  auto why = std::make_shared<bool>(false);
  CLI::App* sub = add_command(app, cx, "plugins", "List plugins");
  sub->add_flag("--why", *why, "Also what was refused, for which reason, and where was looked");
  sub->callback([why, &cx] { cx.action = [why, &cx] { return plugins(cx, *why); }; });
}

}  // namespace dlc::cli
