// Which partition runs on which device, and the tensors between them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/plugin/host/ports.h"
#include "dlc/plugin/reference.h"

namespace dlc {

std::string_view scheme_of(std::string_view uri) { return uri.substr(0, uri.find(':')); }

namespace detail {

// What the user's choice and the machine mean for each partition.
class DeviceChoice {
 public:
  DeviceChoice(PluginRegistry& plugins, const Session::Options& options) : plugins_(plugins), options_(options) {}

  Result<> choose(const CompiledModel& m) {
    DLC_TRY(native_, load_hardware("native"));
    if (auto host = plugins_.for_hardware(native_.description))
      host_ = *host;
    else
      host_ = &interpreter_backend();
    if (options_.device.empty()) return {};
    if (options_.device.find(':') == std::string::npos)
      return fail({}, fmt::format("'{}' is not a device URI", options_.device),
                  "interp:, cpu:, asic:func, ...; `dlc targets` lists them");
    DLC_TRY(chosen_, plugins_.for_scheme(scheme_of(options_.device)));
    const bool has_part = std::ranges::any_of(all_partitions(m),
                                              [&](const CompiledPartition* p) { return p->device == chosen_->name(); });
    if (!has_part && !is_general(chosen_)) return std::unexpected(nothing_for(m, options_.device));
    return {};
  }

  Result<std::pair<Backend*, std::string>> of(const CompiledPartition& p) {
    if (chosen_ != nullptr && (chosen_->name() == p.device || is_general(chosen_)))
      return std::pair(chosen_, options_.device);
    Backend* backend = host_;
    if (p.device != "host") {
      DLC_TRY(backend, plugins_.find(p.device));
    }
    std::string reasons;
    for (const DeviceListing& d : backend->list()) {
      if (d.available) return std::pair(backend, d.uri);
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", d.uri, d.why);
    }
    return fail({}, fmt::format("no device of plugin {} is available here ({})", backend->name(), reasons));
  }

  // The URI to open: with the threads of host partitions.
  std::string with_threads(const Backend* b, const std::string& uri) const {
    if (options_.threads <= 0 || b != host_ || b == &interpreter_backend()) return uri;
    return fmt::format("{}{}threads={}", uri, uri.find('?') == std::string::npos ? "?" : "&", options_.threads);
  }
  const Hardware& native() const { return native_; }

 private:
  // Can run any program: what host partitions are given to.
  bool is_general(const Backend* b) const { return b == host_ || b == &interpreter_backend(); }

  PluginRegistry& plugins_;
  const Session::Options& options_;
  Hardware native_;
  Backend* host_ = nullptr;
  Backend* chosen_ = nullptr;
};

}  // namespace detail

namespace {

// What a partition's results are: the model's outputs are known; where there are others its program says it.
Result<std::vector<TensorType>> result_types(const CompiledGraph& m, const CompiledPartition& p) {
  if (p.is_control()) {
    std::vector<TensorType> types;
    for (const CompiledControl::Given& g : p.control.outputs) types.push_back(g.type);
    return types;
  }
  std::vector<TensorType> out;
  for (const std::string& name : p.outputs)
    if (const auto port = std::ranges::find(m.outputs, name, &Port::name); port != m.outputs.end())
      out.push_back(port->type);
  if (out.size() == p.outputs.size()) return out;
  out.clear();
  if (p.device == kReferenceDevice) {
    DLC_TRY(const Graph g, reference_graph(p));
    for (const ValueId v : g.outputs) out.push_back(g.value(v).type);
    return out;
  }
  DLC_TRY(const Program program, parse_program(p.program, "program"));
  for (const ProgramBuffer& b : program.buffers)
    if (b.kind == BufferKind::output) out.push_back(value_type(b));
  return out;
}

constexpr const char* kReferenceUri = "reference:";
constexpr const char* kControlUri = "control:";

// Runs the bodies of a partition of control flow, each a session of its own.
class ControlExecutable : public Executable {
 public:
  static Result<std::unique_ptr<ControlExecutable>> open(const CompiledControl& control, detail::DeviceChoice& choice) {
    auto made = std::make_unique<ControlExecutable>(control);
    for (const CompiledGraph& body : control.bodies) {
      DLC_TRY(Session session, Session::open(body, choice));
      made->sessions_.push_back(std::move(session));
    }
    return made;
  }
  explicit ControlExecutable(const CompiledControl& control) : control_(control) {}

  // Where the bodies run: the first device that is one.
  std::string device() const {
    for (const Session& s : sessions_)
      for (size_t i = 0; i < s.partitions(); ++i)
        if (s.device(i) != kReferenceUri && s.device(i) != kControlUri) return s.device(i);
    return kControlUri;
  }

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override {
    return run_control(control_, inputs,
                       [&](size_t body, std::vector<Tensor> given) { return sessions_[body].run(given); });
  }

