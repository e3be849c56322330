#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "core/io/beside.h"
#include "core/io/reads.h"
#include "core/io/regular.h"
#include "dlc/io/pending_file.h"

namespace dlc {

namespace {

std::unexpected<Error> system_error(const std::string& path, std::string_view what) {
  return fail({path, 0, 0, {}}, fmt::format("{}: {}", what, std::strerror(errno)));
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

// Shared, so that what is written later is seen.
Result<MappedFile> map_at(const std::string& path, int fd, uint64_t offset, size_t size) {
  if (size == 0) return MappedFile{};
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (p == MAP_FAILED) return system_error(path, "cannot map");
  MappedFile f;
  f.bytes = {static_cast<const std::byte*>(p), size};
  f.owner = std::shared_ptr<const void>(p, [size](const void* q) { ::munmap(const_cast<void*>(q), size); });
  return f;
}

std::atomic<ReadObserver> observer{nullptr};

}  // namespace

std::string name_beside(const std::string& path) {
  const size_t slash = path.rfind('/') + 1;
  return fmt::format("{}.dlc-{:016x}", path.substr(0, slash), XXH3_64bits(path.data() + slash, path.size() - slash));
}

void observe_reads(ReadObserver of_all) { observer = of_all; }

void tell_read(const std::string& path) {
  if (const ReadObserver told = observer.load()) told(path);
}

Result<MappedFile> map_file(const std::string& path) {
  // A pipe without a writer would block otherwise; a regular file does not care.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return system_error(path, "cannot open");
  return map_regular(fd.get(), path);
}

Result<MappedFile> map_regular(int fd, const std::string& path) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return system_error(path, "cannot read");
  if (!S_ISREG(st.st_mode))
    return fail({path, 0, 0, {}}, "is not a regular file",
                S_ISDIR(st.st_mode) ? "" : "a pipe or device is not read: write what it gives to a file first");
  tell_read(path);
  return map_at(path, fd, 0, static_cast<size_t>(st.st_size));
}

Result<PendingFile> PendingFile::open(const std::string& path) {
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
  DLC_CHECK(f.lock());
  f.held_ = true;
  if (mode) static_cast<void>(::fchmod(f.fd_.get(), *mode));  // where the file system has modes
  // Another process may have left it when it was killed.
  if (::ftruncate(f.fd_.get(), 0) != 0) return system_error(path, "cannot write");
  return f;
}

Result<> PendingFile::lock() {
  while (true) {
    Fd fd(::open(temporary_.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd.get() < 0) return system_error(path_, "cannot write");
    while (::flock(fd.get(), LOCK_EX) != 0)
      if (errno != EINTR) return system_error(path_, "cannot lock");
    struct stat held{}, named{};
    if (::fstat(fd.get(), &held) != 0) return system_error(path_, "cannot write");
    if (::lstat(temporary_.c_str(), &named) == 0 && named.st_ino == held.st_ino) {
      fd_ = std::move(fd);
      return {};
    }
  }  // renamed by the process that held it: take a new one
}

PendingFile::PendingFile(std::string path, std::string target)
    : path_(std::move(path)), target_(std::move(target)), temporary_(name_beside(target_)) {}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::move(other.fd_)),
      held_(std::exchange(other.held_, false)),
      size_(other.size_),
      started_(other.started_) {}

PendingFile::~PendingFile() {
  if (held_) ::unlink(temporary_.c_str());
}

Result<> PendingFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path_, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Result<> PendingFile::append(std::span<const std::byte> bytes) {
  constexpr uint64_t kStart = uint64_t{32} << 20;
  DLC_CHECK(write_at(size_, bytes));
  size_ += bytes.size();
  if (size_ - started_ < kStart) return {};
  // The disk works while what comes next is made; flush() then waits less. Advice, so that a failure does not matter.
  ::sync_file_range(fd_.get(), static_cast<off_t>(started_), static_cast<off_t>(size_ - started_),
                    SYNC_FILE_RANGE_WRITE);
  started_ = size_;
  return {};
}

Result<MappedFile> PendingFile::map(uint64_t offset, uint64_t bytes) const {
  return map_at(path_, fd_.get(), offset, bytes);
}

Result<> PendingFile::flush() {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) return system_error(path_, "cannot write");
  if (::fsync(fd_.get()) != 0 && errno != EINVAL) return system_error(path_, "cannot write");
  return {};
}

Result<> PendingFile::replace() {
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return system_error(path_, "cannot replace");
  held_ = false;
  return {};
}

Result<> check_writable(const std::string& path) {
  DLC_TRY(PendingFile file, PendingFile::open(path));
  return {};
}

Result<> write_files(std::span<const FileContent> files) {
  std::vector<PendingFile> pending;
  for (const FileContent& f : files) {
    DLC_TRY(PendingFile file, PendingFile::open(f.path));
    DLC_CHECK(file.append(f.bytes));
    DLC_CHECK(file.flush());
    pending.push_back(std::move(file));
  }
  for (PendingFile& file : pending) DLC_CHECK(file.replace());
  return {};
}

Result<> write_file(const std::string& path, std::span<const std::byte> bytes) {
  const FileContent one{path, bytes};
  return write_files(std::span(&one, 1));
}

Result<> write_file(const std::string& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace dlc
