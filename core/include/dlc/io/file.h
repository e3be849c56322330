// Whole files: mapped for reading, written beside their target and renamed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "dlc/base/diag.h"

namespace dlc {

// A file's bytes, mapped read-only. Copies share the mapping.
struct MappedFile {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

Result<MappedFile> map_file(const std::string& path);

// Writes to a temporary file in the target's folder, flushes it and renames it: an interrupted write leaves the old
// file whole and no other file behind. A link stays a link: the file behind it is replaced. Who may
// read and write the file stays too, and one that may not be written is not replaced.
Result<> write_file(const std::string& path, std::span<const std::byte> bytes);
Result<> write_file(const std::string& path, std::string_view text);

// Files that belong together: none is replaced before all are on the disk.
struct FileContent {
  std::string path;
  std::span<const std::byte> bytes;
};
Result<> write_files(std::span<const FileContent> files);

// Whether write_file() could begin: asked before long work, whose result would otherwise be lost.
Result<> check_writable(const std::string& path);

}  // namespace dlc
