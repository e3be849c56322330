#include "tools/dlc/bisection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "dlc/numerics/commit.h"
#include "dlc/plugin/reference.h"
#include "tools/dlc/onnxruntime.h"

namespace dlc::cli {

namespace {

constexpr const char* kCommit = "commit_numerics";

// How an error unwinds out of bodies once the step is found.
std::unexpected<Error> found() { return fail({}, "found"); }

// The first of the model's nodes that a partition has.
std::string layers_of(const CompiledPartition& part) {
  constexpr size_t kShown = 4;
  std::vector<std::string> names;
  if (const auto program = parse_program(part.program, "program"))
    for (const Call& call : program->calls) names.insert(names.end(), call.locations.begin(), call.locations.end());
  const size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

Result<Guilty> Bisection::run() {
  DLC_CHECK(check_devices());
  DLC_TRY(hardware_, load_hardware(o_.model.hw.empty() ? "native" : o_.model.hw, cx_.hw_options()));
  DLC_TRY(Source source, read());
  if (!source.graph)
    return fail({o_.model.file, 0, 0, {}}, "is no graph any more: its passes have run",
                "give the .onnx file or graph text; dlc compare looks at programs");
  Graph& g = *source.graph;
  std::vector<Port> ports;
  for (const ValueId v : g.inputs) ports.push_back({g.value(v).name, g.value(v).type});
  DLC_TRY(inputs_, inputs_for(ports, g.symbols, o_.model, o_.inputs, o_.seed));
  for (size_t i = 0; i < inputs_.size(); ++i) named_.emplace_back(ports[i].name, inputs_[i]);
  DLC_CHECK(reference(g));
  DLC_TRY(Guilty guilty, passes(g));
  if (!guilty.stage.empty()) return guilty;
  return partitions(g);
}

// A device that is not there is no fault of the code.
Result<> Bisection::check_devices() {
  for (const std::string& uri : {o_.device, o_.against == kOnnxruntime ? std::string() : o_.against}) {
    if (uri.empty() || uri == kInterpreter) continue;
    if (uri.find(':') == std::string::npos)
      return fail({}, fmt::format("'{}' is not a device URI", uri), "interp:, cpu:, ...; `dlc targets` lists them");
    DLC_TRY(Backend * backend, cx_.plugins().for_scheme(scheme_of(uri)));
    DLC_CHECK(backend->open(uri));
  }
  return {};
}

Result<Source> Bisection::read() const {
  DLC_TRY(auto records, records_for(hardware_.description));
  return read_source(o_.model, std::move(records));
}

Result<Bisection::Values> Bisection::interpreted(const Graph& g) const {
  DLC_TRY(auto results, run_graph(g, inputs_));
  Values out;
  for (size_t i = 0; i < results.size(); ++i) out.emplace(g.output_names[i], std::move(results[i]));
  return out;
}

// What is right: the model as it was read, or what another one makes of it.
Result<> Bisection::reference(const Graph& g) {
  if (o_.against == kInterpreter) {
    DLC_TRY(want_, interpreted(g));
    return {};
  }
  if (o_.against == kOnnxruntime) {
    std::vector<WantedValue> outputs;
    for (size_t i = 0; i < g.outputs.size(); ++i)
      outputs.push_back({g.output_names[i], g.value(g.outputs[i]).type.dtype});
    DLC_TRY(const NamedTensors results, run_onnxruntime(o_.model.file, named_, outputs));
    want_.insert(results.begin(), results.end());
    return {};
  }
  DLC_TRY(Source source, read());
  DLC_TRY(const Built b, build_source(std::move(source), hardware_, o_.model, cx_));
  DLC_TRY(Session session, Session::open(b.model, cx_.plugins(), {.device = o_.against}));
  DLC_TRY(auto results, session.run(inputs_));
  for (size_t i = 0; i < results.size(); ++i) want_.emplace(b.model.outputs[i].name, std::move(results[i]));
  return {};
}

// Whether `got` is what it was; what only one side has is passed over.
bool Bisection::same(const Values& want, const Values& got, Guilty& g) const {
  for (const auto& [name, t] : got) {
    const auto w = want.find(name);
    if (w == want.end()) continue;
    g.difference = difference(w->second, t, o_.tolerance);
    g.value = name;
    if (g.difference.wrong > 0) return false;
  }
  g.value.clear();
  return true;
}

// A step in a body may run many times, and is one.
void Bisection::tell(const std::string& name, bool match) {
  const auto [known, fresh] = told_.try_emplace(name, steps_.size());
  if (fresh)
    steps_.push_back({{"name", name}, {"match", match}});
  else if (!match)
    steps_[known->second]["match"] = false;
}

// Whether the graph still gives the answer; if not, its stage is to blame.
bool Bisection::still(const Graph& g, const std::string& stage, const std::string& name, const std::string& step,
                      Guilty& guilty) {
  auto got = interpreted(g);
  if (!got) guilty.failure = got.error().message();
  bool match = got && same(want_, *got, guilty);
  if (got && !match && name == kCommit) {
    committed_ = Committed{guilty.value, guilty.difference};
    guilty = {};
    want_ = *std::move(got);
    match = true;
  }
  tell(step, match);
  if (match) return true;
  guilty.stage = stage;
  guilty.name = name;
  guilty.step = step;
  return false;
}

Result<Guilty> Bisection::passes(Graph& g) {
  Guilty guilty;
  if (!still(g, "import", "import", "import", guilty)) return guilty;
  std::vector<std::string> names = default_graph_pipeline();
  if (!hardware_.description.recipes.empty()) names.insert(names.begin(), kCommit);
  std::map<std::string, size_t> nth;
  Progress progress(cx_, "passes", names.size());
  for (const std::string& name : names) {
    const auto times = std::ranges::count(names, name);
    const std::string step = times == 1 ? name : fmt::format("{} ({} of {})", name, ++nth[name], times);
    Graph before = g;
    if (auto done = apply(name, g); !done) {
      guilty.stage = "pass";
      guilty.name = name;
      guilty.step = step;
      guilty.failure = done.error().message();
      tell(step, false);
    }
    if (guilty.stage.empty() && still(g, "pass", name, step, guilty)) {
      progress.step(step);
      continue;
    }
    guilty.before = std::move(before);
    guilty.after = std::move(g);
    return guilty;
  }
  return guilty;
}

Result<> Bisection::apply(const std::string& pass, Graph& g) const {
  if (pass != kCommit) {
    DLC_CHECK(run_passes(g, {pass}));
    return {};
  }
  DLC_TRY(auto recipes, load_recipes(hardware_.description));
  DLC_CHECK(commit_numerics(g, std::move(recipes)));
  return verify(g);
}

// ---- behind the passes

Result<Guilty> Bisection::partitions(const Graph& g) {
  DLC_TRY(Source source, read());
  DLC_TRY(const Built b, build_source(std::move(source), hardware_, o_.model, cx_));
  DLC_CHECK(Session::open(b.model, cx_.plugins(), {.device = o_.device}));
  compiled_ = &b.model;
  // What every value of the graph is, by the names that tensors between partitions have.
  Values right = want_;
  const auto observe = [&](NodeId n, std::span<const Tensor> results) {
    for (size_t r = 0; r < results.size(); ++r) right.emplace(g.value(g.node(n).outputs[r]).name, results[r]);
  };
  DLC_CHECK(run_graph(g, inputs_, {}, observe));
  Guilty guilty;
  const auto done = run_graph_of(b.model, inputs_, &right, guilty);
  alone_.clear();
  if (!done && guilty.stage.empty()) return std::unexpected(done.error());
  return guilty;
}

// The partitions of a model (`right`: what its values are) or of a body, one after the other.
Result<std::vector<Tensor>> Bisection::run_graph_of(const CompiledGraph& g, std::span<const Tensor> inputs,
                                                    const Values* right, Guilty& guilty) {
  Values known;
  for (size_t i = 0; i < inputs.size(); ++i) known.insert_or_assign(g.inputs[i].name, inputs[i]);
  const bool outer_body = std::exchange(body_, right == nullptr);
  for (size_t i = 0; i < g.partitions.size(); ++i) {
    const CompiledPartition& part = g.partitions[i];
    if (right != nullptr) top_ = i;
    DLC_TRY(const Values made,
            part.is_control() ? control(part, known, right, guilty) : partition(part, known, right, guilty));
    for (const auto& [name, t] : made) known.insert_or_assign(name, t);
  }
  body_ = outer_body;
  std::vector<Tensor> outputs;
  for (const Port& p : g.outputs) {
    const auto v = known.find(p.name);
    if (v == known.end()) return fail({}, fmt::format("no partition makes '{}'", p.name));
    outputs.push_back(v->second);
  }
  return outputs;
}

Result<Bisection::Values> Bisection::partition(const CompiledPartition& part, const Values& known, const Values* right,
                                               Guilty& guilty) {
  if (part.device == kReferenceDevice) {  // the same on every device
    DLC_TRY(const auto reference, reference_executable(part));
    std::vector<Tensor> in;
    for (const std::string& name : part.inputs) {
      const auto v = known.find(name);
      if (v == known.end()) return fail({}, fmt::format("no partition before makes '{}'", name));
      in.push_back(v->second);
    }
    DLC_TRY(auto results, reference->run(in));
    Values out;
    for (size_t r = 0; r < results.size(); ++r) out.emplace(part.outputs[r], std::move(results[r]));
    return out;
  }
  const auto plain = alone(part, "lower", part, kInterpreter, known);
  if (!stays(plain, right == nullptr ? Values() : *right, "lower", "lowering", part, guilty)) return found();
  if (!part.own_program.empty()) {
    const CompiledPartition own{part.device, part.inputs, part.outputs, part.own_program, part.own_weights};
    const auto laid_out = alone(part, "plugin", own, kInterpreter, known);
    if (!stays(laid_out, *plain, "plugin", "the program of plugin " + part.device, part, guilty)) return found();
  }
  const bool is_chosen = part.device != "host" || scheme_of(o_.device) == "cpu" || o_.device == kInterpreter;
  const auto ran = alone(part, "device", part, is_chosen ? o_.device : "", known);
  if (!stays(ran, *plain, "device", "the code of plugin " + part.device, part, guilty)) return found();
  return plain;
}

// Control flow: the partitions of its bodies whenever they run, then what it gave.
Result<Bisection::Values> Bisection::control(const CompiledPartition& part, const Values& known, const Values* right,
                                             Guilty& guilty) {
  std::vector<Tensor> operands;
  for (const std::string& name : part.inputs) {
    const auto constant = std::ranges::find(part.weights, name, &NamedTensors::value_type::first);
    const auto v = known.find(name);
    if (!name.empty() && constant == part.weights.end() && v == known.end())
      return fail({}, fmt::format("no partition before makes '{}'", name));
    operands.push_back(name.empty() ? Tensor() : constant != part.weights.end() ? constant->second : v->second);
  }
  auto results = run_control(part.control, operands, [&](size_t body, std::vector<Tensor> given) {
    return run_graph_of(part.control.bodies[body], given, nullptr, guilty);
  });
  if (!guilty.stage.empty()) return found();
  Result<Values> out;
  if (results)
    for (size_t i = 0; i < results->size(); ++i) out->emplace(part.outputs[i], std::move((*results)[i]));
  else
    out = std::unexpected(std::move(results).error());
  if (!stays(out, right == nullptr ? Values() : *right, "lower", "lowering", part, guilty)) return found();
  return out;
}

// `as`: the partition, or another program of it.
Result<Bisection::Values> Bisection::alone(const CompiledPartition& part, const std::string& stage,
                                           const CompiledPartition& as, const std::string& device,
                                           const Values& known) {
  Alone& a = alone_[{&part, stage}];
  if (!a.session) {
    DLC_TRY(const Program program, parse_program(as.program, "program"));
    a.model = *compiled_;
    a.model.symbols = program.symbols;
    a.model.inputs.clear();
    a.model.outputs.clear();
    a.model.states.clear();
    for (const ProgramBuffer& b : program.buffers) {
      if (b.kind == BufferKind::input) a.model.inputs.push_back({b.external_name, value_type(b)});
      if (b.kind == BufferKind::output) a.model.outputs.push_back({b.external_name, value_type(b)});
    }
    a.model.partitions = {as};
    DLC_TRY(a.session, Session::open(a.model, cx_.plugins(), {.device = device}));
  }
  std::vector<Tensor> in;
  for (const Port& p : a.model.inputs) {
    const auto v = known.find(p.name);
    if (v == known.end()) return fail({}, fmt::format("no partition before makes '{}'", p.name));
    in.push_back(v->second);
  }
  DLC_TRY(auto results, a.session->run(in));
  Values out;
  for (size_t i = 0; i < results.size(); ++i) out.emplace(a.model.outputs[i].name, std::move(results[i]));
  return out;
}

// One step of a partition beside what its results should be.
bool Bisection::stays(const Result<Values>& got, const Values& want, const std::string& stage, const std::string& name,
                      const CompiledPartition& part, Guilty& guilty) {
  if (!got) guilty.failure = got.error().message();
  const bool match = got && same(want, *got, guilty);
  const std::string step = fmt::format("{} {} partition {}", name, body_ ? "in a body of" : "of", top_);
  tell(step, match);
  if (match) return true;
  guilty.stage = stage;
  guilty.name = name;
  guilty.step = step;
  guilty.partition = static_cast<int64_t>(top_);
  guilty.layers = layers_of(part);
  return false;
}

}  // namespace dlc::cli
