#include "frontends/onnx/external_data.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dlc/io/inside.h"

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
  if (folder.empty())
    return fail(where, fmt::format("external data '{}' is refused: the model was not read from a folder", location));
  DLC_TRY(const Fd fd, open_inside(folder, location, "external data", where));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0)
    return fail(where, fmt::format("cannot read '{}': {}", location, std::strerror(errno)));
  if (st.st_nlink > 1)
    return fail(where, fmt::format("external data '{}' is refused: the file has more than one hard link", location),
                "external data must be a regular file inside the model's folder");
  return map_range(fd.get(), static_cast<uint64_t>(st.st_size), offset, length, where, location);
}

}  // namespace dlc::onnx_frontend
