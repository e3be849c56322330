#include "dlc/interp/interp.h"

#include <fmt/format.h>

#include "core/interp/fast.h"
#include "core/interp/lower.h"
#include "core/interp/memory.h"
#include "core/interp/tree_walk.h"

namespace dlc {

struct PreparedKernel::Impl {
  std::unique_ptr<interp::Lowered> code;
  std::vector<interp::AssignPlan> plans;  // none: the tree walk
};

PreparedKernel::PreparedKernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PreparedKernel::PreparedKernel(PreparedKernel&&) noexcept = default;
PreparedKernel& PreparedKernel::operator=(PreparedKernel&&) noexcept = default;
PreparedKernel::~PreparedKernel() = default;

Result<PreparedKernel> PreparedKernel::prepare(const Kernel& k, const Bindings& bindings,
                                               const InterpOptions& options) {
  DLC_CHECK(verify(k));
  std::map<std::string, Expr, std::less<>> values;
  for (const auto& [name, value] : bindings) values.emplace(name, Expr(value));
  auto impl = std::make_unique<Impl>();
  DLC_TRY(impl->code, interp::lower(bindings.empty() ? k : substitute(k, values), options));
  if (!options.tree_walk) impl->plans = interp::plan_all(*impl->code);
  return PreparedKernel(std::move(impl));
}

Result<> PreparedKernel::run(std::span<const Buffer> buffers, const Bindings& parameters) const {
  interp::Storage storage;
  DLC_TRY(interp::RunState run, storage.bind(*impl_->code, buffers, parameters));
  if (!impl_->code->options.tree_walk) return interp::run_fast(impl_->plans, run);
  std::vector<interp::LoopCode> around;
  interp::TreeWalk walk(run);
  return interp::run_statements(
      run, impl_->code->body, [&](const auto& s, const auto& outer) { return walk.assign(s, outer); }, around);
}

}  // namespace dlc
