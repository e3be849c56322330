// What the targets share: bytes as text, and bytes as a file for readers that map one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dlc::fuzz {

inline std::string_view text(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }
inline std::span<const std::byte> bytes(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

// A file in memory with these bytes, as long as the object lives.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();
  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
};

}  // namespace dlc::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
