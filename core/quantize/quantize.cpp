// Calibration, plan, correction, measurement: the steps of dlc/quantize/quantize.h in order.
#include "dlc/quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/quantize/finite.h"
#include "core/quantize/measure.h"

namespace dlc {

using namespace quantization;

namespace {

class Quantizer {
 public:
  Quantizer(const Graph& g, Samples samples, const QuantizeOptions& o) : g_(g), samples_(samples), o_(o) {}

  Result<Quantization> run() {
    DLC_CHECK(check());
    keep_ = o_.keep;
    while (true) {
      DLC_TRY(plan_, make_plan(g_, keep_));
      DLC_CHECK(check_keep());
      if (plan_.layers.empty()) return nothing();
      DLC_CHECK(check_constants(g_, plan_));
      DLC_CHECK(calibrate());
      choose();
      DLC_CHECK(correct());
      tell("measuring layers");
      DLC_TRY(auto layers, measure_apart(g_, plan_, p_, measured()));
      if (keep_the_worst(layers)) continue;
      return finish(std::move(layers));
    }
  }

 private:
  void tell(const std::string& step) const {
    if (o_.progress) o_.progress(step);
  }
  Samples measured() const { return samples_.first(std::min(samples_.size(), std::max<size_t>(o_.measured, 1))); }

  Result<> check() const {
    if (samples_.empty()) return fail({}, "no samples to calibrate with", "at least one for every input");
    std::set<std::string> names;
    for (const NodeId n : g_.order()) {
      const std::string& op = g_.node(n).op;
      if (op == "quantize_linear")
        return fail({{}, 0, 0, name_of(g_, n)}, "the model is quantised already", "give the float model");
      if (!g_.node(n).bodies.empty())
        return fail({{}, 0, 0, name_of(g_, n)}, fmt::format("models with control flow ({}) are not quantised", op),
                    "bind what decides it (--dim), so that it is written out");
      names.insert(g_.node(n).locations.begin(), g_.node(n).locations.end());
    }
    for (const auto& [name, why] : o_.keep)
      if (!names.contains(name)) {
        const std::string near = nearest(name, {names.begin(), names.end()});
        return fail({}, fmt::format("no node is called '{}'", name),
                    near.empty() ? "dlc explain lists the nodes" : fmt::format("did you mean '{}'?", near));
      }
    return {};
  }

  // Whether every node of `keep` can stay in float by itself: not one that is computed with another, nor one that only
  // moves what is 8 bits already.
  Result<> check_keep() const {
    const auto part_of = [&](NodeId n) -> NodeId {
      for (const Layer& l : plan_.layers)
        if (l.root == n || std::ranges::count(l.tail, n) > 0) return l.root;
      for (const auto& [l, why] : plan_.in_float)
        if (l.root == n || std::ranges::count(l.tail, n) > 0) return l.root;
      return n;
    };
    for (const NodeId n : g_.order())
      for (const std::string& name : g_.node(n).locations) {
        if (!o_.keep.contains(name)) continue;
        if (const std::string whole = name_of(g_, part_of(n)); whole != name && !o_.keep.contains(whole))
          return fail({{}, 0, 0, name}, fmt::format("'{}' is part of the layer '{}'", name, whole),
                      fmt::format("--keep {} leaves all of it in float", whole));
        if (part_of(n) == n && !g_.node(n).outputs.empty() && plan_.quantised(g_.node(n).outputs[0]) &&
            g_.node(n).inputs.size() == 1 && plan_.quantised(g_.node(n).inputs[0]) &&
            std::ranges::none_of(plan_.layers, [&](const Layer& l) { return l.root == n; }))
          return fail({{}, 0, 0, name},
                      fmt::format("'{}' only moves or selects elements, which keep their scale", name),
                      "--keep takes the node that makes them");
      }
    return {};
  }

  std::unexpected<Error> nothing() const {
    Error e({}, "nothing of this model can be quantised",
            "convolutions and products with constant weights, sums, pools and functions of one value are");
    for (const auto& [layer, why] : plan_.in_float)
      e.diagnostics.push_back({Severity::note, {{}, 0, 0, name_of(g_, layer.root)}, "stays in float: " + why, {}});
    return std::unexpected(std::move(e));
  }

  // Histograms of what is not known yet: a plan with fewer layers needs no further run.
  Result<> calibrate() {
    std::set<ValueId> open;
    for (size_t v = 0; v < plan_.shares.size(); ++v)
      if (plan_.shares[v] == static_cast<ValueId>(v) && !seen_.contains(plan_.shares[v])) open.insert(plan_.shares[v]);
    if (open.empty()) return {};
    tell("calibrating");
    for (const ValueId v : open) seen_.emplace(v, Histogram());
    std::set<ValueId> finite = open;  // what bias correction reads too
    for (const Layer& l : plan_.layers) finite.insert(g_.node(l.root).outputs[0]);
    DLC_CHECK(observe(finite, [&](size_t sample, ValueId v, const Tensor& t) -> Result<> {
      if (const std::string what = not_finite(t); !what.empty()) return unusable(sample, v, what);
      if (open.contains(v)) seen_.at(v).widen(t);
      return {};
    }));
    if (o_.method == RangeMethod::min_max) return {};
    return observe(open, [&](size_t, ValueId v, const Tensor& t) -> Result<> {
      seen_.at(v).count(t);
      return {};
    });
  }

