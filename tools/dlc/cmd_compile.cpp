// dlc [compile]: a model to an artifact, a library, or a text of one of its levels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

#include "dlc/io/pending_file.h"
#include "dlc/plugin/reference.h"
#include "tools/dlc/build.h"
#include "tools/dlc/json.h"
#include "tools/dlc/output.h"

namespace dlc::cli {

namespace {

// Texts that a plugin makes.
bool is_listing(const std::string& emit) { return emit == "asm" || emit == "llvm" || emit == "cuda"; }

struct Options {
  ModelOptions model;
  std::string output, emit;
  bool timing = false;
};

const std::vector<std::string> kFormats = {"dlca", "so", "o", "a"};

// "so" of "net.so".
std::string ending(const std::string& file) {
  const std::string dotted = std::filesystem::path(file).extension().string();
  return dotted.empty() ? "" : dotted.substr(1);
}

Json passes_json(const std::vector<PassTiming>& passes) {
  Json list = Json::array();
  for (const PassTiming& p : passes) {
    list.push_back({{"name", p.name}, {"ms", p.ms}, {"counts", p.counts}});
  }
  return list;
}

// One level of the model as text, and the constants that the text leaves out.
struct Level {
  std::string text;
  NamedTensors constants;
};

Result<Level> level_of(const Options& o, Context& cx) {
  Level level;
  if (o.emit == "graph") {
    DLC_TRY(const Graph g, optimised_graph(o.model, cx));
    return Level{print(g), outlined_constants(g)};
  }
  DLC_TRY(const Built b, build(o.model, cx));
  const auto partitions = all_partitions(b.model);
  for (size_t i = 0; i < b.programs.size(); ++i) {
    if (partitions[i]->is_control()) {
      level.text += fmt::format("# then {}; its bodies follow\n", partitions[i]->control.op);
      continue;
    }
    if (partitions[i]->device == kReferenceDevice) {
      level.text += "# then the references of extern ops\n";
      continue;
    }
    if (o.emit == "program") {
      level.text += print(b.programs[i]);
      for (const auto& weight : b.programs[i].weights)  // one that two partitions share is written once
        if (std::ranges::count(level.constants, weight.first, &NamedTensors::value_type::first) == 0)
          level.constants.push_back(weight);
    }
    if (o.emit == "kernel")
      for (const Kernel& k : b.programs[i].kernels) level.text += print(k);
    if (is_listing(o.emit)) {
      const std::string& device = partitions[i]->device;
      const auto* listing = b.files[i].find("listing");
      if (device == "host") {  // compiled when it is loaded, so its program is all there is
        level.text += "# on the host\n" + print(b.programs[i]);
        continue;
      }
      if (listing == nullptr)
        return fail({}, fmt::format("plugin {} has no --emit={}", device, o.emit), "--emit=program");
      level.text.append(reinterpret_cast<const char*>(listing->data()), listing->size());
    }
  }
  return level;
}

// How many nodes the machine took, where it did not take all.
std::string placement_text(const Built& b) {
  const auto host = std::ranges::count(b.placements, "host", &NodePlacement::device);
  if (host == 0) return "";
  return fmt::format("  {} of {} nodes on {}, {} on the host (dlc explain says why)\n", std::ssize(b.placements) - host,
                     b.placements.size(), b.model.hardware_name, host);
}

Result<int> emit(Options& o, Context& cx) {
  if (!o.output.empty()) {
    if (std::ranges::count(kFormats, ending(o.output)) > 0)
      return fail({o.output, 0, 0, {}},
                  fmt::format("--emit={} writes text, and .{} is no text's name", o.emit, ending(o.output)),
                  "leave --emit out, or give the output another name");
    DLC_CHECK(check_output(o.output, files_of(o.model)));
    DLC_CHECK(check_output(weights_beside(o.output), files_of(o.model)));
  }
  if (is_listing(o.emit)) o.model.listing = o.emit;
  DLC_TRY(const Level level, level_of(o, cx));
  if (o.output.empty()) {
    cx.print({{"model", o.model.file}, {"emit", o.emit}, {"text", level.text}}, level.text);
    return kOk;
  }
  DLC_TRY(const std::string weights, write_text(o.output, level.text, level.constants));
  cx.print({{"model", o.model.file}, {"emit", o.emit}, {"output", o.output}, {"weights", weights}},
           fmt::format("{} -> {}{}\n", o.model.file, o.output, weights.empty() ? "" : ", " + weights));
  return kOk;
}

std::vector<std::string> native_files(const std::string& output) {
  const std::string stem = std::filesystem::path(output).replace_extension().string();
  return {output, stem + ".h", stem + ".weights"};
}

// A library as the plugin makes it: the C header lies beside it and has its name, large weights too.
class LibraryFiles final : public MemoryStore {
 public:
  explicit LibraryFiles(const std::string& output) : names_(native_files(output)) {}

