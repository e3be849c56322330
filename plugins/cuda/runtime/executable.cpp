#include "plugins/cuda/runtime/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "plugins/cuda/runtime/placement.h"

namespace dlc::cuda {

namespace {

using nlohmann::ordered_json;

constexpr int64_t kWavesOfBlocks = 64;  // blocks of a grid for each processor, at most

class CudaExecutable : public Executable {
 public:
  CudaExecutable(std::shared_ptr<Gpu> gpu, Unpacked code) : gpu_(std::move(gpu)), code_(std::move(code)) {}
  CudaExecutable(const CudaExecutable&) = delete;
  CudaExecutable& operator=(const CudaExecutable&) = delete;
  ~CudaExecutable() override {
    const std::lock_guard lock(gpu_->one_at_a_time());
    if (!gpu_->enter()) return;
    for (const CUevent e : events_) cu().cuEventDestroy(e);
    if (stream_ != nullptr) cu().cuStreamDestroy(stream_);
    if (module_ != nullptr) cu().cuModuleUnload(module_);
    arena_ = {};
    constants_ = {};
  }

  Result<> load(const std::vector<std::byte>& image, std::vector<std::pair<std::string, Tensor>> weights) {
    const std::lock_guard lock(gpu_->one_at_a_time());
    DLC_CHECK(gpu_->enter());
    DLC_CHECK(cu().check(cu().cuModuleLoadData(&module_, image.data()), "loading the kernels"));
    constexpr unsigned kNonBlocking = 1;
    DLC_CHECK(cu().check(cu().cuStreamCreate(&stream_, kNonBlocking), "cuStreamCreate"));
    for (const KernelCode& k : code_.module.kernels) DLC_CHECK(find_functions(k.steps));
    for (size_t i = 0; i <= program().calls.size(); ++i) {
      CUevent e = nullptr;
      DLC_CHECK(cu().check(cu().cuEventCreate(&e, 0), "cuEventCreate"));
      events_.push_back(e);
    }
    call_ms_.assign(program().calls.size(), 0.0F);
    return take_constants(weights);
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override {
    const std::lock_guard lock(gpu_->one_at_a_time());
    DLC_CHECK(gpu_->enter());
    DLC_TRY(const Bindings symbols, bind_symbols(program(), inputs));
    if (!bound_ || *bound_ != symbols) {
      bound_.reset();
      DLC_TRY(placement_, Placement::make(program(), constant_offsets_, symbols));
      if (placement_.arena_bytes > arena_bytes_) {
        arena_ = {};
        arena_bytes_ = 0;
        DLC_TRY(arena_, DeviceMemory::allocate(gpu_, static_cast<size_t>(placement_.arena_bytes)));
        arena_bytes_ = placement_.arena_bytes;
      }
      bound_ = symbols;
    }
    return run_bound(inputs, symbols);
  }

  std::string counters() override {
    const std::lock_guard lock(gpu_->one_at_a_time());
    ordered_json layers = ordered_json::array();
    for (size_t c = 0; c < program().calls.size(); ++c)
      layers.push_back({{"name", name_of(program().calls[c])},
                        {"kernel", program().kernels[static_cast<size_t>(program().calls[c].kernel)].name},
                        {"ms", call_ms_[c]}});
    ordered_json all{{"device", gpu_->name()},
                     {"arena_bytes", arena_bytes_},
                     {"constant_bytes", constant_bytes_},
                     {"launches", launches_},
                     {"layers", layers}};
    if (cu().dlc_emu_report != nullptr) all["emulator"] = ordered_json::parse(cu().dlc_emu_report(), nullptr, false);
    return all.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }

 private:
  const Driver& cu() const { return gpu_->driver(); }
  const Program& program() const { return code_.program; }
  const std::string& name_of(const Call& c) const {
    return c.locations.empty() ? program().kernels[static_cast<size_t>(c.kernel)].name : c.locations.front();
  }

  Result<> find_functions(const std::vector<Step>& steps) {
    for (const Step& s : steps) {
      if (!s.variable.empty()) {
        DLC_CHECK(find_functions(s.body));
        continue;
      }
      CUfunction f = nullptr;
      DLC_CHECK(
          cu().check(cu().cuModuleGetFunction(&f, module_, s.launch.function.c_str()), s.launch.function.c_str()));
      functions_[s.launch.function] = f;
    }
    return {};
  }

  // All constants in one piece of memory.
  Result<> take_constants(const std::vector<std::pair<std::string, Tensor>>& weights) {
    std::map<std::string_view, const Tensor*> values;
    for (const auto& [name, t] : weights) values.emplace(name, &t);
    constant_offsets_.assign(program().buffers.size(), 0);
    std::vector<std::pair<int64_t, const Tensor*>> all;
    for (size_t i = 0; i < program().buffers.size(); ++i) {
      const ProgramBuffer& b = program().buffers[i];
      if (b.kind != BufferKind::constant || b.alias) continue;
      DLC_TRY(const int64_t bytes, bytes_of(b.type.dtype, b.type.shape, {}));
      const auto w = values.find(b.name);
      if (w == values.end() || static_cast<int64_t>(w->second->byte_size()) != bytes)
        return fail({}, fmt::format("constant {} has no value, or one of another size", b.name));
      constant_offsets_[i] = constant_bytes_;
      all.emplace_back(constant_bytes_, w->second);
      if (__builtin_add_overflow(constant_bytes_, aligned(bytes), &constant_bytes_))
        return fail({}, "the constants' size overflows");
    }
    DLC_TRY(constants_, DeviceMemory::allocate(gpu_, static_cast<size_t>(constant_bytes_)));
    for (const auto& [offset, t] : all)
      if (t->byte_size() > 0)
        DLC_CHECK(cu().check(cu().cuMemcpyHtoDAsync(constants_.at() + static_cast<CUdeviceptr>(offset), t->bytes(),
                                                    t->byte_size(), stream_),
                             "copying constants"));
    return cu().check(cu().cuStreamSynchronize(stream_), "copying constants");
  }

  CUdeviceptr address(const Place& p) const {
    return (p.is_constant ? constants_.at() : arena_.at()) + static_cast<CUdeviceptr>(p.offset);
  }

  Result<std::vector<Tensor>> run_bound(std::span<const Tensor> inputs, const Bindings& symbols) {
    launches_ = 0;
    size_t next_input = 0;
    for (size_t i = 0; i < program().buffers.size(); ++i) {
      if (program().buffers[i].kind != BufferKind::input) continue;
      const Tensor& t = inputs[next_input++];
      if (t.byte_size() == 0) continue;
      DLC_CHECK(cu().check(cu().cuMemcpyHtoDAsync(address(placement_.buffers[i]), t.bytes(), t.byte_size(), stream_),
                           "copying inputs"));
    }
    const CUdeviceptr status = arena_.at() + static_cast<CUdeviceptr>(placement_.status_offset);
    const size_t calls = program().calls.size();
    DLC_CHECK(cu().check(cu().cuMemsetD8Async(status, 0, sizeof(unsigned) * std::max<size_t>(calls, 1), stream_),
                         "clearing the status"));
    for (size_t c = 0; c < calls; ++c) {
      DLC_CHECK(cu().check(cu().cuEventRecord(events_[c], stream_), "cuEventRecord"));
      Bindings values = symbols;
      DLC_CHECK(steps(code_.module.kernels[static_cast<size_t>(program().calls[c].kernel)].steps, c,
                      status + sizeof(unsigned) * c, values));
    }
    DLC_CHECK(cu().check(cu().cuEventRecord(events_[calls], stream_), "cuEventRecord"));
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < program().buffers.size(); ++i) {
      const ProgramBuffer& b = program().buffers[i];
      if (b.kind != BufferKind::output) continue;
      std::vector<int64_t> shape;
      DLC_CHECK(bytes_of(b.type.dtype, b.type.shape, symbols, &shape));
      DLC_TRY(Tensor t, Tensor::make(b.type.dtype, std::move(shape)));
      if (t.byte_size() > 0)
        DLC_CHECK(cu().check(
            cu().cuMemcpyDtoHAsync(t.mutable_bytes(), address(placement_.buffers[i]), t.byte_size(), stream_),
            "copying outputs"));
      outputs.push_back(std::move(t));
    }
    std::vector<unsigned> failed(calls, 0);
    if (calls > 0)
      DLC_CHECK(cu().check(cu().cuMemcpyDtoHAsync(failed.data(), status, sizeof(unsigned) * calls, stream_),
                           "copying the status"));
    DLC_CHECK(cu().check(cu().cuStreamSynchronize(stream_), "running the kernels"));
    for (size_t c = 0; c < calls; ++c) {
      if (failed[c] != 0) return std::unexpected(undefined(c, failed[c]));
      DLC_CHECK(cu().check(cu().cuEventElapsedTime(&call_ms_[c], events_[c], events_[c + 1]), "cuEventElapsedTime"));
    }
    return outputs;
  }

