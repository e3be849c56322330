#include "dlc/plugin/compiled.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "dlc/base/checked.h"
#include "dlc/io/file.h"
#include "dlc/plugin/model_file.h"

namespace dlc {

Result<Hardware> load_hardware(std::string_view argument, const HwLoadOptions& options) {
  DLC_TRY(const HwArgument arg, parse_hw_argument(argument));
  Hardware h;
  DLC_TRY(h.description, load_hw(argument, options));
  h.file = h.description.file;
  if (arg.name == "native") {
    DLC_TRY(h.text, native_yaml(arg.max));
    return h;
  }
  DLC_TRY(const MappedFile text, map_file(h.file));
  h.text = text.text();
  for (const auto& [name, value] : arg.params)
    h.params += fmt::format("{}{}={}", h.params.empty() ? "" : ",", name, value);
  return h;
}

namespace {

// The model's node beside a buffer: the first that uses it.
Loc node_of(const Program& p, const ProgramBuffer& b) {
  const auto index = static_cast<int>(&b - p.buffers.data());
  for (const Call& c : p.calls)
    if (std::ranges::count(c.buffers, index) > 0 && !c.locations.empty()) return {{}, 0, 0, c.locations.front()};
  return {};
}

// Sizes that no run could have are an error here, not later. Symbolic dims count with the least they may be.
Result<> check_sizes(const Program& p) {
  for (const ProgramBuffer& b : p.buffers) {
    int64_t elements = 1;
    for (const Expr& d : b.type.shape) {
      const int64_t least = std::max<int64_t>(bounds(d, p.symbols).lo, 0);
      const auto n = d.valid() ? checked_mul(elements, least) : std::nullopt;
      if (!n) return fail(node_of(p, b), fmt::format("the size of '{}', {}, overflows", b.name, to_string(b.type)));
      elements = *n;
    }
    if (elements > Tensor::max_bytes() / b.type.dtype.bytes())
      return fail(node_of(p, b), fmt::format("'{}', {}, is larger than the limit of {} bytes", b.name,
                                             to_string(b.type), Tensor::max_bytes()));
  }
  return {};
}

// The program that the plugin says it compiled, and its constants, as they come. They are kept in the program's order,
// which is that of execution, those that the plugin left as they were among them.
class OwnProgram {
 public:
  OwnProgram(CompiledPartition& part, ResultStore& store, std::string plugin)
      : part_(part), store_(store), plugin_(std::move(plugin)) {
    for (const auto& [name, t] : part.weights) given_.emplace(name, &t);
  }

  Result<> take(const std::string& name, std::span<const std::byte> bytes) {
    return name == "program" ? take_program(bytes) : take_constant(name.substr(kConstant.size()), bytes);
  }
  static bool takes(std::string_view name) { return name == "program" || name.starts_with(kConstant); }

  // When everything has come.
  Result<> finish() {
    if (!has_program_) return {};
    DLC_CHECK(keep_until(constants_.size()));
    for (Constant& c : constants_) {
      if (!c.value) return fail({}, fmt::format("plugin {}: constant {} of its program has no value", plugin_, c.name));
      part_.own_weights.emplace_back(std::move(c.name), std::move(*c.value));
    }
    return {};
  }

 private:
  struct Constant {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    std::optional<Tensor> value;
  };
  static constexpr std::string_view kConstant = "constant/";

  Result<> take_program(std::span<const std::byte> text) {
    part_.own_program.assign(reinterpret_cast<const char*>(text.data()), text.size());
    DLC_TRY(const Program own, parse_program(part_.own_program, "program of plugin " + plugin_));
    std::vector<std::string> inputs, outputs;
    size_t room = 0;
    for (const ProgramBuffer& b : own.buffers) {
      if (b.kind == BufferKind::input) inputs.push_back(b.external_name);
      if (b.kind == BufferKind::output) outputs.push_back(b.external_name);
      if (b.kind != BufferKind::constant || b.alias) continue;
      Constant c{b.name, b.type.dtype, {}, {}};
      for (const Expr& d : b.type.shape) c.shape.push_back(d.constant().value_or(-1));
      DLC_TRY(const Tensor size, Tensor::wrap(c.dtype, c.shape, nullptr, nullptr));
      if (__builtin_add_overflow(room, constant_room(size.byte_size()), &room))
        return fail({}, fmt::format("plugin {}: the size of its constants overflows", plugin_));
      places_.emplace(c.name, constants_.size());
      constants_.push_back(std::move(c));
    }
    if (inputs != part_.inputs || outputs != part_.outputs)
      return fail({}, fmt::format("plugin {}: its program has other inputs or outputs", plugin_));
    has_program_ = true;
    return store_.reserve(room);
  }

