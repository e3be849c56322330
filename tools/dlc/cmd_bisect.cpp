// dlc bisect: the first step of compiling after which the answer is another one (bisection.h).
#include <fmt/format.h>

#include <filesystem>

#include "tools/dlc/bisection.h"
#include "tools/dlc/onnxruntime.h"
#include "tools/dlc/output.h"
#include "tools/dlc/shell.h"

namespace dlc::cli {

namespace {

struct Options : BisectOptions {
  std::string save;
};

std::string what_differs(const Guilty& g) {
  if (!g.failure.empty()) return "  it fails: " + g.failure + "\n";
  return fmt::format("  {}{}; {} elements differ, at most by {:.3g}\n", g.value, g.difference.text, g.difference.wrong,
                     g.difference.largest);
}

// The command that runs the guilty pass alone.
std::string replay_of(const Options& o, const Guilty& g) {
  const bool takes_hw = g.name == "commit_numerics";
  std::vector<std::string> words = {"dlc", "opt", (o.save.empty() ? "DIR" : o.save) + "/before.dlct",
                                    "--passes=" + g.name + (takes_hw ? "(" + o.model.hw + ")" : "")};
  if (!o.model.hw.empty()) words.push_back("--hw=" + o.model.hw);
  words.insert(words.end(), {"-o", "after.dlct"});
  return shell_command(words);
}

// Both graphs, in a folder that is made for them.
Result<> save(const Options& o, const Guilty& g) {
  std::error_code ec;
  const bool is_made = std::filesystem::create_directories(o.save, ec);
  for (const auto& [graph, name] : {std::pair(&*g.before, "/before.dlct"), std::pair(&*g.after, "/after.dlct")}) {
    const auto written = write_text(o.save + name, print(*graph), outlined_constants(*graph));
    if (written) continue;
    if (is_made) std::filesystem::remove(o.save, ec);  // if nothing is in it
    return std::unexpected(written.error());
  }
  return {};
}

std::string committed_text(const Committed& c) {
  return fmt::format(
      "commit_numerics rounds as the machine does (docs/numerics.md): of {} {} elements are others than the floats "
      "give, at most by {:.3g}, the first {}; what comes behind it is held against its integers\n",
      c.value, c.difference.wrong, c.difference.largest, c.difference.text);
}

Result<int> bisect(Options& o, Context& cx) {
  o.model.dims_of_inputs = o.inputs.empty();
  if (o.against == kOnnxruntime && !o.model.file.ends_with(".onnx"))
    return fail({o.model.file, 0, 0, {}}, "is no ONNX model: onnxruntime cannot run it",
                "give the .onnx file, or another --against");
  if (!o.save.empty()) {
    DLC_CHECK(check_folder(o.save));
    std::error_code ec;
    const auto given = files_of(o.model, o.inputs);
    for (const char* name : {"/before.dlct", "/after.dlct"})
      for (const std::string& file : {o.save + name, weights_beside(o.save + name)})
        if (std::filesystem::is_directory(o.save, ec)) DLC_CHECK(check_output(file, given));
  }
  Bisection bisection(o, cx);
  DLC_TRY(const Guilty g, bisection.run());
  const auto nodes = [](const std::optional<Graph>& graph) { return graph ? graph->order().size() : size_t{0}; };
  const bool is_pass = g.stage == "pass";
  Json result{{"model", o.model.file},    {"device", o.device},       {"against", o.against},
              {"tolerance", o.tolerance}, {"match", g.stage.empty()}, {"steps", bisection.steps()},
              {"committed", Json()},      {"guilty", Json()}};
  std::string text;
  if (const auto& c = bisection.committed()) {
    text = committed_text(*c);
    result["committed"] = Json{{"value", c->value},
                               {"first_difference", c->difference.text},
                               {"elements_wrong", c->difference.wrong},
                               {"largest_difference", c->difference.largest}};
  }
  if (g.stage.empty()) text += "no difference: every pass, program and device gives the same answer\n";
  if (!g.stage.empty()) {
    result["guilty"] = Json{{"stage", g.stage},
                            {"name", g.name},
                            {"step", g.step},
                            {"partition", g.partition},
                            {"layers", g.layers},
                            {"value", g.value},
                            {"first_difference", g.difference.text},
                            {"elements_wrong", g.difference.wrong},
                            {"largest_difference", g.difference.largest},
                            {"failure", g.failure},
                            {"nodes_before", nodes(g.before)},
                            {"nodes_after", nodes(g.after)}};
    text += fmt::format("the answer changes after {}{}{}\n", is_pass ? "pass " : "", g.step,
                        g.layers.empty() ? "" : fmt::format(" ({})", g.layers)) +
            what_differs(g);
  }
  if (is_pass && !o.save.empty()) {
    DLC_CHECK(save(o, g));
    result["guilty"]["before"] = o.save + "/before.dlct";
    result["guilty"]["after"] = o.save + "/after.dlct";
  }
  if (is_pass)
    text += fmt::format(
        "  {} node{} before it, {} after\n  {}{}\n", nodes(g.before), nodes(g.before) == 1 ? "" : "s", nodes(g.after),
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
  sub->get_option("model")->description("The model: .onnx or graph text");
  sub->add_option("--device", o->device, "The device at the end; by default the one the model is compiled for");
  sub->add_option("--against", o->against,
                  "What is right: interp: (the model as it was read), another device, onnxruntime")
      ->capture_default_str();
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  add_seed(*sub, o->seed);
  sub->add_option("--save", o->save, "A folder for the graphs before and after the pass")->check(file_name());
  add_tolerance(*sub, o->tolerance);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return bisect(*o, cx); }; });
}

}  // namespace dlc::cli
