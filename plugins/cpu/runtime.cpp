#include "plugins/cpu/runtime.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "dlc/kernel/access.h"
#include "dlc/program/alias.h"
#include "dlc/program/layout.h"
#include "plugins/cpu/codegen/contraction.h"
#include "plugins/cpu/huge_pages.h"

namespace dlc::cpu {

namespace {

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

Result<int64_t> bytes_of(DType dtype, const std::vector<Expr>& dims, const Bindings& symbols,
                         std::vector<int64_t>* shape_out = nullptr) {
  std::vector<int64_t> shape;
  for (const Expr& d : dims) {
    const auto v = evaluate(d, symbols);
    if (!v) return fail({}, fmt::format("dim {} is not known from the inputs", to_string(d)));
    shape.push_back(*v);
  }
  int64_t elements = 1;
  for (const int64_t d : shape) {
    if (d < 0 || __builtin_mul_overflow(elements, d, &elements)) return fail({}, "a tensor's size overflows");
  }
  if (elements > Tensor::max_bytes() / dtype.bytes()) return fail({}, "a tensor is larger than the limit");
  if (shape_out != nullptr) *shape_out = std::move(shape);
  return elements * dtype.bytes();
}

int64_t aligned(int64_t n) { return (n + 63) / 64 * 64; }

// Less work than this is done sooner by one thread than it is handed out.
constexpr int64_t kWorthThreads = 200'000;

// One kernel, ready: its code, its packed constants by tensor.
struct Compiled {
  Plan plan;
  EntryPoint entry = nullptr;
  std::vector<std::string> symbols;
  std::vector<Step> steps;
  Expr work;
};

// One call with every pointer in its place, for one set of dims.
struct BoundCall {
  struct Part {
    StepFunction run = nullptr;
    int64_t extent = 1;
  };
  EntryPoint entry = nullptr;
  std::vector<void*> buffers;
  std::vector<int64_t> dims;
  std::vector<Part> parallel;  // empty: the entry does it

  // 0, or the number of the statement that failed.
  int64_t run(int threads) {
    if (parallel.empty()) return entry(buffers.data(), dims.data());
    for (const Part& p : parallel) {
      const int64_t chunks = std::min<int64_t>(p.extent, threads);
      std::atomic<int64_t> failed = 0;
      tbb::parallel_for(
          int64_t{0}, chunks,
          [&](int64_t c) {
            const int64_t f = p.run(buffers.data(), dims.data(), p.extent * c / chunks, p.extent * (c + 1) / chunks);
            if (f != 0) failed = f;
          },
          tbb::static_partitioner());
      if (failed != 0) return failed;
    }
    return 0;
  }
};

class CpuExecutable : public Executable {
 public:
  CpuExecutable(Program program, const Target& target, int threads)
      : program_(std::move(program)),
        target_(target),
        threads_(threads > 0 ? threads : tbb::info::default_concurrency()),
        pool_(threads_) {}

