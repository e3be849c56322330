// dlc report: one HTML page about a compiled model: graph, layers, queues and memories over time.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "dlc/io/file.h"
#include "tools/dlc/counters.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"
#include "tools/dlc/report.h"
#include "tools/dlc/timeline.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string device, output;
  std::vector<std::string> inputs, cells;
  uint64_t seed = 1;
};

// Runs the model, so that there is something measured.
Result<Json> measure(const Options& o, Context& cx, const CompiledModel& model, std::vector<Stream>& streams) {
  DLC_TRY(const auto inputs, inputs_for(model.inputs, model.symbols, o.model, o.inputs, o.seed));
  std::string uri = o.device;
  DLC_TRY(Backend * backend, cx.plugins().for_scheme(scheme_of(uri)));
  bool counts = false;  // the device runs the streams, and has a clock
  for (const Stream& s : streams) counts = counts || model.partitions[s.partition].device == backend->name();
  if (counts && !uri.starts_with(std::string(scheme_of(uri)) + ":func")) uri = with_times(uri);
  crash::at("running on " + uri);
  DLC_TRY(Session session, of_file(Session::open(model, cx.plugins(), {.device = uri}), o.model.file));
  DLC_CHECK(session.run(inputs));
  Json result{{"device", o.device}};
  add_counters(session, result);
  DLC_CHECK(take_times(streams, result));
  return result;
}

// The counts that the project's synthesis leaves beside the verilated models, by arch_hash.
Result<> add_known_cells(const Stream& s, std::vector<Cells>& cells) {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("DLC_RTL_PATH"); path != nullptr && *path != 0) folders.emplace_back(path);
  folders.push_back(program_folder() + "/../lib/dlc/rtl");
  for (const std::string& folder : folders) {
    const std::string file = fmt::format("{}/{}.cells.json", folder, hash_text(s.hw().arch_hash));
    std::error_code error;
    if (!std::filesystem::exists(file, error)) continue;
    DLC_TRY(Cells c, read_cells(file));
    c.configuration = s.loaded.hardware;
    cells.push_back(std::move(c));
    return {};
  }
  return {};
}

Result<int> report(const Options& o, Context& cx) {
  const bool as_page = o.output.ends_with(".html");
  if (!as_page && !o.output.ends_with(".json"))
    return fail({o.output, 0, 0, {}}, "the file's type is not known from its name",
                ".html for the page, .json for the timeline of the queues");
  if (o.device.empty() && !o.inputs.empty())
    return fail({}, "--input is of a run, and without --device nothing is run", "--device asic:rtl");
  if (!as_page && !o.cells.empty())
    return fail({o.output, 0, 0, {}}, "--cells is of the page: a timeline has no place for it",
                "leave it out, or write .html");
  std::vector<std::string> read = o.inputs;
  read.insert(read.end(), o.cells.begin(), o.cells.end());
  DLC_CHECK(check_output(o.output, files_of(o.model, read)));
  std::vector<Cells> cells;
  for (const std::string& file : o.cells) {
    DLC_TRY(Cells c, read_cells(file));
    cells.push_back(std::move(c));
  }
  DLC_TRY(const CompiledModel model, load_or_build(o.model, cx));
  std::vector<Stream> streams;
  if (as_page) {
    DLC_TRY(streams, streams_of(model));
    if (cells.empty() && !streams.empty()) DLC_CHECK(add_known_cells(streams[0], cells));
  } else {
    DLC_TRY(streams, need_streams(model, o.model.file, "a timeline"));
  }
  Json result = Json::object();
  if (!o.device.empty()) {
    DLC_TRY(result, measure(o, cx, model, streams));
  }
  DLC_TRY(const Json data, report_data(model, streams, result, cells));
  DLC_CHECK(write_file(o.output, as_page ? report_page(data) : timeline(streams).dump() + "\n"));
  Json said{{"model", o.model.file},
            {"output", o.output},
            {"hardware", data["hardware"]},
            {"totals", data["totals"]},
            {"layers", data["layers"]}};
  if (data.contains("device")) said["device"] = data["device"];
  cx.print(said, o.output + "\n");
  return kOk;
}

}  // namespace

void add_report(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub =
      add_command(app, cx, "report", "Write a page about a compiled model: layers, queues, memories, graph");
  add_model_options(*sub, o->model);
  sub->add_option("-o,--output", o->output, "The page (.html), or only the queues' timeline for Perfetto (.json)")
      ->required()
      ->check(file_name());
  sub->add_option("--device", o->device, "Run it there, and show what was measured beside what is predicted: asic:rtl");
  sub->add_option("--input", o->inputs, "Inputs of that run; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  add_seed(*sub, o->seed);
  sub->add_option("--cells", o->cells, "Cells of a configuration, from yosys' stat -json: nx16_8x8=cells.json")
      ->allow_extra_args(false)
      ->check(tensor_file());
  sub->callback([o, &cx] { cx.action = [o, &cx] { return report(*o, cx); }; });
}

}  // namespace dlc::cli
