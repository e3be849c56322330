#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/fuzz/targets/target.h"

namespace dlc::fuzz {

MemoryFile::MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
  if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  path_ = "/proc/self/fd/" + std::to_string(fd_);
}

MemoryFile::~MemoryFile() { close(fd_); }

}  // namespace dlc::fuzz
