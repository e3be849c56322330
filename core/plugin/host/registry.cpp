// Where plugins are looked for, and in which order.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "dlc/io/file.h"
#include "dlc/plugin/compiled.h"

namespace dlc {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Result<PluginManifest> read_manifest(const fs::path& library) {
  std::string name = library.stem().string();
  if (name.starts_with("lib")) name = name.substr(3);
  const fs::path file = library.parent_path() / (name + ".plugin.yaml");
  std::error_code ec;
  if (!fs::exists(file, ec))
    return fail({library.string(), 0, 0, {}},
                fmt::format("it has no manifest: {} is not beside it", file.filename().string()));
  DLC_TRY(const MappedFile text, map_file(file.string()));
  DLC_TRY(PluginManifest manifest, parse_plugin_manifest(text.text(), file.string()));
  if (manifest.name != name)
    return fail({file.string(), 0, 0, {}}, fmt::format("the manifest is of '{}', the library is called {}",
                                                       manifest.name, library.filename().string()));
  if (manifest.abi != DLC_ABI_MAJOR)
    return fail({file.string(), 0, 0, {}},
                fmt::format("it was made for plugin interface {}, this dlc has {}", manifest.abi, DLC_ABI_MAJOR),
                "build the plugin against this version of dlc");
  return manifest;
}

}  // namespace

std::string program_folder() {
  std::error_code ec;
  const fs::path self = fs::read_symlink("/proc/self/exe", ec);
  return ec ? std::string(".") : self.parent_path().string();
}

PluginRegistry::PluginRegistry(const Options& options) : folders_(options.paths) {
  if (options.defaults) {
    if (const char* path = std::getenv("DLC_PLUGIN_PATH"))
      for (auto& folder : split(path, ':')) folders_.push_back(std::move(folder));
    if (const char* home = std::getenv("HOME")) folders_.push_back(std::string(home) + "/.local/lib/dlc/plugins");
    folders_.push_back(options.installation.empty() ? program_folder() + "/../lib/dlc/plugins" : options.installation);
  }
  for (std::string& folder : folders_) {
    folder = fs::path(folder).lexically_normal().string();
    search(folder);
  }
}

void PluginRegistry::search(const std::string& folder) {
  std::error_code ec;
  std::vector<fs::path> libraries;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (entry.path().extension() == ".so") libraries.push_back(entry.path());
  std::ranges::sort(libraries);
  std::vector<fs::path> alone;  // manifests whose library is not there
  constexpr std::string_view kManifest = ".plugin.yaml";
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(kManifest)) continue;
    name.resize(name.size() - kManifest.size());
    const auto is_its = [&](const fs::path& p) { return p.stem() == name || p.stem() == "lib" + name; };
    if (std::ranges::none_of(libraries, is_its)) alone.push_back(entry.path());
  }
  std::ranges::sort(alone);
  for (const fs::path& library : libraries) {
    PluginCandidate c;
    c.library = library.string();
    if (auto manifest = read_manifest(library))
      c.manifest = *std::move(manifest);
    else
      c.refused = std::move(manifest).error();
    candidates_.push_back(std::move(c));
  }
  for (const fs::path& manifest : alone) {
    const std::string stem = manifest.stem().stem().string();
    candidates_.push_back(
        {manifest.string(),
         {},
         Error({manifest.string(), 0, 0, {}}, fmt::format("its library is not beside it: there is no lib{}.so", stem),
               "build or install the plugin again")});
  }
}

Result<Backend*> PluginRegistry::opened(size_t i) {
  PluginCandidate& c = candidates_[i];
  for (size_t earlier = 0; earlier < i && c.refused.empty(); ++earlier) {
    const PluginCandidate& other = candidates_[earlier];
    if (other.manifest.name == c.manifest.name && opened(earlier))
      c.refused =
          Error({c.library, 0, 0, {}}, fmt::format("'{}' was found before it in {}", c.manifest.name, other.library));
  }
  if (!c.refused.empty()) return std::unexpected(c.refused);
  if (const auto it = backends_.find(i); it != backends_.end()) return it->second.get();
  auto backend = open_plugin(c.library, c.manifest);
  if (!backend) {
    c.refused = std::move(backend).error();
    return std::unexpected(c.refused);
  }
  return (backends_[i] = *std::move(backend)).get();
}

Result<Backend*> PluginRegistry::first(const std::function<bool(const PluginManifest&)>& is_wanted,
                                       const std::string& wanted) {
  Error refused;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (!is_wanted(candidates_[i].manifest)) continue;
    auto backend = opened(i);
    if (backend) return backend;
    refused.add(std::move(backend).error());
  }
  return std::unexpected(refused.empty() ? none(wanted) : std::move(refused));
}

Error PluginRegistry::none(const std::string& wanted) const {
  std::string where;
  for (const auto& f : folders_) where += (where.empty() ? "" : ", ") + f;
  Error e({}, "no plugin " + wanted, "looked in " + where + "; `dlc plugins --why` says what was found there");
  for (const PluginCandidate& c : candidates_)
    for (const Diagnostic& d : c.refused.diagnostics)
      e.diagnostics.push_back({Severity::note, d.loc, "refused: " + d.message, d.hint});
  return e;
}

Result<Backend*> PluginRegistry::find(std::string_view name) {
  if (name == "interp") return &interpreter_backend();
  return first([&](const PluginManifest& m) { return m.name == name; }, fmt::format("is called '{}'", name));
}

Result<Backend*> PluginRegistry::for_scheme(std::string_view scheme) {
  if (scheme == "interp") return &interpreter_backend();
  return first([&](const PluginManifest& m) { return std::ranges::count(m.schemes, scheme) > 0; },
               fmt::format("opens devices '{}:'", scheme));
}

Result<Backend*> PluginRegistry::for_hardware(const HwDescription& hw) {
  if (!hw.plugin.empty()) return find(hw.plugin);
  std::set<std::string> known;
  for (const PluginCandidate& c : candidates_) known.insert(c.manifest.families.begin(), c.manifest.families.end());
  const std::string wanted = fmt::format("compiles for machines of family '{}', but for {}", hw.family,
                                         known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
  if (known.contains(hw.family))
    return first([&](const PluginManifest& m) { return std::ranges::count(m.families, hw.family) > 0; }, wanted);
  Error e = none(wanted);
  Diagnostic& d = e.diagnostics.front();
  d.loc = hw.place("family");
  if (const std::string near = nearest(hw.family, {known.begin(), known.end()}); !near.empty())
    d.hint = fmt::format("did you mean '{}'?", near);
  return std::unexpected(std::move(e));
}

void PluginRegistry::open_all() {
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (!opened(i)) continue;  // the reason stays with the candidate
}

}  // namespace dlc
