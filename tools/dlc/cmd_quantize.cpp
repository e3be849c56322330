// dlc quantize: a float model and samples of its inputs become a model of 8 bits.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "dlc/io/file.h"
#include "dlc/quantize/quantize.h"
#include "frontends/onnx/export_onnx.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/each.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"
#include "tools/dlc/quantize.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string data, output, range = "mse";
  QuantizeOptions quantize;
  std::vector<std::string> keep;
  bool no_bias_correction = false;
  int64_t samples = 0;  // 0: all
  uint64_t seed = 1;
  std::optional<double> percentile;
};

constexpr std::string_view kRandom = "random:";

// N of random:N.
Result<int64_t> random_count(std::string_view data) {
  const std::string_view text = data.substr(kRandom.size());
  int64_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || end != text.data() + text.size() || n < 1 || n > 1'000'000)
    return fail({}, fmt::format("--data {}: no number of samples", data), "random:8, or a file: calib.npz");
  return n;
}

std::vector<Port> inputs_of(const Graph& g) {
  std::vector<Port> ports;
  for (const ValueId v : g.inputs) ports.push_back({g.value(v).name, g.value(v).type});
  return ports;
}

// The arrays of the file that are inputs of the model; others may be there too (labels).
Result<NamedTensors> read_data(const Options& o, const std::vector<Port>& ports) {
  DLC_TRY(NamedTensors all, read_tensors(o.data));
  NamedTensors given;
  std::string names;
  for (auto& [name, t] : all) {
    names += (names.empty() ? "" : ", ") + name;
    const bool nameless = name.empty() && ports.size() == 1;  // a .npy file
    if (nameless || std::ranges::count(ports, name, &Port::name) > 0)
      given.emplace_back(nameless ? ports[0].name : name, std::move(t));
  }
  if (names.empty()) names = all.empty() ? "no array of numbers" : "one without a name";
  for (const Port& p : ports)
    if (std::ranges::count(given, p.name, &NamedTensors::value_type::first) == 0)
      return fail({o.data, 0, 0, {}}, fmt::format("has no array for the input '{}'; it has {}", p.name, names),
                  "name the arrays as the model's inputs are, with the samples along a leading dim");
  return given;
}

// Whether a file's arrays are one sample: the model has a leading dim of its own.
bool is_one_sample(const std::vector<Port>& ports) {
  return std::ranges::any_of(ports, [](const Port& p) {
    const auto first = p.type.shape.empty() ? std::optional<int64_t>(0) : p.type.shape[0].constant();
    return first && *first != 1;
  });
}

struct Samples {
  std::vector<std::vector<Tensor>> inputs;
  std::vector<size_t> numbers;  // which of the file's they are
};

Result<Samples> samples_of(const Options& o, const Graph& g) {
  const std::vector<Port> ports = inputs_of(g);
  Samples out;
  if (std::string_view(o.data).starts_with(kRandom)) {
    DLC_TRY(const int64_t n, random_count(o.data));
    for (int64_t i = 0; i < n; ++i) {
      DLC_TRY(out.inputs.emplace_back(), inputs_for(ports, g.symbols, o.model, {}, o.seed + static_cast<uint64_t>(i)));
    }
    return out;
  }
  DLC_TRY(const NamedTensors given, read_data(o, ports));
  if (is_one_sample(ports)) {
    DLC_TRY(out.inputs.emplace_back(), of_file(bind_inputs(ports, g.symbols, given), o.data));
    return out;
  }
  DLC_TRY(const int64_t all, of_file(sample_count(given), o.data));
  const int64_t count = o.samples > 0 ? std::min(o.samples, all) : all;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t number = i * all / count;
    DLC_TRY(const NamedTensors one, sample(given, number));
    DLC_TRY(out.inputs.emplace_back(), of_file(bind_inputs(ports, g.symbols, one), o.data));
    out.numbers.push_back(static_cast<size_t>(number));
  }
  return out;
}

