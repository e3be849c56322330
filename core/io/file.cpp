#include "dlc/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/io/write_parts.h"

namespace dlc {

namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

std::unexpected<Error> system_error(const std::string& path, std::string_view what) {
  return fail({path, 0, 0, {}}, fmt::format("{}: {}", what, std::strerror(errno)));
}

// In the target's folder, short whatever the target's name is, and the same each time: what a killed process left is
// used again by the next write, so at most one such file lies beside a target.
std::string temporary_name(const std::string& path) {
  const size_t slash = path.rfind('/') + 1;
  return fmt::format("{}.dlc-{:016x}", path.substr(0, slash), XXH3_64bits(path.data() + slash, path.size() - slash));
}

// The temporary file, held alone: processes that write one target wait for each other.
Result<Fd> open_locked(const std::string& path, const std::string& temporary) {
  while (true) {
    Fd fd(::open(temporary.c_str(), O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd.get() < 0) return system_error(path, "cannot write");
    while (::flock(fd.get(), LOCK_EX) != 0)
      if (errno != EINTR) return system_error(path, "cannot lock");
    struct stat held{}, named{};
    if (::fstat(fd.get(), &held) != 0) return system_error(path, "cannot write");
    if (::lstat(temporary.c_str(), &named) == 0 && named.st_ino == held.st_ino) return fd;
  }  // renamed by the process that held it: take a new one
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

Result<> detail::write_parts(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return fail({path, 0, 0, {}}, "cannot write: is not a regular file");
  const std::string temporary = temporary_name(path);
  DLC_TRY(Fd fd, open_locked(path, temporary));
  const auto abandon = [&](std::string_view what) {
    const auto error = system_error(path, what);
    ::unlink(temporary.c_str());
    return error;
  };
  if (::ftruncate(fd.get(), 0) != 0) return abandon("cannot write");
  for (std::span<const std::byte> bytes : parts) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return abandon("cannot write");
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return abandon("cannot write");
  if (::rename(temporary.c_str(), path.c_str()) != 0) return abandon("cannot replace");
  return {};
}

Result<> write_file(const std::string& path, std::span<const std::byte> bytes) {
  return detail::write_parts(path, std::span(&bytes, 1));
}

Result<> write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace dlc
