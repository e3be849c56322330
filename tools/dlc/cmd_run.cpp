// dlc run: a model on a device, tensors in and out as files.
#include <fmt/format.h>

#include <algorithm>

#include "tools/dlc/counters.h"
#include "tools/dlc/each.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string device, output;
  std::vector<std::string> inputs;
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

Result<> write_outputs(const std::string& file, const std::vector<Port>& ports, const std::vector<Tensor>& tensors) {
  if (file.empty()) return {};
  NamedTensors named;
  for (size_t i = 0; i < tensors.size(); ++i) named.emplace_back(ports[i].name, tensors[i]);
  if (file.ends_with(".npy") && named.size() == 1) named[0].first.clear();
  return write_tensors(file, named);
}

Result<int> finish(const Options& o, Context& cx, Json result, const std::vector<Port>& ports,
                   const std::vector<Tensor>& outputs) {
  DLC_CHECK(write_outputs(o.output, ports, outputs));
  result["outputs"] = outputs_json(ports, outputs);
  if (!o.output.empty()) result["output"] = o.output;
  std::string text;
  for (size_t i = 0; i < outputs.size(); ++i) text += summary(ports[i].name, outputs[i]);
  text += layer_table(result);
  for (const char* key : {"run_ms", "cycles", "mac_utilization", "sim_seconds"})
    if (result.contains(key)) text += fmt::format("{}: {:.6g}\n", key, result[key].get<double>());
  cx.print(result, text);
  return kOk;
}

// A graph through the interpreter: what has no kernel (top_k, nonzero, ...) runs here too.
Result<int> run_interpreted(const Options& o, Context& cx, const NamedTensors& given) {
  DLC_TRY(const Graph g, optimised_graph(o.model, cx));
  std::vector<Port> in, out;
  for (const ValueId v : g.inputs) in.push_back({g.value(v).name, g.value(v).type});
  for (size_t i = 0; i < g.outputs.size(); ++i) out.push_back({g.output_names[i], g.value(g.outputs[i]).type});
  DLC_TRY(const auto inputs, bind_inputs(in, g.symbols, given));
  const Stopwatch watch;
  DLC_TRY(const auto outputs, run_graph(g, inputs));
  return finish(o, cx, {{"model", o.model.file}, {"device", "interp:"}, {"run_ms", watch.ms()}}, out, outputs);
}

Result<int> run(Options& o, Context& cx) {
  DLC_TRY(const NamedTensors given, read_inputs(o.inputs));
  if (o.device == "interp:") {
    DLC_TRY(const Source source, read_source(o.model));
    if (source.graph) return run_interpreted(o, cx, given);
  }
  const Stopwatch loading;
  DLC_TRY(const CompiledModel model, load_or_build(o.model, cx));
  DLC_TRY(Session session, Session::open(model, cx.plugins(), {.device = o.device, .threads = o.threads}));
  const double load_ms = loading.ms();
  const Stopwatch watch;
  int64_t count = 1;
  std::vector<Tensor> outputs;
  if (o.each) {
    DLC_TRY(count, sample_count(given));
    Progress progress("runs", static_cast<size_t>(count));
    Stacked stacked;
    for (int64_t i = 0; i < count; ++i) {
      DLC_TRY(const NamedTensors one, sample(given, i));
      DLC_TRY(const auto inputs, bind_inputs(model.inputs, model.symbols, one));
      DLC_TRY(const auto results, session.run(inputs));
      DLC_CHECK(stacked.add(results, i, count));
      progress.step("sample");
    }
    outputs = stacked.tensors();
  } else {
    DLC_TRY(const auto inputs, bind_inputs(model.inputs, model.symbols, given));
    DLC_TRY(outputs, session.run(inputs));
  }
  Json result{{"model", o.model.file},
              {"device", devices(session)},
              {"load_ms", load_ms},
              {"runs", count},
              {"run_ms", watch.ms()}};
  add_counters(session, result);
  return finish(o, cx, std::move(result), model.outputs, outputs);
}

}  // namespace

void add_run(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "run", "Run a model on a device");
  add_model_options(*sub, o->model);
  sub->add_option("--device", o->device, "interp:, cpu:, asic:func, asic:rtl; `dlc targets` lists them");
  sub->add_option("--input", o->inputs, "Inputs: .npz, or NAME=FILE with .npy or .pb")->allow_extra_args(false);
  sub->add_option("--output", o->output, "Where the results go: .npz, or .npy for a single one");
  sub->add_flag("--each", o->each, "Run once for each index of the inputs' leading dim, and stack the results");
  sub->add_option("--threads", o->threads, "Threads of the host's code")->check(CLI::Range(0, 1024));
  sub->callback([o, &cx] { cx.action = [o, &cx] { return run(*o, cx); }; });
}

}  // namespace dlc::cli
