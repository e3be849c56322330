#include "plugins/cpu/aot.h"

#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cctype>

#include "plugins/cpu/c_header.h"
#include "plugins/cpu/driver.h"
#include "plugins/cpu/shared_object.h"

namespace dlc::cpu {

namespace {

std::string identifier(std::string_view text) {
  std::string s;
  for (const char c : text) s += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0])) != 0) s = "m_" + s;
  return s;
}

Result<std::vector<std::byte>> archive(const std::vector<std::byte>& object) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  std::vector<llvm::NewArchiveMember> members;
  members.emplace_back(llvm::MemoryBufferRef(bytes, "model.o"));
  auto made = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
                                         true, false);
  if (!made) return fail({}, "cannot write the archive: " + llvm::toString(made.takeError()));
  const auto* begin = reinterpret_cast<const std::byte*>((*made)->getBufferStart());
  return std::vector<std::byte>(begin, begin + (*made)->getBufferSize());
}

}  // namespace

Result<Library> make_library(const Prepared& prepared, const Weights& weights, const Target& target,
                             const std::string& name, const std::string& format, const Options& options) {
  const DriverInput in{&prepared.program, &weights, identifier(name)};
  Options with_driver = options;
  with_driver.extend = [&](llvm::Module& m, std::span<const CompiledKernel> kernels) { write_driver(in, m, kernels); };
  Library out;
  DLC_TRY(out.object, compile_to_object(prepared.units(), target, with_driver));
  auto object = std::move(out.object.bytes);
  out.header = c_header(prepared.program, in.name, name, weights.is_inside() ? 0 : weights.size);
  if (format == "so") {
    DLC_TRY(out.bytes, link_shared(object, name + ".so",
                                   {in.name + "_run", in.name + "_run_parallel", in.name + "_workspace_bytes"}));
  } else if (format == "a") {
    DLC_TRY(out.bytes, archive(object));
  } else {
    out.bytes = std::move(object);
  }
  return out;
}

}  // namespace dlc::cpu
