// A plugin's C tables as a dlc::Backend.
#include "dlc/plugin/host.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/plugin/abi.h"
#include "dlc/io/library.h"

namespace dlc {

namespace {

using detail::ErrorCollector;
using detail::TensorTable;

// The fields that version 1.0 of each table has: less is no version of it. More than kMaxTable is a lie.
constexpr size_t kMinPlugin = sizeof(dlc_plugin_v1), kMinCompiler = sizeof(dlc_compiler_v1),
                 kMinRuntime = offsetof(dlc_runtime_v1, run_in_place), kMaxTable = 4096;

// Whether [p, p + size) lies in the loaded segments of the library that holds `symbol`.
bool in_library(const void* symbol, const void* p, size_t size) {
  struct Query {
    uintptr_t symbol, begin, end;
    bool found;
  } q{reinterpret_cast<uintptr_t>(symbol), reinterpret_cast<uintptr_t>(p), reinterpret_cast<uintptr_t>(p) + size,
      false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& query = *static_cast<Query*>(data);
        bool is_library = false, has_range = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& h = info->dlpi_phdr[i];
          if (h.p_type != PT_LOAD) continue;
          const uintptr_t begin = info->dlpi_addr + h.p_vaddr, end = begin + h.p_memsz;
          is_library = is_library || (begin <= query.symbol && query.symbol < end);
          has_range = has_range || (begin <= query.begin && query.end <= end);
        }
        query.found = query.found || (is_library && has_range);
        return static_cast<int>(is_library);
      },
      &q);
  return q.found;
}

struct Library {
  std::string path, name;
  const dlc_plugin_v1* table = nullptr;
  dlc_compiler_v1 compiler{};
  dlc_runtime_v1 runtime{};
};

Error unsupported(const Library& l, std::string_view what) {
  return Error({}, fmt::format("plugin {} does not {}", l.name, what));
}

// What a callback does, which a plugin called through C: no exception goes back through it. Those that there can be are
// of sizes that no memory has.
template <class F>
Result<> caught(std::string_view plugin, std::string_view what, F&& f) {
  try {
    return f();
  } catch (const std::exception& e) {
    return fail({}, fmt::format("plugin {}: {} cannot be taken: {}", plugin, what, e.what()));
  }
}

// A dlc_sink that gives what it is given to an EmitResult. Its first failure is kept in the result's `forwarded`.
class FileSink {
 public:
  FileSink(std::string plugin, EmitResult& to) : plugin_(std::move(plugin)), to_(to) {
    c_.struct_size = sizeof(c_);
    c_.context = this;
    c_.put = [](void* context, const char* name, const void* bytes, uint64_t size) {
      return static_cast<FileSink*>(context)->take(name, {}, bytes, size);
    };
    c_.put_at = [](void* context, const char* name, uint64_t offset, const void* bytes, uint64_t size) {
      return static_cast<FileSink*>(context)->take(name, offset, bytes, size);
    };
  }
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  const dlc_sink* c() const { return &c_; }

 private:
  // A whole file, or a piece at `offset`.
  int32_t take(const char* given_name, std::optional<uint64_t> offset, const void* data, uint64_t size) {
    if (!to_.forwarded) return 1;
    const std::string name = detail::or_empty(given_name), what = fmt::format("'{}' of {} bytes", name, size);
    auto done = caught(plugin_, what, [&]() -> Result<> {
      if (data == nullptr && size > 0) return fail({}, fmt::format("plugin {}: {} is null", plugin_, what));
      if (size > static_cast<uint64_t>(Tensor::max_bytes()))
        return fail({}, fmt::format("plugin {}: {} cannot be taken: it is above the limit of {} bytes", plugin_, what,
                                    Tensor::max_bytes()));
      const std::span bytes(static_cast<const std::byte*>(data), size);
      if (!offset) {
        to_.put(name, bytes);
        return {};
      }
      uint64_t &end = ends_[name], stop = 0;
      if (__builtin_add_overflow(*offset, size, &stop))
        return fail({}, fmt::format("plugin {}: {} cannot be taken", plugin_, what));
      if (*offset != end && (*offset > end || stop > end))
        return fail({}, fmt::format("plugin {}: a piece {} at {}, where {} are known", plugin_, what, *offset, end));
      end = std::max(end, stop);
      to_.put_at(name, *offset, bytes);
      return {};
    });
    if (!done) to_.forwarded = std::move(done);
    return to_.forwarded ? 0 : 1;
  }

