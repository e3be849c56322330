#include "plugins/cuda/container.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace dlc::cuda {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "dlc.cuda 1 ";
constexpr int kMostDepth = 64;  // of loops in loops

ordered_json steps_json(const std::vector<Step>& steps) {
  ordered_json all = ordered_json::array();
  for (const Step& s : steps) {
    if (!s.variable.empty()) {
      all.push_back({{"loop", s.variable},
                     {"extent", to_string(s.extent)},
                     {"backwards", s.backwards},
                     {"body", steps_json(s.body)}});
      continue;
    }
    const Launch& l = s.launch;
    all.push_back({{"function", l.function},
                   {"statement", l.statement},
                   {"tensors", l.tensors},
                   {"symbols", l.symbols},
                   {"status", l.has_status},
                   {"points", to_string(l.points)},
                   {"block_per_point", l.block_per_point},
                   {"threads", l.threads}});
  }
  return all;
}

std::unexpected<Error> bad() {
  return fail({}, "the cuda code in the model is not understood", "compile the model again");
}

// Every access is checked: a checksum does not say who wrote it.
template <class T>
Result<T> get(const ordered_json& j, const char* key) {
  if (!j.is_object() || !j.contains(key)) return bad();
  const ordered_json& v = j[key];
  if constexpr (std::is_same_v<T, std::string>) {
    if (!v.is_string()) return bad();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!v.is_boolean()) return bad();
  } else if constexpr (std::is_same_v<T, size_t>) {
    if (!v.is_number_unsigned()) return bad();
  } else {
    if (!v.is_number_integer()) return bad();
  }
  return v.get<T>();
}

Result<Expr> get_expr(const ordered_json& j, const char* key) {
  DLC_TRY(const std::string text, get<std::string>(j, key));
  return parse_expr(text);
}

Result<std::vector<Step>> steps_of(const ordered_json& j, const Kernel& kernel, int depth) {
  if (!j.is_array() || depth > kMostDepth) return bad();
  std::vector<Step> all;
  for (const ordered_json& e : j) {
    Step s;
    if (e.is_object() && e.contains("loop")) {
      DLC_TRY(s.variable, get<std::string>(e, "loop"));
      DLC_TRY(s.extent, get_expr(e, "extent"));
      DLC_TRY(s.backwards, get<bool>(e, "backwards"));
      if (!e.contains("body") || s.variable.empty()) return bad();
      DLC_TRY(s.body, steps_of(e["body"], kernel, depth + 1));
      all.push_back(std::move(s));
      continue;
    }
    Launch& l = s.launch;
    DLC_TRY(l.function, get<std::string>(e, "function"));
    DLC_TRY(l.statement, get<int>(e, "statement"));
    DLC_TRY(l.has_status, get<bool>(e, "status"));
    DLC_TRY(l.points, get_expr(e, "points"));
    DLC_TRY(l.block_per_point, get<bool>(e, "block_per_point"));
    DLC_TRY(l.threads, get<int>(e, "threads"));
    if (l.threads < 1 || l.threads > 1024 || !e.contains("tensors") || !e.contains("symbols") ||
        !e["tensors"].is_array() || !e["symbols"].is_array())
      return bad();
    for (const ordered_json& t : e["tensors"]) {
      if (!t.is_number_integer()) return bad();
      const int tensor = t.get<int>();
      if (tensor < 0 || tensor >= std::ssize(kernel.tensors) || kernel.tensors[static_cast<size_t>(tensor)].view)
        return bad();
      l.tensors.push_back(tensor);
    }
    for (const ordered_json& t : e["symbols"]) {
      if (!t.is_string()) return bad();
      l.symbols.push_back(t.get<std::string>());
    }
    all.push_back(std::move(s));
  }
  return all;
}

}  // namespace

std::vector<std::byte> pack(const Program& program, const std::string& target, const Module& module,
                            const std::vector<Image>& images) {
  const std::string text = print(program);
  ordered_json kernels = ordered_json::array(), list = ordered_json::array();
  for (const KernelCode& k : module.kernels) kernels.push_back(steps_json(k.steps));
  for (const Image& i : images) list.push_back({{"target", i.target}, {"bytes", i.bytes.size()}});
  const ordered_json header{{"target", target},
                            {"program", text.size()},
                            {"text", module.text.size()},
                            {"kernels", kernels},
                            {"images", list}};
  const std::string head = fmt::format("{}{}\n{}{}", kMagic, header.dump(), text, module.text);
  const auto* begin = reinterpret_cast<const std::byte*>(head.data());
  std::vector<std::byte> out(begin, begin + head.size());
  for (const Image& i : images) out.insert(out.end(), i.bytes.begin(), i.bytes.end());
  return out;
}

Result<Unpacked> unpack(std::span<const std::byte> executable) {
  const std::string_view all(reinterpret_cast<const char*>(executable.data()), executable.size());
  const size_t end = all.find('\n');
  if (!all.starts_with(kMagic) || end == std::string_view::npos)
    return fail({}, "this is not code of the cuda plugin, or of another version of it", "compile the model again");
  const auto header = ordered_json::parse(all.substr(kMagic.size(), end - kMagic.size()), nullptr, false);
  Unpacked out;
  DLC_TRY(out.target, get<std::string>(header, "target"));
  std::string_view rest = all.substr(end + 1);
  const auto take = [&](size_t bytes) -> Result<std::string_view> {
    if (bytes > rest.size()) return bad();
    const std::string_view part = rest.substr(0, bytes);
    rest.remove_prefix(bytes);
    return part;
  };
  DLC_TRY(const size_t program_bytes, get<size_t>(header, "program"));
  DLC_TRY(const size_t text_bytes, get<size_t>(header, "text"));
  DLC_TRY(const std::string_view program, take(program_bytes));
  DLC_TRY(out.program, parse_program(program, "program"));
  DLC_TRY(out.module.text, take(text_bytes));
  if (!header.contains("kernels") || !header["kernels"].is_array() || !header.contains("images") ||
      !header["images"].is_array() || header["kernels"].size() != out.program.kernels.size())
    return bad();
  for (size_t k = 0; k < out.program.kernels.size(); ++k) {
    KernelCode code;
    DLC_TRY(code.steps, steps_of(header["kernels"][k], out.program.kernels[k], 0));
    out.module.kernels.push_back(std::move(code));
  }
  for (const ordered_json& i : header["images"]) {
    Image image;
    DLC_TRY(image.target, get<std::string>(i, "target"));
    DLC_TRY(const size_t bytes, get<size_t>(i, "bytes"));
    DLC_TRY(const std::string_view part, take(bytes));
    const auto* begin = reinterpret_cast<const std::byte*>(part.data());
    image.bytes.assign(begin, begin + part.size());
    out.images.push_back(std::move(image));
  }
  if (!rest.empty()) return bad();
  return out;
}

}  // namespace dlc::cuda
