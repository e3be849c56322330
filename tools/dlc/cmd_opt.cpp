// dlc opt: pass pipelines over the text of any level and over .dlct files.
#include <fmt/format.h>

#include <algorithm>

#include "dlc/io/file.h"
#include "dlc/passes/pass.h"
#include "dlc/pipeline/dlct.h"
#include "dlc/pipeline/pipeline.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"

namespace dlc::cli {

namespace {

struct Options {
  std::string file, passes, weights, hw, output;
  bool list = false;
};

// At commas, but not in a pass's parentheses: commit_numerics(asic,R=8).
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  std::erase(out, "");
  return out;
}

Result<int> list_passes(Context& cx) {
  Json passes = Json::array();
  std::string text;
  for (const IrPass& p : all_passes()) {
    const std::string levels = p.takes == p.leaves ? std::string(to_string(p.takes))
                                                   : fmt::format("{} -> {}", to_string(p.takes), to_string(p.leaves));
    passes.push_back({{"name", p.name}, {"level", levels}, {"argument", p.argument}, {"summary", p.summary}});
    const std::string argument = p.argument.empty() ? "" : fmt::format("; ({})", p.argument);
    text += fmt::format("{:<18} {:<16} {}{}\n", p.name, levels, p.summary, argument);
  }
  cx.print({{"passes", passes}, {"default", default_graph_pipeline()}}, text);
  return kOk;
}

Result<int> finish(const Options& o, Context& cx, Json result, const std::string& text,
                   const NamedTensors& constants = {}) {
  if (o.output.empty()) {
    result["text"] = text;
    cx.print(result, text);
    return kOk;
  }
  DLC_TRY(const std::string weights, write_text(o.output, text, constants));
  result["output"] = o.output;
  result["weights"] = weights;
  cx.print(result, fmt::format("{} -> {}{}\n", o.file, o.output, weights.empty() ? "" : ", " + weights));
  return kOk;
}

// Each case of a .dlct file, with its own passes unless others are given.
Result<int> opt_cases(const Options& o, Context& cx, std::string_view text) {
  DLC_TRY(DlctFile file, parse_dlct(text, o.file));
  Json cases = Json::array();
  for (DlctCase& c : file.cases) {
    if (!o.passes.empty()) c.passes = split(o.passes);
    const DlctOutcome outcome = run_case(c, cx.hw_options());
    c.expected = outcome.text;
    c.expects_error = outcome.is_error;
    cases.push_back({{"name", c.name}, {"passes", c.passes}, {"error", outcome.is_error}, {"text", outcome.text}});
  }
  return finish(o, cx, {{"file", o.file}, {"level", "cases"}, {"cases", cases}}, print(file));
}

Result<Ir> read_ir(const Options& o, Context& cx, std::string_view text, const std::string& level) {
  if (level == "kernel") {
    DLC_TRY(Kernel k, parse_kernel(text, o.file));
    return Ir(std::move(k));
  }
  DLC_TRY(const NamedTensors weights, weights_of(o.weights, o.file));
  if (level == "program") {
    DLC_TRY(Program p, read_program(text, o.file, weights));
    return Ir(std::move(p));
  }
  std::shared_ptr<const RecordSet> records;
  if (!o.hw.empty()) {
    DLC_TRY(const HwDescription hw, load_hw(o.hw, cx.hw_options()));
    DLC_TRY(records, records_for(hw));
  }
  DLC_TRY(Graph g, read_graph(text, o.file, weights, std::move(records)));
  return Ir(std::move(g));
}

// The constants that the text of this level leaves out.
NamedTensors constants_of(const Ir& ir) {
  if (const auto* g = std::get_if<Graph>(&ir)) return outlined_constants(*g);
  if (const auto* p = std::get_if<Program>(&ir)) return p->weights;
  return {};
}

// A file may hold several texts of a level: kernels, or the programs of partitions.
Result<int> opt_texts(const Options& o, Context& cx, std::string_view text, const std::string& level) {
  std::vector<std::string> names = split(o.passes);
  if (o.passes.empty() && level == "graph") names = default_graph_pipeline();
  Json passes = Json::array();
  std::string printed;
  NamedTensors constants;
  for (const std::string_view one : split_texts(text)) {
    DLC_TRY(Ir ir, read_ir(o, cx, one, level));
    DLC_CHECK(verify(ir));
    DLC_TRY(const auto timings, run_pipeline(ir, names, cx.hw_options()));
    for (const PassTiming& t : timings) passes.push_back({{"name", t.name}, {"ms", t.ms}, {"counts", t.counts}});
    printed += print(ir);
    for (const auto& constant : constants_of(ir))
      if (std::ranges::count(constants, constant.first, &NamedTensors::value_type::first) == 0)
        constants.push_back(constant);
  }
  return finish(o, cx, {{"file", o.file}, {"level", level}, {"passes", passes}}, printed, constants);
}

Result<int> opt(const Options& o, Context& cx) {
  if (o.list) return list_passes(cx);
  DLC_CHECK(check_passes(split(o.passes)));  // in a case it would be one that expects an error
  if (!o.output.empty()) {
    const auto inputs = files_of({.file = o.file, .hw = o.hw, .weights = o.weights});
    DLC_CHECK(check_output(o.output, inputs));
    DLC_CHECK(check_output(weights_beside(o.output), inputs));
  }
  DLC_TRY(const MappedFile file, map_file(o.file));
  const std::string level = level_of(file.text());
  if (!level.empty()) return opt_texts(o, cx, file.text(), level);
  if (o.file.ends_with(".dlct")) return opt_cases(o, cx, file.text());
  return fail({o.file, 0, 0, {}}, "is no text of dlc: it begins with none of dlc.graph, dlc.kernel, dlc.program",
              "dlc MODEL --emit=graph -o FILE writes one");
}

}  // namespace

void add_opt(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "opt", "Run passes over the text of a level or a .dlct file");
  sub->add_option("file", o->file, "Graph, kernel or program text, or cases (.dlct)")->check(file_name());
  sub->add_option("--passes", o->passes, "Names with commas between; by default the compiler's for a graph");
  sub->add_option("--weights", o->weights, "Constants of the text (.npz); by default FILE.weights.npz")
      ->check(file_name());
  sub->add_option("--hw", o->hw, "The machine whose integer ops the graph has")->check(hw_argument());
  sub->add_option("-o,--output", o->output, "The file to write, with its constants beside it")->check(file_name());
  sub->add_flag("--list", o->list, "List the passes");
  sub->callback([o, &cx] {
    if (o->file.empty() && !o->list) throw CLI::RequiredError("file (or --list)");
    const bool alone = o->file.empty() && o->passes.empty() && o->weights.empty() && o->hw.empty() && o->output.empty();
    if (o->list && !alone) throw CLI::ValidationError("--list is alone: it takes no file and no other option");
    cx.action = [o, &cx] { return opt(*o, cx); };
  });
}

}  // namespace dlc::cli
