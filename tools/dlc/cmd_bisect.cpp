// dlc bisect: the first step of compiling after which the answer is another one. Every graph from the import to the
// last pass runs through the interpreter; when none of them is to blame, the program of each partition, what the plugin
// made of it, and the device.
//
// The passes are tried in order and not by halves: one may hide what another one did, and the first is asked for.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "dlc/numerics/commit.h"
#include "dlc/plugin/reference.h"
#include "tools/dlc/build.h"
#include "tools/dlc/onnxruntime.h"
#include "tools/dlc/output.h"
#include "tools/dlc/values.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string device, against = kInterpreter, save;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  double tolerance = kTolerance;
};

using Values = std::map<std::string, Tensor, std::less<>>;

// The first step after which something differs.
struct Guilty {
  std::string stage;       // import, pass, lower, plugin, device; empty: none
  std::string name;        // of the pass or the plugin
  int64_t partition = -1;  // of the stages behind the passes
  std::string value;       // the output, or the value between partitions, that differs
  Difference difference;   // or
  std::string failure;     // what could not be done any more
  std::optional<Graph> before, after;
};

class Bisection {
 public:
  Bisection(const Options& o, Context& cx) : o_(o), cx_(cx) {}

  Result<Guilty> run() {
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
    DLC_TRY(Guilty found, passes(g));
    if (!found.stage.empty()) return found;
    return partitions(g);
  }

  const Json& steps() const { return steps_; }

 private:
  Result<Source> read() const {
    DLC_TRY(auto records, records_for(hardware_.description));
    return read_source(o_.model, std::move(records));
  }

  Result<Values> interpreted(const Graph& g) const {
    DLC_TRY(auto results, run_graph(g, inputs_));
    Values out;
    for (size_t i = 0; i < results.size(); ++i) out.emplace(g.output_names[i], std::move(results[i]));
    return out;
  }

