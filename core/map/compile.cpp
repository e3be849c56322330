#include "dlc/map/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/map/mapper.h"
#include "core/map/sync.h"
#include "core/map/work.h"
#include "dlc/base/checked.h"
#include "dlc/hw/check_program.h"
#include "dlc/kernel/access.h"
#include "dlc/program/alias.h"

namespace dlc {

using map::Emitter;
using map::Layout;
using map::Machine;
using map::Mapper;
using map::Mapping;
using map::Place;

namespace {

class Compiler {
 public:
  Compiler(Mapper& mapper, const Footprints& footprints, const Program& p, const AcceleratorOptions& options)
      : mapper_(mapper),
        footprints_(footprints),
        machine_(mapper.machine()),
        hw_(mapper.hw()),
        p_(p),
        options_(options) {}

  Result<AcceleratorImage> run() {
    // What only moves elements is not done where its result can be a part of something else.
    DLC_CHECK(
        alias_sets(p_, {.align = hw_.state_of(machine_.arena).align, .lanes = machine_.lanes, .in_place = false}));
    for (size_t s = 0; s < hw_.spaces.size(); ++s) {
      const int i = static_cast<int>(s);
      if (hw_.spaces[s].segment >= 0 && i != machine_.weights && i != machine_.arena && i != machine_.code)
        io_.push_back(i);
    }
    DLC_CHECK(buffers());
    Emitter emitter(machine_, places_);
    for (const Call& call : p_.calls) {
      const Loc where = map::place_of(p_, call);
      const auto parts = mapper_.map(p_, call);
      if (!parts) {
        const Refusal& r = parts.error();
        return fail({r.yaml_line > 0 ? hw_.file : "", r.yaml_line, 0, where.node}, r.why, r.next);
      }
      AcceleratorLayer layer;
      layer.name = where.node;
      layer.first = static_cast<int64_t>(emitter.program.size());
      emitter.begin_layer();
      for (const Mapping& part : *parts) DLC_CHECK(emitter.call(part.chain, part.tiling, where));
      layer.end = static_cast<int64_t>(emitter.program.size());
      layer.macs = map::used_macs(*parts->front().chain.target,
                                  macs(p_.kernels[static_cast<size_t>(call.kernel)]).constant().value_or(0));
      layer.plan = parts->front().plan();
      layer.tile = parts->front().tile();
      out_.layers.push_back(std::move(layer));
    }
    DLC_CHECK(check_entry(p_, {}));  // its sizes are numbers
    out_.program = std::move(emitter.program);
    out_.tiles = std::move(emitter.tiles);
    out_.weights = std::move(emitter.weights);
    DLC_CHECK(finish());
    return std::move(out_);
  }

 private:
  int64_t bytes_of(const ProgramBuffer& b) const { return Layout::of(b.type, machine_.lanes).bytes(); }

  // The memory plan for the buffers as they really lie; what has no segment of its own follows in the arena.
  Result<> buffers() {
    Program sized = p_;
    for (ProgramBuffer& b : sized.buffers) b.type = {kU8, {Expr(bytes_of(b))}};
    const int64_t align = hw_.state_of(machine_.arena).align;
    DLC_CHECK(plan_memory(sized, align));
    out_.arena_bytes = sized.arena_bytes.constant().value_or(0);
    size_t next = 0;
    for (size_t b = 0; b < p_.buffers.size(); ++b) {
      const ProgramBuffer& buffer = p_.buffers[b];
      if (buffer.alias || buffer.kind == BufferKind::constant) continue;
      Place place{machine_.arena, 0};
      if (buffer.kind == BufferKind::temp) {
        place.offset = sized.buffers[b].offset.constant().value_or(0);
      } else if (next < io_.size()) {
        place.segment = io_[next++];
      } else {
        place.offset = ceil_div(out_.arena_bytes, align) * align;
        out_.arena_bytes = place.offset + bytes_of(buffer);
      }
      places_.emplace(static_cast<int>(b), place);
      if (buffer.kind == BufferKind::temp) continue;
      AcceleratorIo io{buffer.name,  buffer.type.dtype, {}, machine_.lanes, place.segment,
                       place.offset, bytes_of(buffer)};
      for (const Expr& e : buffer.type.shape) {
        const auto n = e.constant();
        if (!n) return fail({}, fmt::format("{} has the symbolic extent {}", buffer.name, to_string(e)));
        io.shape.push_back(*n);
      }
      (buffer.kind == BufferKind::input ? out_.inputs : out_.outputs).push_back(std::move(io));
    }
    return {};
  }

  Result<> finish() {
    for (size_t i = 0; i < hw_.isa.insns.size(); ++i) {
      if (!hw_.isa.insns[i].forms.empty()) continue;
      Instruction end = make_instruction(hw_, static_cast<int>(i));
      if (hw_.isa.insns[i].field("irq") >= 0) DLC_CHECK(set_field(hw_, end, "irq", 1));
      out_.program.push_back(std::move(end));
      out_.tiles.push_back(0);
      break;
    }
    DLC_CHECK(map::synchronise(hw_, footprints_, out_.program));
    DLC_CHECK(fits());
    if (options_.prove) {
      DLC_TRY(const ProgramCheck check, check_program(hw_, out_.program));
      if (!check.ok())
        return fail(blamed(check), "the program is not right: " + report(hw_, out_.program, check),
                    "the line is what the machine has too little of, or says wrongly");
    }
    const auto times = predict_times(hw_, out_.program);
    const auto cycles = layer_cycles(hw_, out_, times, times.empty() ? 0 : times.back().retire);
    for (size_t l = 0; l < cycles.size(); ++l) out_.layers[l].predicted_cycles = cycles[l];
    return {};
  }

