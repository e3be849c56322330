// run_kernel: binds symbolic dims from the shapes given, checks what was given, allocates the rest.
#include <fmt/format.h>

#include "dlc/base/checked.h"
#include "dlc/interp/interp.h"

namespace dlc {

namespace {

std::string where(const Kernel& k, int tensor) {
  return fmt::format("kernel {}: tensor {}", k.name, k.tensors[static_cast<size_t>(tensor)].name);
}

// Solves extent == dim for the one symbol that has no value yet; false when there is nothing to solve.
Result<bool> solve(const Kernel& k, int tensor, const Expr& dim, int64_t extent, Bindings& bound) {
  std::map<std::string, Expr, std::less<>> known;
  for (const auto& [name, value] : bound) known.emplace(name, Expr(value));
  const Expr e = substitute(dim, known);
  const auto free = e.symbols();
  if (free.size() != 1) return false;
  const auto form = affine(e, free);
  const auto coefficient = form ? form->coefficients[0].constant() : std::nullopt;
  const auto base = form ? form->base.constant() : std::nullopt;
  if (!coefficient || !base || *coefficient == 0) return false;
  const auto rest = checked_add(extent, -*base);
  if (!rest || floor_mod(*rest, *coefficient) != 0 || floor_div(*rest, *coefficient) < 0)
    return fail(
        {}, fmt::format("{} has a dim of {} elements, but the dim is {}", where(k, tensor), extent, to_string(dim)));
  bound.emplace(free[0], floor_div(*rest, *coefficient));
  return true;
}

Result<Bindings> bind_dims(const Kernel& k, std::span<const Tensor> inputs) {
  Bindings bound;
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (k.inputs[i] < 0) continue;
      const auto& shape = k.tensors[static_cast<size_t>(k.inputs[i])].shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        DLC_TRY(const bool solved, solve(k, k.inputs[i], shape[d], inputs[i].shape()[d], bound));
        progress |= solved;
      }
    }
  }
  return bound;
}

Result<> check_kinds(const Kernel& k, std::span<const Tensor> inputs) {
  if (inputs.size() != k.inputs.size())
    return fail({}, fmt::format("kernel {} takes {} operands, {} were given", k.name, k.inputs.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int t = k.inputs[i];
    if (t < 0) continue;
    const KernelTensor& want = k.tensors[static_cast<size_t>(t)];
    if (!inputs[i].is_valid()) return fail({}, where(k, t) + " was not given");
    if (inputs[i].dtype() != want.dtype)
      return fail(
          {}, fmt::format("{} is {}, {} was given", where(k, t), to_string(want.dtype), to_string(inputs[i].dtype())));
    if (inputs[i].shape().size() != want.shape.size())
      return fail({}, fmt::format("{} has rank {}, rank {} was given", where(k, t), want.shape.size(),
                                  inputs[i].shape().size()));
  }
  return {};
}

Result<std::vector<int64_t>> static_shape(const Kernel& k, int tensor, const Bindings& bound) {
  std::vector<int64_t> shape;
  for (const Expr& d : k.tensors[static_cast<size_t>(tensor)].shape) {
    const auto v = evaluate(d, bound);
    if (!v)
      return fail(
          {}, fmt::format("{}: the dim {} does not follow from the operands' shapes", where(k, tensor), to_string(d)));
    shape.push_back(*v);
  }
  return shape;
}

Result<> check_shapes(const Kernel& k, std::span<const Tensor> inputs, const Bindings& bound) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (k.inputs[i] < 0) continue;
    DLC_TRY(const auto want, static_shape(k, k.inputs[i], bound));
    const DType dtype = inputs[i].dtype();
    if (want != inputs[i].shape())
      return fail({}, fmt::format("{} is {}, {} was given", where(k, k.inputs[i]), to_string(dtype, want),
                                  to_string(dtype, inputs[i].shape())));
  }
  for (const Expr& a : k.assumptions) {
    const auto v = evaluate(a, bound);
    if (!v || *v < 0) {
      std::string values;
      for (const auto& [name, value] : bound) values += fmt::format("{}{}={}", values.empty() ? "" : ", ", name, value);
      return fail({}, fmt::format("kernel {}: its shapes need {} >= 0, which does not hold for {}", k.name,
                                  to_string(a), values));
    }
  }
  return {};
}

// Tensors that lie under a view which a statement may write (an in-place result).
std::vector<bool> roots_of_written_views(const Kernel& k) {
  std::vector<bool> roots(k.tensors.size());
  for (const KernelTensor& t : k.tensors) {
    if (!t.view || t.role == Role::input || t.role == Role::constant) continue;
    int base = t.view->base;
    for (size_t depth = 0; depth < k.tensors.size() && k.tensors[static_cast<size_t>(base)].view; ++depth)
      base = k.tensors[static_cast<size_t>(base)].view->base;
    roots[static_cast<size_t>(base)] = true;
  }
  return roots;
}

}  // namespace

Result<std::vector<Tensor>> run_kernel(const Kernel& k, std::span<const Tensor> inputs, const InterpOptions& options) {
  DLC_CHECK(check_kinds(k, inputs));
  DLC_TRY(const Bindings bound, bind_dims(k, inputs));
  DLC_CHECK(check_shapes(k, inputs, bound));
  DLC_TRY(const auto prepared, PreparedKernel::prepare(k, bound, options));

  // Every tensor with bytes of its own that is not a temporary: the operands, the results and the states.
  std::vector<Tensor> storage(k.tensors.size());
  std::vector<Buffer> buffers(k.tensors.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (k.inputs[i] >= 0) storage[static_cast<size_t>(k.inputs[i])] = inputs[i];
  const auto written_through_view = roots_of_written_views(k);
  for (size_t i = 0; i < k.tensors.size(); ++i) {
    const KernelTensor& t = k.tensors[i];
    if (t.view || t.role == Role::temp) continue;
    const bool given = t.role == Role::input || t.role == Role::constant;
    const bool read_only = given && !written_through_view[i];
    if (!storage[i].is_valid()) {
      if (given) return fail({}, where(k, static_cast<int>(i)) + " is no operand and has no value");
      DLC_TRY(auto shape, static_shape(k, static_cast<int>(i), bound));
      DLC_TRY(storage[i], Tensor::make(t.dtype, std::move(shape)));
    }
    // Nothing writes an operand but through a view, so its bytes need no copy.
    buffers[i].data = read_only ? const_cast<std::byte*>(storage[i].bytes()) : storage[i].mutable_bytes();
    buffers[i].bytes = static_cast<int64_t>(storage[i].byte_size());
  }
  DLC_CHECK(prepared.run(buffers));

  std::vector<Tensor> results;
  for (const int t : k.outputs) {
    const auto index = static_cast<size_t>(t);
    if (!storage[index].is_valid()) return fail({}, where(k, t) + " is a result without bytes of its own");
    results.push_back(storage[index]);
  }
  return results;
}

}  // namespace dlc
