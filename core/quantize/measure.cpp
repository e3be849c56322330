#include "core/quantize/measure.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace dlc::quantization {

namespace {

// Elements of one channel, by index along a dim.
struct Channels {
  int64_t count = 1, inner = 1;
  Channels(const Tensor& t, int64_t axis) {
    if (t.rank() < 2) return;
    count = t.shape()[static_cast<size_t>(axis)];
    for (size_t d = static_cast<size_t>(axis) + 1; d < t.shape().size(); ++d) inner *= t.shape()[d];
  }
  size_t of(int64_t element) const { return static_cast<size_t>(element / inner % count); }
};

constexpr double kNearlyExact = kExact - 1;  // the most that a finite result with an error has

double decibels(double signal, double noise) {
  if (!std::isfinite(signal) || !std::isfinite(noise)) return -kExact;
  if (noise == 0) return kExact;
  return std::clamp(10 * std::log10(signal / noise), -kNearlyExact, kNearlyExact);
}

// The values of the graph that a plan's layers read and make, of one run.
class Values {
 public:
  Values(const Graph& g, const Plan& plan) : g_(g), runner_(g) {
    for (const Layer& l : plan.layers) {
      wanted_.insert(l.inputs.begin(), l.inputs.end());
      wanted_.insert({g.node(l.root).outputs[0], l.result});
    }
  }

  Result<> run(std::span<const Tensor> inputs) {
    of_.clear();
    for (size_t i = 0; i < inputs.size(); ++i) of_[g_.inputs[i]] = inputs[i];
    DLC_TRY(outputs, runner_.run(inputs, [&](NodeId n, std::span<const Tensor> results) {
      for (size_t r = 0; r < results.size(); ++r)
        if (const ValueId v = g_.node(n).outputs[r]; wanted_.contains(v)) of_[v] = results[r];
    }));
    return {};
  }
  const Tensor& at(ValueId v) const { return of_.at(v); }

  std::vector<Tensor> outputs;

 private:
  const Graph& g_;
  GraphRunner runner_;
  std::set<ValueId> wanted_;
  std::map<ValueId, Tensor> of_;
};

// Runs every layer alone on what the float graph makes of each sample; `see` is given both.
Result<> run_apart(
    const Graph& g, const Plan& plan, const Parameters& p, Samples samples,
    const std::function<void(const Values&, std::span<const Tensor> sums, std::span<const Tensor> results)>& see) {
  if (plan.layers.empty()) return {};
  DLC_TRY(const Rewritten apart, layers_apart(g, plan, p));
  GraphRunner runner(apart.graph);
  Values values(g, plan);
  for (const auto& sample : samples) {
    DLC_CHECK(values.run(sample));
    std::vector<Tensor> inputs;
    for (const ValueId v : apart.inputs) inputs.push_back(values.at(v));
    DLC_TRY(const auto out, runner.run(inputs));
    see(values, std::span(out).first(plan.layers.size()), std::span(out).last(plan.layers.size()));
  }
  return {};
}

// Rows, along the last dim, whose largest element is at the same place.
std::pair<int64_t, int64_t> same_top1(const Tensor& want, const Tensor& got) {
  const int64_t row = want.rank() == 0 ? 1 : want.shape().back();
  int64_t rows = 0, same = 0;
  const auto best = [&](const Tensor& t, int64_t from) {
    int64_t at = 0;
    for (int64_t i = 1; i < row; ++i)
      if (t.get_double(from + i) > t.get_double(from + at)) at = i;
    return at;
  };
  for (int64_t from = 0; row > 0 && from < want.elements(); from += row, ++rows)
    same += best(want, from) == best(got, from) ? 1 : 0;
  return {same, rows};
}

}  // namespace

void Noise::add(const Tensor& want, const Tensor& got) {
  const Channels channels(want, 1);
  signal_.resize(static_cast<size_t>(channels.count));
  noise_.resize(signal_.size());
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double x = want.get_double(i), y = got.get_double(i), e = x - y;
    if (!std::isfinite(x) && (x == y || (std::isnan(x) && std::isnan(y)))) continue;  // of a layer that is in float
    ++finite_;
    signal_[channels.of(i)] += x * x;
    noise_[channels.of(i)] += e * e;
  }
}

double Noise::sqnr() const {
  double signal = 0, noise = 0;
  for (const double x : signal_) signal += x;
  for (const double x : noise_) noise += x;
  return finite_ == 0 ? -kExact : decibels(signal, noise);
}

std::pair<int64_t, double> Noise::worst_channel() const {
  std::pair<int64_t, double> worst{-1, kExact};
  for (size_t c = 0; signal_.size() > 1 && c < signal_.size(); ++c)
    if (const double d = decibels(signal_[c], noise_[c]); signal_[c] > 0 && (worst.first < 0 || d < worst.second))
      worst = {static_cast<int64_t>(c), d};
  return worst;
}

