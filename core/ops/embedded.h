#pragma once

namespace dlc::detail {

// Record files compiled into the library; the last entry's name is null.
struct EmbeddedFile {
  const char* name;
  const char* text;
};
extern const EmbeddedFile kBuiltinRecords[];

}  // namespace dlc::detail
