#include "plugins/cpu/container.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace dlc::cpu {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "dlc.cpu 2 ";

ordered_json kernel_json(const CompiledKernel& k) {
  ordered_json steps = ordered_json::array();
  for (const Step& s : k.steps) steps.push_back({{"name", s.name}, {"extent", to_string(s.extent)}});
  return {{"name", k.name}, {"symbols", k.symbols}, {"steps", steps}};
}

// Every access is checked: a checksum does not say who wrote it.
class Reader {
 public:
  explicit Reader(const ordered_json& header) : header_(header) {}

  Result<size_t> size(const char* key) const {
    if (!header_.contains(key) || !header_[key].is_number_unsigned()) return bad();
    return header_[key].get<size_t>();
  }
  Result<std::vector<CompiledKernel>> kernels() const {
    std::vector<CompiledKernel> out;
    if (!header_.contains("kernels") || !header_["kernels"].is_array()) return bad();
    for (const ordered_json& k : header_["kernels"]) {
      CompiledKernel kernel;
      DLC_TRY(kernel.name, text(k, "name"));
      if (!k.contains("symbols") || !k["symbols"].is_array() || !k.contains("steps") || !k["steps"].is_array())
        return bad();
      for (const ordered_json& s : k["symbols"]) {
        if (!s.is_string()) return bad();
        kernel.symbols.push_back(s.get<std::string>());
      }
      for (const ordered_json& s : k["steps"]) {
        Step step;
        DLC_TRY(step.name, text(s, "name"));
        DLC_TRY(const std::string extent, text(s, "extent"));
        DLC_TRY(step.extent, parse_expr(extent));
        kernel.steps.push_back(std::move(step));
      }
      out.push_back(std::move(kernel));
    }
    return out;
  }
  Result<std::string> text(const ordered_json& j, const char* key) const {
    if (!j.is_object() || !j.contains(key) || !j[key].is_string()) return bad();
    return j[key].get<std::string>();
  }
  static std::unexpected<Error> bad() {
    return fail({}, "the cpu code in the model is not understood", "compile the model again");
  }

 private:
  const ordered_json& header_;
};

}  // namespace

std::vector<std::byte> pack(const Program& program, const ObjectFile& object, const Target& target) {
  const std::string text = print(program);
  ordered_json kernels = ordered_json::array();
  for (const CompiledKernel& k : object.kernels) kernels.push_back(kernel_json(k));
  const ordered_json header{
      {"features", target.features}, {"program", text.size()}, {"object", object.bytes.size()}, {"kernels", kernels}};
  const std::string head = fmt::format("{}{}\n{}", kMagic, header.dump(), text);
  const auto* begin = reinterpret_cast<const std::byte*>(head.data());
  std::vector<std::byte> out(begin, begin + head.size());
  out.insert(out.end(), object.bytes.begin(), object.bytes.end());
  return out;
}

Result<Unpacked> unpack(std::span<const std::byte> executable) {
  const std::string_view all(reinterpret_cast<const char*>(executable.data()), executable.size());
  const size_t end = all.find('\n');
  if (!all.starts_with(kMagic) || end == std::string_view::npos)
    return fail({}, "this is not code of the cpu plugin, or of another version of it", "compile the model again");
  const auto header = ordered_json::parse(all.substr(kMagic.size(), end - kMagic.size()), nullptr, false);
  if (!header.is_object()) return Reader::bad();
  const Reader reader(header);
  DLC_TRY(const std::string features, reader.text(header, "features"));
  if (const std::string missing = Target{.features = features}.missing_here(); !missing.empty())
    return fail({}, fmt::format("this machine lacks {}, which the model was compiled for", missing),
                "compile it with --hw=native here, or with a lower --hw=native,max=v3");
  DLC_TRY(const size_t program, reader.size("program"));
  DLC_TRY(const size_t object, reader.size("object"));
  const std::string_view rest = all.substr(end + 1);
  if (program > rest.size() || object != rest.size() - program) return Reader::bad();
  Unpacked out;
  DLC_TRY(out.program, parse_program(rest.substr(0, program), "program"));
  const auto bytes = executable.subspan(executable.size() - object);
  out.object.bytes.assign(bytes.begin(), bytes.end());
  DLC_TRY(out.object.kernels, reader.kernels());
  if (out.object.kernels.size() != out.program.kernels.size()) return Reader::bad();
  return out;
}

}  // namespace dlc::cpu
