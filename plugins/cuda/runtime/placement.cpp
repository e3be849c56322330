#include "plugins/cuda/runtime/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace dlc::cuda {

Result<int64_t> bytes_of(DType dtype, const std::vector<Expr>& dims, const Bindings& symbols,
                         std::vector<int64_t>* shape) {
  int64_t elements = 1;
  if (shape != nullptr) shape->clear();
  for (const Expr& d : dims) {
    const auto v = evaluate(d, symbols);
    if (!v) return fail({}, fmt::format("dim {} is not known from the inputs", to_string(d)));
    if (*v < 0 || __builtin_mul_overflow(elements, *v, &elements)) return fail({}, "a tensor's size overflows");
    if (shape != nullptr) shape->push_back(*v);
  }
  if (elements > Tensor::max_bytes() / dtype.bytes()) return fail({}, "a tensor is larger than the limit");
  return elements * dtype.bytes();
}

namespace {

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

}  // namespace

Result<Placement> Placement::make(const Program& p, const std::vector<int64_t>& constants, const Bindings& symbols) {
  Placement out;
  const auto arena = evaluate(p.arena_bytes, symbols);
  if (!arena || *arena < 0 || *arena > Tensor::max_bytes())
    return fail({}, "the arena's size is not known, or too large");
  DLC_TRY(const int64_t scratch, scratch_bytes(p, symbols));
  const int64_t scratch_at = aligned(*arena);
  int64_t end = scratch_at + scratch;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const ProgramBuffer& b = p.buffers[i];
    Place place;
    DLC_TRY(place.bytes, bytes_of(b.type.dtype, b.type.shape, symbols));
    if (b.alias) {
      const Place& outer = out.buffers[static_cast<size_t>(b.alias->base)];
      const auto offset = evaluate(b.alias->byte_offset, symbols);
      if (!offset || *offset < 0 || place.bytes > outer.bytes || *offset > outer.bytes - place.bytes)
        return fail({}, fmt::format("buffer {} does not lie inside its base", b.name));
      place.offset = outer.offset + *offset;
      place.is_constant = outer.is_constant;
    } else if (b.kind == BufferKind::temp) {
      const auto offset = evaluate(b.offset, symbols);
      if (!offset || *offset < 0 || place.bytes > *arena || *offset > *arena - place.bytes)
        return fail({}, fmt::format("buffer {} does not lie inside the arena", b.name));
      place.offset = *offset;
    } else if (b.kind == BufferKind::constant) {
      place.offset = constants[i];
      place.is_constant = true;
    } else {
      place.offset = end;
      end += aligned(place.bytes);
    }
    if (end > Tensor::max_bytes()) return fail({}, "the arena is larger than the limit");
    out.buffers.push_back(place);
  }
  out.status_offset = end;
  out.arena_bytes = end + aligned(static_cast<int64_t>(sizeof(unsigned) * p.calls.size()));
  for (const Call& c : p.calls) {
    PlacedCall placed;
    int64_t at = scratch_at;
    size_t next = 0;
    for (const KernelTensor& t : p.kernels[static_cast<size_t>(c.kernel)].tensors) {
      Place place;
      if (!t.view && t.role == Role::temp) {
        DLC_TRY(place.bytes, bytes_of(t.dtype, t.shape, symbols));
        place.offset = at;
        at += aligned(place.bytes);
      } else if (!t.view) {
        place = out.buffers[static_cast<size_t>(c.buffers[next++])];
      }
      placed.tensors.push_back(place);
    }
    out.calls.push_back(std::move(placed));
  }
  return out;
}

}  // namespace dlc::cuda
