// dlc::Backend behind the C interface: texts are parsed, weights wrapped, exceptions stopped, diagnostics carried over.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "core/plugin/abi.h"
#include "dlc/plugin/backend.h"

struct dlc_device {
  std::unique_ptr<dlc::Device> device;
};
struct dlc_executable {
  std::unique_ptr<dlc::Executable> executable;
};

namespace dlc {

namespace {

using detail::or_empty;
using detail::read_struct;

// The C functions carry no context; a library has one backend (its symbols are hidden from other libraries).
Backend* g_backend = nullptr;

template <class F>
int32_t guarded(const dlc_error* error, F&& f) {
  try {
    Result<> done = f();
    if (done) return 0;
    detail::report(error, done.error());
  } catch (const std::exception& e) {
    detail::report(error, Error({}, fmt::format("internal error in plugin: {}", e.what())));
  } catch (...) {
    detail::report(error, Error({}, "internal error in plugin: unknown exception"));
  }
  return 1;
}

std::unexpected<Error> refused(const std::string& name) {
  return fail({}, fmt::format("the host did not take '{}'", name));
}

Result<> put(const dlc_sink* sink, const std::string& name, const void* bytes, uint64_t size) {
  const dlc_sink s = read_struct(sink);
  if (s.put == nullptr || s.put(s.context, name.c_str(), bytes, size) != 0) return refused(name);
  return {};
}
Result<> put(const dlc_sink* sink, const std::string& name, const std::string& text) {
  return put(sink, name, text.data(), text.size());
}

Result<> check_weights(const Program& p) {
  for (const ProgramBuffer& b : p.buffers) {
    if (b.kind != BufferKind::constant || b.alias) continue;
    const Tensor* w = p.weight(b.name);
    if (w == nullptr) return fail({}, fmt::format("constant {} has no value", b.name));
    const TensorType given = type_of(*w);
    if (given.dtype != b.type.dtype || given.shape != b.type.shape)
      return fail({},
                  fmt::format("constant {} is {}, the program says {}", b.name, to_string(given), to_string(b.type)));
  }
  return {};
}

Result<EmitRequest> request_of(const dlc_emit_request* given) {
  const dlc_emit_request c = read_struct(given);
  EmitRequest r;
  DLC_TRY(r.program, parse_program(or_empty(c.program), "program"));
  DLC_TRY(r.program.weights, detail::wrap_tensors(c.weights, c.weight_count));
  DLC_CHECK(check_weights(r.program));
  r.hardware = or_empty(c.hardware);
  r.hardware_file = or_empty(c.hardware_file);
  r.hardware_params = or_empty(c.hardware_params);
  r.options = or_empty(c.options);
  return r;
}

int32_t match(const dlc_emit_request* request, const dlc_sink* result, const dlc_error* error) {
  return guarded(error, [&]() -> Result<> {
    DLC_TRY(const EmitRequest r, request_of(request));
    DLC_TRY(const auto refusals, g_backend->match(r));
    nlohmann::ordered_json refused = nlohmann::ordered_json::array();
    for (const Refusal& x : refusals)
      refused.push_back({{"call", x.call},
                         {"rule", x.rule},
                         {"why", x.why},
                         {"line", x.yaml_line},
                         {"next", x.next},
                         {"too_large", x.too_large}});
    return put(result, "match.json", nlohmann::ordered_json{{"refused", refused}}.dump());
  });
}

int32_t emit(const dlc_emit_request* request, const dlc_sink* result, const dlc_error* error) {
  return guarded(error, [&]() -> Result<> {
    DLC_TRY(const EmitRequest r, request_of(request));
    EmitResult files;
    files.forward = [&](const std::string& name, std::span<const std::byte> bytes) {
      return put(result, name, bytes.data(), bytes.size());
    };
    files.forward_at = [&](const std::string& name, uint64_t offset, std::span<const std::byte> bytes) -> Result<> {
      const dlc_sink s = read_struct(result);
      if (s.put_at == nullptr) return fail({}, fmt::format("this dlc does not take '{}' in pieces", name));
      if (s.put_at(s.context, name.c_str(), offset, bytes.data(), bytes.size()) != 0) return refused(name);
      return {};
    };
    DLC_CHECK(g_backend->emit(r, files));
    return files.forwarded;
  });
}

int32_t list(const dlc_sink* result, const dlc_error* error) {
  return guarded(error, [&]() -> Result<> {
    for (const DeviceListing& d : g_backend->list())
      DLC_CHECK(put(result, d.uri, nlohmann::ordered_json{{"available", d.available}, {"why", d.why}}.dump()));
    return {};
  });
}

int32_t open(const char* uri, dlc_device** device, const dlc_error* error) {
  return guarded(error, [&]() -> Result<> {
    DLC_TRY(auto opened, g_backend->open(or_empty(uri)));
    *device = new dlc_device{std::move(opened)};
    return {};
  });
}

int32_t load(dlc_device* device, const void* executable, uint64_t size, const dlc_tensor* weights,
             uint64_t weight_count, dlc_executable** result, const dlc_error* error) {
  return guarded(error, [&]() -> Result<> {
    DLC_TRY(auto tensors, detail::wrap_tensors(weights, weight_count));
    const std::span bytes(static_cast<const std::byte*>(executable), size);
    DLC_TRY(auto loaded, device->device->load(bytes, std::move(tensors)));
    *result = new dlc_executable{std::move(loaded)};
    return {};
  });
}

using OutputPlace = void* (*)(void*, uint64_t, const char*, const int64_t*, uint64_t);

Result<std::vector<Tensor>> tensors_of(const dlc_tensor* table, uint64_t count) {
  DLC_TRY(auto named, detail::wrap_tensors(table, count));
  std::vector<Tensor> tensors;
  for (auto& [name, t] : named) tensors.push_back(std::move(t));
  return tensors;
}

Result<> hand_over(const std::vector<Tensor>& results, void* context, OutputPlace output) {
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& t = results[i];
    void* to = output(context, i, to_string(t.dtype()).c_str(), t.shape().data(), t.shape().size());
    if (to == nullptr) return fail({}, fmt::format("the host has no memory for result {}", i));
    std::memcpy(to, t.bytes(), t.byte_size());
  }
  return {};
}

int32_t run(dlc_executable* executable, const dlc_tensor* inputs, uint64_t input_count, void* context,
            OutputPlace output, const dlc_error* error) {
  return guarded(error, [&]() -> Result<> {
    DLC_TRY(const auto tensors, tensors_of(inputs, input_count));
    DLC_TRY(const auto results, executable->executable->run(tensors));
    return hand_over(results, context, output);
  });
}

int32_t run_in_place(dlc_executable* executable, const dlc_tensor* inputs, uint64_t input_count,
                     const dlc_tensor* states, uint64_t state_count, void* context, OutputPlace output,
                     const dlc_error* error) {
  return guarded(error, [&]() -> Result<> {
    DLC_TRY(const auto tensors, tensors_of(inputs, input_count));
    DLC_TRY(const auto memory, detail::wrap_states(states, state_count));
    DLC_TRY(const auto results, executable->executable->run_in_place(tensors, memory));
    return hand_over(results, context, output);
  });
}

int32_t counters(dlc_executable* executable, const dlc_sink* result, const dlc_error* error) {
  return guarded(error, [&] { return put(result, "counters.json", executable->executable->counters()); });
}

}  // namespace

