#include "tools/dlc/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "dlc/plugin/reference.h"
#include "tools/dlc/json.h"

namespace dlc::cli {

namespace {

constexpr const char* kFolded = "folded";  // the rule of nodes that no kernel is called after

// What the plugin's report says of each call of the partition: {"layers": [{"plan", "tile", "predicted_cycles"}]}, one
// for each call, or by the kernel's name {"kernels": [{"name", "notes": [...]}]}.
std::vector<std::string> notes_of(const CompiledPartition& part, const Program& program) {
  std::vector<std::string> out(program.calls.size());
  const Json report = object_of(part.report);
  const Json kernels = objects_in(report, "kernels"), layers = objects_in(report, "layers");
  for (size_t c = 0; c < out.size(); ++c) {
    if (layers.size() == out.size())
      out[c] = fmt::format("{}; tile {}; {} cycles predicted", field<std::string>(layers[c], "plan"),
                           field<std::string>(layers[c], "tile"), field<int64_t>(layers[c], "predicted_cycles"));
    for (const Json& k : kernels) {
      if (field<std::string>(k, "name") != program.kernels[static_cast<size_t>(program.calls[c].kernel)].name) continue;
      if (!k.contains("notes")) continue;
      std::set<std::string> said;  // of several statements the same may be true
      for (const Json& n : k["notes"])
        if (n.is_string() && said.insert(n.get<std::string>()).second)
          out[c] += (out[c].empty() ? "" : "; ") + n.get<std::string>();
    }
  }
  return out;
}

// A call of the compiled model: a kernel that came from some nodes.
struct Compiled {
  std::string device, kernel, how;
};

// By the model's node. A node may have become several calls: the last one makes its result.
Result<std::map<std::string, Compiled>> compiled_nodes(const Built& b, std::vector<std::string>& order) {
  std::map<std::string, Compiled> out;
  for (const CompiledPartition* p : all_partitions(b.model)) {
    const CompiledPartition& part = *p;
    if (part.is_control()) {
      const std::string node = field<std::string>(object_of(part.report), "node");
      if (node.empty()) continue;
      if (!out.contains(node)) order.push_back(node);
      out[node] = {part.device, "",
                   part.control.op == "if" ? "the branch that a run takes runs, the other does not"
                                           : "a run decides how often its body runs"};
      continue;
    }
    if (part.device == kReferenceDevice) {
      DLC_TRY(const Graph g, reference_graph(part));
      for (const NodeId n : g.order())
        for (const std::string& node : g.node(n).locations) {
          if (!out.contains(node)) order.push_back(node);
          out[node] = {part.device, "", "no index expression states it: its C++ reference runs"};
        }
      continue;
    }
    DLC_TRY(const Program program, parse_program(part.compiled_program(), "program"));
    const auto notes = notes_of(part, program);
    for (size_t c = 0; c < program.calls.size(); ++c)
      for (const std::string& node : program.calls[c].locations) {
        if (!out.contains(node)) order.push_back(node);
        out[node] = {part.device, program.kernels[static_cast<size_t>(program.calls[c].kernel)].name, notes[c]};
      }
  }
  return out;
}

Json node_json(const std::string& node, const std::string& op, const std::string& device, const Compiled& c,
               const std::string& rule, const std::string& why, const std::string& hint, int line) {
  return {{"node", node}, {"op", op},   {"device", device}, {"kernel", c.kernel}, {"how", c.how},
          {"rule", rule}, {"why", why}, {"hint", hint},     {"line", line}};
}

// As the model has its nodes; what it has not comes behind.
void in_order_of(const Origins& model, Json& nodes) {
  std::map<std::string, size_t> place;
  for (const std::string& name : model.names()) place.try_emplace(name, place.size());
  const auto at = [&](const Json& n) {
    const auto known = place.find(n["node"].get<std::string>());
    return known == place.end() ? place.size() : known->second;
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](const Json& a, const Json& b) { return at(a) < at(b); });
}

// Whether it is the name of a node in a body.
bool is_in_body(const Graph& g, const std::string& name) {
  for (const NodeId n : g.order())
    for (const auto& body : g.node(n).bodies)
      for (const NodeId m : body->order())
        if (std::ranges::count(body->node(m).locations, name) > 0 || is_in_body(*body, name)) return true;
  return false;
}

// The ops of the model's nodes, those in bodies too.
void add_ops(const Graph& g, std::map<std::string, std::string>& op_of) {
  for (const NodeId n : g.order()) {
    for (const std::string& l : g.node(n).locations) op_of.emplace(l, g.node(n).op);
    for (const auto& body : g.node(n).bodies) add_ops(*body, op_of);
  }
}

}  // namespace

