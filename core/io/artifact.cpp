#include "dlc/io/artifact.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/io/write_parts.h"
#include "dlc/io/json.h"

namespace dlc {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "DLCA0001";
constexpr size_t kHeader = 24;
constexpr size_t kAlign = 4096;

void append_u64(std::string& s, uint64_t v) {
  for (int i = 0; i < 8; ++i) s += static_cast<char>(v >> (8 * i) & 0xff);
}

uint64_t read_u64(std::span<const std::byte> b, size_t at) {
  uint64_t v = 0;
  for (size_t i = 0; i < 8; ++i) v |= std::to_integer<uint64_t>(b[at + i]) << (8 * i);
  return v;
}

uint64_t round_up(uint64_t v) { return (v + kAlign - 1) / kAlign * kAlign; }

// What fills the file up to the next section is under no checksum, and must be zero.
bool padded(std::span<const std::byte> file, uint64_t end) {
  const uint64_t next = std::min<uint64_t>(round_up(end), file.size());
  return std::ranges::all_of(file.subspan(end, next - end), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

void ArtifactWriter::add(std::string name, std::vector<std::span<const std::byte>> parts) {
  sections_.push_back({std::move(name), std::move(parts)});
}

void ArtifactWriter::add(std::string name, std::string text) {
  owned_.push_back(std::make_shared<std::string>(std::move(text)));
  add(std::move(name), std::as_bytes(std::span(owned_.back()->data(), owned_.back()->size())));
}

Result<> ArtifactWriter::write(const std::string& path) const {
  // The table holds offsets that depend on its own length: offsets count from the first section, which starts at the
  // first 4 KiB boundary after the table.
  ordered_json table;
  table["meta"] = ordered_json::parse(meta_, nullptr, false);
  if (table["meta"].is_discarded()) return fail({path, 0, 0, {}}, "the artifact's meta data is not JSON");
  table["sections"] = ordered_json::array();
  uint64_t at = 0;
  std::vector<uint64_t> sizes;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  for (const auto& s : sections_) {
    uint64_t size = 0;
    XXH3_64bits_reset(state.get());
    for (const auto& part : s.parts) {
      XXH3_64bits_update(state.get(), part.data(), part.size());
      size += part.size();
    }
    const uint64_t sum = XXH3_64bits_digest(state.get());
    table["sections"].push_back(
        {{"name", s.name}, {"offset", at}, {"size", size}, {"xxh3", fmt::format("{:016x}", sum)}});
    at += round_up(size);
    sizes.push_back(size);
  }
  const std::string text = table.dump();
  std::string out(kMagic);
  append_u64(out, text.size());
  append_u64(out, XXH3_64bits(text.data(), text.size()));
  out += text;
  out.resize(round_up(out.size()));
  static constexpr std::byte kZeros[kAlign] = {};
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(out.data(), out.size()))};
  for (size_t i = 0; i < sections_.size(); ++i) {
    parts.insert(parts.end(), sections_[i].parts.begin(), sections_[i].parts.end());
    parts.emplace_back(kZeros, round_up(sizes[i]) - sizes[i]);
  }
  return detail::write_parts(path, parts);
}

Result<Artifact> Artifact::open(const std::string& path) {
  const Loc where{path, 0, 0, {}};
  Artifact a;
  a.path_ = path;
  DLC_TRY(a.file_, map_file(path));
  const auto bytes = a.file_.bytes;
  if (bytes.size() < kHeader || a.file_.text().substr(0, 4) != kMagic.substr(0, 4))
    return fail(where, "is not a dlc artifact", "compile a model with `dlc model.onnx -o model.dlca`");
  if (a.file_.text().substr(0, 8) != kMagic)
    return fail(where, "the artifact has another format version", "compile the model again");
  const uint64_t length = read_u64(bytes, 8);
  if (length > bytes.size() - kHeader) return fail(where, "the artifact is truncated", "compile the model again");
  const auto table_bytes = a.file_.text().substr(kHeader, length);
  if (XXH3_64bits(table_bytes.data(), table_bytes.size()) != read_u64(bytes, 16))
    return fail(where, "the artifact's table is damaged (checksum)", "compile the model again");
  const auto bad = [&] { return fail(where, "the artifact's table is not understood", "compile the model again"); };
  if (!is_shallow_json(table_bytes)) return bad();
  const auto table = ordered_json::parse(table_bytes, nullptr, false);
  if (table.is_discarded() || !table.contains("meta") || !table.contains("sections") || !table["sections"].is_array())
    return bad();
  a.meta_ = table["meta"].dump();
  const uint64_t base = round_up(kHeader + length);
  uint64_t end = base;
  for (const auto& s : table["sections"]) {
    if (!s.contains("name") || !s["name"].is_string() || !s.contains("offset") || !s["offset"].is_number_unsigned() ||
        !s.contains("size") || !s["size"].is_number_unsigned() || !s.contains("xxh3") || !s["xxh3"].is_string())
      return bad();
    Entry e;
    e.size = s["size"].get<uint64_t>();
    const auto relative = s["offset"].get<uint64_t>();
    if (base > bytes.size() || relative > bytes.size() - base || e.size > bytes.size() - base - relative)
      return fail(
          where,
          fmt::format("section '{}' lies beyond the end of the file: it is truncated", s["name"].get<std::string>()),
          "compile the model again");
    e.offset = base + relative;
    end = std::max(end, round_up(e.offset + e.size));
    e.checksum = std::strtoull(s["xxh3"].get<std::string>().c_str(), nullptr, 16);
    if (!a.sections_.emplace(s["name"].get<std::string>(), e).second) return bad();
  }
  if (bytes.size() != end)
    return fail(where, fmt::format("the artifact has {} bytes, its table says {}: it is truncated", bytes.size(), end),
                "compile the model again");
  bool zeros = padded(bytes, kHeader + length);
  for (const auto& [name, e] : a.sections_) zeros = zeros && padded(bytes, e.offset + e.size);
  if (!zeros) return fail(where, "the artifact is damaged between its sections", "compile the model again");
  return a;
}

std::vector<std::string> Artifact::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : sections_) out.push_back(name);
  return out;
}

Result<std::span<const std::byte>> Artifact::section(std::string_view name) const {
  const Loc where{path_, 0, 0, {}};
  const auto it = sections_.find(name);
  if (it == sections_.end())
    return fail(where, fmt::format("the artifact has no section '{}'", name), "compile the model again");
  const auto data = file_.bytes.subspan(it->second.offset, it->second.size);
  if (XXH3_64bits(data.data(), data.size()) != it->second.checksum)
    return fail(where, fmt::format("section '{}' is damaged (checksum)", name), "compile the model again");
  return data;
}

}  // namespace dlc
