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
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "core/io/fd.h"
#include "core/io/write_parts.h"

namespace dlc {

namespace {

std::unexpected<Error> system_error(const std::string& path, std::string_view what) {
  return fail({path, 0, 0, {}}, fmt::format("{}: {}", what, std::strerror(errno)));
}

// In the target's folder, short whatever the target's name is, and the same each time: what a killed process left is
// used again by the next write, so at most one such file lies beside a target.
std::string temporary_name(const std::string& path) {
  const size_t slash = path.rfind('/') + 1;
  return fmt::format("{}.dlc-{:016x}", path.substr(0, slash), XXH3_64bits(path.data() + slash, path.size() - slash));
}

// Where a link leads, so that the file is replaced and not the link.
std::string behind_links(std::string path) {
  namespace fs = std::filesystem;
  std::error_code ec;
  for (int i = 0; i < 40 && fs::is_symlink(path, ec); ++i) {
    const fs::path to = fs::read_symlink(path, ec);
    path = (fs::path(path).parent_path() / to).string();  // an absolute one replaces the folder
  }
  return path;
}

// A file that is being written beside its target. Without replace() it vanishes again.
class PendingFile {
 public:
  static Result<PendingFile> open(const std::string& path) {
    struct stat st{};
    std::optional<mode_t> mode;  // of the file that is replaced
    if (path.empty()) return fail({}, "cannot write: the file's name is empty");
    if (::stat(path.c_str(), &st) == 0) {
      if (!S_ISREG(st.st_mode))
        return fail({path, 0, 0, {}},
                    S_ISDIR(st.st_mode) ? "cannot write: is a folder" : "cannot write: is not a regular file");
      if (::access(path.c_str(), W_OK) != 0) return system_error(path, "cannot write");
      mode = st.st_mode & 07777;
    } else if (errno == ELOOP) {
      return system_error(path, "cannot write");
    }
    PendingFile f(path, behind_links(path));
    DLC_TRY(f.fd_, lock(path, f.temporary_));
    f.held_ = true;
    if (mode) static_cast<void>(::fchmod(f.fd_.get(), *mode));  // where the file system has modes
    return f;
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  PendingFile& operator=(PendingFile&&) = delete;
  PendingFile(PendingFile&& other) noexcept
      : path_(std::move(other.path_)),
        target_(std::move(other.target_)),
        temporary_(std::move(other.temporary_)),
        fd_(std::move(other.fd_)),
        held_(std::exchange(other.held_, false)) {}
  ~PendingFile() {
    if (held_) ::unlink(temporary_.c_str());
  }

  Result<> write(std::span<const std::span<const std::byte>> parts) {
    if (::ftruncate(fd_.get(), 0) != 0) return system_error(path_, "cannot write");
    for (std::span<const std::byte> bytes : parts)
      while (!bytes.empty()) {
        const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return system_error(path_, "cannot write");
        bytes = bytes.subspan(static_cast<size_t>(n));
      }
    if (::fsync(fd_.get()) != 0 && errno != EINVAL) return system_error(path_, "cannot write");
    return {};
  }
  Result<> replace() {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) return system_error(path_, "cannot replace");
    held_ = false;
    return {};
  }

 private:
  PendingFile(std::string path, std::string target)
      : path_(std::move(path)), target_(std::move(target)), temporary_(temporary_name(target_)) {}

  // Held alone: processes that write one target wait for each other.
  static Result<Fd> lock(const std::string& path, const std::string& temporary) {
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

  std::string path_, target_, temporary_;  // as it was given; behind links; beside it
  Fd fd_{-1};
  bool held_ = false;
};

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

Result<> check_writable(const std::string& path) {
  DLC_TRY(PendingFile file, PendingFile::open(path));
  return {};
}

Result<> write_files(std::span<const FileContent> files) {
  std::vector<PendingFile> pending;
  for (const FileContent& f : files) {
    DLC_TRY(PendingFile file, PendingFile::open(f.path));
    DLC_CHECK(file.write(std::span(&f.bytes, 1)));
    pending.push_back(std::move(file));
  }
  for (PendingFile& file : pending) DLC_CHECK(file.replace());
  return {};
}

Result<> detail::write_parts(const std::string& path, std::span<const std::span<const std::byte>> parts) {
  DLC_TRY(PendingFile file, PendingFile::open(path));
  DLC_CHECK(file.write(parts));
  return file.replace();
}

Result<> write_file(const std::string& path, std::span<const std::byte> bytes) {
  const FileContent one{path, bytes};
  return write_files(std::span(&one, 1));
}

Result<> write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace dlc
