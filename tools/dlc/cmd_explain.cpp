// dlc explain: where every node runs, which rule decided, and why not elsewhere.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

struct Explained {
  std::string node, op, device, kernel, how, rule, why, next;
  int line = 0;
};

// The description's rule for an op, if there is one with a reason.
const HwOpRule* rule_of(const HwDescription& hw, const std::string& op) {
  for (const HwOpRule& r : hw.ops)
    if (std::ranges::count(r.ops, op) > 0 || std::ranges::count(r.ops, std::string("*")) > 0) return &r;
  return nullptr;
}

// What the plugin's report says of each call of the partition: {"layers": [{"plan", "tile", "predicted_cycles"}]}, one
// for each call, or by the kernel's name {"kernels": [{"name", "notes": [...]}]}.
std::vector<std::string> notes_of(const CompiledPartition& part, const Program& program) {
  std::vector<std::string> out(program.calls.size());
  const Json report = Json::parse(part.report, nullptr, false);
  if (!report.is_object()) return out;
  const Json kernels = report.value("kernels", Json::array()), layers = report.value("layers", Json::array());
  for (size_t c = 0; c < out.size(); ++c) {
    if (layers.size() == out.size())
      out[c] = fmt::format("{}; tile {}; {} cycles predicted", layers[c].value("plan", ""), layers[c].value("tile", ""),
                           layers[c].value("predicted_cycles", int64_t{0}));
    for (const Json& k : kernels) {
      if (k.value("name", "") != program.kernels[static_cast<size_t>(program.calls[c].kernel)].name) continue;
      for (const Json& n : k.value("notes", Json::array()))
        if (n.is_string()) out[c] += (out[c].empty() ? "" : "; ") + n.get<std::string>();
    }
  }
  return out;
}

Result<int> explain(ModelOptions& o, Context& cx) {
  o.despite_problems = true;
  DLC_TRY(const Built b, build(o, cx));
  std::map<std::string, std::string> op_of;  // the model's node -> the op it became
  if (b.graph)
    for (const NodeId n : b.graph->order())
      for (const std::string& l : b.graph->node(n).locations) op_of.emplace(l, b.graph->node(n).op);
  std::vector<Explained> all;
  for (const CompiledPartition& part : b.model.partitions) {
    DLC_TRY(const Program program, parse_program(part.compiled_program(), "program"));
    const auto notes = notes_of(part, program);
    for (size_t c = 0; c < program.calls.size(); ++c) {
      const std::string& kernel = program.kernels[static_cast<size_t>(program.calls[c].kernel)].name;
      for (const std::string& node : program.calls[c].locations) {
        const auto op = op_of.find(node);
        Explained e;
        e.node = node;
        e.device = part.device;
        e.kernel = kernel;
        if (op != op_of.end()) e.op = op->second;
        e.how = notes[c];
        if (const HwOpRule* r = rule_of(b.hardware.description, e.op)) {
          e.rule =
              "ops: " + e.op + (r->place.empty() ? "" : " on " + r->place) + (r->unit.empty() ? "" : " by " + r->unit);
          e.why = r->why;
          e.line = r->loc.line;
        }
        all.push_back(std::move(e));
      }
    }
  }
  // A machine that takes only some nodes says so for each one.
  std::map<std::string, std::pair<std::string, std::string>> kernel_of;  // node -> kernel, how
  for (const Explained& e : all) kernel_of.emplace(e.node, std::pair(e.kernel, e.how));
  if (!b.placements.empty()) all.clear();
  for (const NodePlacement& p : b.placements) {
    const auto k = kernel_of.find(p.name);
    all.push_back({p.name, p.op, p.device, k != kernel_of.end() ? k->second.first : "",
                   k != kernel_of.end() ? k->second.second : "", p.rule, p.why, p.next, p.yaml_line});
  }
  Json nodes = Json::array();
  std::string text;
  for (const Explained& e : all) {
    nodes.push_back({{"node", e.node},
                     {"op", e.op},
                     {"device", e.device},
                     {"kernel", e.kernel},
                     {"how", e.how},
                     {"rule", e.rule},
                     {"why", e.why},
                     {"next", e.next},
                     {"line", e.line}});
    text += fmt::format("{:<40} {:<14} {:<6} {}", e.node, e.op, e.device, e.kernel);
    if (!e.how.empty()) text += ": " + e.how;
    if (!e.why.empty()) text += " (" + e.why;
    if (!e.why.empty()) text += e.line > 0 ? fmt::format(", {}:{})", b.hardware.file, e.line) : ")";
    text += "\n";
  }
  Json kept = Json::array();
  for (const NumericsReport::Kept& k : b.numerics.kept) {
    kept.push_back({{"node", k.name}, {"op", k.op}, {"why", k.why}});
    text += fmt::format("in float: {} ({}): {}\n", k.name, k.op, k.why);
  }
  Json problems = Json::array();
  for (const Diagnostic& d : b.problems) {
    problems.push_back({{"severity", d.severity == Severity::error ? "error" : "warning"},
                        {"node", d.loc.node},
                        {"line", d.loc.line},
                        {"message", d.message},
                        {"next", d.hint}});
    text += to_string(d) + "\n";
  }
  cx.print({{"model", o.file},
            {"hardware", b.model.hardware_name},
            {"nodes", nodes},
            {"in_float", kept},
            {"problems", problems}},
           text);
  return kOk;
}

}  // namespace

void add_explain(CLI::App& app, Context& cx) {
  auto o = std::make_shared<ModelOptions>();
  CLI::App* sub = add_command(app, cx, "explain", "Say where every node runs, and why");
  add_model_options(*sub, *o);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return explain(*o, cx); }; });
}

}  // namespace dlc::cli
