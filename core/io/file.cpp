#include "dlc/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dlc {

namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }
  int get() const { return fd_; }
  int close() { return fd_ >= 0 ? ::close(std::exchange(fd_, -1)) : 0; }

 private:
  int fd_;
};

std::unexpected<Error> system_error(const std::string& path, std::string_view what) {
  return fail({path, 0, 0, {}}, fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

Result<MappedFile> map_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return system_error(path, "cannot open");
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return system_error(path, "cannot read");
  if (!S_ISREG(st.st_mode)) return fail({path, 0, 0, {}}, "is not a regular file");
  const auto size = static_cast<size_t>(st.st_size);
  if (size == 0) return MappedFile{};
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (p == MAP_FAILED) return system_error(path, "cannot map");
  MappedFile f;
  f.bytes = {static_cast<const std::byte*>(p), size};
  f.owner = std::shared_ptr<const void>(p, [size](const void* q) { ::munmap(const_cast<void*>(q), size); });
  return f;
}

Result<> write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::string temporary = path + ".XXXXXX";
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) return system_error(path, "cannot write");
  const auto abandon = [&](std::string_view what) {
    const auto error = system_error(path, what);
    ::unlink(temporary.c_str());
    return error;
  };
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return abandon("cannot write");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  const mode_t mask = ::umask(0);  // mkstemp makes files private; give this one the usual permissions
  ::umask(mask);
  if (::fchmod(fd.get(), 0666 & ~mask) != 0) return abandon("cannot set permissions");
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return abandon("cannot write");
  if (fd.close() != 0) return abandon("cannot write");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return abandon("cannot replace");
  return {};
}

Result<> write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace dlc
