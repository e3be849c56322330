#include "plugins/cpu/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "plugins/cpu/work.h"

namespace dlc::cpu {

Result<int64_t> bytes_of(DType dtype, const std::vector<Expr>& dims, const Bindings& symbols,
                         std::vector<int64_t>* shape_out) {
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

namespace {

// In the arena or a constant (fixed), or in an input or output (known at each run).
struct Place {
  std::byte* fixed = nullptr;
  int moving = -1;  // program buffer: an input or output
  int64_t offset = 0, bytes = 0;
};

// The most that the temporaries of one kernel need.
Result<int64_t> scratch_bytes(const Program& p, const Bindings& symbols) {
  int64_t most = 0;
  for (const Kernel& k : p.kernels) {
    int64_t sum = 0;
    for (const KernelTensor& t : k.tensors) {
      if (t.role != Role::temp || t.view) continue;
      DLC_TRY(const int64_t bytes, bytes_of(t.dtype, t.shape, symbols));
      sum += aligned(bytes);
    }
    most = std::max(most, sum);
  }
  return most;
}

class Placer {
 public:
  Placer(Placement& out, const Program& p, const Bindings& symbols) : out_(out), p_(p), symbols_(symbols) {}

  Result<> run(std::span<const CompiledKernel> code, std::span<const std::byte* const> constants) {
    const auto arena = evaluate(p_.arena_bytes, symbols_);
    if (!arena || *arena < 0) return fail({}, "the arena's size is not known from the inputs");
    DLC_TRY(const int64_t scratch, scratch_bytes(p_, symbols_));
    if (*arena > Tensor::max_bytes() || scratch > Tensor::max_bytes() - aligned(*arena))
      return fail({}, "the arena is larger than the limit");
    out_.arena_bytes = aligned(*arena) + scratch;
    DLC_TRY(out_.arena, HugePages::allocate(out_.arena_bytes));
    for (size_t i = 0; i < p_.buffers.size(); ++i) DLC_CHECK(buffer(i, *arena, constants));
    for (size_t c = 0; c < p_.calls.size(); ++c)
      DLC_CHECK(call(c, code[static_cast<size_t>(p_.calls[c].kernel)], out_.arena.data() + aligned(*arena)));
    return {};
  }

 private:
  Result<> buffer(size_t i, int64_t arena, std::span<const std::byte* const> constants) {
    const ProgramBuffer& b = p_.buffers[i];
    Place p;
    DLC_TRY(p.bytes, bytes_of(b.type.dtype, b.type.shape, symbols_));
    if (b.alias) {
      const Place& outer = places_[static_cast<size_t>(b.alias->base)];
      const auto offset = evaluate(b.alias->byte_offset, symbols_);
      if (!offset || *offset < 0 || p.bytes > outer.bytes || *offset > outer.bytes - p.bytes)
        return fail({}, fmt::format("buffer {} does not lie inside its base", b.name));
      p = {outer.fixed != nullptr ? outer.fixed + *offset : nullptr, outer.moving, outer.offset + *offset, p.bytes};
      if (b.kind == BufferKind::output && !b.alias->keeps) {
        if (p.fixed == nullptr) return fail({}, fmt::format("output {} lies in another one", b.name));
        out_.copied.emplace_back(outputs_, p.fixed);
      }
    } else if (b.kind == BufferKind::temp) {
      const auto offset = evaluate(b.offset, symbols_);
      if (!offset || *offset < 0 || p.bytes > arena || *offset > arena - p.bytes)
        return fail({}, fmt::format("buffer {} does not lie inside the arena", b.name));
      p.fixed = out_.arena.data() + *offset;
    } else if (b.kind == BufferKind::constant) {
      p.fixed = const_cast<std::byte*>(constants[i]);  // only read: verify() refuses a program that writes it
    } else {
      p.moving = static_cast<int>(i);
    }
    outputs_ += b.kind == BufferKind::output && !(b.alias && b.alias->keeps);
    places_.push_back(p);
    return {};
  }

  Result<> call(size_t c, const CompiledKernel& code, std::byte* scratch) {
    const Call& call = p_.calls[c];
    const Kernel& k = p_.kernels[static_cast<size_t>(call.kernel)];
    BoundCall bound;
    bound.entry = code.entry;
    bound.buffers.assign(k.tensors.size(), nullptr);
    for (const std::string& s : code.symbols) {
      const auto v = symbols_.find(s);
      if (v == symbols_.end()) return fail({}, fmt::format("dim {} is not known from the inputs", s));
      bound.dims.push_back(v->second);
    }
    const auto work = evaluate(work_of(k), symbols_);
    if (!work || *work >= kWorthThreads)
      for (const Step& s : code.steps) {
        const auto extent = evaluate(s.extent, symbols_);
        if (!extent) return fail({}, fmt::format("the extent of {} is not known from the inputs", s.name));
        bound.steps.push_back({s.run, *extent});
      }
    size_t next = 0;
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      const KernelTensor& tensor = k.tensors[t];
      if (tensor.view) continue;
      if (tensor.role == Role::temp) {
        DLC_TRY(const int64_t bytes, bytes_of(tensor.dtype, tensor.shape, symbols_));
        bound.buffers[t] = scratch;
        scratch += aligned(bytes);
      } else {
        const Place& p = places_[static_cast<size_t>(call.buffers[next++])];
        bound.buffers[t] = p.fixed;
        if (p.fixed == nullptr) out_.moving.push_back({c, t, static_cast<size_t>(p.moving), p.offset});
      }
    }
    out_.calls.push_back(std::move(bound));
    return {};
  }

  Placement& out_;
  const Program& p_;
  const Bindings& symbols_;
  std::vector<Place> places_;
  size_t outputs_ = 0;
};

}  // namespace

Result<Placement> Placement::make(const Program& p, std::span<const CompiledKernel> code,
                                  std::span<const std::byte* const> constants, const Bindings& symbols) {
  Placement out;
  DLC_CHECK(Placer(out, p, symbols).run(code, constants));
  return out;
}

}  // namespace dlc::cpu