std::string decibels(double d) {
  return d >= kExact ? "exact" : d <= -kExact ? "not finite" : fmt::format("{:.1f}", d);
}

std::string table(const QuantizeReport& r) {
  size_t width = 5;
  for (const LayerQuality& l : r.layers) width = std::max(width, l.name.size());
  std::string out = fmt::format("{:{}}  {:12} {:>10} {:>8} {:>10} {:>9}  {}\n", "layer", width, "op", "scale", "alone",
                                "cumulative", "saturated", "worst channel");
  for (const LayerQuality& l : r.layers) {
    if (!l.quantised) {
      out += fmt::format("{:{}}  {:12} in float: {}\n", l.name, width, l.op, l.why);
      continue;
    }
    const std::string worst =
        l.worst_channel < 0 ? "" : fmt::format("{} ({})", l.worst_channel, decibels(l.worst_channel_sqnr));
    out += fmt::format("{:{}}  {:12} {:>10.4g} {:>8} {:>10} {:>8.3f}%  {}\n", l.name, width, l.op, l.scale,
                       decibels(l.sqnr), decibels(l.cumulative), 100 * l.saturated, worst);
  }
  for (const OutputQuality& q : r.outputs)
    out += fmt::format("output {}: {}{}, same top-1 in {:.1f} % of {} samples\n", q.name, decibels(q.sqnr),
                       std::abs(q.sqnr) < kExact ? " dB" : "", 100 * q.same_top1, r.measured);
  return out;
}

Json to_json(const LayerQuality& l) {
  Json j{{"name", l.name}, {"op", l.op}, {"quantised", l.quantised}};
  if (!l.quantised) {
    j["why"] = l.why;
    return j;
  }
  j["scale"] = l.scale;
  j["zero_point"] = l.zero;
  j["sqnr_db"] = l.sqnr;
  j["cumulative_sqnr_db"] = l.cumulative;
  j["saturated"] = l.saturated;
  j["worst_channel"] = l.worst_channel;
  j["worst_channel_sqnr_db"] = l.worst_channel_sqnr;
  return j;
}

Json to_json(const Options& o, const QuantizeReport& r, size_t bytes) {
  Json j{{"model", o.model.file},  {"output", o.output},      {"bytes", bytes},          {"samples", r.samples},
         {"measured", r.measured}, {"layers", Json::array()}, {"outputs", Json::array()}};
  for (const LayerQuality& l : r.layers) j["layers"].push_back(to_json(l));
  for (const OutputQuality& q : r.outputs)
    j["outputs"].push_back({{"name", q.name}, {"sqnr_db", q.sqnr}, {"same_top1", q.same_top1}});
  return j;
}

// Batch norms in the weights before them, constants as numbers; transposed convolutions stay what they are.
Result<Graph> read_float_model(const Options& o) {
  DLC_TRY(Source source, read_source(o.model));
  if (!source.graph)
    return fail({o.model.file, 0, 0, {}}, "is no graph any more: programs and artifacts are lowered already",
                "give the .onnx file or graph text");
  DLC_CHECK(
      run_passes(*source.graph, {"dce", "fold", "control", "canonicalise", "batch_norm_fold", "cse", "fold", "dce"}));
  return *std::move(source.graph);
}

// Layers that the recipes of --hw have no integers for: 8 bits would cost accuracy there and bring nothing.
Result<std::map<std::string, std::string>> not_for(const HwDescription& hw, const Quantization& q) {
  DLC_TRY(auto recipes, load_recipes(hw));
  Graph g = q.graph;
  DLC_TRY(const NumericsReport report, commit_numerics(g, std::move(recipes)));
  std::map<std::string, std::string> out;
  for (const LayerQuality& l : q.report.layers)
    for (const NumericsReport::Kept& k : report.kept)
      if (l.quantised && k.name == l.name && k.op == l.op) out[l.name] = fmt::format("{}: {}", hw.name, k.why);
  return out;
}

