// dlc export-vectors: stimulus and expected writes of a compiled model as files for another test bench.
#include <fmt/format.h>

#include "dlc/io/pending_folder.h"
#include "tools/dlc/model.h"
#include "tools/dlc/vectors.h"

namespace dlc::cli {

namespace {

struct Options {
  std::string file, output;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
};

// What the folder has: those of an older model go, so that no test bench takes them for this one's.
bool is_partition(std::string_view name) { return name.starts_with("partition"); }

Result<int> export_vectors(const Options& o, Context& cx) {
  DLC_CHECK(PendingFolder::check(o.output, is_partition));
  DLC_TRY(const CompiledModel model, CompiledModel::read(o.file));
  DLC_TRY(const auto streams, need_streams(model, o.file, "vectors"));
  DLC_TRY(const auto inputs, inputs_for(model.inputs, model.symbols, {.file = o.file}, o.inputs, o.seed));
  DLC_TRY(const auto given, inputs_of_streams(model, streams, cx.plugins(), "", inputs));
  DLC_TRY(PendingFolder pending, PendingFolder::open(o.output, is_partition));
  Json list = Json::array();
  std::string text;
  for (size_t i = 0; i < streams.size(); ++i) {
    const std::string name = fmt::format("partition{}", streams[i].partition), folder = o.output + "/" + name;
    DLC_TRY(const VectorCounts counts, write_vectors(streams[i], given[i], pending / name));
    Json writes = Json::object();
    for (size_t q = 0; q < counts.writes.size(); ++q) writes[streams[i].hw().queues[q].name] = counts.writes[q];
    text += fmt::format("{}: {} instructions, writes {}\n", folder, streams[i].image().program.size(), writes.dump());
    list.push_back({{"folder", folder},
                    {"instructions", streams[i].image().program.size()},
                    {"memory_words", counts.memory_words},
                    {"registers", counts.registers},
                    {"results", counts.results},
                    {"writes", writes}});
  }
  DLC_CHECK(pending.replace());
  cx.print({{"model", o.file}, {"output", o.output}, {"partitions", list}}, text);
  return kOk;
}

}  // namespace

void add_export_vectors(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "export-vectors", "Write stimulus and expected writes for another test bench");
  sub->add_option("model", o->file, "A compiled model (.dlca)")->required()->check(file_name());
  sub->add_option("-o,--output", o->output, "The folder; a folder in it for each instruction stream")
      ->required()
      ->check(file_name());
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  add_seed(*sub, o->seed);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return export_vectors(*o, cx); }; });
}

}  // namespace dlc::cli
