#include "plugins/cpu/aot.h"

#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "dlc/interp/interp.h"
#include "dlc/io/file.h"
#include "dlc/program/alias.h"
#include "plugins/cpu/driver.h"

LLD_HAS_DRIVER(elf)

namespace dlc::cpu {

namespace {

constexpr size_t kMostInside = size_t{64} << 20;  // larger weights go to a file of their own

std::string identifier(std::string_view text) {
  std::string s;
  for (const char c : text) s += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0])) != 0) s = "m_" + s;
  return s;
}

size_t append(std::vector<std::byte>& all, const std::byte* bytes, size_t size) {
  const size_t at = all.size();
  all.insert(all.end(), bytes, bytes + size);
  all.resize((all.size() + 63) / 64 * 64);
  return at;
}

int buffer_of(const Kernel& k, const Call& call, int tensor) {
  size_t next = 0;
  for (size_t i = 0; i < k.tensors.size(); ++i) {
    if (k.tensors[i].role == Role::temp || k.tensors[i].view) continue;
    if (static_cast<int>(i) == tensor) return call.buffers[next];
    ++next;
  }
  return -1;
}

// The constant behind a buffer; aliases of constants are views of all of it.
const Tensor* constant(const Program& p, int buffer) {
  while (buffer >= 0 && p.buffers[static_cast<size_t>(buffer)].alias)
    buffer = p.buffers[static_cast<size_t>(buffer)].alias->base;
  return buffer < 0 ? nullptr : p.weight(p.buffers[static_cast<size_t>(buffer)].name);
}

Result<Tensor> pack(const PackedTensor& t, const Tensor& from) {
  const KernelTensor& to = t.pack.tensors[static_cast<size_t>(t.pack.outputs[0])];
  std::vector<int64_t> shape;
  for (const Expr& d : to.shape) shape.push_back(d.constant().value_or(-1));
  DLC_TRY(Tensor result, Tensor::make(to.dtype, std::move(shape)));
  DLC_TRY(const PreparedKernel prepared, PreparedKernel::prepare(t.pack));
  std::vector<Buffer> buffers(t.pack.tensors.size());
  buffers[static_cast<size_t>(t.pack.inputs[0])] = {const_cast<std::byte*>(from.bytes()),
                                                    static_cast<int64_t>(from.byte_size())};
  buffers[static_cast<size_t>(t.pack.outputs[0])] = {result.mutable_bytes(), static_cast<int64_t>(result.byte_size())};
  DLC_CHECK(prepared.run(buffers));
  return result;
}

// Which constants are still read as they were, and all weights in one piece.
Result<> lay_out_weights(DriverInput& in) {
  const Program& p = *in.program;
  std::vector<bool> wanted(p.buffers.size(), false);
  for (const Call& call : p.calls) {
    const DriverKernel& k = in.kernels[static_cast<size_t>(call.kernel)];
    std::vector<size_t> offsets;
    for (const PackedTensor& t : k.plan->packed) {
      const Tensor* from = constant(p, buffer_of(p.kernels[static_cast<size_t>(call.kernel)], call, t.source));
      if (from == nullptr) return fail({}, "a packed tensor is not a constant of the program");
      DLC_TRY(const Tensor packed, pack(t, *from));
      offsets.push_back(append(in.weights, packed.bytes(), packed.byte_size()));
    }
    in.packed.push_back(std::move(offsets));
    for (const int b : call.buffers) {
      int root = b;
      while (p.buffers[static_cast<size_t>(root)].alias) root = p.buffers[static_cast<size_t>(root)].alias->base;
      wanted[static_cast<size_t>(root)] = true;
    }
  }
  in.constants.assign(p.buffers.size(), 0);
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (p.buffers[i].kind != BufferKind::constant || p.buffers[i].alias || !wanted[i]) continue;
    const Tensor* w = p.weight(p.buffers[i].name);
    if (w == nullptr) return fail({}, fmt::format("constant {} has no value", p.buffers[i].name));
    in.constants[i] = append(in.weights, w->bytes(), w->byte_size());
  }
  in.weights_inside = in.weights.size() <= kMostInside;
  return {};
}

