#include "core/hw/reader.h"
#include "dlc/plugin/host.h"

namespace dlc {

Result<PluginManifest> parse_plugin_manifest(std::string_view text, const std::string& file) {
  DLC_TRY(const yaml::Ptr root, yaml::parse(text, file));
  HwDescription no_params;  // the reader's `${}` has nothing to refer to
  ReadContext cx(no_params);
  MapReader m(cx, *root, "the plugin's manifest");
  PluginManifest out;
  if (m.need("dlc_plugin")) m.integer("dlc_plugin", 1, 1, 1);
  if (const auto* n = m.need("name")) out.name = cx.name(*n);
  out.version = m.text("version");
  if (m.need("abi")) out.abi = m.integer("abi", 0, 1 << 20, 0);
  if (m.need("schemes")) out.schemes = m.texts("schemes");
  out.families = m.texts("families");
  m.done();
  if (!cx.ok()) return std::unexpected(cx.failure());
  return out;
}

}  // namespace dlc
