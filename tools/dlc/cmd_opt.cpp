// dlc opt: pass pipelines over the text of any level and over .dlct files.
#include <fmt/format.h>

#include <sstream>

#include "dlc/io/file.h"
#include "dlc/passes/pass.h"
#include "dlc/pipeline/dlct.h"
#include "dlc/pipeline/pipeline.h"
#include "tools/dlc/cli.h"

namespace dlc::cli {

namespace {

struct Options {
  std::string file, passes;
  bool list = false;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');)
    if (!word.empty()) out.push_back(word);
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
  cx.print({{"file", o.file}, {"cases", cases}}, print(file));
  return kOk;
}

Result<int> opt(const Options& o, Context& cx) {
  if (o.list) return list_passes(cx);
  if (o.file.empty()) return fail({}, "a file is wanted", "dlc opt --passes=fold,dce FILE, or dlc opt --list");
  DLC_TRY(const MappedFile file, map_file(o.file));
  if (o.file.ends_with(".dlct")) return opt_cases(o, cx, file.text());
  DLC_TRY(Ir ir, parse_ir(file.text(), o.file));
  DLC_CHECK(verify(ir));
  std::vector<std::string> names = split(o.passes);
  if (o.passes.empty() && std::holds_alternative<Graph>(ir)) names = default_graph_pipeline();
  DLC_TRY(const auto timings, run_pipeline(ir, names, cx.hw_options()));
  Json passes = Json::array();
  for (const PassTiming& t : timings) passes.push_back({{"name", t.name}, {"ms", t.ms}});
  cx.print({{"file", o.file}, {"passes", passes}, {"text", print(ir)}}, print(ir));
  return kOk;
}

}  // namespace

void add_opt(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "opt", "Run passes over the text of a level or a .dlct file");
  sub->add_option("file", o->file, "Text of a graph, a kernel or a program, or .dlct");
  sub->add_option("--passes", o->passes, "Names with commas between; by default the compiler's for a graph");
  sub->add_flag("--list", o->list, "List the passes");
  sub->callback([o, &cx] { cx.action = [o, &cx] { return opt(*o, cx); }; });
}

}  // namespace dlc::cli
