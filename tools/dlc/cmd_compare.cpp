// dlc compare: the first layer that a device computes otherwise than the interpreter, another device or onnxruntime.
#include <fmt/format.h>

#include "tools/dlc/build.h"
#include "tools/dlc/comparison.h"
#include "tools/dlc/onnxruntime.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string device, against = kInterpreter;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  double tolerance = kTolerance;
};

Result<Comparison> compare_layers(const Options& o, Context& cx) {
  DLC_TRY(Hardware hardware, load_hardware(o.model.hw.empty() ? "native" : o.model.hw, cx.hw_options()));
  DLC_TRY(auto records, records_for(hardware.description));
  DLC_TRY(Source source, read_source(o.model, std::move(records)));
  std::vector<Watched> watched;
  const bool is_reference = o.against == kInterpreter;
  if (!is_reference && !source.compiled && !source.graph)
    return fail({o.model.file, 0, 0, {}}, "is a program: --against " + o.against + " compares a model's nodes",
                "give the model it was made from, or leave --against out");
  if (o.against == kOnnxruntime && source.nodes.empty())
    return fail({o.model.file, 0, 0, {}}, "is no ONNX model: onnxruntime cannot run it",
                "give the .onnx file, or another --against");
  if (!is_reference && source.graph) watched = watch(source, !hardware.description.recipes.empty());
  DLC_TRY(const Built b, build_source(std::move(source), std::move(hardware), o.model, cx));
  DLC_TRY(const auto inputs, inputs_for(b.model.inputs, b.model.symbols, o.model, o.inputs, o.seed));
  if (is_reference) return compare_calls(b, o.device, inputs, o.tolerance, cx);
  return compare_values(b, watched, o.model.file, o.device, o.against, inputs, o.tolerance, cx);
}

Result<int> compare(Options& o, Context& cx) {
  o.model.dims_of_inputs = o.inputs.empty();
  DLC_TRY(const Comparison all, compare_layers(o, cx));
  const bool match = all.first.empty();
  const Json result{{"model", o.model.file},  {"device", all.device},
                    {"against", all.against}, {"tolerance", o.tolerance},
                    {"match", match},         {"first_diverging", match ? Json() : Json(all.first)},
                    {"layers", all.layers}};
  const std::string what =
      fmt::format("{}{}", o.against == kInterpreter ? "call" : "value", all.layers.size() == 1 ? "" : "s");
  std::string text =
      match ? fmt::format("all {} {} on {} agree with {}\n", all.layers.size(), what, all.device, all.against)
            : fmt::format("first diverging layer: {} (on {})\n", all.first, all.device);
  for (const Json& l : all.layers)
    if (!l["match"].get<bool>())
      text +=
          fmt::format("  {} ({}): {} elements differ, at most by {:.3g}; the first: {}\n", l["name"].get<std::string>(),
                      l["kernel"].get<std::string>(), l["elements_wrong"].get<int64_t>(),
                      l["largest_difference"].get<double>(), l["first_difference"].get<std::string>());
  cx.print(result, text);
  return match ? kOk : kFailed;
}

}  // namespace

void add_compare(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "compare", "Find the first layer that differs from the interpreter");
  add_model_options(*sub, o->model);
  sub->get_option("model")->description("The model: .onnx, graph or program text");
  sub->add_option("--device", o->device, "The device; by default the one the model is compiled for");
  sub->add_option("--against", o->against, "interp: (the default), another device, or onnxruntime")
      ->capture_default_str();
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  add_seed(*sub, o->seed);
  add_tolerance(*sub, o->tolerance);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return compare(*o, cx); }; });
}

}  // namespace dlc::cli
