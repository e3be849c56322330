// The functions of one kernel: one per top-level statement, and the entry point that calls them in turn.
#include <algorithm>
#include <set>

#include "emitter.h"

namespace dlc::cpu {

namespace {

void add_symbols(const std::vector<Stmt>& body, std::vector<std::string>& loops, std::set<std::string>& used) {
  const auto use = [&](const Expr& e) {
    for (const std::string& s : e.symbols())
      if (std::ranges::find(loops, s) == loops.end()) used.insert(s);
  };
  const auto use_loops = [&](const std::vector<Loop>& l) {
    for (const Loop& loop : l) use(loop.extent);
    for (const Loop& loop : l) loops.push_back(loop.var);
  };
  const std::function<void(const Val&)> use_value = [&](const Val& v) {
    const size_t depth = loops.size();
    if (v->kind == ValKind::reduce) use_loops(v->loops);
    if (v->kind == ValKind::index) use(v->index);
    for (const Val& a : v->args) use_value(a);
    loops.resize(depth);
  };
  for (const Stmt& s : body) {
    const size_t depth = loops.size();
    use_loops(s.loops);
    if (s.value) use_value(s.value);
    for (const Val& i : s.indices) use_value(i);
    add_symbols(s.body, loops, used);
    loops.resize(depth);
  }
}

}  // namespace

Emitter::Emitter(const Kernel& k, const Target& target, llvm::Module& module)
    : k_(k), target_(target), module_(module), b_(module.getContext()) {}

void Emitter::collect_symbols() {
  std::set<std::string> used;
  const auto use = [&](const Expr& e) {
    for (const std::string& s : e.symbols()) used.insert(s);
  };
  for (const KernelTensor& t : k_.tensors) {
    for (const Expr& e : t.shape) use(e);
    if (!t.view) continue;
    use(t.view->byte_offset);
    for (const Expr& e : t.view->byte_strides) use(e);
  }
  std::vector<std::string> loops;
  add_symbols(k_.body, loops, used);
  symbols_.assign(used.begin(), used.end());
}

// The function's head: its attributes, the dims and the buffers.
void Emitter::begin_function(const std::string& name, bool is_step) {
  auto* pointer = b_.getPtrTy();
  std::vector<llvm::Type*> types{pointer, pointer};
  if (is_step) types.insert(types.end(), {b_.getInt64Ty(), b_.getInt64Ty()});
  function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getInt64Ty(), types, false),
                                     llvm::Function::ExternalLinkage, name, module_);
  function_->setDoesNotThrow();
  function_->addFnAttr(llvm::Attribute::NoInline);
  function_->addFnAttr("target-features", target_.features);
  function_->addFnAttr("target-cpu", "x86-64");
  function_->addFnAttr("prefer-vector-width", std::to_string(8 * target_.vector_bytes));
  function_->addFnAttr("min-legal-vector-width", std::to_string(8 * target_.vector_bytes));
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));

  dims_.clear();
  for (size_t i = 0; i < symbols_.size(); ++i)
    dims_[symbols_[i]] =
        b_.CreateLoad(b_.getInt64Ty(), b_.CreateConstGEP1_64(b_.getInt64Ty(), function_->getArg(1), i), symbols_[i]);
  buffers_.assign(k_.tensors.size(), nullptr);
  for (size_t i = 0; is_step && i < k_.tensors.size(); ++i)
    if (!k_.tensors[i].view)
      buffers_[i] = b_.CreateLoad(pointer, b_.CreateConstGEP1_64(pointer, function_->getArg(0), i), k_.tensors[i].name);
  scopes_.clear();
  scopes_.push_back({});
}

Result<> Emitter::emit(const std::string& name, const std::vector<Schedule>& schedules) {
  schedules_ = schedules;
  collect_symbols();
  for (size_t i = 0; i < k_.body.size(); ++i) step(k_.body[i], name + "_step" + std::to_string(i));
  begin_function(name, false);
  for (const Step& s : steps_) {
    Value* extent = expr(s.extent);
    Value* result = b_.CreateCall(module_.getFunction(s.name),
                                  {function_->getArg(0), function_->getArg(1), b_.getInt64(0), extent});
    auto* failed = llvm::BasicBlock::Create(module_.getContext(), "failed", function_);
    auto* fine = llvm::BasicBlock::Create(module_.getContext(), "fine", function_);
    b_.CreateCondBr(b_.CreateICmpEQ(result, b_.getInt64(0)), fine, failed);
    b_.SetInsertPoint(failed);
    b_.CreateRet(result);
    b_.SetInsertPoint(fine);
  }
  b_.CreateRet(b_.getInt64(0));
  if (!error_.empty()) return fail({}, "kernel " + k_.name + ": " + error_);
  return {};
}

void Emitter::step(const Stmt& s, const std::string& name) {
  steps_.push_back({name, Expr(1), nullptr});
  begin_function(name, true);
  std::vector<Loop> around;
  statements({s}, around);
  b_.CreateRet(b_.getInt64(0));
}

Expr Emitter::choose_parallel_loop() {
  constexpr int64_t kVectorGrain = 4096;  // elements of an element-wise loop worth a part
  constexpr int64_t kEnough = 8;          // parts that an outer loop should have to be preferred
  constexpr int64_t kUnknown = 128;       // taken for symbolic extents
  const auto& loops = schedule_->loops;
  Expr best(1);
  int64_t most = 1;
  for (size_t i = 0; i < loops.size() && most < kEnough; ++i) {
    const ScheduleLoop& s = loops[i];
    const auto loop = std::ranges::find(l_->loops(), s.var, &Loop::var);
    if (loop == l_->loops().end()) break;
    const Expr& n = loop->extent;
    bool bounds_others = false, is_blocked = false;
    for (const Loop& other : l_->loops()) bounds_others |= other.extent.mentions(s.var);
    for (size_t k = 0; k < i; ++k) is_blocked |= loops[k].var == s.var;  // its block loop is the one to split
    if (bounds_others || is_blocked) continue;
    int64_t grain = 1;
    if (s.kind == ScheduleLoop::Kind::tile) grain = s.step;
    if (s.kind == ScheduleLoop::Kind::block)  // blocks begin at any tile
      for (size_t k = i + 1; k < loops.size(); ++k)
        if (loops[k].var == s.var && loops[k].kind == ScheduleLoop::Kind::tile) grain = loops[k].step;
    if (s.kind == ScheduleLoop::Kind::vector) {
      if (i + 1 != loops.size() || (n.constant() && *n.constant() < 2 * kVectorGrain)) continue;
      const int64_t unit = s.step * schedule_->lanes;
      grain = kVectorGrain / unit * unit;
    }
    const Expr parts = ceil_div(n, Expr(grain));
    const int64_t count = parts.constant().value_or(kUnknown);
    if (count <= most) continue;
    most = count;
    best = parts;
    parallel_loop_ = static_cast<int>(i);
    grain_ = grain;
  }
  return best;
}

}  // namespace dlc::cpu
