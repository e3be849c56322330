// An open file that is closed at the end of its scope.
//
//   Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
//   if (fd.get() < 0) ...
#pragma once

#include <unistd.h>

#include <utility>

namespace dlc {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;  // negative: none
};

}  // namespace dlc
