// The program interpreter: every call through the kernel interpreter, over real buffers at their planned offsets.
#include <fmt/format.h>

#include <algorithm>

#include "core/program/runner.h"

namespace dlc {

namespace {

Result<int64_t> bytes_of(const TensorType& type, const Bindings& symbols, std::vector<int64_t>& shape) {
  shape.clear();
  for (const Expr& d : type.shape) {
    const auto v = evaluate(d, symbols);
    if (!v) return fail({}, fmt::format("dim {} is not known", to_string(d)));
    shape.push_back(*v);
  }
  DLC_TRY(const Tensor t, Tensor::make(type.dtype, shape));
  return static_cast<int64_t>(t.byte_size());
}

}  // namespace

Result<const PreparedKernel*> ProgramRunner::prepared(int kernel) {
  auto& known = prepared_[static_cast<size_t>(kernel)];
  if (!known) {
    DLC_TRY(known, PreparedKernel::prepare(p_.kernels[static_cast<size_t>(kernel)], symbols_, options_));
  }
  return &*known;
}

Result<std::vector<Tensor>> run_program(const Program& p, std::span<const Tensor> inputs,
                                        const InterpOptions& options) {
  return ProgramRunner(p, options).run(inputs);
}

Result<std::vector<Tensor>> ProgramRunner::run(std::span<const Tensor> inputs) {
  if (in_place_states(p_).empty()) return run_in_place(inputs, {});
  return run_by_value(p_, inputs, [this](std::span<const Tensor> others, std::span<const StateMemory> states) {
    return run_in_place(others, states);
  });
}

Result<std::vector<Tensor>> ProgramRunner::run_in_place(std::span<const Tensor> inputs,
                                                        std::span<const StateMemory> states) {
  const Program& p = p_;
  const std::vector<StatePair> in_place = in_place_states(p);
  DLC_TRY(Bindings bound, bind_symbols(p, inputs, states));
  if (prepared_.size() != p.kernels.size() || bound != symbols_) {
    prepared_.clear();
    prepared_.resize(p.kernels.size());
    symbols_ = std::move(bound);
  }
  const Bindings& symbols = symbols_;
  const auto arena_bytes = evaluate(p.arena_bytes, symbols);
  if (!arena_bytes) return fail({}, "the arena's size is not known");
  DLC_TRY(Tensor arena, Tensor::make(kU8, {*arena_bytes}));

  std::vector<Tensor> own(p.buffers.size());  // storage of inputs, constants and outputs
  std::vector<Buffer> storage(p.buffers.size());
  size_t next_input = 0;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const auto& b = p.buffers[i];
    std::vector<int64_t> shape;
    DLC_TRY(const int64_t bytes, bytes_of(b.type, symbols, shape));
    if (b.kind == BufferKind::input) {
      const auto state = std::ranges::find(in_place, b.name, &StatePair::input);
      if (state != in_place.end()) {
        storage[i] = {states[static_cast<size_t>(state - in_place.begin())].bytes, bytes};
        continue;
      }
      own[i] = inputs[next_input++];
    }
    if (b.kind == BufferKind::constant && !b.alias) {
      const Tensor* w = p.weight(b.name);
      if (w == nullptr) return fail({}, fmt::format("constant {} has no value", b.name));
      own[i] = *w;
    }
    if (b.alias) {
      const auto offset = evaluate(b.alias->byte_offset, symbols);
      const Buffer& base = storage[static_cast<size_t>(b.alias->base)];
      if (!offset || *offset < 0 || *offset + bytes > base.bytes)
        return fail({}, fmt::format("buffer {} does not lie inside {}", b.name,
                                    p.buffers[static_cast<size_t>(b.alias->base)].name));
      storage[i] = {base.data + *offset, bytes};
    } else if (b.kind == BufferKind::temp) {
      const auto offset = evaluate(b.offset, symbols);
      if (!offset || *offset < 0 || *offset + bytes > *arena_bytes)
        return fail({}, fmt::format("buffer {} does not lie inside the arena", b.name));
      storage[i] = {arena.mutable_bytes() + *offset, bytes};
    } else {
      if (b.kind == BufferKind::output) {
        DLC_TRY(own[i], Tensor::make(b.type.dtype, shape));
        storage[i] = {own[i].mutable_bytes(), bytes};
      } else {
        // Read only: verify() refuses a program that writes its inputs or constants.
        storage[i] = {const_cast<std::byte*>(own[i].bytes()), static_cast<int64_t>(own[i].byte_size())};
      }
    }
  }

  for (const auto& c : p.calls) {
    const Kernel& k = p.kernels[static_cast<size_t>(c.kernel)];
    std::vector<Buffer> buffers(k.tensors.size());
    std::vector<Tensor> temps;
    size_t next = 0;
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      if (k.tensors[t].view) continue;
      if (k.tensors[t].role != Role::temp) {
        buffers[t] = storage[static_cast<size_t>(c.buffers[next++])];
        continue;
      }
      std::vector<int64_t> shape;
      DLC_TRY(const int64_t bytes, bytes_of({k.tensors[t].dtype, k.tensors[t].shape}, symbols, shape));
      DLC_TRY(Tensor temp, Tensor::make(k.tensors[t].dtype, shape));
      temps.push_back(std::move(temp));
      buffers[t] = {temps.back().mutable_bytes(), bytes};
    }
    DLC_TRY(const PreparedKernel* code, prepared(c.kernel));
    auto done = code->run(buffers);
    if (!done) {
      for (auto& d : done.error().diagnostics)
        if (d.loc.node.empty() && !c.locations.empty()) d.loc.node = c.locations.front();
      return std::unexpected(std::move(done).error());
    }
  }

  std::vector<Tensor> outputs;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (p.buffers[i].kind != BufferKind::output || (p.buffers[i].alias && p.buffers[i].alias->keeps)) continue;
    if (!p.buffers[i].alias) {
      outputs.push_back(own[i]);
      continue;
    }
    std::vector<int64_t> shape;
    DLC_TRY(const int64_t bytes, bytes_of(p.buffers[i].type, symbols, shape));
    DLC_TRY(Tensor t, Tensor::make(p.buffers[i].type.dtype, shape));
    std::copy(storage[i].data, storage[i].data + bytes, t.mutable_bytes());
    outputs.push_back(std::move(t));
  }
  return outputs;
}

}  // namespace dlc
