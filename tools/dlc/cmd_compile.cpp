// dlc [compile]: a model to an artifact, a library, or a text of one of its levels.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "dlc/io/file.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string output, emit;
  bool timing = false;
};

const std::vector<std::string> kFormats = {"dlca", "so", "o", "a"};

Json passes_json(const std::vector<PassTiming>& passes) {
  Json list = Json::array();
  for (const PassTiming& p : passes) {
    Json j{{"name", p.name}, {"ms", p.ms}};
    for (const auto& [key, n] : p.counts) j[key] = n;
    list.push_back(std::move(j));
  }
  return list;
}

Result<std::string> level_text(const Options& o, Context& cx) {
  if (o.emit == "graph") {
    DLC_TRY(const Graph g, optimised_graph(o.model, cx));
    return print(g);
  }
  DLC_TRY(const Built b, build(o.model, cx));
  std::string text;
  for (size_t i = 0; i < b.model.partitions.size(); ++i) {
    const CompiledPartition& p = b.model.partitions[i];
    if (o.emit == "program") text += p.program;
    if (o.emit == "kernel") {
      DLC_TRY(const Program program, program_of(p));
      for (const Kernel& k : program.kernels) text += print(k);
    }
    if (o.emit == "asm" || o.emit == "llvm") {
      const auto* listing = b.files[i].find("listing");
      if (p.device == "host") {  // compiled when it is loaded, so its program is all there is
        text += "# on the host\n" + p.program;
        continue;
      }
      if (listing == nullptr) return fail({}, fmt::format("plugin {} has no --emit={}", p.device, o.emit));
      text.append(reinterpret_cast<const char*>(listing->data()), listing->size());
    }
  }
  return text;
}

// How many nodes the machine took, where it did not take all.
std::string placement_text(const Built& b) {
  const auto host = std::ranges::count(b.placements, "host", &NodePlacement::device);
  if (host == 0) return "";
  return fmt::format("  {} of {} nodes on {}, {} on the host (dlc explain says why)\n", std::ssize(b.placements) - host,
                     b.placements.size(), b.model.hardware_name, host);
}

// The C header lies beside the library and has its name.
Result<> write_native(const Built& b, const std::string& output, const std::string& format) {
  if (b.files.size() != 1)
    return fail({}, fmt::format("a .{} holds one partition, this model has {}", format, b.files.size()),
                "write a .dlca");
  const auto* bytes = b.files[0].find("library");
  if (bytes == nullptr)
    return fail({}, fmt::format("plugin {} makes no .{}", b.model.partitions[0].device, format), "write a .dlca");
  const std::string stem = std::filesystem::path(output).replace_extension().string();
  std::vector<std::pair<std::string, const std::vector<std::byte>*>> files = {{output, bytes}};
  if (const auto* header = b.files[0].find("header")) files.emplace_back(stem + ".h", header);
  if (const auto* weights = b.files[0].find("weights")) files.emplace_back(stem + ".weights", weights);
  for (size_t i = 0; i < files.size(); ++i) {
    auto written = write_file(files[i].first, *files[i].second);
    if (written) continue;
    std::error_code ec;
    for (size_t k = 0; k < i; ++k) std::filesystem::remove(files[k].first, ec);
    return written;
  }
  return {};
}

// What cannot be written is said before the work.
Result<> check_writable(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  folder += folder.empty() ? "." : "/.";  // a file there is no folder
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return fail({path, 0, 0, {}}, fmt::format("cannot write: {}", std::strerror(errno)));
  std::error_code ec;
  if (std::filesystem::exists(path, ec) && !std::filesystem::is_regular_file(path, ec))
    return fail({path, 0, 0, {}}, "cannot write: is not a regular file");
  return {};
}

Result<int> compile(Options& o, Context& cx) {
  if (!o.emit.empty()) {
    if (o.emit == "asm" || o.emit == "llvm") o.model.listing = o.emit;
    if (!o.output.empty()) DLC_CHECK(check_writable(o.output));
    DLC_TRY(const std::string text, level_text(o, cx));
    if (o.output.empty())
      cx.print({{"emit", o.emit}, {"text", text}}, text);
    else
      DLC_CHECK(write_file(o.output, text));
    return kOk;
  }
  if (o.output.empty()) o.output = std::filesystem::path(o.model.file).stem().string() + ".dlca";
  std::string format = std::filesystem::path(o.output).extension().string();
  format = format.empty() ? "" : format.substr(1);
  if (std::ranges::count(kFormats, format) == 0)
    return fail({o.output, 0, 0, {}}, "the output's ending says what to write: .dlca, .so, .o or .a");
  DLC_CHECK(check_writable(o.output));
  o.model.format = format;
  if (format != "dlca") o.model.name = std::filesystem::path(o.output).stem().string();
  DLC_TRY(const Built b, build(o.model, cx));
  if (format == "dlca")
    DLC_CHECK(b.model.write(o.output));
  else
    DLC_CHECK(write_native(b, o.output, format));

  Json partitions = Json::array();
  for (const CompiledPartition& p : b.model.partitions) {
    size_t bytes = 0;
    for (const auto& [name, t] : p.weights) bytes += t.byte_size();
    Json report = Json::parse(p.report, nullptr, false);
    partitions.push_back({{"device", p.device},
                          {"inputs", p.inputs},
                          {"outputs", p.outputs},
                          {"weight_bytes", bytes},
                          {"executable_bytes", p.executable.size()},
                          {"report", report.is_discarded() ? Json() : std::move(report)}});
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
  sub->add_option("-o,--output", o->output, "What to write: .dlca, .so, .o or .a (with a C header beside it)");
  sub->add_option("--emit", o->emit, "Print one level instead")
      ->check(CLI::IsMember({"graph", "kernel", "program", "asm", "llvm"}));
  sub->add_option("--dump", o->model.dump, "A folder for every level after every pass");
  sub->add_flag("--timing", o->timing, "Print the milliseconds of every pass");
  sub->callback([o, &cx] { cx.action = [o, &cx] { return compile(*o, cx); }; });
}

}  // namespace dlc::cli
