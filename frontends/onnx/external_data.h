// External tensor data, confined to the model's folder.
//
// A model names a file relative to itself. Nothing else is followed: an absolute path, a `..`, a symbolic link anywhere
// below the folder, a file with more than one hard link, and anything that is not a regular file are refused (the known
// attacks: CVE-2022-25882, CVE-2024-27318, CVE-2026-27489). The bytes are mapped, never copied.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dlc/base/diag.h"

namespace dlc::onnx_frontend {

struct MappedBytes {
  const std::byte* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<const void> owner;
};

// Maps bytes [offset, offset + length) of `folder`/`location`; length 0 means to the end of the file.
Result<MappedBytes> map_external(const std::string& folder, const std::string& location, uint64_t offset,
                                 uint64_t length, const Loc& where);

// Maps a whole file the user named (links are followed).
Result<MappedBytes> map_file(const std::string& path);

}  // namespace dlc::onnx_frontend
