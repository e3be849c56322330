#include <chrono>

#include "core/passes/passes.h"

namespace dlc {

namespace {

// A pass that looks at one graph, over the bodies of its nodes as well, those first.
template <Result<> (*Pass)(Graph&, PassContext&)>
Result<> everywhere(Graph& g, PassContext& context) {
  for (const NodeId n : g.order())
    for (auto& body : g.node(n).bodies) {
      Graph changed = *body;
      DLC_CHECK(everywhere<Pass>(changed, context));
      body = std::make_shared<const Graph>(std::move(changed));
    }
  return Pass(g, context);
}

}  // namespace

const std::vector<PassInfo>& graph_passes() {
  static const std::vector<PassInfo> kPasses = {
      {"batch_norm_fold", "batch normalisation into the weights of the convolution or product before it",
       everywhere<batch_norm_fold>},
      {"canonicalise", "copies that move nothing vanish, reshapes and transposes merge, zero padding joins its user",
       everywhere<canonicalise>},
      {"control", "constants go into bodies, known branches replace their if, what nobody uses of a body vanishes",
       control},
      {"conv_phases", "a transposed convolution becomes a convolution of its phases", everywhere<conv_phases>},
      {"cse", "equal nodes and equal small constants become one", everywhere<cse>},
      {"dce", "nodes and constants that nothing uses vanish", everywhere<dce>},
      {"fold", "nodes whose results are known become constants, within a budget", everywhere<fold>},
      {"fold_quantized", "fold, quantised constants too: for a target that computes in floats",
       everywhere<fold_quantized>},
  };
  return kPasses;
}

const std::vector<std::string>& default_graph_pipeline() {
  static const std::vector<std::string> kPipeline = {
      "dce", "fold",         "control", "canonicalise", "batch_norm_fold", "conv_phases", "control",
      "cse", "canonicalise", "fold",    "dce"};
  return kPipeline;
}

namespace {

Result<const PassInfo*> find_pass(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& p : graph_passes()) {
    if (p.name == name) return &p;
    names.push_back(p.name);
  }
  const std::string near = nearest(name, names);
  std::string all;
  for (const auto& n : names) all += (all.empty() ? "" : ", ") + n;
  return fail({}, "no pass is called '" + name + "'",
              near.empty() ? "the passes are " + all : "did you mean '" + near + "'?");
}

}  // namespace

Result<std::vector<PassTiming>> run_passes(Graph& g, const std::vector<std::string>& names,
                                           const std::function<void(const std::string&, const Graph&)>& after) {
  std::vector<const PassInfo*> passes;  // a wrong name is reported before anything has run
  for (const auto& name : names) {
    DLC_TRY(const PassInfo* pass, find_pass(name));
    passes.push_back(pass);
  }
  std::vector<PassTiming> timings;
  for (const PassInfo* pass : passes) {
    PassContext context;
    const auto start = std::chrono::steady_clock::now();
    DLC_CHECK(pass->run(g, context));
    if (auto valid = verify(g); !valid) {
      Error error({}, "pass " + pass->name + " left a graph that is not valid", "this is a defect of the pass");
      error.add(std::move(valid).error());
      return std::unexpected(std::move(error));
    }
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    timings.push_back({pass->name, ms.count(), std::move(context.counts)});
    if (after) after(pass->name, g);
  }
  return timings;
}

}  // namespace dlc
