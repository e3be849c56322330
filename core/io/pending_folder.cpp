#include "dlc/io/pending_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/io/beside.h"

namespace dlc {

namespace fs = std::filesystem;

namespace {

std::unexpected<Error> system_error(const std::string& path, std::string_view what) {
  return fail({path, 0, 0, {}}, fmt::format("{}: {}", what, std::strerror(errno)));
}

// Without links, `.` and a slash at its end, so that it has a name in a parent.
std::string real_path(const std::string& path) {
  std::error_code ec;
  fs::path real = fs::weakly_canonical(fs::absolute(path, ec), ec);
  if (!real.has_filename()) real = real.parent_path();
  return real.string();
}

}  // namespace

Result<> PendingFolder::check(const std::string& path, const OwnEntry& own) {
  if (path.empty()) return fail({}, "cannot write: the folder's name is empty");
  std::error_code ec;
  const fs::path target = real_path(path);
  if (fs::exists(target, ec)) {
    if (!fs::is_directory(target, ec)) return fail({path, 0, 0, {}}, "cannot write: is no folder");
    if (fs::equivalent(target, fs::current_path(ec), ec))
      return fail({path, 0, 0, {}}, "cannot write: is the folder that this command runs in", "name a folder in it");
    for (const auto& entry : fs::directory_iterator(target, ec)) {
      const std::string name = entry.path().filename().string();
      if (!own(name) && !name.starts_with(".dlc-"))
        return fail({path, 0, 0, {}},
                    fmt::format("cannot write: the folder would be replaced, and it holds '{}'", name),
                    "give another folder, or empty this one");
    }
    if (ec) return fail({path, 0, 0, {}}, "cannot read: " + ec.message());
  }
  fs::path parent = target.parent_path();
  while (!fs::exists(parent, ec) && parent.has_relative_path()) parent = parent.parent_path();
  if (!fs::is_directory(parent, ec))
    return fail({path, 0, 0, {}}, fmt::format("cannot write: {} is no folder", parent.string()));
  if (::access(parent.c_str(), W_OK | X_OK) != 0) return system_error(path, "cannot write in " + parent.string());
  return {};
}

Result<PendingFolder> PendingFolder::open(const std::string& path, const OwnEntry& own) {
  DLC_CHECK(check(path, own));
  PendingFolder f(path, real_path(path));
  std::error_code ec;
  fs::create_directories(fs::path(f.target_).parent_path(), ec);
  if (ec) return fail({path, 0, 0, {}}, "cannot make the folder: " + ec.message());
  DLC_CHECK(f.lock());
  // Another process may have left it when it was killed.
  for (const auto& entry : fs::directory_iterator(f.temporary_, ec)) fs::remove_all(entry.path(), ec);
  if (ec) return fail({path, 0, 0, {}}, "cannot empty " + f.temporary_ + ": " + ec.message());
  return f;
}

// As of a file (file.cpp): the lock is of what the name means when it has been got.
Result<> PendingFolder::lock() {
  while (true) {
    if (::mkdir(temporary_.c_str(), 0777) != 0 && errno != EEXIST) return system_error(path_, "cannot make the folder");
    Fd fd(::open(temporary_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd.get() < 0 && errno == ENOENT) continue;  // put in its place by the process that had it
    if (fd.get() < 0) return system_error(path_, "cannot make the folder");
    while (::flock(fd.get(), LOCK_EX) != 0)
      if (errno != EINTR) return system_error(path_, "cannot lock");
    struct stat held{}, named{};
    if (::fstat(fd.get(), &held) != 0) return system_error(path_, "cannot make the folder");
    if (::lstat(temporary_.c_str(), &named) == 0 && named.st_ino == held.st_ino) {
      fd_ = std::move(fd);
      return {};
    }
  }
}

PendingFolder::PendingFolder(std::string path, std::string target)
    : path_(std::move(path)), target_(std::move(target)), temporary_(name_beside(target_) + ".d") {}

PendingFolder::PendingFolder(PendingFolder&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::move(other.fd_)) {}

PendingFolder::~PendingFolder() {
  std::error_code ec;
  if (fd_.get() >= 0) fs::remove_all(temporary_, ec);
}

Result<> PendingFolder::replace() {
  std::error_code ec;
  if (::rename(temporary_.c_str(), target_.c_str()) == 0) {  // there was none, or an empty one
    fd_ = Fd(-1);
    return {};
  }
  // The old folder gets the temporary name, and is removed under it: locked, so that nobody begins in it.
  Fd old(::open(target_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (old.get() < 0) return system_error(path_, "cannot replace");
  while (::flock(old.get(), LOCK_EX) != 0)
    if (errno != EINTR) return system_error(path_, "cannot lock");
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) return system_error(path_, "cannot replace");
    const std::string aside = temporary_ + ".old";
    fs::remove_all(aside, ec);
    if (::rename(target_.c_str(), aside.c_str()) != 0) return system_error(path_, "cannot replace");
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      auto failed = system_error(path_, "cannot replace");
      ::rename(aside.c_str(), target_.c_str());
      return failed;
    }
    fs::remove_all(aside, ec);
    fd_ = Fd(-1);
    return {};
  }
  fs::remove_all(temporary_, ec);
  fd_ = Fd(-1);
  return {};
}

}  // namespace dlc
