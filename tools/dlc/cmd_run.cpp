// dlc run: a model on a device, tensors in and out as files.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "dlc/io/file.h"
#include "tools/dlc/counters.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/each.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string device, output;
  std::vector<std::string> inputs, steps;
  int threads = 0;
  bool each = false;
};

std::string summary(const std::string& name, const Tensor& t) {
  std::string s = fmt::format("{}: {} =", name, to_string(t.dtype(), t.shape()));
  const int64_t shown = std::min<int64_t>(t.elements(), 8);
  for (int64_t i = 0; i < shown; ++i)
    s += t.dtype().is_float() ? fmt::format(" {:.6g}", t.get_double(i)) : fmt::format(" {}", t.get_int(i));
  return s + (shown < t.elements() ? " ...\n" : "\n");
}

Json outputs_json(const std::vector<Port>& ports, const std::vector<Tensor>& tensors) {
  Json list = Json::array();
  for (size_t i = 0; i < tensors.size(); ++i)
    list.push_back(
        {{"name", ports[i].name}, {"dtype", to_string(tensors[i].dtype())}, {"shape", shape_json(tensors[i])}});
  return list;
}

std::vector<std::string> all_inputs(const Options& o) {
  std::vector<std::string> all = o.inputs;
  all.insert(all.end(), o.steps.begin(), o.steps.end());
  return all;
}

// Before the run, so that its results are not lost.
Result<> check_results_file(const Options& o) {
  if (o.output.empty()) return {};
  if (!o.output.ends_with(".npz") && !o.output.ends_with(".npy"))
    return fail({o.output, 0, 0, {}}, "the file's type is not known from its name", "use .npz or .npy");
  return check_output(o.output, files_of(o.model, all_inputs(o)));
}
Result<> check_result_count(const Options& o, size_t outputs) {
  if (!o.output.ends_with(".npy") || outputs == 1) return {};
  return fail({o.output, 0, 0, {}}, fmt::format("a .npy file holds one tensor, the model has {} outputs", outputs),
              "use .npz");
}

Result<> write_outputs(const std::string& file, const std::vector<Port>& ports, const std::vector<Tensor>& tensors) {
  if (file.empty()) return {};
  NamedTensors named;
  for (size_t i = 0; i < tensors.size(); ++i) named.emplace_back(ports[i].name, tensors[i]);
  if (file.ends_with(".npy") && named.size() == 1) named[0].first.clear();
  return write_tensors(file, named);
}

// What a model is run by: a session on devices, or the graph interpreter.
struct Runner {
  std::vector<Port> inputs, outputs;
  Ranges symbols;
  std::function<Result<std::vector<Tensor>>(std::span<const Tensor>)> run;
};

struct Results {
  std::vector<Port> ports;  // of `tensors`
  std::vector<Tensor> tensors;
  int64_t runs = 1;
  double ms = 0;
};

Result<Results> run_all(const Options& o, const Context& cx, const Runner& r, const NamedTensors& given) {
  Results out;
  out.ports = r.outputs;
  crash::at("running");
  if (!o.each) {
    DLC_TRY(const auto inputs, bind_inputs(r.inputs, r.symbols, given));
    const Stopwatch watch;
    DLC_TRY(out.tensors, r.run(inputs));
    out.ms = watch.ms();
    return out;
  }
  DLC_TRY(out.runs, sample_count(given));
  const Stopwatch watch;
  Progress progress(cx, "runs", static_cast<size_t>(out.runs));
  Stacked stacked;
  for (int64_t i = 0; i < out.runs; ++i) {
    DLC_TRY(const NamedTensors one, sample(given, i));
    DLC_TRY(const auto inputs, bind_inputs(r.inputs, r.symbols, one));
    DLC_TRY(const auto results, r.run(inputs));
    DLC_CHECK(stacked.add(results, i, out.runs));
    progress.step("sample");
  }
  out.tensors = stacked.tensors();
  out.ms = watch.ms();
  return out;
}