  Result<> prepare() {
    const double start = now_ms();
    // Activations in blocks of one vector of channels: convolutions then match the contraction skeleton as they are.
    DLC_TRY(blocked_, assign_layouts(program_, {.block = target_.vector_bytes / 4}));
    DLC_TRY(aliases_, alias_sets(program_));
    std::vector<Unit> units;
    for (const Kernel& k : program_.kernels) {
      DLC_TRY(Plan plan, plan_contractions(k, target_));
      kernels_.push_back({std::move(plan), nullptr, {}, {}, flops(k)});
    }
    for (const Compiled& c : kernels_) units.push_back(c.plan.unit());
    const double planned = now_ms();
    DLC_TRY(code_, compile(units, target_, {.opt_level = kOptLevel}));
    for (size_t i = 0; i < kernels_.size(); ++i) {
      kernels_[i].entry = code_.kernels()[i].entry;
      kernels_[i].symbols = code_.kernels()[i].symbols;
      kernels_[i].steps = code_.kernels()[i].steps;
    }
    const double compiled = now_ms();
    DLC_CHECK(pack_constants());
    plan_ms_ = planned - start;
    code_ms_ = compiled - planned;
    pack_ms_ = now_ms() - compiled;
    call_ms_.assign(program_.calls.size(), 0.0);
    return {};
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override {
    DLC_TRY(Bindings symbols, bind(inputs));
    if (!bound_ || *bound_ != symbols) DLC_CHECK(place(symbols));
    std::vector<Tensor> outputs;
    size_t next_input = 0;
    std::vector<void*> own(program_.buffers.size(), nullptr);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      if (b.kind == BufferKind::input) own[i] = const_cast<std::byte*>(inputs[next_input++].bytes());
      if (b.kind == BufferKind::output) {
        std::vector<int64_t> shape;
        DLC_CHECK(bytes_of(b.type.dtype, b.type.shape, symbols, &shape));
        DLC_TRY(Tensor t, Tensor::make(b.type.dtype, std::move(shape)));
        outputs.push_back(std::move(t));
        own[i] = outputs.back().mutable_bytes();
      }
    }
    for (const auto& [call, slot, buffer, offset] : moving_)
      calls_[call].buffers[slot] = static_cast<std::byte*>(own[buffer]) + offset;
    Result<> done;
    pool_.execute([&] { done = run_calls(); });
    if (!done) return std::unexpected(std::move(done).error());
    for (const auto& [output, storage] : copied_)
      std::memcpy(outputs[output].mutable_bytes(), storage, outputs[output].byte_size());
    return outputs;
  }

  std::string counters() override {
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      const Call& call = program_.calls[c];
      layers.push_back({{"name", name_of(call)},
                        {"kernel", program_.kernels[static_cast<size_t>(call.kernel)].name},
                        {"ms", call_ms_[c]}});
    }
    return nlohmann::ordered_json{{"load", {{"plan_ms", plan_ms_}, {"code_ms", code_ms_}, {"pack_ms", pack_ms_}}},
                                  {"arena_bytes", arena_bytes_},
                                  {"packed_bytes", packed_bytes_},
                                  {"kernels", kernels_.size()},
                                  {"threads", threads_},
                                  {"blocked_buffers", blocked_},
                                  {"views", aliases_.views},
                                  {"in_place", aliases_.in_place},
                                  {"copied_bytes", bound_ ? evaluate(copied_bytes(program_), *bound_).value_or(0) : 0},
                                  {"layers", layers}}
        .dump();
  }

 private:
  static constexpr int kOptLevel = 1;

  const std::string& name_of(const Call& c) const {
    return c.locations.empty() ? program_.kernels[static_cast<size_t>(c.kernel)].name : c.locations.front();
  }

  Result<> run_calls() {
    double before = now_ms();
    for (size_t c = 0; c < calls_.size(); ++c) {
      const int64_t statement = calls_[c].run(threads_);
      if (statement != 0) return std::unexpected(failed(c, statement));
      const double after = now_ms();
      call_ms_[c] = after - before;
      before = after;
    }
    return {};
  }

  Error failed(size_t call, int64_t statement) const {
    return Error({{}, 0, 0, name_of(program_.calls[call])},
                 fmt::format("kernel {}: statement {} used a value that is not defined for these inputs (an index out "
                             "of bounds, or a division by zero)",
                             program_.kernels[static_cast<size_t>(program_.calls[call].kernel)].name, statement));
  }

