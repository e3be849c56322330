#include "dlc/io/artifact.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "dlc/base/huge.h"
#include "dlc/io/json.h"

namespace dlc {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view kMagic = "DLCA0003";
constexpr size_t kHeader = 32;
constexpr size_t kAlign = 4096;
constexpr size_t kPiece = size_t{1} << 20;  // what stays in the cache while it is gone through twice

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

ArtifactWriter::ArtifactWriter(PendingFile file)
    : file_(std::move(file)), hash_(XXH3_createState(), [](XXH3_state_s* s) { XXH3_freeState(s); }) {
  file_.append_zeros(kAlign);  // the header, which finish() writes
}

Result<ArtifactWriter> ArtifactWriter::create(const std::string& path) {
  DLC_TRY(PendingFile file, PendingFile::open(path));
  return ArtifactWriter(std::move(file));
}

void ArtifactWriter::end() {
  if (sections_.empty()) return;
  Section& s = sections_.back();
  s.size = position();
  s.checksum = XXH3_64bits_digest(hash_.get());
  file_.append_zeros(round_up(file_.size()) - file_.size());
}

void ArtifactWriter::begin(std::string name) {
  end();
  XXH3_64bits_reset(hash_.get());
  sections_.push_back({std::move(name), file_.size()});
}

uint64_t ArtifactWriter::position() const { return file_.size() - sections_.back().offset; }

Result<> ArtifactWriter::append(std::span<const std::byte> bytes) {
  // In pieces that stay in the cache between the checksum and the write.
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPiece));
    XXH3_64bits_update(hash_.get(), piece.data(), piece.size());
    DLC_CHECK(file_.append(piece));
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

void ArtifactWriter::align(size_t to) {
  static constexpr std::byte kZeros[kAlign] = {};
  const size_t zeros = (to - position() % to) % to;
  XXH3_64bits_update(hash_.get(), kZeros, zeros);
  file_.append_zeros(zeros);
}

Result<MappedFile> ArtifactWriter::map(size_t bytes) const {
  const uint64_t begin = file_.size() / kAlign * kAlign;
  DLC_TRY(MappedFile f, file_.map(begin, file_.size() - begin + bytes));
  f.bytes = f.bytes.subspan(file_.size() - begin);
  return f;
}

Result<> ArtifactWriter::add(std::string name, std::string_view text) {
  begin(std::move(name));
  return append(std::as_bytes(std::span(text.data(), text.size())));
}

Result<> ArtifactWriter::finish(std::string_view meta) {
  end();
  ordered_json table;
  table["meta"] = ordered_json::parse(meta, nullptr, false);
  if (table["meta"].is_discarded()) return fail({}, "the artifact's meta data is not JSON");
  table["sections"] = ordered_json::array();
  for (const Section& s : sections_)
    table["sections"].push_back(
        {{"name", s.name}, {"offset", s.offset}, {"size", s.size}, {"xxh3", fmt::format("{:016x}", s.checksum)}});
  const std::string text = table.dump();
  std::string header(kMagic);
  append_u64(header, file_.size());
  append_u64(header, text.size());
  append_u64(header, XXH3_64bits(text.data(), text.size()));
  DLC_CHECK(file_.append(std::as_bytes(std::span(text.data(), text.size()))));
  DLC_CHECK(file_.write_at(0, std::as_bytes(std::span(header.data(), header.size()))));
  DLC_CHECK(file_.flush());
  return file_.replace();
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
  const uint64_t begin = read_u64(bytes, 8), length = read_u64(bytes, 16);
  if (begin < kAlign || begin > bytes.size() || length > bytes.size() - begin)
    return fail(where, "the artifact is truncated", "compile the model again");
  const auto table_bytes = a.file_.text().substr(begin, length);
  if (XXH3_64bits(table_bytes.data(), table_bytes.size()) != read_u64(bytes, 24))
    return fail(where, "the artifact's table is damaged (checksum)", "compile the model again");
  const auto bad = [&] { return fail(where, "the artifact's table is not understood", "compile the model again"); };
  if (!is_shallow_json(table_bytes)) return bad();
  const auto table = ordered_json::parse(table_bytes, nullptr, false);
  if (table.is_discarded() || !table.contains("meta") || !table.contains("sections") || !table["sections"].is_array())
    return bad();
  a.meta_ = table["meta"].dump();
  for (const auto& s : table["sections"]) {
    if (!s.contains("name") || !s["name"].is_string() || !s.contains("offset") || !s["offset"].is_number_unsigned() ||
        !s.contains("size") || !s["size"].is_number_unsigned() || !s.contains("xxh3") || !s["xxh3"].is_string())
      return bad();
    const Entry e{s["offset"].get<uint64_t>(), s["size"].get<uint64_t>(),
                  std::strtoull(s["xxh3"].get<std::string>().c_str(), nullptr, 16)};
    if (e.offset > begin || e.size > begin - e.offset) return bad();
    if (!a.sections_.emplace(s["name"].get<std::string>(), e).second) return bad();
  }
  if (bytes.size() != begin + length)
    return fail(where, fmt::format("the artifact has {} bytes, its table says {}", bytes.size(), begin + length),
                "compile the model again");
  bool zeros = padded(bytes, kHeader);
  for (const auto& [name, e] : a.sections_) zeros = zeros && padded(bytes, e.offset + e.size);
  if (!zeros) return fail(where, "the artifact is damaged between its sections", "compile the model again");
  return a;
}

std::vector<std::string> Artifact::names() const {
  std::vector<std::string> out;
  for (const auto& [name, entry] : sections_) out.push_back(name);
  return out;
}

Result<Artifact::Entry> Artifact::find(std::string_view name) const {
  const auto it = sections_.find(name);
  if (it == sections_.end())
    return fail({path_, 0, 0, {}}, fmt::format("the artifact has no section '{}'", name), "compile the model again");
  return it->second;
}

std::unexpected<Error> Artifact::damaged(std::string_view name) const {
  return fail({path_, 0, 0, {}}, fmt::format("section '{}' is damaged (checksum)", name), "compile the model again");
}

Result<std::span<const std::byte>> Artifact::section(std::string_view name) const {
  DLC_TRY(const Entry e, find(name));
  const auto data = file_.bytes.subspan(e.offset, e.size);
  if (XXH3_64bits(data.data(), data.size()) != e.checksum) return damaged(name);
  return data;
}

Result<Artifact::Loaded> Artifact::load(std::string_view name) const {
  DLC_TRY(const Entry e, find(name));
  DLC_TRY(HugePages memory, HugePages::allocate(static_cast<int64_t>(e.size)));
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (uint64_t at = 0; at < e.size; at += kPiece) {
    const auto n = std::min<uint64_t>(kPiece, e.size - at);
    std::memcpy(memory.data() + at, file_.bytes.data() + e.offset + at, n);
    XXH3_64bits_update(state.get(), memory.data() + at, n);
  }
  if (XXH3_64bits_digest(state.get()) != e.checksum) return damaged(name);
  const auto owner = std::make_shared<HugePages>(std::move(memory));
  return Loaded{{owner->data(), e.size}, owner};
}

}  // namespace dlc
