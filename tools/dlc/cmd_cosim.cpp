// dlc cosim: RTL beside the functional simulator, compared write by write. The device does it: URI <scheme>:cosim.
#include <fmt/format.h>

#include "tools/dlc/counters.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

struct Options {
  std::string file, bundle;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
};

Result<int> cosim(Options& o, Context& cx) {
  DLC_TRY(const CompiledModel model, CompiledModel::read(o.file));
  std::string scheme;
  for (const CompiledPartition& p : model.partitions) {
    if (p.device == "host") continue;
    DLC_TRY(Backend * backend, cx.plugins().find(p.device));
    for (const DeviceListing& d : backend->list())
      if (d.uri.ends_with(":cosim")) scheme = d.uri.substr(0, d.uri.find(':'));
  }
  if (scheme.empty())
    return fail({o.file, 0, 0, {}},
                fmt::format("nothing in this model can be co-simulated: it is for {}", model.hardware_name),
                "compile it for a machine that has RTL: --hw=asic.yaml");
  std::vector<Tensor> inputs;
  if (o.inputs.empty()) {
    DLC_TRY(inputs, seeded_inputs(model.inputs, model.symbols, {}, o.seed));
  } else {
    DLC_TRY(const NamedTensors given, read_inputs(o.inputs));
    DLC_TRY(inputs, bind_inputs(model.inputs, model.symbols, given));
  }
  std::string uri = scheme + ":cosim";
  if (!o.bundle.empty()) uri += "?bundle=" + o.bundle;
  DLC_TRY(Session session, Session::open(model, cx.plugins(), {.device = uri}));
  const Stopwatch watch;
  DLC_CHECK(session.run(inputs));
  Json result{{"model", o.file}, {"device", uri}, {"run_ms", watch.ms()}};
  add_counters(session, result);
  const bool exact = result.value("bit_exact", false);
  std::string text = fmt::format("{}: {}\n", o.file, exact ? "bit exact" : "NOT bit exact");
  text += layer_table(result);
  for (const char* key : {"cycles", "mac_utilization", "sim_seconds"})
    if (result.contains(key)) text += fmt::format("{}: {:.6g}\n", key, result[key].get<double>());
  if (result.contains("first_difference")) text += result["first_difference"].dump() + "\n";
  cx.print(result, text);
  return exact ? kOk : kFailed;
}

}  // namespace

void add_cosim(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "cosim", "Run on RTL beside the functional simulator, write by write");
  sub->add_option("model", o->file, "A compiled model (.dlca)")->required();
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")->allow_extra_args(false);
  sub->add_option("--seed", o->seed, "Of the inputs");
  sub->add_option("--bundle", o->bundle, "Folder for the replay bundle of a difference");
  sub->callback([o, &cx] { cx.action = [o, &cx] { return cosim(*o, cx); }; });
}

}  // namespace dlc::cli