  Result<> steps(const std::vector<Step>& all, size_t call, CUdeviceptr status, Bindings& values) {
    for (const Step& s : all) {
      if (s.variable.empty()) {
        DLC_CHECK(launch(s.launch, call, status, values));
        continue;
      }
      const auto n = evaluate(s.extent, values);
      if (!n) return fail({}, fmt::format("the extent {} is not known from the inputs", to_string(s.extent)));
      for (int64_t i = 0; i < *n; ++i) {
        values[s.variable] = s.backwards ? *n - 1 - i : i;
        DLC_CHECK(steps(s.body, call, status, values));
      }
      values.erase(s.variable);
    }
    return {};
  }

  Result<> launch(const Launch& l, size_t call, CUdeviceptr status, const Bindings& values) {
    const auto points = evaluate(l.points, values);
    if (!points) return fail({}, fmt::format("{}: how many points it has is not known", l.function));
    if (*points <= 0) return {};
    const int64_t wanted = l.block_per_point ? *points : (*points + l.threads - 1) / l.threads;
    const auto blocks = static_cast<unsigned>(std::min(wanted, kWavesOfBlocks * gpu_->processors()));
    std::vector<CUdeviceptr> pointers;
    std::vector<long long> numbers;
    std::vector<size_t> extents;
    for (const int t : l.tensors) {
      const Place& p = placement_.calls[call].tensors[static_cast<size_t>(t)];
      pointers.push_back(address(p));
      extents.push_back(static_cast<size_t>(p.bytes));
    }
    for (const std::string& s : l.symbols) {
      const auto v = values.find(s);
      if (v == values.end()) return fail({}, fmt::format("dim {} is not known from the inputs", s));
      numbers.push_back(v->second);
      extents.push_back(0);
    }
    std::vector<void*> params;
    for (CUdeviceptr& p : pointers) params.push_back(&p);
    for (long long& n : numbers) params.push_back(&n);
    if (l.has_status) {
      params.push_back(&status);
      extents.push_back(sizeof(unsigned));
    }
    const CUfunction f = functions_.at(l.function);
    if (cu().dlc_emu_extents != nullptr)
      DLC_CHECK(cu().check(cu().dlc_emu_extents(f, static_cast<unsigned>(extents.size()), extents.data()),
                           "dlc_emu_extents"));
    ++launches_;
    const auto threads = static_cast<unsigned>(l.threads);
    return cu().check(cu().cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream_, params.data(), nullptr),
                      l.function.c_str());
  }

