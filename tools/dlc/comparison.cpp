#include "tools/dlc/comparison.h"

#include <algorithm>
#include <map>
#include <set>

#include "tools/dlc/counters.h"
#include "tools/dlc/onnxruntime.h"

namespace dlc::cli {

void Comparison::add(const std::string& layer, const std::string& kernel, const Difference& d) {
  layers.push_back({{"name", layer},
                    {"kernel", kernel},
                    {"match", d.wrong == 0},
                    {"largest_difference", d.largest},
                    {"elements_wrong", d.wrong},
                    {"first_difference", d.text}});
  if (d.wrong == 0 || !first.empty()) return;
  first = layer;
  first_value = d.text;
}

std::vector<Watched> watch(Source& s, bool integers_only) {
  Graph& g = *s.graph;
  std::set<std::string> outputs(g.output_names.begin(), g.output_names.end());
  std::vector<Watched> out;
  const auto add = [&](const std::string& node, const std::string& name, ValueId v) {
    const bool is_output = outputs.contains(name);
    if (!is_output && (v < 0 || g.value(v).producer == kNoNode)) return;  // sequences, constants, inputs
    if (!is_output && integers_only && g.value(v).type.dtype.is_float()) return;
    out.push_back({node, name, v < 0 ? kF32 : g.value(v).type.dtype});
    if (!outputs.insert(name).second) return;
    g.outputs.push_back(v);
    g.output_names.push_back(name);
  };
  for (const OnnxNode& n : s.nodes)
    for (size_t i = 0; i < n.results.size(); ++i) add(n.name, n.result_names[i], n.results[i]);
  if (s.nodes.empty())  // graph text: its own nodes, whose values that are outputs have the outputs' names
    for (const NodeId n : g.order())
      for (const ValueId v : g.node(n).outputs) {
        const auto at = std::ranges::find(g.outputs, v);
        const std::string name =
            at == g.outputs.end() ? g.value(v).name : g.output_names[static_cast<size_t>(at - g.outputs.begin())];
        add(g.node(n).locations.empty() ? g.value(v).name : g.node(n).locations.front(), name, v);
      }
  return out;
}

namespace {

using Values = std::map<std::string, Tensor>;

Result<Values> values_on(const CompiledModel& m, const std::string& device, std::span<const Tensor> inputs,
                         std::string& opened, Context& cx) {
  DLC_TRY(Session session, Session::open(m, cx.plugins(), {.device = device}));
  DLC_TRY(auto results, session.run(inputs));
  opened = devices(session);
  Values out;
  for (size_t i = 0; i < results.size(); ++i) out.emplace(m.outputs[i].name, std::move(results[i]));
  return out;
}

}  // namespace

Result<Comparison> compare_values(const Built& b, const std::vector<Watched>& watched, const std::string& file,
                                  const std::string& device, const std::string& against, std::span<const Tensor> inputs,
                                  double tolerance, Context& cx) {
  Comparison all;
  DLC_TRY(const Values got, values_on(b.model, device, inputs, all.device, cx));
  Values want;
  if (against == kOnnxruntime) {
    NamedTensors named;
    for (size_t i = 0; i < inputs.size(); ++i) named.emplace_back(b.model.inputs[i].name, inputs[i]);
    std::vector<WantedValue> values;
    for (const Watched& w : watched) values.push_back({w.value, w.type});
    DLC_TRY(NamedTensors results, run_onnxruntime(file, named, values));
    for (auto& [name, t] : results) want.emplace(name, std::move(t));
    all.against = kOnnxruntime;
  } else {
    DLC_TRY(want, values_on(b.model, against, inputs, all.against, cx));
  }
  for (const Watched& w : watched) {
    const auto a = std::as_const(want).find(w.value), c = got.find(w.value);
    if (a != want.end() && c != got.end()) all.add(w.node, w.value, difference(a->second, c->second, tolerance));
  }
  return all;
}

}  // namespace dlc::cli
