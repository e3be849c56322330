// dlc cosim: RTL beside the functional simulator, compared write by write. The device does it: URI <scheme>:cosim.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "dlc/io/file.h"
#include "dlc/plugin/reference.h"
#include "tools/dlc/counters.h"
#include "tools/dlc/json.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

struct Options {
  std::string file, bundle, device;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
};

std::string difference_text(const Json& d) {
  return fmt::format(
      "first difference: layer {}, instruction {} of queue {}, tile {}, cycle {}\n  {}\n  {}[{}]: RTL {}, simulator "
      "{}\n",
      field<std::string>(d, "layer"), field<int64_t>(d, "instruction"), field<std::string>(d, "queue"),
      field<int64_t>(d, "tile"), field<int64_t>(d, "cycle"), field<std::string>(d, "text"),
      field<std::string>(d, "memory"), field<int64_t>(d, "address"), field<std::string>(d, "rtl"),
      field<std::string>(d, "simulator"));
}

int finish(const std::string& file, const Json& result, Context& cx) {
  const bool exact = field<bool>(result, "bit_exact");
  std::string text = fmt::format("{}: {}\n", file, exact ? "bit exact" : "NOT bit exact");
  text += layer_table(result);
  for (const char* key : {"cycles", "mac_utilization", "sim_seconds"})
    if (has<double>(result, key)) text += fmt::format("{}: {:.6g}\n", key, field<double>(result, key));
  if (has<std::string>(result, "stopped")) text += "the RTL stopped: " + field<std::string>(result, "stopped") + "\n";
  if (result.contains("first_difference")) text += difference_text(result["first_difference"]);
  if (result.contains("wave"))
    text += fmt::format("waveform of cycles {} to {}: {}\n", field<int64_t>(result["wave"], "begin"),
                        field<int64_t>(result["wave"], "end"), field<std::string>(result["wave"], "file"));
  if (has<std::string>(result, "no_wave")) text += "no waveform: " + field<std::string>(result, "no_wave") + "\n";
  if (has<std::string>(result, "bundle"))
    text += fmt::format("to replay it: dlc cosim {}\n", field<std::string>(result, "bundle"));
  cx.print(result, text);
  return exact ? kOk : kFailed;
}

// What a device has left of a difference: its executable and inputs, on that device again.
Result<int> replay(const Options& o, Context& cx) {
  const std::string file = o.file + "/bundle.json";
  DLC_TRY(const MappedFile text, map_file(file));
  const Json bundle = object_of(text.text());
  const auto broken = [&] { return fail({file, 0, 0, {}}, "this is no replay bundle of `dlc cosim`"); };
  if (!has<std::string>(bundle, "device") || !bundle.contains("inputs") || !bundle["inputs"].is_array() ||
      !has<std::string>(bundle, "executable"))
    return broken();
  const std::string uri = bundle["device"].get<std::string>() + "&bundle=" + o.file;
  std::vector<Tensor> inputs;
  for (const Json& name : bundle["inputs"]) {
    if (!name.is_string()) return broken();
    DLC_TRY(NamedTensors t, read_tensors(o.file + "/" + name.get<std::string>()));
    if (t.size() != 1) return broken();
    inputs.push_back(std::move(t[0].second));
  }
  DLC_TRY(const MappedFile executable, map_file(o.file + "/" + bundle["executable"].get<std::string>()));
  DLC_TRY(Backend * backend, cx.plugins().for_scheme(scheme_of(uri)));
  DLC_TRY(const auto device, backend->open(uri));
  DLC_TRY(const auto loaded, device->load(executable.bytes, {}));
  const Stopwatch watch;
  DLC_CHECK(loaded->run(inputs));
  Json result{{"model", o.file}, {"device", uri}, {"run_ms", watch.ms()}};
  const Counted counted{uri, loaded->counters()};
  add_counters(std::span(&counted, 1), result);
  return finish(o.file, result, cx);
}

// The URI of the model's device that compares, with the options of `given`.
Result<std::string> cosim_device(const CompiledModel& model, const Options& o, Context& cx) {
  std::string found;
  for (const CompiledPartition& p : model.partitions) {
    if (p.device == "host" || p.device == kReferenceDevice || p.is_control()) continue;
    DLC_TRY(Backend * backend, cx.plugins().find(p.device));
    for (const DeviceListing& d : backend->list())
      if (d.uri.ends_with(":cosim")) found = d.uri;
  }
  if (found.empty()) {
    Error e({o.file, 0, 0, {}},
            fmt::format("nothing in this model can be co-simulated (it is for {})", model.hardware_name),
            "compile it for a machine that has RTL: --hw=asic.yaml");
    if (std::ranges::any_of(model.partitions, [](const CompiledPartition& p) { return p.device == "host"; }))
      e = nothing_for(model, found);
    return std::unexpected(std::move(e));
  }
  if (o.device.empty()) return found;
  if (o.device.substr(0, o.device.find('?')) != found)
    return fail({}, fmt::format("cosim compares on {}, not on {}", found, o.device),
                fmt::format("dlc run takes any device; --device gives cosim its options: {}?jitter=32", found));
  return o.device;
}

Result<int> cosim(Options& o, Context& cx) {
  std::error_code error;
  if (std::filesystem::is_directory(o.file, error)) return replay(o, cx);
  DLC_TRY(const CompiledModel model, CompiledModel::read(o.file));
  DLC_TRY(std::string uri, cosim_device(model, o, cx));
  std::vector<Tensor> inputs;
  if (o.inputs.empty()) {
    DLC_TRY(inputs, seeded_inputs(model.inputs, model.symbols, {}, o.seed));
  } else {
    DLC_TRY(const NamedTensors given, read_inputs(o.inputs));
    DLC_TRY(inputs, bind_inputs(model.inputs, model.symbols, given));
  }
  if (o.bundle.empty()) o.bundle = std::filesystem::path(o.file).replace_extension(".cosim").string();
  uri += (uri.find('?') == std::string::npos ? "?bundle=" : "&bundle=") + o.bundle;
  DLC_TRY(Session session, Session::open(model, cx.plugins(), {.device = uri}));
  const Stopwatch watch;
  DLC_CHECK(session.run(inputs));
  Json result{{"model", o.file}, {"device", uri}, {"run_ms", watch.ms()}};
  add_counters(session, result);
  return finish(o.file, result, cx);
}

}  // namespace

void add_cosim(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "cosim", "Run on RTL beside the functional simulator, write by write");
  sub->add_option("model", o->file, "A compiled model (.dlca), or a replay bundle")->required()->check(file_name());
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  sub->add_option("--seed", o->seed, "Of the inputs");
  sub->add_option("--device", o->device, "The device, for its options: asic:cosim?jitter=32&backpressure=20");
  sub->add_option("--bundle", o->bundle, "Folder for the replay bundle of a difference; otherwise MODEL.cosim")
      ->check(file_name());
  sub->callback([o, &cx] { cx.action = [o, &cx] { return cosim(*o, cx); }; });
}

}  // namespace dlc::cli
