#pragma once

namespace dlc::detail {

// Files compiled into a library (cmake/EmbedText.cmake); the last entry's name is null.
struct EmbeddedFile {
  const char* name;
  const char* text;
};
extern const EmbeddedFile kBuiltinRecords[];  // the records

}  // namespace dlc::detail
