#include "plugins/cpu/runtime.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "dlc/program/alias.h"
#include "plugins/cpu/placement.h"

namespace dlc::cpu {

namespace {

constexpr uintptr_t kConstantAlign = 64;

double now_ms() {
  using namespace std::chrono;
  return duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
}

// 0, or the number of the statement that failed.
int64_t run_call(const BoundCall& call, int threads) {
  if (threads == 1 || call.steps.empty()) return call.entry(call.buffers.data(), call.dims.data());
  for (const BoundCall::Part& step : call.steps) {
    std::atomic<int64_t> failed = 0;
    const auto part = [&](int64_t begin, int64_t end) {
      const int64_t f = step.run(call.buffers.data(), call.dims.data(), begin, end);
      if (f != 0) failed = f;
    };
    if (step.extent == 1)
      part(0, 1);
    else
      tbb::parallel_for(tbb::blocked_range<int64_t>(0, step.extent),
                        [&](const auto& range) { part(range.begin(), range.end()); });
    if (failed != 0) return failed;
  }
  return 0;
}

class CpuExecutable : public Executable {
 public:
  CpuExecutable(Program program, int threads)
      : program_(std::move(program)),
        states_(in_place_states(program_)),
        threads_(std::min(threads > 0 ? threads : INT_MAX, tbb::info::default_concurrency())),
        pool_(threads_) {}

  Result<> load(const ObjectFile& object) {
    const double start = now_ms();
    DLC_TRY(code_, link(object));
    const double linked = now_ms();
    DLC_CHECK(take_constants());
    link_ms_ = linked - start;
    constants_ms_ = now_ms() - linked;
    call_ms_.assign(program_.calls.size(), 0.0);
    return {};
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override {
    if (states_.empty()) return run_in_place(inputs, {});
    return run_by_value(program_, inputs, [this](std::span<const Tensor> others, std::span<const StateMemory> states) {
      return run_in_place(others, states);
    });
  }

  Result<std::vector<Tensor>> run_in_place(std::span<const Tensor> inputs,
                                           std::span<const StateMemory> states) override {
    const std::lock_guard one_at_a_time(running_);
    DLC_TRY(Bindings symbols, bind_symbols(program_, inputs, states));
    if (!bound_ || *bound_ != symbols) {
      bound_.reset();
      DLC_TRY(placement_, Placement::make(program_, code_.kernels(), constants_, symbols));
      bound_ = symbols;
    }
    std::vector<Tensor> outputs;
    size_t next_input = 0;
    std::vector<std::byte*> own(program_.buffers.size(), nullptr);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      if (b.kind == BufferKind::input) {
        const auto state = std::ranges::find(states_, b.name, &StatePair::input);
        own[i] = state != states_.end() ? states[static_cast<size_t>(state - states_.begin())].bytes
                                        : const_cast<std::byte*>(inputs[next_input++].bytes());
      }
      if (b.kind == BufferKind::output && !(b.alias && b.alias->keeps)) {
        std::vector<int64_t> shape;
        DLC_CHECK(bytes_of(b.type.dtype, b.type.shape, symbols, &shape));
        DLC_TRY(Tensor t, Tensor::make(b.type.dtype, std::move(shape)));
        outputs.push_back(std::move(t));
        own[i] = outputs.back().mutable_bytes();
      }
    }
    for (const auto& [call, slot, buffer, offset] : placement_.moving)
      placement_.calls[call].buffers[slot] = own[buffer] + offset;
    Result<> done;
    if (threads_ == 1)
      done = run_calls();
    else
      pool_.execute([&] { done = run_calls(); });
    if (!done) return std::unexpected(std::move(done).error());
    for (const auto& [output, storage] : placement_.copied)
      std::memcpy(outputs[output].mutable_bytes(), storage, outputs[output].byte_size());
    return outputs;
  }

  std::string counters() override {
    const std::lock_guard one_at_a_time(running_);
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    for (size_t c = 0; c < program_.calls.size(); ++c) {
      const Call& call = program_.calls[c];
      layers.push_back({{"name", name_of(call)},
                        {"kernel", program_.kernels[static_cast<size_t>(call.kernel)].name},
                        {"ms", call_ms_[c]}});
    }
    return nlohmann::ordered_json{{"load", {{"link_ms", link_ms_}, {"constants_ms", constants_ms_}}},
                                  {"arena_bytes", placement_.arena_bytes},
                                  {"constant_bytes", constant_bytes_},
                                  {"kernels", program_.kernels.size()},
                                  {"threads", threads_},
                                  {"copied_bytes", bound_ ? evaluate(copied_bytes(program_), *bound_).value_or(0) : 0},
                                  {"layers", layers}}
        .dump();
  }

 private:
  const std::string& name_of(const Call& c) const {
    return c.locations.empty() ? program_.kernels[static_cast<size_t>(c.kernel)].name : c.locations.front();
  }

  Result<> run_calls() {
    double before = now_ms();
    for (size_t c = 0; c < placement_.calls.size(); ++c) {
      const int64_t statement = run_call(placement_.calls[c], threads_);
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

  // Constants stay where they are given, which is in the program's order and in huge pages: ours when they come from an
  // artifact or from dlc's memory. Code reads them as vectors, so those at odd addresses are moved.
  Result<> take_constants() {
    std::map<std::string_view, Tensor*> values;
    for (auto& [name, t] : program_.weights) values.emplace(name, &t);
    constants_.assign(program_.buffers.size(), nullptr);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      if (b.kind != BufferKind::constant || b.alias) continue;
      DLC_TRY(const int64_t bytes, bytes_of(b.type.dtype, b.type.shape, {}));
      const auto w = values.find(b.name);
      if (w == values.end() || static_cast<int64_t>(w->second->byte_size()) != bytes)
        return fail({}, fmt::format("constant {} has no value, or one of another size", b.name));
      if (__builtin_add_overflow(constant_bytes_, aligned(bytes), &constant_bytes_))
        return fail({}, "the constants' size overflows");
      const bool is_aligned = reinterpret_cast<uintptr_t>(w->second->bytes()) % kConstantAlign == 0;
      constants_[i] = is_aligned ? w->second->bytes() : w->second->mutable_bytes();
    }
    return {};
  }

  std::mutex running_;  // guards placement_, bound_, call_ms_
  Program program_;
  std::vector<StatePair> states_;  // in place
  int threads_;
  tbb::task_arena pool_;
  CompiledKernels code_;                     // of program_.kernels
  std::vector<const std::byte*> constants_;  // of each buffer
  std::optional<Bindings> bound_;            // the dims that placement_ is for
  Placement placement_;
  std::vector<double> call_ms_;
  double link_ms_ = 0, constants_ms_ = 0;
  int64_t constant_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<Executable>> make_executable(Unpacked code, std::vector<std::pair<std::string, Tensor>> weights,
                                                    int threads) {
  code.program.weights = std::move(weights);
  auto e = std::make_unique<CpuExecutable>(std::move(code.program), threads);
  DLC_CHECK(e->load(code.object));
  return e;
}

}  // namespace dlc::cpu
