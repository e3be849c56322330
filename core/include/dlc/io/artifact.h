// .dlca: what `dlc` writes and a runtime loads.
//
// A flat file: a page with the header, sections at multiples of 4 KiB, then the JSON table that names them. The table
// comes last so that a section can be written while it is made. Every section has an XXH3 checksum in the table; a
// changed byte anywhere is found before the section is used. The same content gives the same bytes.
//
//   0   "DLCA0003"                8 bytes
//   8   u64 offset of the table   little-endian; the table ends the file
//   16  u64 table bytes
//   24  u64 XXH3 of the table
//       sections
//       table (JSON): {"meta": {...}, "sections": [{"name", "offset", "size", "xxh3"}]}
//
// `meta` belongs to the writer: hardware name, arch_hash, partitions, inputs and outputs (docs/artifact.md).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/io/pending_file.h"

struct XXH3_state_s;  // of xxhash.h

namespace dlc {

// Writes beside the target; without finish() nothing of it stays.
//
//   DLC_TRY(ArtifactWriter w, ArtifactWriter::create("m.dlca"));
//   w.begin("weights");
//   DLC_CHECK(w.append(bytes));  // as often as wanted
//   DLC_CHECK(w.add("report.json", text));
//   DLC_CHECK(w.finish(R"({"name": "m"})"));
class ArtifactWriter {
 public:
  static Result<ArtifactWriter> create(const std::string& path);

  // Names are unique. A section ends where the next begins.
  void begin(std::string name);
  Result<> append(std::span<const std::byte> bytes);
  void align(size_t to);      // zeros, up to a multiple of `to` bytes in the section
  uint64_t position() const;  // in the section: where the next byte goes
  // The section's bytes from here on, as they will be in the file: those may be read that are appended by then.
  Result<MappedFile> map(size_t bytes) const;
  Result<> add(std::string name, std::string_view text);
  // `meta` is JSON.
  Result<> finish(std::string_view meta);

 private:
  struct Section {
    std::string name;
    uint64_t offset = 0, size = 0, checksum = 0;
  };
  explicit ArtifactWriter(PendingFile file);
  void end();

  PendingFile file_;
  std::unique_ptr<XXH3_state_s, void (*)(XXH3_state_s*)> hash_;  // of the last section
  std::vector<Section> sections_;
};

class Artifact {
 public:
  // Maps the file and checks magic, table and section bounds. Checksums are checked by section().
  static Result<Artifact> open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& meta() const { return meta_; }
  std::vector<std::string> names() const;
  bool has(std::string_view name) const { return sections_.contains(name); }
  // The section's bytes in the mapping, its checksum verified.
  Result<std::span<const std::byte>> section(std::string_view name) const;
  // A copy in huge pages, the checksum verified on what was copied: for what is read again and again.
  struct Loaded {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  Result<Loaded> load(std::string_view name) const;
  std::shared_ptr<const void> owner() const { return file_.owner; }

 private:
  struct Entry {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t checksum = 0;
  };
  Result<Entry> find(std::string_view name) const;
  std::unexpected<Error> damaged(std::string_view name) const;

  std::string path_, meta_;
  MappedFile file_;
  std::map<std::string, Entry, std::less<>> sections_;
};

}  // namespace dlc