  // The segments share one memory.
  Result<> fits() const {
    const HwState& memory = hw_.state_of(machine_.code);
    const auto has = static_cast<uint64_t>(memory.words * memory.word_bytes());
    const size_t code = out_.program.size() * static_cast<size_t>(hw_.isa.words32()) * 4;
    uint64_t end = 0;
    segment_bases(hw_, out_, code, &end);
    if (end <= has) return {};
    std::string parts;
    const auto sizes = segment_sizes(hw_, out_, code);
    for (size_t s = 0; s < sizes.size(); ++s)
      if (sizes[s] > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", hw_.spaces[s].name, sizes[s]);
    return fail(memory.loc,
                fmt::format("the program needs {} bytes of '{}', which has {} (bytes of each segment, which begin at "
                            "whole pages: {})",
                            end, memory.name, has, parts),
                fmt::format("a larger 'size' of '{}', or a smaller model", memory.name));
  }

  // What of the description is behind the first problem.
  Loc blamed(const ProgramCheck& check) const {
    if (check.problems.empty()) return hw_.place("sync");
    const ProgramProblem& p = check.problems.front();
    if (p.kind == "deadlock" || p.kind == "overflow" || p.kind == "waiters")
      return hw_.state[static_cast<size_t>(hw_.sync->object)].loc;
    if (p.space >= 0) return hw_.state_of(p.space).loc;
    return hw_.isa.insns[static_cast<size_t>(out_.program[static_cast<size_t>(p.instruction)].insn)].loc;
  }

  Mapper& mapper_;
  const Footprints& footprints_;
  const Machine& machine_;
  const HwDescription& hw_;
  Program p_;
  const AcceleratorOptions& options_;
  AcceleratorImage out_;
  std::vector<int> io_;
  std::map<int, Place> places_;
};

Layout layout_of(const AcceleratorIo& io) {
  TensorType type{io.dtype, {}};
  for (const int64_t n : io.shape) type.shape.emplace_back(n);
  return Layout::of(type, io.lanes);
}

}  // namespace

int AcceleratorImage::layer_of(int64_t instruction) const {
  for (size_t l = 0; l < layers.size(); ++l)
    if (layers[l].first <= instruction && instruction < layers[l].end) return static_cast<int>(l);
  return -1;
}

struct AcceleratorCompiler::Impl {
  Mapper mapper;
  Footprints footprints;
};
AcceleratorCompiler::AcceleratorCompiler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AcceleratorCompiler::AcceleratorCompiler(AcceleratorCompiler&&) noexcept = default;
AcceleratorCompiler& AcceleratorCompiler::operator=(AcceleratorCompiler&&) noexcept = default;
AcceleratorCompiler::~AcceleratorCompiler() = default;

Result<AcceleratorCompiler> AcceleratorCompiler::make(std::shared_ptr<const HwDescription> hw) {
  DLC_TRY(Machine machine, map::read_machine(*hw));
  DLC_TRY(Footprints footprints, Footprints::make(*hw));
  return AcceleratorCompiler(std::make_unique<Impl>(Mapper(std::move(hw), std::move(machine)), std::move(footprints)));
}

std::vector<Refusal> AcceleratorCompiler::refused(const Program& program) {
  std::vector<Refusal> out;
  for (size_t c = 0; c < program.calls.size(); ++c) {
    const auto mapping = impl_->mapper.map(program, program.calls[c]);
    if (mapping) continue;
    out.push_back(mapping.error());
    out.back().call = static_cast<int>(c);
  }
  return out;
}

Result<AcceleratorImage> AcceleratorCompiler::compile(const Program& program, const AcceleratorOptions& options) {
  return Compiler(impl_->mapper, impl_->footprints, program, options).run();
}

Result<AcceleratorImage> compile_for(const HwDescription& hw, const Program& program,
                                     const AcceleratorOptions& options) {
  DLC_TRY(AcceleratorCompiler compiler, AcceleratorCompiler::make({&hw, [](const HwDescription*) {}}));
  return compiler.compile(program, options);
}

std::vector<std::byte> pack_io(const AcceleratorIo& io, const Tensor& from) {
  std::vector<std::byte> bytes(static_cast<size_t>(io.bytes));
  map::pack(layout_of(io), from, bytes.data());
  return bytes;
}

Result<Tensor> unpack_io(const AcceleratorIo& io, std::span<const std::byte> from) {
  if (static_cast<int64_t>(from.size()) < io.bytes) return fail({}, io.name + " has fewer bytes than its layout");
  DLC_TRY(Tensor out, Tensor::make(io.dtype, io.shape));
  map::unpack(layout_of(io), from.data(), out);
  return out;
}

}  // namespace dlc