  // Constants that a kernel wants in another layout, once, by the kernel's own packing kernel.
  Result<> pack_constants() {
    std::vector<Unit> units;
    for (const Compiled& c : kernels_)
      for (const PackedTensor& p : c.plan.packed) units.push_back({&p.pack, {}});
    if (units.empty()) {
      packed_.resize(program_.calls.size());
      return {};
    }
    DLC_TRY(const CompiledKernels code, compile(units, target_, {.opt_level = kOptLevel}));
    std::vector<size_t> first(kernels_.size() + 1, 0);
    for (size_t i = 0; i < kernels_.size(); ++i) first[i + 1] = first[i] + kernels_[i].plan.packed.size();
    // One block in execution order: what a kernel prefetches behind its last panel is the next kernel's first.
    packed_bytes_ = 0;
    for (const Call& call : program_.calls)
      for (const PackedTensor& t : kernels_[static_cast<size_t>(call.kernel)].plan.packed) {
        const Compiled& c = kernels_[static_cast<size_t>(call.kernel)];
        const KernelTensor& to = c.plan.kernel.tensors[static_cast<size_t>(t.packed)];
        DLC_TRY(const int64_t bytes, bytes_of(to.dtype, to.shape, {}));
        if (__builtin_add_overflow(packed_bytes_, aligned(bytes), &packed_bytes_))
          return fail({}, "the packed constants' size overflows");
      }
    DLC_TRY(packed_memory_, HugePages::allocate(packed_bytes_));
    std::byte* next = packed_memory_.data();
    for (const Call& call : program_.calls) {
      const auto kernel = static_cast<size_t>(call.kernel);
      std::vector<std::byte*> packed;
      for (size_t p = 0; p < kernels_[kernel].plan.packed.size(); ++p) {
        const PackedTensor& t = kernels_[kernel].plan.packed[p];
        const KernelTensor& to = kernels_[kernel].plan.kernel.tensors[static_cast<size_t>(t.packed)];
        DLC_TRY(const int64_t bytes, bytes_of(to.dtype, to.shape, {}));
        DLC_TRY(const std::byte* from, constant(buffer_of(call, t.source)));
        std::vector<void*> buffers(t.pack.tensors.size(), nullptr);
        buffers[static_cast<size_t>(t.pack.inputs[0])] = const_cast<std::byte*>(from);
        buffers[static_cast<size_t>(t.pack.outputs[0])] = next;
        if (code.kernels()[first[kernel] + p].entry(buffers.data(), nullptr) != 0)
          return fail({}, fmt::format("the constants of {} cannot be packed", name_of(call)));
        packed.push_back(next);
        next += aligned(bytes);
      }
      packed_.push_back(std::move(packed));
    }
    return {};
  }

  // The program buffer behind tensor t of the call's kernel: calls list the kernel's own tensors, temps and views
  // apart.
  int buffer_of(const Call& call, int t) const {
    const Kernel& k = program_.kernels[static_cast<size_t>(call.kernel)];
    size_t next = 0;
    for (size_t i = 0; i < k.tensors.size(); ++i) {
      if (k.tensors[i].role == Role::temp || k.tensors[i].view) continue;
      if (static_cast<int>(i) == t) return call.buffers[next];
      ++next;
    }
    return -1;
  }

  Result<const std::byte*> constant(int buffer) const {
    int64_t offset = 0;
    while (buffer >= 0) {
      const ProgramBuffer& b = program_.buffers[static_cast<size_t>(buffer)];
      if (b.kind != BufferKind::constant) break;
      if (!b.alias) {
        const Tensor* w = program_.weight(b.name);
        if (w == nullptr) return fail({}, fmt::format("constant {} has no value", b.name));
        return w->bytes() + offset;
      }
      const auto at = evaluate(b.alias->byte_offset, {});
      if (!at) break;
      offset += *at;
      buffer = b.alias->base;
    }
    return fail({}, "a packed tensor is not a constant of the program");
  }

