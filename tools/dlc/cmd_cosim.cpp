// dlc cosim: RTL beside the functional simulator, compared write by write. The device does it: URI <scheme>:cosim.
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "dlc/io/file.h"
#include "dlc/io/pending_folder.h"
#include "dlc/plugin/reference.h"
#include "plugins/asic/runtime/bundle.h"
#include "tools/dlc/cosim_matrix.h"
#include "tools/dlc/counters.h"
#include "tools/dlc/cycle_list.h"
#include "tools/dlc/junit.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"
#include "tools/dlc/timeline.h"

namespace dlc::cli {

namespace {

constexpr uint64_t kSeed = 1;  // of inputs, where none is given

struct Options {
  std::string file, bundle, device;
  std::vector<std::string> inputs;
  std::optional<uint64_t> seed;
  std::string timeline, junit, cycles, write_cycles, matrix;
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
  if (has<std::string>(result, "no_bundle"))
    text += "no replay bundle: " + field<std::string>(result, "no_bundle") + "\n";
  if (has<std::string>(result, "no_wave")) text += "no waveform: " + field<std::string>(result, "no_wave") + "\n";
  for (const Json& p : objects_in(result, "partitions"))
    if (has<std::string>(p["counters"], "bundle"))
      text += fmt::format("to replay it: dlc cosim {}\n", field<std::string>(p["counters"], "bundle"));
  if (result.contains("matrix")) text += matrix_text(result);
  if (has<std::string>(result, "cycles_differ"))
    text += "cycles differ: " + field<std::string>(result, "cycles_differ") + "\n";
  for (const std::string& lost : texts_in(result, "not_written")) text += "not written: " + lost + "\n";
  cx.print(result, text);
  return exact && !result.contains("cycles_differ") && !result.contains("not_written") ? kOk : kFailed;
}

// What a device has left of a difference: its executable and inputs, on that device or another one. The bundle stays as
// it is.
Result<int> replay(const Options& o, Context& cx) {
  const std::string file = o.file + "/bundle.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    return fail({o.file, 0, 0, {}}, "is no replay bundle of `dlc cosim`: it has no bundle.json",
                "give a compiled model (.dlca), or the folder that a difference has left");
  DLC_TRY(const MappedFile text, map_file(file));
  const Json bundle = object_of(text.text());
  const auto broken = [&] { return fail({file, 0, 0, {}}, "this is no replay bundle of `dlc cosim`"); };
  if (!has<std::string>(bundle, "device") || !bundle.contains("inputs") || !bundle["inputs"].is_array() ||
      !has<std::string>(bundle, "executable"))
    return broken();
  const auto of_bundle = bundle["device"].get<std::string>();
  const auto kind = [](const std::string& device) { return device.substr(0, device.find('?')); };
  if (!o.device.empty() && kind(o.device) != kind(of_bundle))
    return fail({}, fmt::format("the bundle is for {}, not for {}", kind(of_bundle), o.device));
  const std::string shown = o.device.empty() ? of_bundle : o.device;
  const std::string uri = o.bundle.empty() ? shown : with_option(shown, "bundle=" + o.bundle);
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
  Json result{{"model", o.file}, {"device", shown}, {"run_ms", watch.ms()}};
  const Counted counted{shown, loaded->counters()};
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

// One run of a model, the times of its instructions left in `streams`.
Result<Json> simulate(const Options& o, Context& cx, const std::string& file, const CompiledModel& model,
                      const std::string& uri, std::vector<Stream>& streams) {
  std::vector<Tensor> inputs;
  if (o.inputs.empty()) {
    DLC_TRY(inputs, seeded_inputs(model.inputs, model.symbols, {}, o.seed.value_or(kSeed)));
  } else {
    DLC_TRY(const NamedTensors given, read_inputs(o.inputs));
    DLC_TRY(inputs, bind_inputs(model.inputs, model.symbols, given));
  }
  DLC_TRY(Session session, of_file(Session::open(model, cx.plugins(), {.device = uri}), file));
  const Stopwatch watch;
  DLC_CHECK(session.run(inputs));
  Json result{{"model", file}, {"device", uri}, {"run_ms", watch.ms()}};
  add_counters(session, result);
  DLC_CHECK(take_times(streams, result));
  return result;
}

// Of the first stream: the RTL that it ran on.
std::string library_of(const std::vector<Stream>& streams, const Json& result) {
  return field<std::string>(result["partitions"][streams[0].partition]["counters"], "library");
}

Result<> matrix(const Options& o, Context& cx, const std::vector<Stream>& streams, Json& result) {
  const auto run = [&](const MatrixPair& pair) -> Result<Json> {
    DLC_TRY(const CompiledModel model, CompiledModel::read(pair.artifact));
    DLC_TRY(std::string uri, cosim_device(model, o, cx));
    uri = with_option(uri, "library=" + pair.library);
    std::vector<Stream> none;
    return simulate(o, cx, pair.artifact, model, uri, none);
  };
  return add_matrix(o.matrix, {o.file, library_of(streams, result)}, run, result);
}

// Network and configuration, as the list of cycles has them: words.
std::pair<std::string, std::string> key_of(const CompiledModel& model, const std::vector<Stream>& streams) {
  return {word_of(model.name), word_of(streams[0].loaded.hardware)};
}

Result<> compare_cycles(const Options& o, const CompiledModel& model, const std::vector<Stream>& streams,
                        Json& result) {
  const auto [network, configuration] = key_of(model, streams);
  const auto measured = field<int64_t>(result, "cycles");
  if (!o.cycles.empty()) {
    DLC_TRY(const CycleList list, CycleList::read(o.cycles));
    if (std::string differs = list.differs(network, configuration, measured); !differs.empty())
      result["cycles_differ"] = std::move(differs);
  }
  if (o.write_cycles.empty() || !field<bool>(result, "bit_exact")) return {};
  return CycleList::renew(o.write_cycles, {network, configuration}, measured);
}

// A test of every run, so that one that comes to nothing is not missing in a CI server's list.
JunitSuite::Case can_be_tried(std::string error) {
  return {"cosim", "the model can be co-simulated", "", "", "", std::move(error)};
}

Result<> write_junit(const Options& o, const CompiledModel& model, const std::vector<Stream>& streams,
                     const Json& result) {
  DLC_TRY(const MappedFile artifact, map_file(o.file));
  JunitSuite suite{.name = model.name, .seconds = field<double>(result, "run_ms") / 1000};
  const auto property = [&](const char* name, std::string value) {
    suite.properties.emplace_back(name, std::move(value));
  };
  property("artifact", o.file);
  property("artifact_hash", hash_text(XXH3_64bits(artifact.bytes.data(), artifact.bytes.size())));
  property("configuration", streams[0].loaded.hardware);
  property("arch_hash", model.arch_hash);
  property("device", field<std::string>(result, "device"));
  property("rtl", library_of(streams, result));
  if (o.inputs.empty()) property("seed", std::to_string(o.seed.value_or(kSeed)));
  property("writes", std::to_string(field<int64_t>(result, "writes")));
  if (has<int64_t>(result, "cycles")) property("cycles", std::to_string(field<int64_t>(result, "cycles")));
  if (has<double>(result, "mac_utilization"))
    property("mac_utilization", fmt::format("{:.4f}", field<double>(result, "mac_utilization")));
  suite.cases.push_back(can_be_tried({}));
  for (JunitSuite::Case& c : cosim_cases(streams, result)) suite.cases.push_back(std::move(c));
  if (!o.cycles.empty())
    suite.cases.push_back({"cycles", "as in " + o.cycles, field<std::string>(result, "cycles_differ"), "", "", ""});
  for (const Json& c : objects_in(result, "matrix")) {
    const auto what = field<std::string>(c, "result"), why = field<std::string>(c, "why");
    suite.cases.push_back({"matrix",
                           field<std::string>(c, "rtl") + " RTL, " + field<std::string>(c, "stream") + " stream",
                           what == "differs" ? what : "", why, what == "refused" ? why : "", ""});
  }
  return write_file(o.junit, junit_xml(suite));
}

// Nothing could be compared.
Result<> write_junit(const Options& o, const std::string& name, const Error& why) {
  JunitSuite suite{.name = name};
  suite.properties = {{"artifact", o.file}, {"device", o.device}};
  suite.cases = {can_be_tried(to_string(why))};
  return write_file(o.junit, junit_xml(suite));
}

// Whether more is asked for than the comparison.
bool wants_more(const Options& o) { return !(o.timeline + o.junit + o.cycles + o.write_cycles + o.matrix).empty(); }

// What is written must be writable, and the lists right, before the RTL runs. Where the bundle's folder was not asked
// for, that it cannot be written is told with the difference.
Result<> check_files(const Options& o) {
  if (!o.bundle.empty()) DLC_CHECK(PendingFolder::check(o.bundle, asic::is_in_bundle));
  if (!o.matrix.empty()) DLC_CHECK(PendingFolder::check(o.matrix, is_in_matrix));
  std::error_code error;
  for (const std::string* list : {&o.cycles, &o.write_cycles})
    if (!list->empty() && (list == &o.cycles || std::filesystem::exists(*list, error)))
      DLC_CHECK(CycleList::read(*list));
  return {};
}

// `name`: what the results are called; the model's, once it is read.
Result<int> compare(const Options& o, Context& cx, const std::string& folder, std::string& name) {
  DLC_CHECK(check_files(o));
  DLC_TRY(const CompiledModel model, CompiledModel::read(o.file));
  name = model.name;
  DLC_TRY(std::string uri, cosim_device(model, o, cx));
  std::vector<Stream> streams;  // what the other results are about
  if (wants_more(o)) {
    DLC_TRY(streams, need_streams(model, o.file, "this"));
  }
  const std::string shown = uri;
  if (!o.timeline.empty()) uri = with_times(uri);
  const auto programs = std::ranges::count_if(
      model.partitions, [](const CompiledPartition& p) { return asic::is_container(p.executable); });
  uri = with_option(uri, (programs > 1 ? "bundles=" : "bundle=") + folder);
  DLC_TRY(Json result, simulate(o, cx, o.file, model, uri, streams));
  result["device"] = shown;
  // What was found is told whatever becomes of the files.
  const auto keep = [&](const Result<>& written) {
    if (!written) result["not_written"].push_back(to_string(written.error()));
  };
  if (!o.matrix.empty()) keep(matrix(o, cx, streams, result));
  if (!(o.cycles + o.write_cycles).empty()) keep(compare_cycles(o, model, streams, result));
  if (!o.timeline.empty()) keep(write_file(o.timeline, timeline(streams).dump() + "\n"));
  if (!o.junit.empty()) keep(write_junit(o, model, streams, result));
  return finish(o.file, result, cx);
}

Result<int> cosim(const Options& o, Context& cx) {
  std::error_code error;
  if (std::filesystem::is_directory(o.file, error)) {
    if (wants_more(o))
      return fail({o.file, 0, 0, {}}, "a replay bundle is run again as it was, and nothing else is made of it",
                  "--timeline, --junit, --cycles, --write-cycles and --matrix take an artifact");
    if (!o.inputs.empty() || o.seed)
      return fail({o.file, 0, 0, {}}, "a replay bundle has its own inputs", "leave --input and --seed out");
    if (!o.bundle.empty()) {
      if (std::filesystem::equivalent(o.bundle, o.file, error))
        return fail({o.bundle, 0, 0, {}}, "is the bundle that is replayed, which stays as it is",
                    "give the new one another name");
      DLC_CHECK(PendingFolder::check(o.bundle, asic::is_in_bundle));
    }
    return replay(o, cx);
  }
  const size_t question = o.device.find('?');
  const std::string_view options = question == std::string::npos ? "" : std::string_view(o.device).substr(question + 1);
  if (!(o.cycles + o.write_cycles).empty() && !options.empty() &&
      (!options.starts_with("library=") || options.contains('&')))
    return fail({}, "a list of cycles is of the device as it is: its memory without jitter, stalls and the like",
                "leave the options of --device out");
  if (!o.matrix.empty() && options.contains("library="))
    return fail({}, "--matrix chooses the RTL itself", "leave library= out");
  if (("&" + std::string(options)).contains("&bundle"))
    return fail({}, fmt::format("--device {} has a folder for bundles", o.device), "--bundle DIR gives it");
  const std::filesystem::path file(o.file);
  const std::string folder =
      o.bundle.empty() ? std::filesystem::path(file).replace_extension(".cosim").string() : o.bundle;
  std::vector<std::string> read = o.inputs;
  read.push_back(o.file);
  DLC_CHECK(check_outputs({o.timeline, o.junit, o.write_cycles}, read, {folder, o.matrix}));
  std::string name = file.stem().string();
  auto done = compare(o, cx, folder, name);
  if (!done && !o.junit.empty()) DLC_CHECK(write_junit(o, name, done.error()));
  return done;
}

}  // namespace

void add_cosim(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "cosim", "Run on RTL beside the functional simulator, write by write");
  sub->add_option("model", o->file, "A compiled model (.dlca), or a replay bundle")->required()->check(file_name());
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  sub->add_option("--seed", o->seed, "Of the inputs")->check(seed_number());
  sub->add_option("--device", o->device, "The device, for its options: asic:cosim?jitter=32&backpressure=20");
  sub->add_option("--bundle", o->bundle,
                  "Folder for the replay bundle of a difference; otherwise MODEL.cosim, of a replay none")
      ->check(file_name());
  sub->add_option("--timeline", o->timeline, "The time of every instruction, for Perfetto (ui.perfetto.dev)")
      ->check(file_name());
  sub->add_option("--junit", o->junit, "The result for CI servers, as XML")->check(file_name());
  sub->add_option("--cycles", o->cycles, "List of golden cycles, which must be met exactly")->check(file_name());
  sub->add_option("--write-cycles", o->write_cycles, "List in which the model's line is renewed")->check(file_name());
  sub->add_option("--matrix", o->matrix,
                  "Folder of the last green RTL and stream: each is run with each of the new ones")
      ->check(file_name());
  sub->callback([o, &cx] { cx.action = [o, &cx] { return cosim(*o, cx); }; });
}

}  // namespace dlc::cli