  Result<> take_constant(const std::string& name, std::span<const std::byte> bytes) {
    if (!has_program_) {
      early_[name].assign(bytes.begin(), bytes.end());
      return {};
    }
    const auto at = places_.find(name);
    if (at == places_.end()) return {};
    DLC_CHECK(keep_until(at->second));
    Constant& c = constants_[at->second];
    return keep(c, bytes, c.value.has_value());
  }

  Result<> keep(Constant& c, std::span<const std::byte> bytes, bool is_late) {
    DLC_TRY(Tensor given, Tensor::wrap(c.dtype, c.shape, bytes.data(), nullptr));
    if (given.byte_size() != bytes.size())
      return fail({}, fmt::format("plugin {}: constant {} has {} bytes, {} are expected", plugin_, c.name, bytes.size(),
                                  given.byte_size()));
    // Its place has been given to the one of the request: it gets a place of its own.
    if (is_late) {
      given.mutable_bytes();
      c.value = std::move(given);
      return {};
    }
    DLC_TRY(c.value, store_.keep(given, false));
    return {};
  }

  // Those that come before the constant `end` in the program.
  Result<> keep_until(size_t end) {
    for (; next_ < end; ++next_) {
      Constant& c = constants_[next_];
      if (c.value) continue;
      if (const auto early = early_.find(c.name); early != early_.end()) {
        DLC_CHECK(keep(c, early->second, false));
        continue;
      }
      const auto old = given_.find(c.name);
      if (old == given_.end() || old->second->dtype() != c.dtype || old->second->shape() != c.shape) continue;
      DLC_TRY(c.value, store_.keep(*old->second, true));
    }
    return {};
  }

  CompiledPartition& part_;
  ResultStore& store_;
  std::string plugin_;
  bool has_program_ = false;
  std::map<std::string_view, const Tensor*> given_;                   // the request's constants
  std::vector<Constant> constants_;                                   // in the program's order
  std::map<std::string, size_t, std::less<>> places_;                 // of each name: which of constants_
  size_t next_ = 0;                                                   // of those that may still be without a value
  std::map<std::string, std::vector<std::byte>, std::less<>> early_;  // given before the program
};

}  // namespace

Result<CompiledPartition> compile_partition(const std::string& device, Backend* backend, Program program,
                                            const Hardware& hardware, const std::string& options, EmitResult* files) {
  MemoryStore memory;
  return compile_partition(device, backend, std::move(program), hardware, options, files, memory);
}

Result<CompiledPartition> compile_partition(const std::string& device, Backend* backend, Program program,
                                            const Hardware& hardware, const std::string& options, EmitResult* files,
                                            ResultStore& results) {
  DLC_CHECK(check_sizes(program));
  CompiledPartition part;
  part.device = device;
  for (const ProgramBuffer& b : program.buffers) {
    if (b.kind == BufferKind::input) part.inputs.push_back(b.external_name);
    if (b.kind == BufferKind::output) part.outputs.push_back(b.external_name);
  }
  part.program = print(program);
  part.weights = program.weights;
  if (backend == nullptr) return part;
  OwnProgram own(part, results, backend->name());
  EmitResult emitted;
  bool has_library = false;
  emitted.forward = [&](const std::string& name, std::span<const std::byte> bytes) -> Result<> {
    has_library |= name == "library";
    if (OwnProgram::takes(name)) return own.take(name, bytes);
    DLC_TRY(const bool is_taken, results.take(name, bytes));
    if (!is_taken) emitted.files.emplace_back(name, std::vector<std::byte>(bytes.begin(), bytes.end()));
    return {};
  };
  EmitResult pieces;  // of what is not taken
  emitted.forward_at = [&](const std::string& name, uint64_t offset, std::span<const std::byte> bytes) -> Result<> {
    DLC_TRY(const bool is_taken, results.take_at(name, offset, bytes));
    if (!is_taken) pieces.put_at(name, offset, bytes);
    return {};
  };
  if (!backend->takes_states()) program.states.clear();
  const auto done =
      backend->emit({std::move(program), hardware.text, hardware.file, hardware.params, options}, emitted);
  if (!emitted.forwarded) return std::unexpected(std::move(emitted.forwarded).error());
  if (!done) return std::unexpected(done.error());
  emitted.forward = nullptr;
  emitted.forward_at = nullptr;
  std::ranges::move(pieces.files, std::back_inserter(emitted.files));
  const auto executable = std::ranges::find(emitted.files, "executable", [](const auto& f) { return f.first; });
  if (executable == emitted.files.end() && !has_library)
    return fail({}, fmt::format("plugin {} made no executable", backend->name()));
  if (executable != emitted.files.end()) {
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(executable->second));
    part.executable = *kept;
    part.owner = kept;
  }
  DLC_CHECK(own.finish());
  if (const auto* report = emitted.find("report.json"))
    part.report.assign(reinterpret_cast<const char*>(report->data()), report->size());
  if (files != nullptr) *files = std::move(emitted);
  return part;
}

}  // namespace dlc
