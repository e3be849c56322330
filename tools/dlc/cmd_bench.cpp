// dlc bench: how long a run takes, and each of its layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "tools/dlc/counters.h"
#include "tools/dlc/json.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string device;
  std::vector<std::string> inputs;
  int threads = 0, runs = 0, warmup = 3;
  double seconds = 2;
  uint64_t seed = 1;
};

double percentile(std::vector<double> v, double p) {
  std::ranges::sort(v);
  const double at = p * static_cast<double>(v.size() - 1);
  const auto low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, v.size() - 1);
  return v[low] + (v[high] - v[low]) * (at - std::floor(at));
}

// The layers of all runs, in the order of a run: of every figure the median.
class Layers {
 public:
  void add(const Json& counters) {
    size_t i = 0;
    for (const auto& layer : objects_in(counters, "layers")) {
      if (i == seen_.size()) seen_.push_back({layer, {}});
      for (const auto& [key, v] : layer.items())
        if (v.is_number()) seen_[i].figures[key].push_back(v.get<double>());
      ++i;
    }
  }
  Json medians() const {
    Json list = Json::array();
    for (const Seen& s : seen_) {
      list.push_back(s.first);
      for (const auto& [key, values] : s.figures) {
        const double median = percentile(values, 0.5);
        if (has<int64_t>(s.first, key))
          list.back()[key] = std::llround(median);
        else
          list.back()[key] = median;
      }
    }
    return list;
  }

 private:
  struct Seen {
    Json first;
    std::map<std::string, std::vector<double>> figures;
  };
  std::vector<Seen> seen_;
};

// The layers as lines of text: milliseconds, or cycles of devices that count them.
std::string layer_lines(const Json& layers) {
  std::string text = layer_table({{"layers", layers}});
  if (!text.empty()) return text;
  for (const auto& l : layers) {
    const auto name = field<std::string>(l, "name");
    if (has<double>(l, "ms"))
      text += fmt::format("  {:>10.4f} ms  {}\n", field<double>(l, "ms"), name);
    else if (has<int64_t>(l, "predicted_cycles"))
      text += fmt::format("  {:>10} cycles predicted  {}\n", field<int64_t>(l, "predicted_cycles"), name);
  }
  return text;
}

Result<int> bench(Options& o, Context& cx) {
  const Stopwatch loading;
  o.model.dims_of_inputs = o.inputs.empty();
  DLC_TRY(const CompiledModel model, load_or_build(o.model, cx));
  DLC_TRY(Session session, Session::open(model, cx.plugins(), {.device = o.device, .threads = o.threads}));
  const double load_ms = loading.ms();
  std::vector<Tensor> inputs;
  if (o.inputs.empty()) {
    DLC_TRY(inputs, seeded_inputs(model.inputs, model.symbols, single_values(o.model.dims), o.seed));
  } else {
    DLC_TRY(const NamedTensors given, read_inputs(o.inputs));
    DLC_TRY(inputs, bind_inputs(model.inputs, model.symbols, given));
  }
  // A model with states is measured on a step, which is taken back afterwards.
  const bool has_states = !model.states.empty();
  std::vector<Tensor> others;
  if (has_states)
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto state = std::ranges::find(model.states, model.inputs[i].name, &StatePair::input);
      if (state == model.states.end())
        others.push_back(inputs[i]);
      else
        DLC_CHECK(session.set_state(static_cast<size_t>(state - model.states.begin()), inputs[i]));
    }
  const auto take_back = [&]() -> Result<> {
    for (size_t i = 0; i < model.states.size(); ++i) {
      const auto in = std::ranges::find(model.inputs, model.states[i].input, &Port::name) - model.inputs.begin();
      DLC_CHECK(session.shrink_state(i, inputs[static_cast<size_t>(in)].shape()));
    }
    return {};
  };
  const auto run = [&]() -> Result<> {
    if (has_states) {
      DLC_CHECK(session.step(others));
    } else {
      DLC_CHECK(session.run(inputs));
    }
    return {};
  };
  for (int i = 0; i < o.warmup; ++i) {
    DLC_CHECK(run());
    DLC_CHECK(take_back());
  }
  std::vector<double> times;
  int64_t threads = o.threads;
  Layers layers;
  const Stopwatch all;
  Progress progress(cx, "runs", static_cast<size_t>(std::max(o.runs, 1)));
  const auto wanted = [&] {
    if (o.runs > 0) return times.size() < static_cast<size_t>(o.runs);
    return times.size() < 10 || (all.ms() < o.seconds * 1000 && times.size() < 100'000);
  };
  while (wanted()) {
    const Stopwatch watch;
    DLC_CHECK(run());
    times.push_back(watch.ms());
    DLC_CHECK(take_back());
    Json counters;
    add_counters(session, counters);
    layers.add(counters);
    if (has<int64_t>(counters, "threads")) threads = field<int64_t>(counters, "threads");
    if (o.runs > 0) progress.step(fmt::format("{:.2f} ms", times.back()));
  }
  Json result{{"model", o.model.file},
              {"device", devices(session)},
              {"threads", threads},
              {"load_ms", load_ms},
              {"runs", times.size()},
              {"p50_ms", percentile(times, 0.5)},
              {"p99_ms", percentile(times, 0.99)},
              {"min_ms", std::ranges::min(times)},
              {"mean_ms", std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size())},
              {"layers", layers.medians()}};
  const std::string text =
      fmt::format("{} on {} p50 {:.3f} ms, p99 {:.3f} ms, {} runs\n", o.model.file, devices(session),
                  result["p50_ms"].get<double>(), result["p99_ms"].get<double>(), times.size()) +
      layer_lines(result["layers"]);
  cx.print(result, text);
  return kOk;
}

}  // namespace

void add_bench(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "bench", "Measure a model on a device");
  add_model_options(*sub, o->model);
  sub->add_option("--device", o->device, "The device; by default the one the model is compiled for");
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  sub->add_option("--threads", o->threads, "Threads of the host's code")->check(CLI::Range(1, 1024));
  sub->add_option("--runs", o->runs, "How many runs are measured; 0: as many as fit --seconds, at least 10")
      ->check(CLI::Range(0, 1'000'000));
  sub->add_option("--seconds", o->seconds, "How long to measure")->check(positive_number())->capture_default_str();
  sub->add_option("--warmup", o->warmup, "Runs before measuring")->check(CLI::Range(0, 10'000));
  add_seed(*sub, o->seed);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return bench(*o, cx); }; });
}

}  // namespace dlc::cli
