#include "dlc/numerics/commit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <ranges>
#include <set>

#include "core/numerics/rewriter.h"
#include "dlc/io/inside.h"

namespace dlc {

using namespace numerics;

namespace {

struct NamedRule {
  std::string_view op;
  std::string_view name;
  Rule rule;
};

// By the op whose result is quantised; what is in none of these may still be a table.
constexpr NamedRule kRules[] = {
    {"conv", "conv", commit_conv},
    {"conv_transpose", "conv", commit_conv_transpose},
    {"matmul", "product", commit_product},
    {"gemm", "product", commit_product},
    {"softmax", "softmax", commit_softmax},
    {"add", "sum", commit_sum},
    {"mul", "product of two", commit_mul},
    {"avg_pool", "pool", commit_pool},
    {"reduce_mean", "pool", commit_pool},
    {"concat", "concat", commit_concat},
    {"dequantize_linear", "requantize", commit_requantize},
    {"layer_norm", "layer norm", commit_layer_norm},
};

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  for (const auto& s : more)
    if (std::ranges::find(to, s) == to.end()) to.push_back(s);
}

// relu or clip with constant bounds, as bounds of the integer result.
bool fold_activation(const Rewriter& r, const Graph& g, const Node& n, Site& s) {
  const auto quantized = [&](double v) {
    const double q = std::nearbyint(v / s.scale) + static_cast<double>(s.zero);
    return static_cast<int64_t>(std::clamp(q, -128.0, 127.0));
  };
  if (n.op == "relu") {
    s.clamp.lo = std::max(s.clamp.lo, quantized(0));
    return true;
  }
  if (n.op != "clip") return false;
  Clamp c = s.clamp;
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == kNoValue) continue;
    const auto v = r.constant_values(n.inputs[i]);
    if (!v || v->size() != 1 || g.value(n.inputs[i]).type.shape.size() > 0) return false;
    if (std::isnan(v->front())) return false;
    const int64_t q = quantized(v->front());
    if (i == 1) c.lo = std::max(c.lo, q);
    if (i == 2) c.hi = std::min(c.hi, q);
  }
  if (c.lo > c.hi) return false;
  s.clamp = c;
  return true;
}

class Commit {
 public:
  Commit(Graph& g, NumericsReport& report) : g_(g), r_(g), report_(report) {}

  Result<> run() {
    for (const NodeId id : g_.order())
      for (const std::string& name : g_.node(id).locations) report_.ops[name].insert(g_.node(id).op);
    DLC_CHECK(commute_with_movement(r_));
    DLC_TRY(const bool joined, join_functions(r_));
    DLC_TRY(const bool folded, fold_linear(r_));
    if (joined || folded) sweep();  // what was in between
    r_.count_uses();
    for (const NodeId id : g_.order())
      if (!g_.node(id).erased && g_.node(id).op == "quantize_linear") DLC_CHECK(quantize(id));
    sweep();
    report_kept();
    return {};
  }

 private:
  Result<> quantize(NodeId id) {
    const ValueId data = g_.node(id).inputs[0];
    NodeId root = g_.value(data).producer;
    if (root == kNoNode) return {};  // a graph input: quantised on the host
    auto site = r_.site(id);
    if (!site) {
      why_[root] = "its quantize_linear has no positive constant scale for the whole s8 or u8 tensor";
      return {};
    }
    // Tried first with the activations folded into the clamp, then with the activation itself as the root.
    Site folded = *site;
    NodeId at = root;
    while (fold_activation(r_, g_, g_.node(at), folded)) {
      const ValueId in = g_.node(at).inputs[0];
      if (g_.value(in).producer == kNoNode || !r_.used_once(in) || is_output(in)) break;
      append(folded.locations, g_.node(at).locations);
      at = g_.value(in).producer;
    }
    folded.root = at;
    const auto rule = std::ranges::find(kRules, g_.node(at).op, &NamedRule::op);
    if (rule != std::end(kRules)) {
      std::vector<std::string> locations = g_.node(at).locations;
      append(locations, folded.locations);
      append(locations, g_.node(id).locations);
      folded.locations = std::move(locations);
      DLC_TRY(const auto y, taken(rule->rule(r_, folded)));
      if (y) return replace(id, *y, folded, rule->name);
      why_[at] = y.why();
    }
    site->root = root;
    site->locations = g_.node(root).locations;
    append(site->locations, g_.node(id).locations);
    DLC_TRY(const auto y, commit_table(r_, *site));
    if (y) return replace(id, *y, *site, "table");
    why_.emplace(root,
                 rule == std::end(kRules) ? fmt::format("no rule for {}, and {}", g_.node(root).op, y.why()) : y.why());
    return {};
  }

