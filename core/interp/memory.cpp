#include "core/interp/memory.h"

#include <fmt/format.h>

#include <cstdlib>

#include "dlc/base/checked.h"

namespace dlc::interp {

namespace {

std::string describe(const RunState& run, size_t tensor) {
  return fmt::format("kernel {}: tensor {}", run.code->kernel.name, run.code->kernel.tensors[tensor].name);
}

}  // namespace

void Storage::Free::operator()(std::byte* p) const { std::free(p); }

Result<RunState> Storage::bind(const Lowered& code, std::span<const Buffer> buffers, const Bindings& parameters) {
  const Kernel& k = code.kernel;
  if (buffers.size() != k.tensors.size())
    return fail(
        {}, fmt::format("kernel {} has {} tensors, {} buffers were given", k.name, k.tensors.size(), buffers.size()));
  RunState run;
  run.code = &code;
  run.env.resize(static_cast<size_t>(code.slots.size()));
  for (const int s : code.parameters) {
    const auto it = parameters.find(code.slots.name(s));
    if (it == parameters.end())
      return fail({}, fmt::format("kernel {}: no value for the symbol {}", k.name, code.slots.name(s)),
                  "bind it when preparing the kernel, or pass it to run()");
    run.slot(s) = it->second;
  }
  run.tensors.resize(code.tensors.size());  // with scratch tensors, which are placed when they are used
  for (size_t i = 0; i < k.tensors.size(); ++i)
    if (!k.tensors[i].view) DLC_CHECK(place(run, i, buffers));
  // A view may be of another view, which must come first; k bounds the depth of any chain.
  std::vector<bool> placed(k.tensors.size());
  for (size_t i = 0; i < k.tensors.size(); ++i) placed[i] = !k.tensors[i].view;
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < k.tensors.size(); ++i) {
      if (placed[i] || !placed[static_cast<size_t>(code.tensors[i].base)]) continue;
      DLC_CHECK(place_view(run, i));
      placed[i] = progress = true;
    }
  }
  for (size_t i = 0; i < placed.size(); ++i)
    if (!placed[i]) return fail({}, describe(run, i) + " is a view of itself");
  return run;
}

Result<> Storage::place(RunState& run, size_t tensor, std::span<const Buffer> buffers) {
  const TensorCode& c = run.code->tensors[tensor];
  Memory& m = run.tensors[tensor];
  m.dtype = c.dtype;
  m.elem = c.elem;
  for (const ExprCode& d : c.shape) {
    const auto v = d.evaluate(run.env.data());
    if (!v || *v < 0) return fail({}, describe(run, tensor) + " has a negative or overflowing dim");
    m.shape.push_back(*v);
  }
  int64_t bytes = c.dtype.bytes();
  m.strides.resize(m.shape.size());
  for (size_t d = m.shape.size(); d-- > 0;) {
    m.strides[d] = bytes;
    const auto next = checked_mul(bytes, m.shape[d]);
    if (!next) return fail({}, describe(run, tensor) + " is too large");
    bytes = *next;
  }
  m.highest = bytes - c.dtype.bytes();
  const Buffer& b = buffers[tensor];
  const bool own = c.internal || (b.data == nullptr && run.code->kernel.tensors[tensor].role == Role::temp);
  if (!own) {
    if (b.bytes < bytes || (b.data == nullptr && bytes > 0))
      return fail({}, fmt::format("{} needs {} bytes, its buffer has {}", describe(run, tensor), bytes,
                                  b.data == nullptr ? 0 : b.bytes));
    m.data = b.data;
    return {};
  }
  if (bytes > Tensor::max_bytes()) return fail({}, fmt::format("{} needs {} bytes", describe(run, tensor), bytes));
  owned_.emplace_back(static_cast<std::byte*>(std::calloc(static_cast<size_t>(bytes) + 1, 1)));
  if (!owned_.back()) return fail({}, fmt::format("out of memory for {} ({} bytes)", describe(run, tensor), bytes));
  m.data = owned_.back().get();
  return {};
}

Result<> Storage::place_view(RunState& run, size_t tensor) {
  const TensorCode& c = run.code->tensors[tensor];
  Memory& m = run.tensors[tensor];
  const Memory& base = run.tensors[static_cast<size_t>(c.base)];
  m.dtype = c.dtype;
  m.elem = c.elem;
  const auto offset = c.byte_offset.evaluate(run.env.data());
  if (!offset) return fail({}, describe(run, tensor) + ": its byte offset overflows or divides by zero");
  m.data = base.data + *offset;
  // Whole elements of the view must lie inside the base's bytes.
  const auto lowest = checked_add(base.lowest, -*offset);
  const auto highest = checked_add(base.highest + base.dtype.bytes() - c.dtype.bytes(), -*offset);
  if (!lowest || !highest) return fail({}, describe(run, tensor) + ": its byte offset overflows");
  m.lowest = *lowest;
  m.highest = *highest;
  int64_t lo = 0, hi = 0;
  bool empty = false, overflow = false;
  for (size_t d = 0; d < c.shape.size(); ++d) {
    const auto n = c.shape[d].evaluate(run.env.data());
    const auto stride = c.byte_strides[d].evaluate(run.env.data());
    if (!n || *n < 0 || !stride)
      return fail({}, describe(run, tensor) + " has a negative or overflowing dim or stride");
    m.shape.push_back(*n);
    m.strides.push_back(*stride);
    empty |= *n == 0;
    int64_t reach = 0;
    overflow |= *n > 0 && __builtin_mul_overflow(*n - 1, *stride, &reach);
    int64_t& side = reach < 0 ? lo : hi;
    overflow |= __builtin_add_overflow(side, reach, &side);
  }
  if (overflow) return fail({}, describe(run, tensor) + ": its strides overflow");
  m.dense_bounds = empty || (lo >= m.lowest && hi <= m.highest);
  return {};
}

std::unexpected<Error> stmt_error(const RunState& run, const StmtCode& s, const std::string& message,
                                  const std::vector<LoopCode>& around) {
  const Kernel& k = run.code->kernel;
  std::string text = s.is_seq() ? "seq" : k.tensors[static_cast<size_t>(s.tensor)].name + "[";
  if (!s.is_seq()) {
    for (size_t i = 0; i < s.source->indices.size(); ++i) text += (i ? ", " : "") + print(s.source->indices[i], k);
    text += "] = " + print(s.source->value, k);
  }
  std::string point;
  for (const auto* loops : {&around, &s.loops})
    for (const LoopCode& l : *loops)
      point += fmt::format("{}{}={}", point.empty() ? " at " : ", ", run.code->slots.name(l.slot),
                           run.env[static_cast<size_t>(l.slot)]);
  Loc loc;
  for (const auto& name : k.locations) loc.node += (loc.node.empty() ? "" : ", ") + name;
  return fail(loc, fmt::format("kernel {}, statement `{}`{}: {}", k.name, text, point, message));
}

Result<int64_t> extent(const RunState& run, const StmtCode& s, const LoopCode& loop) {
  const auto n = loop.extent.evaluate(run.env.data());
  if (n && *n >= 0) return *n;
  return stmt_error(run, s,
                    fmt::format("the extent of loop {} is {}", run.code->slots.name(loop.slot),
                                n ? std::to_string(*n) : "undefined"));
}

}  // namespace dlc::interp