  Result<bool> take(const std::string& name, std::span<const std::byte> bytes) override {
    if (pending_.contains(name)) return one_partition();
    return take_at(name, 0, bytes);
  }
  Result<bool> take_at(const std::string& name, uint64_t offset, std::span<const std::byte> bytes) override {
    const auto which = std::ranges::find(kFiles, name) - kFiles.begin();
    if (which == std::ssize(kFiles)) return false;
    auto at = pending_.find(name);
    if (at == pending_.end()) {
      DLC_TRY(PendingFile file, PendingFile::open(names_[static_cast<size_t>(which)]));
      at = pending_.emplace(name, std::move(file)).first;
    }
    PendingFile& file = at->second;
    DLC_CHECK(offset == file.size() ? file.append(bytes) : file.write_at(offset, bytes));
    return true;
  }
  // None is replaced before all are on the disk.
  Result<> finish(const Built& b) {
    if (b.files.size() != 1) return one_partition();
    if (!pending_.contains(kFiles[0]))
      return fail({names_[0], 0, 0, {}}, fmt::format("plugin {} makes no such file", b.model.partitions[0].device),
                  "write a .dlca");
    for (auto& [name, f] : pending_) DLC_CHECK(f.flush());
    for (auto& [name, f] : pending_) DLC_CHECK(f.replace());
    return {};
  }

 private:
  std::unexpected<Error> one_partition() const {
    return fail({names_[0], 0, 0, {}}, "a library holds one partition, this model has several", "write a .dlca");
  }

  static constexpr std::array<std::string_view, 3> kFiles = {"library", "header", "weights"};
  std::vector<std::string> names_;
  std::map<std::string, PendingFile, std::less<>> pending_;  // by the plugin's names
};

Result<int> compile(Options& o, Context& cx) {
  if (!o.emit.empty()) return emit(o, cx);
  if (o.output.empty()) o.output = std::filesystem::path(o.model.file).stem().string() + ".dlca";
  const std::string format = ending(o.output);
  if (std::ranges::count(kFormats, format) == 0)
    return fail({o.output, 0, 0, {}}, "the output's ending says what to write: .dlca, .so, .o or .a");
  for (const std::string& file : format == "dlca" ? std::vector{o.output} : native_files(o.output))
    DLC_CHECK(check_output(file, files_of(o.model)));
  o.model.format = format;
  if (format != "dlca") o.model.name = std::filesystem::path(o.output).stem().string();
  // Large results are written while the rest is compiled.
  std::optional<ModelFile> artifact;
  LibraryFiles library(o.output);
  if (format == "dlca") {
    DLC_TRY(ModelFile file, ModelFile::create(o.output));
    artifact.emplace(std::move(file));
  }
  DLC_TRY(Built b, build(o.model, artifact ? static_cast<ResultStore&>(*artifact) : library, cx));
  const Stopwatch writing;
  DLC_CHECK(artifact ? artifact->finish(b.model) : library.finish(b));
  b.passes.push_back({"write", writing.ms(), {}});
  b.compile_ms += writing.ms();

  Json partitions = Json::array();
  for (const CompiledPartition& p : b.model.partitions) {
    size_t bytes = 0;
    for (const auto& [name, t] : p.weights) bytes += t.byte_size();
    partitions.push_back({{"device", p.device},
                          {"inputs", p.inputs},
                          {"outputs", p.outputs},
                          {"weight_bytes", bytes},
                          {"executable_bytes", p.executable.size()},
                          {"report", object_of(p.report)}});
  }
  const Json result{{"model", o.model.file},
                    {"output", o.output},
                    {"hardware", b.model.hardware_name},
                    {"arch_hash", b.model.arch_hash},
                    {"inputs", ports_json(b.model.inputs)},
                    {"outputs", ports_json(b.model.outputs)},
                    {"import_ms", b.import_ms},
                    {"compile_ms", b.compile_ms},
                    {"passes", passes_json(b.passes)},
                    {"partitions", partitions},
                    {"nodes", b.placements.size()},
                    {"nodes_on_host", std::ranges::count(b.placements, "host", &NodePlacement::device)}};
  std::string text =
      fmt::format("{} -> {} for {}, {:.0f} ms\n", o.model.file, o.output, b.model.hardware_name, b.compile_ms);
  text += placement_text(b);
  if (o.timing) {
    text += fmt::format("  {:<20} {:>9.2f} ms\n", "import", b.import_ms);
    for (const PassTiming& p : b.passes) {
      text += fmt::format("  {:<20} {:>9.2f} ms", p.name, p.ms);
      for (const auto& [key, n] : p.counts) text += fmt::format("  {} {}", key, n);
      text += "\n";
    }
  }
  cx.print(result, text);
  return kOk;
}

}  // namespace

void add_compile(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "compile", "Compile a model (the command when none is given)");
  add_model_options(*sub, o->model);
  sub->get_option("model")->description("The model: .onnx, graph or program text");
  sub->add_option("-o,--output", o->output, "What to write: .dlca, .so, .o or .a (with a C header beside it)")
      ->check(file_name());
  sub->add_option("--emit", o->emit, "Print one level instead")
      ->check(CLI::IsMember({"graph", "kernel", "program", "asm", "llvm", "cuda"}));
  sub->add_option("--dump", o->model.dump, "A folder for every level after every pass")->check(file_name());
  sub->add_flag("--timing", o->timing, "Print the milliseconds of every pass");
  sub->callback([o, &cx] { cx.action = [o, &cx] { return compile(*o, cx); }; });
}

}  // namespace dlc::cli