  std::unexpected<Error> unusable(size_t sample, ValueId v, const std::string& what) const {
    const size_t number = sample < o_.sample_numbers.size() ? o_.sample_numbers[sample] : sample;
    const NodeId n = g_.value(v).producer;
    if (n == kNoNode)
      return fail({o_.samples_from, 0, 0, {}},
                  fmt::format("sample {}: input '{}' is {}", number, g_.value(v).name, what),
                  "give samples that are finite");
    return fail({o_.samples_from, 0, 0, name_of(g_, n)},
                fmt::format("sample {}: the result of '{}' is {}", number, name_of(g_, n), what),
                fmt::format("--keep {} leaves the node in float; or leave the sample out", name_of(g_, n)));
  }

  using See = std::function<Result<>(size_t sample, ValueId v, const Tensor& t)>;

  Result<> observe(const std::set<ValueId>& values, const See& see) {
    GraphRunner runner(g_);
    for (size_t s = 0; s < samples_.size(); ++s) {
      for (size_t i = 0; i < g_.inputs.size(); ++i)
        if (values.contains(g_.inputs[i])) DLC_CHECK(see(s, g_.inputs[i], samples_[s][i]));
      Result<> seen;
      DLC_CHECK(runner.run(samples_[s], [&](NodeId n, std::span<const Tensor> results) {
        for (size_t r = 0; r < results.size() && seen; ++r)
          if (const ValueId v = g_.node(n).outputs[r]; values.contains(v)) seen = see(s, v, results[r]);
      }));
      DLC_CHECK(std::move(seen));
    }
    return {};
  }

  void choose() {
    std::vector<ValueId> roots;
    for (size_t v = 0; v < plan_.shares.size(); ++v)
      if (plan_.shares[v] == static_cast<ValueId>(v)) roots.push_back(plan_.shares[v]);
    reconcile(g_, seen_, plan_);
    std::map<ValueId, std::vector<const Histogram*>> together;
    for (const ValueId v : roots) together[plan_.shares[static_cast<size_t>(v)]].push_back(&seen_.at(v));
    p_.steps.clear();
    for (const auto& [share, histograms] : together)
      p_.steps.emplace(share, step_of(choose_range(histograms, o_), o_.symmetric));
    for (const Layer& l : plan_.layers)
      if (l.weight_axis >= 0 && !p_.weight_scales.contains(l.root))
        p_.weight_scales.emplace(l.root, scales_of(g_, l, o_.method));
  }

  Result<> correct() {
    p_.bias_shift.clear();
    if (!o_.correct_bias) return {};
    tell("correcting biases");
    DLC_TRY(p_.bias_shift, bias_shifts(g_, plan_, p_, measured()));
    return {};
  }

  bool keep_the_worst(const std::vector<LayerQuality>& layers) {
    const size_t before = keep_.size();
    for (size_t l = 0; l < layers.size(); ++l)
      if (layers[l].sqnr <= -kExact)
        keep_.emplace(name_of(g_, plan_.layers[l].root), "no sample has a finite result of it in 8 bits");
      else if (layers[l].sqnr < o_.min_sqnr)
        keep_.emplace(name_of(g_, plan_.layers[l].root),
                      fmt::format("alone its result has {:.1f} dB, less than {:g}", layers[l].sqnr, o_.min_sqnr));
    return keep_.size() > before;
  }

  Result<Quantization> finish(std::vector<LayerQuality> layers) {
    Quantization out;
    DLC_TRY(Rewritten whole, quantised(g_, plan_, p_));
    DLC_CHECK(verify(whole.graph));
    tell("measuring the whole");
    DLC_TRY(out.report.outputs, measure_whole(g_, plan_, whole, measured(), layers));
    std::vector<std::pair<NodeId, LayerQuality>> all;
    for (size_t l = 0; l < layers.size(); ++l) {
      const Step& step = p_.of(plan_, plan_.layers[l].result);
      layers[l].scale = step.scale;
      layers[l].zero = step.zero;
      all.emplace_back(plan_.layers[l].root, std::move(layers[l]));
    }
    for (const auto& [layer, why] : plan_.in_float) {
      LayerQuality q;
      q.quantised = false;
      q.why = why;
      all.emplace_back(layer.root, std::move(q));
    }
    std::map<NodeId, size_t> position;
    for (const NodeId n : g_.order()) position.emplace(n, position.size());
    std::ranges::stable_sort(all, {}, [&](const auto& q) { return position.at(q.first); });
    for (auto& [root, q] : all) {
      q.name = name_of(g_, root);
      q.op = g_.node(root).op;
      out.report.layers.push_back(std::move(q));
    }
    out.report.samples = samples_.size();
    out.report.measured = measured().size();
    out.graph = std::move(whole.graph);
    return out;
  }

  const Graph& g_;
  Samples samples_;
  const QuantizeOptions& o_;
  std::map<std::string, std::string> keep_;
  std::map<ValueId, Histogram> seen_;
  Plan plan_;
  Parameters p_;
};

}  // namespace

Result<Quantization> quantize(const Graph& g, std::span<const std::vector<Tensor>> samples,
                              const QuantizeOptions& options) {
  return Quantizer(g, samples, options).run();
}

}  // namespace dlc