Result<Quantization> for_machine(const Graph& g, std::span<const std::vector<Tensor>> samples, QuantizeOptions& options,
                                 const Options& o, Context& cx) {
  DLC_TRY(Quantization q, quantize(g, samples, options));
  if (o.model.hw.empty()) return q;
  DLC_TRY(const HwDescription hw, load_hw(o.model.hw, cx.hw_options()));
  if (hw.recipes.empty()) return q;
  DLC_TRY(const auto kept, not_for(hw, q));
  if (kept.empty()) return q;
  options.keep.insert(kept.begin(), kept.end());
  return quantize(g, samples, options);
}

Result<int> run(const Options& o, Context& cx) {
  std::vector<std::string> inputs = files_of(o.model);
  if (!std::string_view(o.data).starts_with(kRandom)) inputs.push_back(o.data);
  if (o.percentile && o.range != "percentile")
    return fail({}, fmt::format("--percentile has no meaning with --range {}", o.range), "--range percentile");
  DLC_CHECK(check_output(o.output, inputs));
  DLC_TRY(const Graph g, read_float_model(o));
  DLC_CHECK(of_file(check_export(g), o.model.file));
  DLC_TRY(Samples samples, samples_of(o, g));
  QuantizeOptions options = o.quantize;
  options.samples_from = o.data;
  options.sample_numbers = std::move(samples.numbers);
  if (o.percentile) options.percentile = *o.percentile;
  for (const std::string& name : o.keep) options.keep[name] = "it was asked to";
  options.correct_bias = !o.no_bias_correction;
  options.method = o.range == "min-max"      ? RangeMethod::min_max
                   : o.range == "percentile" ? RangeMethod::percentile
                                             : RangeMethod::mse;
  Progress progress(cx, "steps", 4);
  options.progress = [&](const std::string& step) { progress.step(step); };
  crash::at("quantising");
  DLC_TRY(const Quantization q, of_file(for_machine(g, samples.inputs, options, o, cx), o.model.file));
  DLC_TRY(const auto bytes, export_onnx(q.graph));
  DLC_CHECK(write_file(o.output, bytes));
  cx.print(to_json(o, q.report, bytes.size()), table(q.report));
  return kOk;
}

}  // namespace

void add_quantize(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "quantize", "Make an 8-bit model (QDQ) of a float model");
  add_model_options(*sub, o->model);
  sub->add_option("--data", o->data, "Samples: .npz with an array for each input, or random:N")
      ->required()
      ->check(file_name());
  sub->add_option("-o,--output", o->output, "The quantised model: .onnx")->required()->check(file_name());
  sub->add_option("--range", o->range, "How ranges are chosen: min-max, percentile, mse (the default)")
      ->check(CLI::IsMember({"min-max", "percentile", "mse"}));
  sub->add_option("--percentile", o->percentile, "Of --range percentile: of the elements inside a range (99.99)")
      ->check(number_in(50, 100));
  sub->add_flag("--symmetric", o->quantize.symmetric, "Zero points of 0 for activations too");
  sub->add_flag("--no-bias-correction", o->no_bias_correction, "Biases as they are");
  sub->add_option("--min-sqnr", o->quantize.min_sqnr, "Layers that alone have less dB stay in float (10)")
      ->check(number_in(-100, 100));
  sub->add_option("--keep", o->keep, "A node of the model that stays in float")->allow_extra_args(false);
  sub->add_option("--samples", o->samples, "So many of the file's samples, evenly taken")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  sub->add_option("--measure", o->quantize.measured, "So many samples are measured (32)")
      ->check(CLI::Range(size_t{1}, size_t{1'000'000}));
  add_seed(*sub, o->seed, "Of random:N");
  sub->callback([o, &cx] { cx.action = [o, &cx] { return run(*o, cx); }; });
}

}  // namespace dlc::cli
