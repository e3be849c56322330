#include "dlc/plugin/compiled.h"

#include <fmt/format.h>

#include <algorithm>

#include "dlc/base/checked.h"
#include "dlc/io/file.h"

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

// The program that the plugin says it compiled, its constants taken out of `files`.
Result<> take_program(CompiledPartition& part, EmitResult& files, const std::string& plugin) {
  const auto* text = files.find("program");
  if (text == nullptr) return {};
  part.own_program.assign(reinterpret_cast<const char*>(text->data()), text->size());
  DLC_TRY(const Program own, parse_program(part.own_program, "program of plugin " + plugin));
  std::vector<std::string> inputs, outputs;
  for (const ProgramBuffer& b : own.buffers) {
    if (b.kind == BufferKind::input) inputs.push_back(b.external_name);
    if (b.kind == BufferKind::output) outputs.push_back(b.external_name);
    if (b.kind != BufferKind::constant || b.alias) continue;
    const auto given = std::ranges::find(files.files, "constant/" + b.name, [](const auto& f) { return f.first; });
    const auto old = std::ranges::find(part.weights, b.name, [](const auto& w) { return w.first; });
    std::vector<int64_t> shape;
    for (const Expr& d : b.type.shape) shape.push_back(d.constant().value_or(-1));
    if (given != files.files.end()) {
      const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(given->second));
      DLC_TRY(Tensor t, Tensor::wrap(b.type.dtype, std::move(shape), bytes->data(), bytes));
      if (t.byte_size() != bytes->size())
        return fail({}, fmt::format("plugin {}: constant {} has {} bytes, {} are expected", plugin, b.name,
                                    bytes->size(), t.byte_size()));
      part.own_weights.emplace_back(b.name, std::move(t));
    } else if (old != part.weights.end() && old->second.dtype() == b.type.dtype && old->second.shape() == shape) {
      part.own_weights.emplace_back(b.name, old->second);
    } else {
      return fail({}, fmt::format("plugin {}: constant {} of its program has no value", plugin, b.name));
    }
  }
  if (inputs != part.inputs || outputs != part.outputs)
    return fail({}, fmt::format("plugin {}: its program has other inputs or outputs", plugin));
  std::erase_if(files.files, [](const auto& f) { return f.first.starts_with("constant/"); });
  return {};
}

}  // namespace

Result<CompiledPartition> compile_partition(const std::string& device, Backend* backend, Program program,
                                            const Hardware& hardware, const std::string& options, EmitResult* files) {
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
  EmitResult emitted;
  DLC_CHECK(backend->emit({std::move(program), hardware.text, hardware.file, hardware.params, options}, emitted));
  const auto executable = std::ranges::find(emitted.files, "executable", [](const auto& f) { return f.first; });
  if (executable == emitted.files.end() && emitted.find("library") == nullptr)
    return fail({}, fmt::format("plugin {} made no executable", backend->name()));
  if (executable != emitted.files.end()) {
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(executable->second));
    part.executable = *kept;
    part.owner = kept;
    DLC_CHECK(take_program(part, emitted, backend->name()));
  }
  if (const auto* report = emitted.find("report.json"))
    part.report.assign(reinterpret_cast<const char*>(report->data()), report->size());
  if (files != nullptr) *files = std::move(emitted);
  return part;
}

}  // namespace dlc
