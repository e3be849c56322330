// dlc opt: pass pipelines over graph text and .dlct files.
#include <fmt/format.h>

#include <sstream>

#include "dlc/io/file.h"
#include "dlc/passes/dlct.h"
#include "dlc/passes/pass.h"
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
  for (const PassInfo& p : graph_passes()) {
    passes.push_back({{"name", p.name}, {"summary", p.summary}});
    text += fmt::format("{:<16} {}\n", p.name, p.summary);
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
    const DlctOutcome outcome = run_case(c);
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
  DLC_TRY(Graph g, parse_graph(file.text(), o.file));
  DLC_CHECK(verify(g));
  DLC_TRY(const auto timings, run_passes(g, o.passes.empty() ? default_graph_pipeline() : split(o.passes)));
  Json passes = Json::array();
  for (const PassTiming& t : timings) passes.push_back({{"name", t.name}, {"ms", t.ms}});
  cx.print({{"file", o.file}, {"passes", passes}, {"text", print(g)}}, print(g));
  return kOk;
}

}  // namespace

void add_opt(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "opt", "Run passes over graph text or a .dlct file");
  sub->add_option("file", o->file, "Graph text, or .dlct");
  sub->add_option("--passes", o->passes, "Names with commas between; by default the pipeline of the compiler");
  sub->add_flag("--list", o->list, "List the passes");
  sub->callback([o, &cx] { cx.action = [o, &cx] { return opt(*o, cx); }; });
}

}  // namespace dlc::cli