Result<std::map<NodeId, std::vector<double>>> bias_shifts(const Graph& g, const Plan& plan, const Parameters& p,
                                                          Samples samples) {
  std::vector<std::vector<double>> sum(plan.layers.size());
  std::vector<double> count(plan.layers.size(), 0.0);
  const auto corrected = [&](const Layer& l) { return l.weight_axis >= 0 && g.node(l.root).op != "matmul"; };
  DLC_CHECK(run_apart(g, plan, p, samples, [&](const Values& values, std::span<const Tensor> sums, auto) {
    for (size_t l = 0; l < plan.layers.size(); ++l) {
      if (!corrected(plan.layers[l])) continue;
      const Tensor& want = values.at(g.node(plan.layers[l].root).outputs[0]);
      const Channels channels(want, plan.layers[l].channel_axis);
      sum[l].resize(static_cast<size_t>(channels.count));
      const auto a = want.as<float>(), b = sums[l].as<float>();
      for (size_t i = 0; i < a.size(); ++i)
        sum[l][channels.of(static_cast<int64_t>(i))] += static_cast<double>(a[i]) - static_cast<double>(b[i]);
      count[l] += static_cast<double>(want.elements()) / static_cast<double>(std::max<int64_t>(channels.count, 1));
    }
  }));
  std::map<NodeId, std::vector<double>> out;
  for (size_t l = 0; l < plan.layers.size(); ++l) {
    if (!(count[l] > 0)) continue;
    for (double& x : sum[l]) x /= count[l];
    if (!std::ranges::all_of(sum[l], [](double x) { return std::isfinite(x); })) continue;  // it will be measured so
    out.emplace(plan.layers[l].root, std::move(sum[l]));
  }
  return out;
}

Result<std::vector<LayerQuality>> measure_apart(const Graph& g, const Plan& plan, const Parameters& p,
                                                Samples samples) {
  std::vector<Noise> noise(plan.layers.size());
  std::vector<double> outside(plan.layers.size(), 0.0), elements(plan.layers.size(), 0.0);
  DLC_CHECK(run_apart(g, plan, p, samples, [&](const Values& values, auto, std::span<const Tensor> results) {
    for (size_t l = 0; l < plan.layers.size(); ++l) {
      const Tensor& want = values.at(plan.layers[l].result);
      noise[l].add(want, results[l]);
      const Step& step = p.of(plan, plan.layers[l].result);
      const double half = step.scale / 2;
      for (const float x : want.as<float>())
        outside[l] += static_cast<double>(x) < step.low() - half || static_cast<double>(x) > step.high() + half ? 1 : 0;
      elements[l] += static_cast<double>(want.elements());
    }
  }));
  std::vector<LayerQuality> out(plan.layers.size());
  for (size_t l = 0; l < out.size(); ++l) {
    out[l].sqnr = noise[l].sqnr();
    out[l].saturated = elements[l] > 0 ? outside[l] / elements[l] : 0;
    std::tie(out[l].worst_channel, out[l].worst_channel_sqnr) = noise[l].worst_channel();
  }
  return out;
}

Result<std::vector<OutputQuality>> measure_whole(const Graph& g, const Plan& plan, const Rewritten& whole,
                                                 Samples samples, std::span<LayerQuality> layers) {
  std::vector<Noise> noise(layers.size()), of_output(g.outputs.size());
  std::vector<std::pair<int64_t, int64_t>> top1(g.outputs.size());
  std::map<NodeId, size_t> layer_of;  // by the node that makes its result
  for (size_t l = 0; l < layers.size(); ++l) layer_of.emplace(whole.graph.value(whole.results[l]).producer, l);
  Values values(g, plan);
  GraphRunner runner(whole.graph);
  for (const auto& sample : samples) {
    DLC_CHECK(values.run(sample));
    DLC_TRY(const auto out, runner.run(sample, [&](NodeId n, std::span<const Tensor> results) {
      if (const auto l = layer_of.find(n); l != layer_of.end())
        noise[l->second].add(values.at(plan.layers[l->second].result), results[0]);
    }));
    for (size_t o = 0; o < out.size(); ++o) {
      of_output[o].add(values.outputs[o], out[o]);
      if (out[o].dtype() != kF32) continue;
      const auto [same, rows] = same_top1(values.outputs[o], out[o]);
      top1[o].first += same;
      top1[o].second += rows;
    }
  }
  for (size_t l = 0; l < layers.size(); ++l) layers[l].cumulative = noise[l].sqnr();
  std::vector<OutputQuality> quality;
  for (size_t o = 0; o < g.outputs.size(); ++o)
    quality.push_back(
        {g.output_names[o], of_output[o].sqnr(),
         top1[o].second > 0 ? static_cast<double>(top1[o].first) / static_cast<double>(top1[o].second) : 1});
  return quality;
}

}  // namespace dlc::quantization