  std::string plugin_;
  EmitResult& to_;
  std::map<std::string, uint64_t> ends_;  // of files that come in pieces
  dlc_sink c_{};
};

// A call's answers as texts.
struct Answers {
  explicit Answers(std::string plugin) : sink(std::move(plugin), files) {}
  EmitResult files;
  FileSink sink;
  bool empty() const { return files.files.empty() || !files.forwarded; }
  std::string text(size_t i) const {
    const auto& bytes = files.files[i].second;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class HostExecutable : public Executable {
 public:
  HostExecutable(const Library& l, dlc_executable* e) : l_(l), e_(e) {}
  ~HostExecutable() override {
    if (l_.runtime.unload != nullptr) l_.runtime.unload(e_);
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override {
    TensorTable table;
    const std::string no_name;
    for (const Tensor& t : inputs) table.add(no_name, t);
    Outputs outputs{l_.name, {}, {}};
    ErrorCollector errors;
    const int32_t code = l_.runtime.run(e_, table.data(), table.size(), &outputs, &Outputs::place, errors.c());
    if (!outputs.placed) return std::unexpected(std::move(outputs.placed).error());
    if (code != 0) return std::unexpected(errors.take(l_.name));
    return std::move(outputs.tensors);
  }

  Result<std::vector<Tensor>> run_in_place(std::span<const Tensor> inputs,
                                           std::span<const StateMemory> states) override {
    if (l_.runtime.run_in_place == nullptr) return std::unexpected(unsupported(l_, "keep states"));
    TensorTable table, memory;
    const std::string no_name;
    for (const Tensor& t : inputs) table.add(no_name, t);
    for (const StateMemory& s : states) memory.add(s);
    Outputs outputs{l_.name, {}, {}};
    ErrorCollector errors;
    const int32_t code = l_.runtime.run_in_place(e_, table.data(), table.size(), memory.data(), memory.size(), &outputs,
                                                 &Outputs::place, errors.c());
    if (!outputs.placed) return std::unexpected(std::move(outputs.placed).error());
    if (code != 0) return std::unexpected(errors.take(l_.name));
    return std::move(outputs.tensors);
  }

  std::string counters() override {
    Answers answers(l_.name);
    ErrorCollector errors;
    if (l_.runtime.counters == nullptr || l_.runtime.counters(e_, answers.sink.c(), errors.c()) != 0 || answers.empty())
      return "{}";
    return answers.text(0);
  }

 private:
  struct Outputs {
    const std::string& plugin;
    std::vector<Tensor> tensors;
    Result<> placed;  // the first failure
    static void* place(void* context, uint64_t index, const char* dtype, const int64_t* shape, uint64_t rank) {
      auto& self = *static_cast<Outputs*>(context);
      if (!self.placed) return nullptr;
      self.placed = caught(self.plugin, fmt::format("result {} of rank {}", index, rank),
                           [&] { return self.add(index, detail::or_empty(dtype), shape, rank); });
      return self.placed ? self.tensors.back().mutable_bytes() : nullptr;
    }
    Result<> add(uint64_t index, const char* dtype, const int64_t* shape, uint64_t rank) {
      const auto type = parse_dtype(dtype);
      if (!type) return fail({}, fmt::format("plugin {}: result {} has the unknown dtype '{}'", plugin, index, dtype));
      if (index != tensors.size())
        return fail({}, fmt::format("plugin {}: result {} came where {} was expected", plugin, index, tensors.size()));
      if (shape == nullptr && rank > 0)
        return fail({}, fmt::format("plugin {}: result {} has no shape", plugin, index));
      std::vector<int64_t> dims(rank);
      std::copy_n(shape, rank, dims.begin());
      DLC_TRY(Tensor t, Tensor::make(*type, std::move(dims)));
      tensors.push_back(std::move(t));
      return {};
    }
  };

  const Library& l_;
  dlc_executable* e_;
};

class HostDevice : public Device {
 public:
  HostDevice(const Library& l, dlc_device* d) : l_(l), d_(d) {}
  ~HostDevice() override {
    if (l_.runtime.close != nullptr) l_.runtime.close(d_);
  }
  Result<std::unique_ptr<Executable>> load(std::span<const std::byte> executable,
                                           std::vector<std::pair<std::string, Tensor>> weights) override {
    TensorTable table;
    for (const auto& [name, t] : weights) table.add(name, t);
    ErrorCollector errors;
    dlc_executable* e = nullptr;
    if (l_.runtime.load(d_, executable.data(), executable.size(), table.data(), table.size(), &e, errors.c()) != 0 ||
        e == nullptr)
      return std::unexpected(errors.take(l_.name));
    return std::make_unique<HostExecutable>(l_, e);
  }

 private:
  const Library& l_;
  dlc_device* d_;
};

class HostBackend : public Backend {
 public:
  explicit HostBackend(Library l) : l_(std::move(l)) {}

  std::string name() const override { return l_.name; }
  std::string version() const override { return detail::or_empty(l_.table->version); }
  std::string schemes() const override { return detail::or_empty(l_.table->schemes); }

  bool takes_states() const override { return l_.runtime.run_in_place != nullptr; }

  Result<std::vector<Refusal>> match(const EmitRequest& r) override {
    if (l_.compiler.match == nullptr) return std::vector<Refusal>{};
    Answers answers(l_.name);
    DLC_CHECK(compile(l_.compiler.match, r, answers.files, answers.sink));
    std::vector<Refusal> out;
    if (answers.empty()) return out;
    try {
      const auto answer = nlohmann::json::parse(answers.text(0));
      for (const auto& x : answer.at("refused")) {
        const int call = x.at("call").get<int>();
        if (call < 0 || call >= std::ssize(r.program.calls))
          return fail(
              {}, fmt::format("plugin {}: match answered for call {} of {}", l_.name, call, r.program.calls.size()));
        out.push_back({call, x.value("rule", ""), x.value("why", ""), x.value("line", 0), x.value("next", ""),
                       x.value("too_large", false)});
      }
    } catch (const nlohmann::json::exception&) {
      return fail({}, fmt::format("plugin {}: match answered something that is not understood", l_.name));
    }
    return out;
  }

  Result<> emit(const EmitRequest& r, EmitResult& result) override {
    if (l_.compiler.emit == nullptr) return std::unexpected(unsupported(l_, "compile"));
    const FileSink sink(l_.name, result);
    return compile(l_.compiler.emit, r, result, sink);
  }

  std::vector<DeviceListing> list() override {
    std::vector<DeviceListing> out;
    if (l_.runtime.list == nullptr) return out;
    Answers answers(l_.name);
    ErrorCollector errors;
    if (l_.runtime.list(answers.sink.c(), errors.c()) != 0 || answers.empty()) return out;
    for (size_t i = 0; i < answers.files.files.size(); ++i) {
      const auto facts = nlohmann::json::parse(answers.text(i), nullptr, false);
      const auto has = [&](const char* key, auto is) { return !facts.contains(key) || (facts[key].*is)(); };
      using Json = nlohmann::json;
      const bool understood = facts.is_object() && has("available", &Json::is_boolean) && has("why", &Json::is_string);
      out.push_back({answers.files.files[i].first, understood && facts.value("available", false),
                     understood ? facts.value("why", "") : "the plugin's answer is not understood"});
    }
    return out;
  }

  Result<std::unique_ptr<Device>> open(const std::string& uri) override {
    if (l_.runtime.open == nullptr || l_.runtime.load == nullptr || l_.runtime.run == nullptr)
      return std::unexpected(unsupported(l_, "run anything"));
    ErrorCollector errors;
    dlc_device* d = nullptr;
    if (l_.runtime.open(uri.c_str(), &d, errors.c()) != 0 || d == nullptr) return std::unexpected(errors.take(l_.name));
    return std::make_unique<HostDevice>(l_, d);
  }

 private:
  Result<> compile(int32_t (*f)(const dlc_emit_request*, const dlc_sink*, const dlc_error*), const EmitRequest& r,
                   const EmitResult& result, const FileSink& sink) {
    const std::string text = print(r.program);
    TensorTable table;
    for (const auto& [name, t] : r.program.weights) table.add(name, t);
    const dlc_emit_request c{sizeof(dlc_emit_request),
                             text.c_str(),
                             table.data(),
                             table.size(),
                             r.hardware.c_str(),
                             r.hardware_file.c_str(),
                             r.hardware_params.c_str(),
                             r.options.c_str()};
    ErrorCollector errors;
    const int32_t code = f(&c, sink.c(), errors.c());
    if (!result.forwarded) return std::unexpected(result.forwarded.error());
    if (code != 0) return std::unexpected(errors.take(l_.name));
    return {};
  }

  Library l_;
};

// Copies a table of at least `least` bytes that lies in the library.
template <class T>
Result<> take_table(const void* entry, const T* given, size_t least, std::string_view what, T& out) {
  if (given == nullptr) return {};
  if (!in_library(entry, given, sizeof(uint64_t)))
    return fail({}, fmt::format("its {} is not inside the library", what));
  const uint64_t size = given->struct_size;
  if (size < least || size > kMaxTable || size % alignof(T) != 0 || !in_library(entry, given, size))
    return fail({}, fmt::format("it says that its {} has {} bytes, which cannot be: this interface has {}", what, size,
                                sizeof(T)));
  out = detail::read_struct(given);
  return {};
}

bool lists(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, end);
    while (word.starts_with(' ')) word.remove_prefix(1);
    if (word == wanted) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

Result<Library> open_library(const std::string& path, const PluginManifest& manifest) {
  DLC_CHECK(check_library(path));
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return fail({}, fmt::format("it cannot be loaded: {}", ::dlerror()));
  auto* entry = reinterpret_cast<dlc_plugin_v1_entry_fn>(::dlsym(handle, DLC_PLUGIN_ENTRY));
  const auto refuse = [&](Error e) {
    ::dlclose(handle);
    return std::unexpected(std::move(e));
  };
  if (entry == nullptr)
    return refuse(
        Error({}, "it has no symbol " DLC_PLUGIN_ENTRY, "a C++ plugin says DLC_PLUGIN(MyBackend) in one file"));
  Library l;
  l.path = path;
  const auto* where = reinterpret_cast<const void*>(entry);
  const dlc_plugin_v1* table = entry();
  if (table == nullptr) return refuse(Error({}, DLC_PLUGIN_ENTRY " returned nothing"));
  dlc_plugin_v1 plugin{};
  // The version decides what the rest means, so it is looked at first; it is part of every version's first 16 bytes.
  if (!in_library(where, table, 2 * sizeof(uint64_t))) return refuse(Error({}, "its table is not inside the library"));
  if (table->struct_size >= 2 * sizeof(uint64_t) && table->abi_major != DLC_ABI_MAJOR)
    return refuse(Error({},
                        fmt::format("it has plugin interface {}.{}, this dlc has {}.{}", table->abi_major,
                                    table->abi_minor, DLC_ABI_MAJOR, DLC_ABI_MINOR),
                        "build the plugin against this version of dlc"));
  if (auto ok = take_table(where, table, kMinPlugin, "table", plugin); !ok) return refuse(std::move(ok).error());
  if (auto ok = take_table(where, plugin.compiler, kMinCompiler, "compiler table", l.compiler); !ok)
    return refuse(std::move(ok).error());
  if (auto ok = take_table(where, plugin.runtime, kMinRuntime, "runtime table", l.runtime); !ok)
    return refuse(std::move(ok).error());
  l.name = detail::or_empty(plugin.name);
  if (l.name != manifest.name)
    return refuse(Error({}, fmt::format("it calls itself '{}', its manifest says '{}'", l.name, manifest.name)));
  for (const std::string& scheme : manifest.schemes)
    if (!lists(detail::or_empty(plugin.schemes), scheme))
      return refuse(Error(
          {}, fmt::format("its manifest promises devices '{}:', it has {}", scheme, detail::or_empty(plugin.schemes))));
  if (!lists(detail::or_empty(plugin.ir_versions), "dlc.program 1"))
    return refuse(
        Error({}, fmt::format("it reads '{}', this dlc writes 'dlc.program 1'", detail::or_empty(plugin.ir_versions))));
  l.table = table;
  return l;
}

}  // namespace

Result<std::unique_ptr<Backend>> open_plugin(const std::string& library, const PluginManifest& manifest) {
  auto opened = open_library(library, manifest);
  if (!opened) {
    for (Diagnostic& d : opened.error().diagnostics)
      if (d.loc.file.empty()) d.loc.file = library;
    return std::unexpected(std::move(opened).error());
  }
  return std::make_unique<HostBackend>(*std::move(opened));
}

}  // namespace dlc