Result<Json> explanation(const Built& b) {
  std::vector<std::string> order;
  DLC_TRY(const auto compiled, compiled_nodes(b, order));
  const auto compiled_as = [&](const std::string& node) {
    const auto c = compiled.find(node);
    return c == compiled.end() ? Compiled{} : c->second;
  };
  Json nodes = Json::array(), in_float = Json::array(), problems = Json::array();
  // A machine that takes only some nodes says so for each one, not for those in bodies; one that takes the whole model
  // has no rules: those would have cut it.
  std::set<std::string> placed;
  for (const NodePlacement& p : b.placements) {
    nodes.push_back(node_json(p.name, p.op, p.device, compiled_as(p.name), p.rule, p.why, p.next, p.yaml_line));
    placed.insert(p.name);
  }
  std::map<std::string, std::string> op_of;  // of the model's nodes
  if (b.graph) add_ops(*b.graph, op_of);
  for (const std::string& node : order) {
    if (!placed.empty() && (placed.contains(node) || !is_in_body(*b.graph, node))) continue;
    const Compiled c = compiled_as(node);
    nodes.push_back(node_json(node, op_of[node], c.device, c, "", "", "", 0));
  }
  // Nodes that no kernel is called after: they are part of another, or nothing is left to do.
  std::map<std::string, std::string> device_of;
  std::set<std::string> called;
  for (const Json& n : nodes) device_of[*called.insert(n["node"]).first] = n["device"];
  if (b.graph)
    for (const Origins::Fate& f : b.origins.fates(*b.graph, called)) {
      const auto into = device_of.find(f.into);
      nodes.push_back(node_json(f.node, f.op, into == device_of.end() ? "" : into->second, {}, kFolded, f.why, "", 0));
    }
  in_order_of(b.origins, nodes);
  for (Json& n : nodes) n["times"] = std::max<int64_t>(b.origins.times(n["node"].get<std::string>()), 1);
  for (const NumericsReport::Kept& k : b.numerics.kept)
    in_float.push_back({{"node", k.name}, {"op", k.op}, {"why", k.why}});
  for (const Diagnostic& d : b.problems) problems.push_back(to_json(d));
  return Json{{"description", b.hardware.file},
              {"nodes", std::move(nodes)},
              {"in_float", std::move(in_float)},
              {"problems", std::move(problems)}};
}

std::string explanation_text(const Json& explanation) {
  const auto text_of = field<std::string>;
  std::string text;
  const Json nodes = objects_in(explanation, "nodes");
  size_t widest = 4;
  for (const Json& n : nodes) widest = std::clamp(text_of(n, "node").size(), widest, size_t{48});
  std::set<std::string> told;  // kernels: what the plugin says of one is said at its first node
  for (const Json& n : nodes) {
    const std::string rule = text_of(n, "rule"), why = text_of(n, "why"), how = text_of(n, "how");
    const bool is_folded = rule == kFolded;
    std::string where = is_folded ? why : text_of(n, "kernel");
    if (where.empty())
      where = how.empty() ? rule : how;
    else if (!is_folded && !how.empty() && told.insert(text_of(n, "device") + " " + where).second)
      where += ": " + how;
    if (const auto times = field<int64_t>(n, "times"); times > 1)
      where += fmt::format(" (the same in {} calls)", times);
    text += fmt::format("{:<{}} {:<18} {:<6} {}\n", text_of(n, "node"), widest, text_of(n, "op"), text_of(n, "device"),
                        where);
    if (!is_folded && !why.empty()) {
      const auto line = field<int64_t>(n, "line");
      text += fmt::format("    {}{}{}\n", why.starts_with(rule) ? "" : rule + ": ", why,
                          line > 0 ? fmt::format(" ({}:{})", text_of(explanation, "description"), line) : "");
    }
    if (const std::string hint = text_of(n, "hint"); !hint.empty()) text += fmt::format("    next: {}\n", hint);
  }
  for (const Json& n : objects_in(explanation, "in_float"))
    text += fmt::format("in float: {} ({}): {}\n", text_of(n, "node"), text_of(n, "op"), text_of(n, "why"));
  for (const Json& p : objects_in(explanation, "problems")) {
    text += fmt::format("{}: {}", text_of(p, "severity"), text_of(p, "message"));
    if (const std::string node = text_of(p, "node"); !node.empty()) text += fmt::format(" (node {})", node);
    if (const std::string hint = text_of(p, "hint"); !hint.empty()) text += "\n  next: " + hint;
    text += "\n";
  }
  return text;
}

}  // namespace dlc::cli
