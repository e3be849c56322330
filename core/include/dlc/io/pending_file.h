// A file that is written piece by piece beside its target and then put in its place.
//
//   DLC_TRY(PendingFile f, PendingFile::open("m.bin"));
//   DLC_CHECK(f.append(head));
//   DLC_CHECK(f.append(body));
//   DLC_CHECK(f.flush());
//   DLC_CHECK(f.replace());  // before this, m.bin is what it was
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "dlc/io/fd.h"
#include "dlc/io/file.h"

namespace dlc {

// A file that is being written, in the target's folder. Without replace() it vanishes again. It is held alone:
// processes that write one target wait for each other.
class PendingFile {
 public:
  static Result<PendingFile> open(const std::string& path);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;
  ~PendingFile();

  uint64_t size() const { return size_; }
  Result<> append(std::span<const std::byte> bytes);
  void append_zeros(uint64_t count) { size_ += count; }  // not written: a file's holes read as zeros
  Result<> write_at(uint64_t offset, std::span<const std::byte> bytes);
  // The bytes from `offset` (a multiple of 4096) on, of which those may be read that are written by then.
  Result<MappedFile> map(uint64_t offset, uint64_t bytes) const;
  // Everything to the disk; what replace() puts in the target's place is then whole.
  Result<> flush();
  Result<> replace();

 private:
  PendingFile(std::string path, std::string target);
  Result<> lock();

  std::string path_, target_, temporary_;  // as it was given; behind links; beside it
  Fd fd_{-1};
  bool held_ = false;
  uint64_t size_ = 0, started_ = 0;  // started: the system was told to write the file up to here
};

}  // namespace dlc