std::string header_text(const DriverInput& in, const std::string& name) {
  const Program& p = *in.program;
  std::string dims, tensors;
  for (const auto& [symbol, r] : p.symbols) dims += fmt::format(" {}", symbol);
  int input = 0, output = 0;
  for (const ProgramBuffer& b : p.buffers) {
    if (b.kind == BufferKind::input)
      tensors += fmt::format(" *   inputs[{}]  {}: {}\n", input++, b.external_name, to_string(b.type));
    if (b.kind == BufferKind::output)
      tensors += fmt::format(" *   outputs[{}] {}: {}\n", output++, b.external_name, to_string(b.type));
  }
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(
      "/* Model {0}, compiled by dlc. Tensors are dense and row-major:\n{1} */\n#ifndef {2}_H\n#define {2}_H\n\n"
      "#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "/* dims: {3}. */\n"
      "/* Bytes of working memory for these dims; aligned to 64. */\n"
      "uint64_t {0}_workspace_bytes(const int64_t* dims);\n"
      "/* {4}\n * Returns 0, or the number of the call (from 1) that met a value that is not defined. Reentrant with "
      "a workspace each. */\n"
      "int32_t {0}_run(const void* const* inputs, void* const* outputs, void* workspace, const int64_t* dims,\n"
      "    const void* weights);\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
      name, tensors, upper, dims.empty() ? "none, NULL" : "the values of" + dims,
      in.weights_inside ? "weights: NULL, they are inside."
                        : "weights: the bytes of the .weights file, aligned to 64.");
}

Result<> link(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"ld.lld"};
  for (const std::string& a : arguments) argv.push_back(a.c_str());
  std::string messages;
  llvm::raw_string_ostream out(messages);
  const lld::Result r = lld::lldMain(argv, out, out, {{lld::Gnu, &lld::elf::link}});
  if (r.retCode != 0) return fail({}, "internal error: the linker failed: " + messages);
  return {};
}

std::string libm() {
  for (const char* path : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6"})
    if (std::filesystem::exists(path)) return path;
  return {};
}

// The folder of one link, removed with everything in it.
class Scratch {
 public:
  Result<> make() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dlc.XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) return fail({pattern, 0, 0, {}}, "cannot make a temporary folder");
    path_ = pattern;
    return {};
  }
  ~Scratch() {
    std::error_code ec;
    if (!path_.empty()) std::filesystem::remove_all(path_, ec);
  }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Result<std::vector<std::byte>> join(const std::vector<std::byte>& kernels, const std::vector<std::byte>& driver,
                                    const std::string& name, const std::string& format) {
  Scratch folder;
  DLC_CHECK(folder.make());
  DLC_CHECK(write_file(folder / "k.o", kernels));
  DLC_CHECK(write_file(folder / "d.o", driver));
  const std::string out = folder / "out";
  if (format == "so") {
    DLC_CHECK(write_file(folder / "map", fmt::format("{{ global: {0}_run; {0}_workspace_bytes; local: *; }};", name)));
    std::vector<std::string> arguments = {"-shared",     "--version-script=" + (folder / "map"),
                                          "-z",          "noexecstack",
                                          "--as-needed", "--gc-sections",
                                          "-s",          "-soname",
                                          name + ".so",  "-o",
                                          out,           folder / "d.o",
                                          folder / "k.o"};
    if (const std::string m = libm(); !m.empty()) arguments.push_back(m);
    DLC_CHECK(link(arguments));
  } else {
    DLC_CHECK(link({"-r", "-o", out, folder / "d.o", folder / "k.o"}));
  }
  DLC_TRY(const MappedFile made, map_file(out));
  std::vector<std::byte> bytes(made.bytes.begin(), made.bytes.end());
  if (format != "a") return bytes;
  const llvm::StringRef object(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<llvm::NewArchiveMember> members;
  members.emplace_back(llvm::MemoryBufferRef(object, "model.o"));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, true, false);
  if (!archive) return fail({}, "cannot write the archive: " + llvm::toString(archive.takeError()));
  const auto* begin = reinterpret_cast<const std::byte*>((*archive)->getBufferStart());
  return std::vector<std::byte>(begin, begin + (*archive)->getBufferSize());
}

}  // namespace

Result<Library> make_library(Program program, const Target& target, const std::string& name,
                             const std::string& format) {
  DLC_CHECK(alias_sets(program));
  const std::string prefix = identifier(name);
  for (Kernel& k : program.kernels) k.name = prefix + "_" + k.name;  // two models may meet in one program
  std::vector<Plan> plans;
  std::vector<Unit> units;
  for (const Kernel& k : program.kernels) {
    DLC_TRY(Plan plan, plan_contractions(k, target));
    plans.push_back(std::move(plan));
  }
  for (const Plan& p : plans) units.push_back(p.unit());
  DLC_TRY(const ObjectFile kernels, compile_to_object(units, target, {.opt_level = 1}));
  DriverInput in;
  in.program = &program;
  for (size_t i = 0; i < plans.size(); ++i)
    in.kernels.push_back({kernels.kernels[i].name, kernels.kernels[i].symbols, &plans[i]});
  DLC_CHECK(lay_out_weights(in));
  Library out;
  out.header = header_text(in, prefix);
  DLC_TRY(const auto driver, driver_object(in, target, prefix));
  if (!in.weights_inside) out.weights = in.weights;
  DLC_TRY(out.bytes, join(kernels.bytes, driver, prefix, format));
  return out;
}

}  // namespace dlc::cpu