  // A recipe may not take what a rule gives it (a depth of 0): an error of that use, with its node, and so a reason to
  // leave the node in float. An error without a node is of the recipes.
  static RuleResult taken(RuleResult y) {
    if (y || y.error().empty() || y.error().diagnostics.front().loc.node.empty()) return y;
    return Refused{"the machine's recipe does not take it: " + std::string(y.error().message())};
  }

  bool is_output(ValueId v) const { return std::ranges::find(g_.outputs, v) != g_.outputs.end(); }

  // The integer result takes the place of the quantize_linear's, shifted back where somebody wants u8.
  Result<> replace(NodeId id, ValueId y, const Site& s, std::string_view rule) {
    const ValueId old = g_.node(id).outputs[0];
    const std::string name = g_.value(old).name;
    NumericsReport::Committed c;
    c.name = s.locations.empty() ? std::string(g_.node(s.root).op) : s.locations.front();
    c.rule = rule;
    c.value = y;
    c.reference = name;
    report_.committed.push_back(std::move(c));
    if (g_.value(old).type.dtype == kS8) {
      g_.replace_uses(old, y);
      return {};
    }
    DLC_TRY(const ValueId half, r_.scalar(kU8, 128, name + ".half"));
    DLC_TRY(const NodeId cast, g_.add_node("cast", {y}, {{"to", kU8}}, s.locations));
    DLC_TRY(const NodeId add, g_.add_node("add", {g_.node(cast).outputs[0], half}, {}, s.locations));
    const ValueId back = g_.node(add).outputs[0];
    g_.replace_uses(old, back);
    r_.remember(back, y);
    return {};
  }

  // Nodes whose results nothing uses any more.
  void sweep() {
    std::vector<int> uses;
    for (const auto& users : g_.all_users()) uses.push_back(static_cast<int>(users.size()));
    for (const ValueId v : g_.outputs) ++uses[static_cast<size_t>(v)];
    const auto order = g_.order();
    for (const NodeId id : order | std::views::reverse) {
      const Node& n = g_.node(id);
      if (std::ranges::any_of(n.outputs, [&](ValueId v) { return uses[static_cast<size_t>(v)] > 0; })) continue;
      const std::set<ValueId> inputs(n.inputs.begin(), n.inputs.end());
      for (const ValueId v : inputs)
        if (v != kNoValue) --uses[static_cast<size_t>(v)];
      g_.erase(id);
    }
  }

  void report_kept() {
    for (const NodeId id : g_.order()) {
      const Node& n = g_.node(id);
      if (n.op == "quantize_linear" || n.op == "dequantize_linear") continue;
      if (!std::ranges::any_of(n.outputs, [&](ValueId v) { return g_.value(v).type.dtype.is_float(); })) continue;
      const auto why = why_.find(id);
      report_.kept.push_back({n.locations.empty() ? n.op : n.locations.front(), n.op,
                              why != why_.end() ? why->second : std::string("its result is not quantised")});
    }
  }

  Graph& g_;
  Rewriter r_;
  NumericsReport& report_;
  std::map<NodeId, std::string> why_;
};

}  // namespace

Result<std::shared_ptr<const RecordSet>> load_recipes(const HwDescription& hw) {
  if (hw.recipes.empty())
    return fail({hw.file, 0, 0, {}}, fmt::format("'{}' names no recipes", hw.name),
                "add `recipes: FILE` with op records over the machine's defs (docs/numerics.md)");
  const std::filesystem::path folder = std::filesystem::path(hw.file).parent_path();
  const std::string path = (folder / hw.recipes).string();
  DLC_TRY(const MappedFile f, map_inside(folder.string(), hw.recipes, "recipes", hw.place("recipes")));
  constexpr size_t kMostBytes = 4 << 20;  // as of a description
  if (f.bytes.size() > kMostBytes) return fail({path, 0, 0, {}}, "the file is larger than 4 MiB");
  DLC_TRY(const RecordSet defs, RecordSet::parse(hw.defs_text, hw.file, &RecordSet::builtin()));
  DLC_TRY(RecordSet all, RecordSet::parse(f.text(), path, &defs));
  DLC_CHECK(check_recipes(all, path));
  return std::make_shared<const RecordSet>(std::move(all));
}

Result<NumericsReport> commit_numerics(Graph& g, std::shared_ptr<const RecordSet> recipes) {
  g.records = std::move(recipes);
  NumericsReport report;
  DLC_CHECK(Commit(g, report).run());
  DLC_CHECK(verify(g));
  return report;
}

}  // namespace dlc