  Error undefined(size_t call, unsigned statement) const {
    return Error({{}, 0, 0, name_of(program().calls[call])},
                 fmt::format("kernel {}: statement {} used a value that is not defined for these inputs (an index out "
                             "of bounds, or a division by zero)",
                             program().kernels[static_cast<size_t>(program().calls[call].kernel)].name, statement));
  }

  std::shared_ptr<Gpu> gpu_;
  Unpacked code_;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<CUevent> events_;  // before each call, and after the last
  std::map<std::string, CUfunction, std::less<>> functions_;
  std::vector<int64_t> constant_offsets_;  // of each buffer that is one
  DeviceMemory constants_, arena_;
  int64_t constant_bytes_ = 0, arena_bytes_ = 0, launches_ = 0;
  std::optional<Bindings> bound_;  // the dims that placement_ is for
  Placement placement_;
  std::vector<float> call_ms_;
};

}  // namespace

Result<std::unique_ptr<Executable>> make_executable(std::shared_ptr<Gpu> gpu, Unpacked code,
                                                    const std::vector<std::byte>& image,
                                                    std::vector<std::pair<std::string, Tensor>> weights) {
  auto e = std::make_unique<CudaExecutable>(std::move(gpu), std::move(code));
  DLC_CHECK(e->load(image, std::move(weights)));
  return e;
}

}  // namespace dlc::cuda
