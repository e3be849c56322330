#include "frontends/onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "dlc/io/fd.h"

namespace dlc::onnx_frontend {

namespace {

Result<MappedFile> map_range(int fd, uint64_t file_size, uint64_t offset, uint64_t length, const Loc& where,
                             const std::string& name) {
  if (offset > file_size || length > file_size - offset)
    return fail(
        where,
        fmt::format("'{}' has {} bytes, but bytes {} to {} are asked for", name, file_size, offset, offset + length),
        "the file is truncated or belongs to another model");
  if (length == 0) length = file_size - offset;
  if (length == 0) return MappedFile{};
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t start = offset / page * page;
  const uint64_t mapped = length + (offset - start);
  void* p = ::mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(start));
  if (p == MAP_FAILED) return fail(where, fmt::format("cannot map '{}': {}", name, std::strerror(errno)));
  std::shared_ptr<const void> owner(p, [mapped](const void* q) { ::munmap(const_cast<void*>(q), mapped); });
  return MappedFile{{static_cast<const std::byte*>(p) + (offset - start), length}, std::move(owner)};
}

}  // namespace

Result<MappedFile> map_external(const std::string& folder, const std::string& location, uint64_t offset,
                                uint64_t length, const Loc& where) {
  const auto refuse = [&](const char* why) {
    return fail(where, fmt::format("external data '{}' is refused: {}", location, why),
                "external data must be a regular file inside the model's folder");
  };
  if (folder.empty()) return refuse("the model was not read from a folder");
  if (location.empty()) return refuse("the location is empty");
  if (location.find('\0') != std::string::npos) return refuse("the location has a zero byte");
  const std::filesystem::path path(location);
  if (path.is_absolute()) return refuse("the path is absolute");

  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return fail(where, fmt::format("cannot open folder '{}': {}", folder, std::strerror(errno)));
  // One component at a time without following links: what was checked is what is opened.
  for (auto it = path.begin(); it != path.end(); ++it) {
    const std::string part = it->string();
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse("the path leaves the folder ('..')");
    const bool last = std::next(it) == path.end();
    Fd next(
        ::openat(fd.get(), part.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | (last ? 0 : O_DIRECTORY)));
    if (next.get() < 0) {
      if (errno == ELOOP || errno == ENOTDIR) return refuse("a part of the path is a symbolic link or not a folder");
      return fail(where, fmt::format("cannot open external data '{}': {}", location, std::strerror(errno)),
                  "put the data file beside the model");
    }
    fd = std::move(next);
  }
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0)
    return fail(where, fmt::format("cannot read '{}': {}", location, std::strerror(errno)));
  if (!S_ISREG(st.st_mode)) return refuse("it is not a regular file");
  if (st.st_nlink > 1) return refuse("the file has more than one hard link");
  return map_range(fd.get(), static_cast<uint64_t>(st.st_size), offset, length, where, location);
}

}  // namespace dlc::onnx_frontend
