#include "dlc/io/inside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/io/reads.h"
#include "core/io/regular.h"

namespace dlc {

namespace {

std::unexpected<Error> refuse(std::string_view location, std::string_view what, const Loc& where, const char* why) {
  return fail(where, fmt::format("{} '{}' is refused: {}", what, location, why),
              "name a regular file relative to the folder it belongs to, without links");
}

std::string folder_or_here(const std::string& folder) { return folder.empty() ? "." : folder; }

}  // namespace

Result<> check_inside(std::string_view location, std::string_view what, const Loc& where) {
  if (location.empty()) return refuse(location, what, where, "the path is empty");
  if (location.find('\0') != std::string_view::npos) return refuse(location, what, where, "the path has a zero byte");
  const std::filesystem::path path(location);
  if (path.is_absolute()) return refuse(location, what, where, "the path is absolute");
  for (const auto& part : path)
    if (part == "..") return refuse(location, what, where, "the path leaves the folder ('..')");
  return {};
}

Result<Fd> open_inside(const std::string& folder, const std::string& location, std::string_view what,
                       const Loc& where) {
  DLC_CHECK(check_inside(location, what, where));
  const std::string root = folder_or_here(folder);
  Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return fail(where, fmt::format("cannot open folder '{}': {}", root, std::strerror(errno)));
  const std::filesystem::path path(location);
  for (auto it = path.begin(); it != path.end(); ++it) {
    if (it->empty() || *it == ".") continue;
    const int folder_only = std::next(it) == path.end() ? 0 : O_DIRECTORY;
    Fd next(::openat(fd.get(), it->c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | folder_only));
    if (next.get() < 0) {
      if (errno == ELOOP || errno == ENOTDIR)
        return refuse(location, what, where, "a part of the path is a symbolic link or not a folder");
      return fail(where, fmt::format("cannot open {} '{}': {}", what, location, std::strerror(errno)),
                  fmt::format("put the file there: it is looked for in '{}'", root));
    }
    fd = std::move(next);
  }
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))
    return refuse(location, what, where, "it is not a regular file");
  tell_read((std::filesystem::path(root) / location).string());
  return fd;
}

Result<MappedFile> map_inside(const std::string& folder, const std::string& location, std::string_view what,
                              const Loc& where) {
  DLC_TRY(const Fd fd, open_inside(folder, location, what, where));
  return map_regular(fd.get(), (std::filesystem::path(folder_or_here(folder)) / location).string());
}

}  // namespace dlc