  Result<Bindings> bind(std::span<const Tensor> inputs) const {
    Bindings symbols;
    size_t next = 0;
    for (const ProgramBuffer& b : program_.buffers) {
      if (b.kind != BufferKind::input) continue;
      if (next >= inputs.size()) return fail({}, fmt::format("input {} is missing", b.external_name));
      const Tensor& t = inputs[next++];
      const auto wrong = [&] {
        return fail({}, fmt::format("input {} is {}, the program takes {}", b.external_name,
                                    to_string(t.dtype(), t.shape()), to_string(b.type)));
      };
      if (t.dtype() != b.type.dtype || t.shape().size() != b.type.shape.size()) return wrong();
      for (size_t d = 0; d < t.shape().size(); ++d) {
        const Expr& dim = b.type.shape[d];
        if (const auto s = dim.as_symbol()) symbols.try_emplace(std::string(*s), t.shape()[d]);
        if (const auto v = evaluate(dim, symbols); v && *v != t.shape()[d]) return wrong();
      }
    }
    if (next != inputs.size()) return fail({}, fmt::format("{} inputs are given, {} are wanted", inputs.size(), next));
    for (const auto& [name, r] : program_.symbols)
      if (const auto v = symbols.find(name); v != symbols.end() && (v->second < r.bounds.lo || v->second > r.bounds.hi))
        return fail({},
                    fmt::format("dim {} is {}, the program takes {} to {}", name, v->second, r.bounds.lo, r.bounds.hi));
    return symbols;
  }

  // Where a buffer's bytes are: in the arena or a weight (fixed), or in an input or output (known at each run).
  struct Place {
    std::byte* fixed = nullptr;
    int moving = -1;  // program buffer: an input or output
    int64_t offset = 0, bytes = 0;
  };

  Result<> place(const Bindings& symbols) {
    bound_.reset();
    const auto arena = evaluate(program_.arena_bytes, symbols);
    if (!arena || *arena < 0) return fail({}, "the arena's size is not known from the inputs");
    DLC_TRY(const int64_t scratch, scratch_bytes(symbols));
    arena_bytes_ = aligned(*arena) + scratch;
    if (arena_bytes_ > Tensor::max_bytes()) return fail({}, "the arena is larger than the limit");
    DLC_TRY(arena_, HugePages::allocate(arena_bytes_));
    std::byte* base = arena_.data();
    std::vector<Place> places(program_.buffers.size());
    moving_.clear();
    copied_.clear();
    size_t output = 0;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      Place& p = places[i];
      DLC_TRY(p.bytes, bytes_of(b.type.dtype, b.type.shape, symbols));
      if (b.alias) {
        const Place& outer = places[static_cast<size_t>(b.alias->base)];
        const auto offset = evaluate(b.alias->byte_offset, symbols);
        if (!offset || *offset < 0 || *offset + p.bytes > outer.bytes)
          return fail({}, fmt::format("buffer {} does not lie inside its base", b.name));
        p = {outer.fixed != nullptr ? outer.fixed + *offset : nullptr, outer.moving, outer.offset + *offset, p.bytes};
        if (b.kind == BufferKind::output) {
          if (p.fixed == nullptr) return fail({}, fmt::format("output {} lies in another one", b.name));
          copied_.emplace_back(output, p.fixed);
        }
      } else if (b.kind == BufferKind::temp) {
        const auto offset = evaluate(b.offset, symbols);
        if (!offset || *offset < 0 || *offset + p.bytes > *arena)
          return fail({}, fmt::format("buffer {} does not lie inside the arena", b.name));
        p.fixed = base + *offset;
      } else if (b.kind == BufferKind::constant) {
        const Tensor* w = program_.weight(b.name);
        if (w == nullptr || static_cast<int64_t>(w->byte_size()) != p.bytes)
          return fail({}, fmt::format("constant {} has no value, or one of another size", b.name));
        p.fixed = const_cast<std::byte*>(w->bytes());  // only read: verify() refuses a program that writes it
      } else {
        p.moving = static_cast<int>(i);
      }
      output += b.kind == BufferKind::output;
    }
    calls_.clear();
    for (size_t c = 0; c < program_.calls.size(); ++c)
      DLC_CHECK(place_call(c, places, base + aligned(*arena), symbols));
    bound_ = symbols;
    return {};
  }