void EmitResult::put(std::string name, std::string_view text) {
  put(std::move(name), std::as_bytes(std::span(text.data(), text.size())));
}
void EmitResult::put(std::string name, std::vector<std::byte> bytes) {
  if (forward)
    put(std::move(name), std::span<const std::byte>(bytes));
  else
    files.emplace_back(std::move(name), std::move(bytes));
}
void EmitResult::put(std::string name, std::span<const std::byte> bytes) {
  if (!forward)
    files.emplace_back(std::move(name), std::vector<std::byte>(bytes.begin(), bytes.end()));
  else if (forwarded)
    forwarded = forward(name, bytes);
}
void EmitResult::put_at(const std::string& name, uint64_t offset, std::span<const std::byte> bytes) {
  if (!forwarded) return;
  if (forward_at) {
    forwarded = forward_at(name, offset, bytes);
    return;
  }
  auto file = std::ranges::find(files, name, [](const auto& f) { return f.first; });
  if (file == files.end()) file = files.emplace(file, name, std::vector<std::byte>());
  file->second.resize(std::max<size_t>(file->second.size(), offset + bytes.size()));
  std::ranges::copy(bytes, file->second.begin() + static_cast<std::ptrdiff_t>(offset));
}
const std::vector<std::byte>* EmitResult::find(std::string_view name) const {
  for (const auto& [n, bytes] : files)
    if (n == name) return &bytes;
  return nullptr;
}

const dlc_plugin_v1* make_plugin(Backend& backend) {
  g_backend = &backend;
  static const std::string name = backend.name(), version = backend.version(), schemes = backend.schemes();
  static const dlc_compiler_v1 compiler{sizeof(dlc_compiler_v1), match, emit};
  static const dlc_runtime_v1 runtime{
      sizeof(dlc_runtime_v1),
      list,
      open,
      [](dlc_device* d) { delete d; },
      load,
      [](dlc_executable* e) { delete e; },
      run,
      counters,
      backend.takes_states() ? run_in_place : nullptr,
  };
  static const dlc_plugin_v1 plugin{sizeof(dlc_plugin_v1), DLC_ABI_MAJOR,   DLC_ABI_MINOR,
                                    name.c_str(),          version.c_str(), "dlc.program 1",
                                    schemes.c_str(),       &compiler,       &runtime};
  return &plugin;
}

}  // namespace dlc