  // What is right: the model as it was read, or what another one makes of it.
  Result<> reference(const Graph& g) {
    if (o_.against == kInterpreter) {
      DLC_TRY(want_, interpreted(g));
      return {};
    }
    if (o_.against == kOnnxruntime) {
      DLC_TRY(const NamedTensors results, run_onnxruntime(o_.model.file, named_, {}));
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
  bool same(const Values& want, const Values& got, Guilty& g) const {
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

  void tell(const std::string& name, bool match) { steps_.push_back({{"name", name}, {"match", match}}); }

  // Whether the graph still gives the answer; if not, its stage is to blame.
  bool still(const Graph& g, const std::string& stage, const std::string& name, Guilty& guilty) {
    const auto got = interpreted(g);
    if (!got) guilty.failure = got.error().message();
    const bool match = got && same(want_, *got, guilty);
    tell(name, match);
    if (match) return true;
    guilty.stage = stage;
    guilty.name = name;
    return false;
  }

  Result<Guilty> passes(Graph& g) {
    Guilty guilty;
    if (!still(g, "import", "import", guilty)) return guilty;
    std::vector<std::string> names = default_graph_pipeline();
    const HwDescription& hw = hardware_.description;
    if (!hw.recipes.empty()) names.insert(names.begin(), kCommit);
    Progress progress(cx_, "passes", names.size());
    for (const std::string& name : names) {
      Graph before = g;
      if (auto done = apply(name, g); !done) {
        guilty.stage = "pass";
        guilty.name = name;
        guilty.failure = done.error().message();
        tell(name, false);
      }
      if (guilty.stage.empty() && still(g, "pass", name, guilty)) {
        progress.step(name);
        continue;
      }
      guilty.before = std::move(before);
      guilty.after = std::move(g);
      return guilty;
    }
    return guilty;
  }

  Result<> apply(const std::string& pass, Graph& g) const {
    if (pass != kCommit) {
      DLC_CHECK(run_passes(g, {pass}));
      return {};
    }
    DLC_TRY(auto recipes, load_recipes(hardware_.description));
    DLC_CHECK(commit_numerics(g, std::move(recipes)));
    return verify(g);
  }

  // ---- behind the passes

  static Result<std::vector<Tensor>> of(const std::vector<std::string>& names, const Values& known) {
    std::vector<Tensor> out;
    for (const std::string& name : names) {
      const auto v = known.find(name);
      if (v == known.end()) return fail({}, fmt::format("no partition before makes '{}'", name));
      out.push_back(v->second);
    }
    return out;
  }

  // A partition alone, with this program, on a device.
  Result<Values> on(const CompiledModel& model, const CompiledPartition& part, const std::string& program_text,
                    const std::string& device, const Values& known) const {
    DLC_TRY(const Program program, parse_program(program_text, "program"));
    CompiledModel one = model;
    one.inputs.clear();
    one.outputs.clear();
    for (const ProgramBuffer& b : program.buffers) {
      if (b.kind == BufferKind::input) one.inputs.push_back({b.external_name, b.type});
      if (b.kind == BufferKind::output) one.outputs.push_back({b.external_name, b.type});
    }
    one.partitions = {part};
    return on(one, device, known);
  }

  // Control flow alone: its operands are values of the graph.
  Result<Values> control_on(const CompiledModel& model, const CompiledPartition& part, const std::string& device,
                            const Values& known, const Graph& g) const {
    CompiledModel one = model;
    one.inputs.clear();
    one.outputs.clear();
    for (const std::string& name : part.inputs) {
      const ValueId v = g.find(name);
      const bool is_taken = std::ranges::any_of(one.inputs, [&](const Port& p) { return p.name == name; });
      if (v != kNoValue && !g.value(v).constant && !is_taken) one.inputs.push_back({name, g.value(v).type});
    }
    for (size_t i = 0; i < part.outputs.size(); ++i)
      one.outputs.push_back({part.outputs[i], part.control.outputs[i].type});
    one.partitions = {part};
    return on(one, device, known);
  }

  Result<Values> on(const CompiledModel& one, const std::string& device, const Values& known) const {
    DLC_TRY(Session session, Session::open(one, cx_.plugins(), {.device = device}));
    std::vector<std::string> names;
    for (const Port& p : one.inputs) names.push_back(p.name);
    DLC_TRY(const auto in, of(names, known));
    DLC_TRY(auto results, session.run(in));
    Values out;
    for (size_t i = 0; i < results.size(); ++i) out.emplace(one.outputs[i].name, std::move(results[i]));
    return out;
  }

  // One step of a partition beside what its results should be.
  bool stays(const Result<Values>& got, const Values& want, const std::string& stage, const std::string& name,
             size_t partition, Guilty& guilty) {
    if (!got) guilty.failure = got.error().message();
    const bool match = got && same(want, *got, guilty);
    tell(fmt::format("{} of partition {}", name, partition), match);
    if (match) return true;
    guilty.stage = stage;
    guilty.name = name;
    guilty.partition = static_cast<int64_t>(partition);
    return false;
  }

  Result<Guilty> partitions(const Graph& g) {
    DLC_TRY(Source source, read());
    DLC_TRY(const Built b, build_source(std::move(source), hardware_, o_.model, cx_));
    Guilty guilty;
    // What every value of the graph is, by the names that tensors between partitions have.
    Values right = want_;
    const auto observe = [&](NodeId n, std::span<const Tensor> results) {
      for (size_t r = 0; r < results.size(); ++r) right.emplace(g.value(g.node(n).outputs[r]).name, results[r]);
    };
    DLC_CHECK(run_graph(g, inputs_, {}, observe));
    Values known(named_.begin(), named_.end());
    for (size_t i = 0; i < b.model.partitions.size(); ++i) {
      const CompiledPartition& part = b.model.partitions[i];
      if (part.device == kReferenceDevice) {  // the same on every device
        DLC_TRY(const auto reference, reference_executable(part));
        DLC_TRY(const auto in, of(part.inputs, known));
        DLC_TRY(auto results, reference->run(in));
        for (size_t r = 0; r < results.size(); ++r) known.emplace(part.outputs[r], std::move(results[r]));
        continue;
      }
      if (part.is_control()) {
        const auto plain = control_on(b.model, part, kInterpreter, known, g);
        if (!stays(plain, right, "lower", "lowering", i, guilty)) return guilty;
        const auto ran = control_on(b.model, part, o_.device, known, g);
        if (!stays(ran, *plain, "device", "the code of control flow", i, guilty)) return guilty;
        for (const auto& [name, t] : *plain) known.emplace(name, t);
        continue;
      }
      const auto plain = on(b.model, part, part.program, kInterpreter, known);
      if (!stays(plain, right, "lower", "lowering", i, guilty)) return guilty;
      if (!part.own_program.empty()) {
        CompiledPartition own{part.device, part.inputs, part.outputs, part.own_program, part.own_weights};
        const auto laid_out = on(b.model, own, own.program, kInterpreter, known);
        if (!stays(laid_out, *plain, "plugin", "the program of plugin " + part.device, i, guilty)) return guilty;
      }
      const bool is_chosen = part.device != "host" || scheme_of(o_.device) == "cpu" || o_.device == kInterpreter;
      const std::string device = is_chosen ? o_.device : "";
      const auto ran = on(b.model, part, part.program, device, known);
      if (!stays(ran, *plain, "device", "the code of plugin " + part.device, i, guilty)) return guilty;
      for (const auto& [name, t] : *plain) known.emplace(name, t);
    }
    return guilty;
  }

  static constexpr const char* kCommit = "commit_numerics";

  const Options& o_;
  Context& cx_;
  Hardware hardware_;
  std::vector<Tensor> inputs_;
  NamedTensors named_;  // the same
  Values want_;         // outputs of the model
  Json steps_ = Json::array();
};

std::string dump_of(const Graph& g, const std::string& folder, const char* name, Result<>& ok) {
  const std::string file = folder + "/" + name;
  if (auto written = write_text(file, print(g), outlined_constants(g)); !written && ok)
    ok = std::unexpected(std::move(written).error());
  return file;
}

std::string what_differs(const Guilty& g) {
  if (!g.failure.empty()) return "  it fails: " + g.failure + "\n";
  return fmt::format("  {}{}; {} elements differ, at most by {:.3g}\n", g.value, g.difference.text, g.difference.wrong,
                     g.difference.largest);
}

// The command that runs the guilty pass alone.
std::string replay_of(const Options& o, const Guilty& g) {
  const bool takes_hw = g.name == "commit_numerics";
  return fmt::format("dlc opt {}/before.dlct --passes={}{} -o after.dlct", o.save.empty() ? "DIR" : o.save, g.name,
                     takes_hw ? "(" + o.model.hw + ")" : "");
}

Result<int> bisect(Options& o, Context& cx) {
  o.model.dims_of_inputs = o.inputs.empty();
  if (o.against == kOnnxruntime && !o.model.file.ends_with(".onnx"))
    return fail({o.model.file, 0, 0, {}}, "is no ONNX model: onnxruntime cannot run it",
                "give the .onnx file, or another --against");
  if (!o.save.empty()) {
    std::error_code ec;
    std::filesystem::create_directories(o.save, ec);
    const auto given = files_of(o.model, o.inputs);
    for (const char* name : {"/before.dlct", "/after.dlct"})
      for (const std::string& file : {o.save + name, weights_beside(o.save + name)})
        DLC_CHECK(check_output(file, given));
  }
  Bisection bisection(o, cx);
  DLC_TRY(const Guilty g, bisection.run());
  const auto nodes = [](const std::optional<Graph>& graph) { return graph ? graph->order().size() : size_t{0}; };
  const bool is_pass = g.stage == "pass";
  Json result{{"model", o.model.file},    {"device", o.device},       {"against", o.against},
              {"tolerance", o.tolerance}, {"match", g.stage.empty()}, {"steps", bisection.steps()},
              {"guilty", Json()}};
  std::string text = "no difference: every pass, program and device gives the same answer\n";
  if (!g.stage.empty()) {
    result["guilty"] = Json{{"stage", g.stage},
                            {"name", g.name},
                            {"partition", g.partition},
                            {"value", g.value},
                            {"first_difference", g.difference.text},
                            {"elements_wrong", g.difference.wrong},
                            {"largest_difference", g.difference.largest},
                            {"failure", g.failure},
                            {"nodes_before", nodes(g.before)},
                            {"nodes_after", nodes(g.after)}};
    const std::string where = g.partition < 0 ? "" : fmt::format(", partition {}", g.partition);
    text = fmt::format("the answer changes after {}{}{}\n", is_pass ? "pass " : "", g.name, where) + what_differs(g);
  }
  if (is_pass && !o.save.empty()) {
    Result<> ok;
    result["guilty"]["before"] = dump_of(*g.before, o.save, "before.dlct", ok);
    result["guilty"]["after"] = dump_of(*g.after, o.save, "after.dlct", ok);
    if (!ok) return std::unexpected(std::move(ok).error());
  }
  if (is_pass)
    text += fmt::format(
        "  {} nodes before it, {} after\n  {}{}\n", nodes(g.before), nodes(g.after),
        o.save.empty() ? "--save DIR writes the graphs before and after; the pass alone: " : "the pass alone: ",
        replay_of(o, g));
  if (g.stage == "device") text += "  dlc compare names the first call that differs\n";
  cx.print(result, text);
  return g.stage.empty() ? kOk : kFailed;
}

}  // namespace

void add_bisect(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "bisect", "Find the first step of compiling after which the answer changes");
  add_model_options(*sub, o->model);
  sub->add_option("--device", o->device, "The device at the end; by default the one the model is compiled for");
  sub->add_option("--against", o->against,
                  "What is right: interp: (the model as it was read), another device, onnxruntime")
      ->capture_default_str();
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")->allow_extra_args(false);
  sub->add_option("--seed", o->seed, "Of the inputs");
  sub->add_option("--save", o->save, "A folder for the graphs before and after the pass")->check(file_name());
  add_tolerance(*sub, o->tolerance);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return bisect(*o, cx); }; });
}

}  // namespace dlc::cli
