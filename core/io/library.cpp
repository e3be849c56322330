#include "dlc/io/library.h"

#include <elf.h>

#include <cstring>

#include "dlc/io/file.h"

namespace dlc {

namespace {

bool is_whole(std::span<const std::byte> bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  const auto inside = [&](uint64_t begin, uint64_t size) {
    return begin <= bytes.size() && size <= bytes.size() - begin;
  };
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !inside(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)) ||
      !inside(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize))
    return false;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (!inside(segment.p_offset, segment.p_filesz)) return false;
  }
  return true;
}

}  // namespace

Result<> check_library(const std::string& path) {
  DLC_TRY(const MappedFile file, map_file(path));
  if (!is_whole(file.bytes)) return fail({path, 0, 0, {}}, "is no whole shared library", "build or install it again");
  return {};
}

}  // namespace dlc
