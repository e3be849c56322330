// The one way in which files are read: whole, mapped, and only what is a regular file.
#pragma once

#include <string>

#include "dlc/io/file.h"

namespace dlc {

// `path` is for messages. Something that is read as it comes (a pipe, a device) is refused: it was opened without
// waiting for its other end.
Result<MappedFile> map_regular(int fd, const std::string& path);

}  // namespace dlc