// Runs on the states that a session keeps: one with the inputs of --input (with --each one for each sample), and one
// for each --step. Results are those of every step, then what the states are after the last.
Result<Results> run_steps(const Options& o, const Context& cx, const CompiledModel& model, Session& session,
                          const NamedTensors& given) {
  Results out;
  crash::at("running");
  std::vector<NamedTensors> steps;
  NamedTensors others;
  for (const auto& [name, t] : given) {
    const auto state = std::ranges::find(model.states, name, &StatePair::input);
    if (state == model.states.end())
      others.emplace_back(name, t);
    else
      DLC_CHECK(session.set_state(static_cast<size_t>(state - model.states.begin()), t));
  }
  if (o.each) {
    DLC_TRY(const int64_t samples, sample_count(others));
    for (int64_t i = 0; i < samples; ++i) {
      DLC_TRY(NamedTensors one, sample(others, i));
      steps.push_back(std::move(one));
    }
  } else if (!others.empty() || o.steps.empty()) {
    steps.push_back(std::move(others));
  }
  for (const std::string& file : o.steps) {
    DLC_TRY(NamedTensors one, read_inputs({file}));
    for (const auto& [name, t] : one)
      if (std::ranges::find(model.states, name, &StatePair::input) != model.states.end())
        return fail({file, 0, 0, {}}, fmt::format("'{}' is a state, which a step has from the one before", name),
                    "give its first value with --input");
    steps.push_back(std::move(one));
  }
  out.runs = std::ssize(steps);
  const std::vector<Port> ports = session.step_inputs(), results = session.step_outputs();
  const Stopwatch watch;
  Progress progress(cx, "steps", steps.size());
  Stacked stacked;
  for (size_t i = 0; i < steps.size(); ++i) {
    DLC_TRY(const auto inputs, bind_inputs(ports, model.symbols, steps[i]));
    auto made = session.step(inputs);
    if (!made && steps.size() > 1)
      made.error().diagnostics.push_back({Severity::note, {}, fmt::format("in step {}", i), ""});
    if (!made) return std::unexpected(std::move(made).error());
    if (o.each) DLC_CHECK(stacked.add(*made, static_cast<int64_t>(i), out.runs));
    for (size_t r = 0; !o.each && r < results.size(); ++r) {
      out.ports.push_back(
          {o.steps.empty() ? results[r].name : fmt::format("{}:{}", i, results[r].name), results[r].type});
      out.tensors.push_back(std::move((*made)[r]));
    }
    progress.step("step");
  }
  out.ms = watch.ms();
  if (o.each) {
    out.ports = results;
    out.tensors = stacked.tensors();
  }
  for (size_t i = 0; i < model.states.size(); ++i) {
    DLC_TRY(Tensor value, session.state(i));
    const std::string& name = model.states[i].output;
    out.ports.push_back({name, std::ranges::find(model.outputs, name, &Port::name)->type});
    out.tensors.push_back(std::move(value));
  }
  return out;
}

Result<int> finish(const Options& o, Context& cx, const Results& results, Json result) {
  DLC_CHECK(write_outputs(o.output, results.ports, results.tensors));
  result["outputs"] = outputs_json(results.ports, results.tensors);
  if (!o.output.empty()) result["output"] = o.output;
  std::string text;
  for (size_t i = 0; i < results.tensors.size(); ++i) text += summary(results.ports[i].name, results.tensors[i]);
  text += layer_table(result);
  for (const char* key : {"run_ms", "cycles", "mac_utilization", "sim_seconds"})
    if (result.contains(key))
      text += fmt::format("{}: {:.6g}{}\n", key, result[key].get<double>(),
                          results.runs == 1 || key == std::string_view("run_ms") ? "" : " (the last run)");
  cx.print(result, text);
  return kOk;
}

