// External tensor data, confined to the model's folder.
//
// A model names a file relative to itself. Nothing else is followed: an absolute path, a `..`, a symbolic link anywhere
// below the folder, a file with more than one hard link, and anything that is not a regular file are refused (the known
// attacks: CVE-2022-25882, CVE-2024-27318, CVE-2026-27489). The bytes are mapped, never copied.
#pragma once

#include <cstdint>
#include <string>

#include "dlc/base/diag.h"
#include "dlc/io/file.h"

namespace dlc::onnx_frontend {

// Maps bytes [offset, offset + length) of `folder`/`location`; length 0 means to the end of the file.
Result<MappedFile> map_external(const std::string& folder, const std::string& location, uint64_t offset,
                                uint64_t length, const Loc& where);

}  // namespace dlc::onnx_frontend
