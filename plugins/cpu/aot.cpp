#include "plugins/cpu/aot.h"

#include <fmt/format.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>

#include "plugins/cpu/c_header.h"
#include "plugins/cpu/driver.h"
#include "plugins/cpu/shared_object.h"

namespace dlc::cpu {

namespace {

constexpr size_t kAlign = 64;
constexpr std::string_view kWeightsMagic = "DLCW0001";

std::string identifier(std::string_view text) {
  std::string s;
  for (const char c : text) s += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0])) != 0) s = "m_" + s;
  return s;
}

// All weights in one piece, in order of execution: magic, checksum of what follows the first 64 bytes, constants.
Result<HugePages> lay_out_weights(const Prepared& prepared, DriverInput& in) {
  const Program& p = prepared.program;
  in.constants.assign(p.buffers.size(), 0);
  size_t size = kAlign;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const ProgramBuffer& b = p.buffers[i];
    if (b.kind != BufferKind::constant || b.alias) continue;
    in.constants[i] = size;
    size += (prepared.constant_bytes(static_cast<int>(i)) + kAlign - 1) / kAlign * kAlign;
  }
  DLC_TRY(HugePages memory, HugePages::allocate(static_cast<int64_t>(size)));
  const std::span weights(memory.data(), size);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(state.get());
  size_t summed = kAlign;
  // Each constant is summed up with what lies before it while it is in the cache.
  const auto sum_until = [&](size_t end) {
    XXH3_64bits_update(state.get(), weights.data() + summed, end - summed);
    summed = end;
  };
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (p.buffers[i].kind != BufferKind::constant || p.buffers[i].alias) continue;
    const auto c = static_cast<int>(i);
    const size_t bytes = prepared.constant_bytes(c);
    DLC_CHECK(prepared.write_constant(c, weights.subspan(in.constants[i], bytes)));
    sum_until(in.constants[i] + bytes);
  }
  sum_until(size);
  const uint64_t sum = XXH3_64bits_digest(state.get());
  std::memcpy(weights.data(), kWeightsMagic.data(), kWeightsMagic.size());
  std::memcpy(weights.data() + kWeightsMagic.size(), &sum, sizeof(sum));
  in.weights = weights;
  return memory;
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

Result<Library> make_library(const Prepared& prepared, const Target& target, const std::string& name,
                             const std::string& format, const Options& options, size_t most_inside) {
  DriverInput in;
  in.program = &prepared.program;
  in.name = identifier(name);
  Library out;
  DLC_TRY(out.memory, lay_out_weights(prepared, in));
  in.weights_inside = in.weights.size() <= most_inside;
  Options with_driver = options;
  with_driver.extend = [&](llvm::Module& m, std::span<const CompiledKernel> kernels) { write_driver(in, m, kernels); };
  DLC_TRY(out.object, compile_to_object(prepared.units(), target, with_driver));
  out.header = c_header(prepared.program, in.name, name, in.weights_inside ? 0 : in.weights.size());
  if (!in.weights_inside) out.weights = in.weights;
  if (format == "so") {
    DLC_TRY(out.bytes, link_shared(out.object.bytes, name + ".so",
                                   {in.name + "_run", in.name + "_run_parallel", in.name + "_workspace_bytes"}));
  } else if (format == "a") {
    DLC_TRY(out.bytes, archive(out.object.bytes));
  } else {
    out.bytes = out.object.bytes;
  }
  return out;
}

}  // namespace dlc::cpu