 private:
  const CompiledControl& control_;
  std::vector<Session> sessions_;
};

}  // namespace

Result<std::vector<Tensor>> run_control(const CompiledControl& control, std::span<const Tensor> operands,
                                        const RunBody& run) {
  std::vector<BodyType> types;
  for (const CompiledGraph& body : control.bodies) {
    BodyType& t = types.emplace_back(BodyType{body.symbols, {}, {}});
    for (const Port& p : body.inputs) t.inputs.push_back(p.type);
    for (const Port& p : body.outputs) t.outputs.push_back(p.type);
  }
  DLC_TRY(const auto results, run_control(control.op, control.carried, types, operands, run));
  std::vector<Tensor> outputs;
  for (const CompiledControl::Given& g : control.outputs) outputs.push_back(results[g.result]);
  return outputs;
}

std::vector<const CompiledPartition*> all_partitions(const CompiledGraph& g) {
  std::vector<const CompiledPartition*> all;
  for (const CompiledPartition& p : g.partitions) {
    all.push_back(&p);
    for (const CompiledGraph& body : p.control.bodies) {
      const auto inner = all_partitions(body);
      all.insert(all.end(), inner.begin(), inner.end());
    }
  }
  return all;
}

Error nothing_for(const CompiledModel& m, std::string_view device) {
  if (std::ranges::none_of(all_partitions(m), [](const CompiledPartition* p) { return p->device == "host"; }))
    return Error(
        {},
        fmt::format("nothing in the model '{}' was compiled for {} (it is for {})", m.name, device, m.hardware_name),
        "compile it with the --hw of that device");
  Error e({}, fmt::format("all of the model '{}' is on the host, nothing on {}", m.name, m.hardware_name),
          "--device cpu: runs it; dlc explain says why each node is on the host");
  const auto explanation = nlohmann::json::parse(m.explanation, nullptr, false);
  if (!explanation.is_object()) return e;
  for (const auto& p : explanation.value("problems", nlohmann::json::array()))
    if (p.is_object() && p.contains("message") && p["message"].is_string())
      e.diagnostics.push_back({Severity::note, {}, "when it was compiled: " + p["message"].get<std::string>(), ""});
  return e;
}

Result<Session> Session::open(const CompiledModel& model, PluginRegistry& plugins, const Options& options) {
  detail::DeviceChoice choice(plugins, options);
  DLC_CHECK(choice.choose(model));
  return open(model, choice);
}

Result<Session> Session::open(const CompiledGraph& model, detail::DeviceChoice& choice) {
  Session s;
  s.model_ = &model;
  for (const StatePair& pair : model.states) {
    const auto input = std::ranges::find(model.inputs, pair.input, &Port::name);
    if (input == model.inputs.end() || std::ranges::count(model.outputs, pair.output, &Port::name) == 0)
      return fail({}, fmt::format("state '{}' -> '{}' is no input and output of the model", pair.input, pair.output));
    s.states_.push_back({{}, {}, input->type, false, false});
  }
  for (const CompiledPartition& p : model.partitions) {
    Part part;
    part.compiled = &p;
    DLC_TRY(part.results, result_types(model, p));
    if (p.device == kReferenceDevice) {
      part.uri = kReferenceUri;
      DLC_TRY(part.executable, reference_executable(p));
      s.parts_.push_back(std::move(part));
      continue;
    }
    if (p.is_control()) {
      DLC_TRY(auto control, ControlExecutable::open(p.control, choice));
      part.uri = control->device();
      part.executable = std::move(control);
      s.parts_.push_back(std::move(part));
      continue;
    }
    DLC_TRY(const auto where, choice.of(p));
    Backend* backend = where.first;
    part.uri = where.second;
    const CompiledPartition* compiled = &p;
    if (backend->name() != p.device || p.executable.empty()) {
      DLC_TRY(Program program, parse_program(p.program, "program"));
      program.weights = p.weights;
      DLC_TRY(part.own, compile_partition(backend->name(), backend, std::move(program), choice.native(), "{}"));
      compiled = &part.own;
    }
    DLC_TRY(part.device, backend->open(choice.with_threads(backend, part.uri)));
    DLC_TRY(part.executable, part.device->load(compiled->executable, compiled->compiled_weights()));
    if (!model.states.empty()) DLC_CHECK(s.find_states(part, compiled->compiled_program()));
    s.parts_.push_back(std::move(part));
  }
  return s;
}

}  // namespace dlc