  Result<> place_call(size_t c, const std::vector<Place>& places, std::byte* scratch, const Bindings& symbols) {
    const Call& call = program_.calls[c];
    const Compiled& code = kernels_[static_cast<size_t>(call.kernel)];
    const Kernel& k = code.plan.kernel;
    BoundCall bound;
    bound.entry = code.entry;
    bound.buffers.assign(k.tensors.size(), nullptr);
    for (const std::string& s : code.symbols) {
      const auto v = symbols.find(s);
      if (v == symbols.end()) return fail({}, fmt::format("dim {} is not known from the inputs", s));
      bound.dims.push_back(v->second);
    }
    const auto work = evaluate(code.work, symbols);
    if (threads_ > 1 && (!work || *work >= kWorthThreads))
      for (const Step& s : code.steps) {
        const auto extent = evaluate(s.extent, symbols);
        if (!extent) return fail({}, fmt::format("the extent of {} is not known from the inputs", s.name));
        bound.parallel.push_back({s.run, *extent});
      }
    size_t next = 0;
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      const KernelTensor& tensor = k.tensors[t];
      if (tensor.view) continue;
      const auto packed = std::ranges::find(code.plan.packed, static_cast<int>(t), &PackedTensor::packed);
      if (packed != code.plan.packed.end()) {
        const auto index = static_cast<size_t>(packed - code.plan.packed.begin());
        bound.buffers[t] = packed_[c][index];
      } else if (tensor.role == Role::temp) {
        DLC_TRY(const int64_t bytes, bytes_of(tensor.dtype, tensor.shape, symbols));
        bound.buffers[t] = scratch;
        scratch += aligned(bytes);
      } else {
        const Place& p = places[static_cast<size_t>(call.buffers[next++])];
        bound.buffers[t] = p.fixed;
        if (p.fixed == nullptr) moving_.push_back({c, t, static_cast<size_t>(p.moving), p.offset});
      }
    }
    calls_.push_back(std::move(bound));
    return {};
  }

  // The most that the temporaries of one kernel need.
  Result<int64_t> scratch_bytes(const Bindings& symbols) const {
    int64_t most = 0;
    for (const Compiled& c : kernels_) {
      int64_t sum = 0;
      for (const KernelTensor& t : c.plan.kernel.tensors) {
        if (t.role != Role::temp || t.view) continue;
        DLC_TRY(const int64_t bytes, bytes_of(t.dtype, t.shape, symbols));
        sum += aligned(bytes);
      }
      most = std::max(most, sum);
    }
    return most;
  }

  struct MovingBuffer {
    size_t call, slot, buffer;
    int64_t offset;
  };

  Program program_;
  Target target_;
  int threads_;
  tbb::task_arena pool_;
  CompiledKernels code_;
  std::vector<Compiled> kernels_;  // of program_.kernels
  HugePages packed_memory_;
  std::vector<std::vector<std::byte*>> packed_;  // in it: of each call, in the order of its plan
  HugePages arena_;                              // temps, then the scratch of one kernel
  std::optional<Bindings> bound_;                // the dims that calls_ is for
  std::vector<BoundCall> calls_;
  std::vector<MovingBuffer> moving_;                   // pointers that each run puts in
  std::vector<std::pair<size_t, std::byte*>> copied_;  // outputs that lie inside another buffer
  std::vector<double> call_ms_;
  int blocked_ = 0;
  AliasStats aliases_;
  double plan_ms_ = 0, code_ms_ = 0, pack_ms_ = 0;
  int64_t packed_bytes_ = 0, arena_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Executable>> make_executable(Program program, const Target& target, int threads) {
  auto e = std::make_unique<CpuExecutable>(std::move(program), target, threads);
  DLC_CHECK(e->prepare());
  return e;
}

}  // namespace dlc::cpu
