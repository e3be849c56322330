#include "plugins/cpu/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "dlc/hw/load.h"

namespace dlc::cpu {

namespace {

constexpr std::string_view kHeader = "dlc.cpu 1 ";

const std::vector<std::string> kV3 = {"avx2", "fma"};
const std::vector<std::string> kV4 = {"avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "fma"};

bool has_all(const std::vector<std::string>& have, const std::vector<std::string>& wanted) {
  return std::ranges::all_of(wanted, [&](const std::string& f) { return std::ranges::count(have, f) > 0; });
}

}  // namespace

Level level_of(const HwDescription& hw) {
  std::vector<std::string> features = hw.codegen.features;
  std::ranges::sort(features);
  if (hw.codegen.probe == "cpuid" && features == native_features()) return {"host", features};
  // A description promises what it lists and what stands below: v4 is v3 and more.
  if (has_all(features, {"avx512f", "avx512bw", "avx512dq", "avx512vl"})) return {"v4", kV4};
  if (has_all(features, kV3)) return {"v3", kV3};
  return {"baseline", {}};
}

Target cross_target_of(const Level& level) {
  if (level.name == "host") return Target::host();
  if (level.name == "v4") return Target::avx512();
  if (level.name == "v3") return Target::avx2();
  return Target::baseline();
}

Result<Target> target_of(const Level& level) {
  const auto here = native_features();
  std::string missing;
  for (const std::string& f : level.features)
    if (std::ranges::count(here, f) == 0) missing += (missing.empty() ? "" : ", ") + f;
  if (!missing.empty())
    return fail({}, fmt::format("this machine lacks {}, which the model was compiled for", missing),
                "compile it with --hw=native here, or with a lower --hw=native,max=v3");
  return cross_target_of(level);
}

std::string pack(const Level& level, const Program& program) {
  const nlohmann::ordered_json header{{"features", level.features}, {"level", level.name}};
  return fmt::format("{}{}\n{}", kHeader, header.dump(), print(program));
}

Result<Unpacked> unpack(std::span<const std::byte> executable) {
  const std::string_view text(reinterpret_cast<const char*>(executable.data()), executable.size());
  const size_t end = text.find('\n');
  if (!text.starts_with(kHeader) || end == std::string_view::npos)
    return fail({}, "this is not code of the cpu plugin, or of another version of it", "compile the model again");
  const auto header = nlohmann::json::parse(text.substr(kHeader.size(), end - kHeader.size()), nullptr, false);
  Unpacked out;
  if (!header.is_object() || !header.contains("level") || !header["level"].is_string() ||
      !header.contains("features") || !header["features"].is_array())
    return fail({}, "the header of the cpu code is not understood", "compile the model again");
  out.level.name = header["level"].get<std::string>();
  for (const auto& f : header["features"])
    if (f.is_string()) out.level.features.push_back(f.get<std::string>());
  DLC_TRY(out.program, parse_program(text.substr(end + 1), "program"));
  return out;
}

}  // namespace dlc::cpu
