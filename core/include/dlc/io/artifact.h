// .dlca: what `dlc` writes and a runtime loads.
//
// A flat file, made to be mapped: 16 bytes of magic and version, the length and checksum of a JSON table, the table,
// then sections at multiples of 4 KiB. Every section has an XXH3 checksum in the table; a changed byte anywhere is
// found before the section is used. The same content gives the same bytes.
//
//   0   "DLCA0001"                8 bytes
//   8   u64 table bytes           little-endian
//   16  u64 XXH3 of the table
//   24  table (JSON): {"meta": {...}, "sections": [{"name", "offset", "size", "xxh3"}]}
//
// `meta` belongs to the writer: hardware name, arch_hash, partitions, inputs and outputs (docs/artifact.md).
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/io/file.h"

namespace dlc {

class ArtifactWriter {
 public:
  // The bytes must live until write(). Names are unique. Parts are one after the other in the section.
  void add(std::string name, std::span<const std::byte> bytes) { add(std::move(name), std::vector{bytes}); }
  void add(std::string name, std::vector<std::span<const std::byte>> parts);
  void add(std::string name, std::string text);  // kept by the writer
  void set_meta(std::string json) { meta_ = std::move(json); }
  Result<> write(const std::string& path) const;

 private:
  struct Section {
    std::string name;
    std::vector<std::span<const std::byte>> parts;
  };
  std::vector<Section> sections_;
  std::vector<std::shared_ptr<std::string>> owned_;
  std::string meta_ = "{}";
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
  std::shared_ptr<const void> owner() const { return file_.owner; }

 private:
  struct Entry {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t checksum = 0;
  };
  std::string path_, meta_;
  MappedFile file_;
  std::map<std::string, Entry, std::less<>> sections_;
};

}  // namespace dlc