Json header(const Options& o, const std::string& device, double load_ms, const Results& results) {
  return {{"model", o.model.file},
          {"device", device},
          {"load_ms", load_ms},
          {"runs", results.runs},
          {"run_ms", results.ms}};
}

// A graph through the interpreter: what has no kernel (top_k, nonzero, ...) runs here too.
Result<int> run_interpreted(const Options& o, Context& cx, const Graph& g, const NamedTensors& given,
                            const Stopwatch& loading) {
  Runner r{.symbols = g.symbols};
  for (const ValueId v : g.inputs) r.inputs.push_back({g.value(v).name, g.value(v).type});
  for (size_t i = 0; i < g.outputs.size(); ++i) r.outputs.push_back({g.output_names[i], g.value(g.outputs[i]).type});
  DLC_CHECK(check_result_count(o, r.outputs.size()));
  GraphRunner runner(g);
  r.run = [&](std::span<const Tensor> inputs) { return runner.run(inputs); };
  const double load_ms = loading.ms();
  DLC_TRY(const Results results, run_all(o, cx, r, given));
  Json result = header(o, "interp:", load_ms, results);
  result["partitions"] = Json::array({{{"device", "interp:"}, {"counters", Json::object()}}});
  return finish(o, cx, results, std::move(result));
}

Result<int> run(const Options& o, Context& cx) {
  DLC_CHECK(check_results_file(o));
  DLC_TRY(const NamedTensors given, read_inputs(o.inputs));
  if (!o.steps.empty() && o.each) return fail({}, "--each and --step are two ways to say the same", "one of them");
  const Stopwatch loading;
  if (o.device == "interp:") {
    DLC_TRY(const MappedFile file, map_file(o.model.file));
    if (!file.text().starts_with("DLCA") && level_of(file.text()) != "program") {
      DLC_TRY(const Graph g, optimised_graph(o.model, cx));
      if (g.states.empty()) return run_interpreted(o, cx, g, given, loading);
    }
  }
  DLC_TRY(const CompiledModel model, load_or_build(o.model, cx));
  DLC_CHECK(check_result_count(o, model.outputs.size()));
  crash::at("loading on " + (o.device.empty() ? "its device" : o.device));
  DLC_TRY(Session session,
          of_file(Session::open(model, cx.plugins(), {.device = o.device, .threads = o.threads}), o.model.file));
  if (!o.steps.empty() && model.states.empty())
    return fail({o.model.file, 0, 0, {}}, "--step: the model has no states", "--state past=present says which it has");
  const Runner r{model.inputs, model.outputs, model.symbols,
                 [&](std::span<const Tensor> inputs) { return session.run(inputs); }};
  const double load_ms = loading.ms();
  DLC_TRY(const Results results,
          model.states.empty() ? run_all(o, cx, r, given) : run_steps(o, cx, model, session, given));
  Json result = header(o, devices(session), load_ms, results);
  if (!model.states.empty()) result["state_bytes"] = session.state_bytes();
  add_counters(session, result);
  return finish(o, cx, results, std::move(result));
}

}  // namespace

void add_run(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "run", "Run a model on a device");
  add_model_options(*sub, o->model);
  sub->add_option("--device", o->device, "interp:, cpu:, asic:func, asic:rtl; `dlc targets` lists them");
  sub->add_option("--input", o->inputs, "Inputs: .npz, or NAME=FILE with .npy or .pb")
      ->allow_extra_args(false)
      ->check(tensor_file());
  sub->add_option("-o,--output", o->output, "Where the results go: .npz, or .npy for a single one")->check(file_name());
  sub->add_flag("--each", o->each, "Run once for each index of the inputs' leading dim, and stack the results");
  sub->add_option("--step", o->steps, "Of a model with states: the other inputs of one more step")
      ->allow_extra_args(false);
  sub->add_option("--threads", o->threads, "Threads of the host's code")->check(CLI::Range(0, 1024));
  sub->callback([o, &cx] { cx.action = [o, &cx] { return run(*o, cx); }; });
}

}  // namespace dlc::cli
