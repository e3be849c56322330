// The host's side of the plugin boundary: finding plugins, refusing what is wrong with a reason, and calling the others
// through the same dlc::Backend that their authors wrote.
//
//   PluginRegistry plugins({.paths = {"/opt/npu"}});
//   DLC_TRY(Backend* cpu, plugins.find("cpu"));            // opens lib cpu on first use
//   DLC_TRY(auto device, cpu->open("cpu:"));
//
// A plugin is lib<name>.so with <name>.plugin.yaml beside it. The manifest is read first; a library is opened only when
// it is wanted and its manifest is right:
//
//   dlc_plugin: 1
//   name: cpu
//   version: 0.1.0
//   abi: 1
//   schemes: [cpu]                  # of device URIs
//   families: [queue_machine/1]     # optional: hardware descriptions without `plugin:` that it compiles for
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/hw/description.h"
#include "dlc/plugin/backend.h"

namespace dlc {

struct PluginManifest {
  std::string name, version;
  int64_t abi = 0;
  std::vector<std::string> schemes, families;
};
Result<PluginManifest> parse_plugin_manifest(std::string_view text, const std::string& file);

// Opens the library (RTLD_LOCAL, RTLD_NOW) and checks its tables. The library stays open for the process.
Result<std::unique_ptr<Backend>> open_plugin(const std::string& library, const PluginManifest& manifest);

struct PluginCandidate {
  std::string library;
  PluginManifest manifest;  // empty when it could not be read
  Error refused;            // empty: nothing is wrong so far
};

class PluginRegistry {
 public:
  struct Options {
    std::vector<std::string> paths;  // searched first: --plugin-path
    bool defaults = true;            // then DLC_PLUGIN_PATH, ~/.local/lib/dlc/plugins, and `installation`
    std::string installation;        // empty: ../lib/dlc/plugins from the running program
  };
  PluginRegistry() : PluginRegistry(Options{}) {}
  explicit PluginRegistry(const Options& options);

  const std::vector<std::string>& folders() const { return folders_; }
  // In order of search. Of two with one name the first that can be opened wins; the others are then refused for that
  // reason.
  const std::vector<PluginCandidate>& candidates() const { return candidates_; }

  Result<Backend*> find(std::string_view name);
  Result<Backend*> for_scheme(std::string_view scheme);
  // The plugin that the description names, or the one that declares its family.
  Result<Backend*> for_hardware(const HwDescription& hw);
  // Opens every candidate, so that candidates() says what is wrong with it.
  void open_all();

 private:
  void search(const std::string& folder);
  Result<Backend*> opened(size_t candidate);
  // `wanted` is for the message when there is none: "is called 'cpu'".
  Result<Backend*> first(const std::function<bool(const PluginManifest&)>& is_wanted, const std::string& wanted);
  Error none(const std::string& wanted) const;

  std::vector<std::string> folders_;
  std::vector<PluginCandidate> candidates_;
  std::map<size_t, std::unique_ptr<Backend>> backends_;  // by index of the candidate
};

// The folder of the running program ("/usr/bin"), from which installed files are found.
std::string program_folder();

}  // namespace dlc
