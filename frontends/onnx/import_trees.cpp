// Ensembles of decision trees (ai.onnx.ml).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

constexpr int64_t kMember = 6;  // the mode of a node that asks whether its feature is one of several values

// The nodes of all trees. `left` and `right` name a node, or a leaf as -1 - its number.
struct Trees {
  std::vector<int64_t> roots, features, modes, left, right;
  std::vector<double> splits;
  std::vector<bool> missing;

  size_t size() const { return modes.size(); }
  int64_t add(size_t like, int64_t mode, double split, int64_t no) {
    features.push_back(features[like]);
    modes.push_back(mode);
    splits.push_back(split);
    missing.push_back(missing[like]);
    left.push_back(left[like]);
    right.push_back(no);
    return static_cast<int64_t>(size()) - 1;
  }
};

Result<std::vector<double>> doubles(const NodeView& n, const char* name) {
  DLC_TRY(const Tensor t, n.attr_tensor(name));
  std::vector<double> v;
  for (int64_t i = 0; i < t.elements(); ++i) v.push_back(t.get_double(i));
  return v;
}

Result<Trees> read_trees(const NodeView& n, int64_t leaves) {
  Trees t;
  DLC_TRY(t.roots, n.attr_ints("tree_roots", {}));
  DLC_TRY(t.features, n.attr_ints("nodes_featureids", {}));
  DLC_TRY(t.left, n.attr_ints("nodes_truenodeids", {}));
  DLC_TRY(t.right, n.attr_ints("nodes_falsenodeids", {}));
  DLC_TRY(const auto true_leaf, n.attr_ints("nodes_trueleafs", {}));
  DLC_TRY(const auto false_leaf, n.attr_ints("nodes_falseleafs", {}));
  DLC_TRY(t.splits, doubles(n, "nodes_splits"));
  DLC_TRY(const auto modes, doubles(n, "nodes_modes"));
  t.modes.assign(modes.begin(), modes.end());
  const size_t count = t.modes.size();
  DLC_TRY(const auto missing, n.attr_ints("nodes_missing_value_tracks_true", std::vector<int64_t>(count, 0)));
  for (const int64_t m : missing) t.missing.push_back(m != 0);
  for (const size_t size : {t.features.size(), t.left.size(), t.right.size(), true_leaf.size(), false_leaf.size(),
                            t.splits.size(), missing.size()})
    if (size != count || count == 0) return n.error("the attributes 'nodes_…' differ in length");
  const auto nodes = static_cast<int64_t>(count);
  for (size_t i = 0; i < count; ++i) {
    if (t.modes[i] < 0 || t.modes[i] > kMember) return n.error(fmt::format("'nodes_modes' holds {}", t.modes[i]));
    for (const auto& [ids, leaf] : {std::pair(&t.left, &true_leaf), std::pair(&t.right, &false_leaf)}) {
      int64_t& id = (*ids)[i];
      const bool is_leaf = (*leaf)[i] != 0;
      if (id < 0 || id >= (is_leaf ? leaves : nodes)) return n.error(fmt::format("node {} leads to {}", i, id));
      if (is_leaf) id = -1 - id;
    }
  }
  for (const int64_t r : t.roots)
    if (r < 0 || r >= nodes) return n.error(fmt::format("'tree_roots' holds {}", r));
  return t;
}

// The values that each node asks membership of; none for other nodes.
Result<std::vector<std::vector<double>>> read_members(const NodeView& n, const Trees& t) {
  std::vector<double> members;
  if (n.has_attr("membership_values")) {
    DLC_TRY(members, doubles(n, "membership_values"));
  }
  std::vector<std::vector<double>> sets(t.size());
  auto at = members.begin();
  for (size_t i = 0; i < t.size(); ++i) {
    if (t.modes[i] != kMember) continue;
    const auto end = std::find_if(at, members.end(), [](double v) { return std::isnan(v); });
    if (end == members.end()) return n.error("'membership_values' has too few sets");
    sets[i].assign(at, end);
    at = end + 1;
  }
  return sets;
}

// How many steps the longest way to a leaf has, where a set counts its members. Every node is reached on one way.
Result<int64_t> depth_of(const NodeView& n, const Trees& t, const std::vector<std::vector<double>>& sets) {
  struct Reached {
    int64_t node, steps;
  };
  std::vector<Reached> order;
  for (const int64_t r : t.roots)
    if (r >= 0) order.push_back({r, 0});
  std::vector<bool> seen(t.size(), false);
  int64_t depth = 0;
  for (size_t at = 0; at < order.size(); ++at) {
    const auto i = static_cast<size_t>(order[at].node);
    if (seen[i]) return n.error(fmt::format("node {} is reached on two ways", i));
    seen[i] = true;
    const int64_t steps = order[at].steps + static_cast<int64_t>(std::max<size_t>(sets[i].size(), 1));
    depth = std::max(depth, steps);
    for (const int64_t to : {t.left[i], t.right[i]})
      if (to >= 0) order.push_back({to, steps});
  }
  return depth;
}

// A node that asks for membership becomes a chain of nodes that ask for equality.
void expand_members(Trees& t, const std::vector<std::vector<double>>& sets) {
  constexpr int64_t kEqual = 4;
  for (size_t i = 0; i < sets.size(); ++i) {
    if (t.modes[i] != kMember) continue;
    t.modes[i] = kEqual;
    t.splits[i] = sets[i].empty() ? NAN : sets[i][0];  // nothing equals NaN
    for (size_t m = sets[i].size(); m-- > 1;) t.right[i] = t.add(i, kEqual, sets[i][m], t.right[i]);
  }
}

Result<ValueId> list(const NodeView& n, const std::vector<int64_t>& v) {
  DLC_TRY(Tensor t, Tensor::make(kS64, {static_cast<int64_t>(v.size())}));
  for (size_t i = 0; i < v.size(); ++i) t.set_int(static_cast<int64_t>(i), v[i]);
  return n.add_constant(std::move(t));
}

// What each leaf gives to each target, if anything: [leaves, targets].
struct Leaves {
  Tensor weight, has;

  static Result<Leaves> make(const NodeView& n, DType type, int64_t leaves, int64_t targets) {
    constexpr int64_t kMostWeights = int64_t{1} << 26;
    if (targets < 1 || leaves < 1 || leaves > kMostWeights / targets)
      return n.error(fmt::format("{} leaves of {} targets are not supported", leaves, targets));
    Leaves l;
    DLC_TRY(l.weight, Tensor::make(type, {leaves, targets}));
    DLC_TRY(l.has, Tensor::make(kBool, {leaves, targets}));
    return l;
  }
  void add(int64_t leaf, int64_t target, double w) {
    const int64_t at = leaf * weight.shape()[1] + target;
    weight.set_double(at, weight.get_double(at) + w);
    has.set_int(at, 1);
  }
};

// The sums (or means, ...) of the leaves that `x` reaches.
Result<ValueId> aggregated(const NodeView& n, ValueId x, Trees t, Leaves leaves, const std::string& aggregate) {
  DLC_TRY(const auto sets, read_members(n, t));
  DLC_TRY(const int64_t depth, depth_of(n, t, sets));
  expand_members(t, sets);
  const auto nodes = static_cast<int64_t>(t.size());
  for (auto* ids : {&t.roots, &t.left, &t.right})
    for (int64_t& id : *ids)
      if (id < 0) id = nodes - 1 - id;  // leaves come after the nodes
  DLC_TRY(Tensor splits, Tensor::make(leaves.weight.dtype(), {nodes}));
  DLC_TRY(Tensor missing, Tensor::make(kBool, {nodes}));
  for (size_t i = 0; i < t.size(); ++i) {
    splits.set_double(static_cast<int64_t>(i), t.splits[i]);
    missing.set_int(static_cast<int64_t>(i), t.missing[i] ? 1 : 0);
  }
  Values in{x};
  for (const auto* v : {&t.roots, &t.features}) {
    DLC_TRY(const ValueId id, list(n, *v));
    in.push_back(id);
  }
  in.push_back(n.add_constant(std::move(splits)));
  DLC_TRY(const ValueId modes, list(n, t.modes));
  in.push_back(modes);
  in.push_back(n.add_constant(std::move(missing)));
  for (const auto* v : {&t.left, &t.right}) {
    DLC_TRY(const ValueId id, list(n, *v));
    in.push_back(id);
  }
  in.push_back(n.add_constant(std::move(leaves.weight)));
  in.push_back(n.add_constant(std::move(leaves.has)));
  return n.emit("tree_ensemble", in, {{"depth", Expr(depth)}, {"aggregate", aggregate}});
}

Result<Values> tree_ensemble(const NodeView& n) {
  DLC_TRY(const Tensor weights, n.attr_tensor("leaf_weights"));
  DLC_TRY(const auto targets, n.attr_ints("leaf_targetids", {}));
  const auto leaves = static_cast<int64_t>(targets.size());
  DLC_TRY(const int64_t count, n.attr_int("n_targets", 1));
  if (weights.elements() != leaves || leaves == 0)
    return n.error("'leaf_weights' and 'leaf_targetids' differ in length");
  DLC_TRY(Trees t, read_trees(n, leaves));
  DLC_TRY(Leaves l, Leaves::make(n, n.type(0).dtype, leaves, count));
  for (int64_t i = 0; i < leaves; ++i) {
    const int64_t k = targets[static_cast<size_t>(i)];
    if (k < 0 || k >= count) return n.error(fmt::format("'leaf_targetids' holds {}", k));
    l.add(i, k, weights.get_double(i));
  }
  DLC_TRY(const int64_t aggregate, n.attr_int("aggregate_function", 1));
  constexpr const char* kAggregates[] = {"average", "sum", "min", "max"};
  if (aggregate < 0 || aggregate > 3) return n.error(fmt::format("attribute 'aggregate_function' is {}", aggregate));
  DLC_TRY(const ValueId y, aggregated(n, n.in(0), std::move(t), std::move(l), kAggregates[aggregate]));
  DLC_TRY(const int64_t transform, n.attr_int("post_transform", 0));
  if (transform == 0) return Values{y};
  if (transform == 1) return n.emit_all("softmax", {y}, {{"axis", Expr(1)}});
  if (transform == 2) return n.emit_all("sigmoid", {y});
  return n.error(fmt::format("attribute 'post_transform' is {}", transform), "0, 1 and 2 are supported");
}

// ---- the older forms, whose leaves are nodes among the others

// Numbers of an attribute, or of the tensor that newer files have instead.
Result<std::vector<double>> numbers(const NodeView& n, const std::string& name) {
  if (n.has_attr(name + "_as_tensor")) return doubles(n, (name + "_as_tensor").c_str());
  return n.attr_floats(name, std::vector<double>{});
}

struct Forest {
  Trees trees;
  Leaves leaves;
  std::vector<double> weights;        // as they are written
  std::vector<int64_t> weight_class;  // and what each of them is for
};

// `kind`: the weights are those of a "target" or of a "class".
Result<Forest> read_forest(const NodeView& n, const std::string& kind, int64_t targets) {
  DLC_TRY(const auto tree, n.attr_ints("nodes_treeids", {}));
  DLC_TRY(const auto id, n.attr_ints("nodes_nodeids", {}));
  DLC_TRY(const auto feature, n.attr_ints("nodes_featureids", {}));
  DLC_TRY(const auto mode, n.attr_strings("nodes_modes", {}));
  DLC_TRY(const auto split, numbers(n, "nodes_values"));
  DLC_TRY(const auto yes, n.attr_ints("nodes_truenodeids", {}));
  DLC_TRY(const auto no, n.attr_ints("nodes_falsenodeids", {}));
  const size_t count = tree.size();
  DLC_TRY(const auto missing, n.attr_ints("nodes_missing_value_tracks_true", std::vector<int64_t>(count, 0)));
  for (const size_t size :
       {id.size(), feature.size(), mode.size(), split.size(), yes.size(), no.size(), missing.size()})
    if (size != count || count == 0) return n.error("the attributes 'nodes_…' differ in length");

  // Where each node is: among the inner nodes, or a leaf as -1 - its number.
  constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  std::map<std::pair<int64_t, int64_t>, int64_t> place;
  int64_t inner = 0, leaves = 0;
  for (size_t i = 0; i < count; ++i)
    if (!place.emplace(std::pair(tree[i], id[i]), mode[i] == "LEAF" ? -1 - leaves++ : inner++).second)
      return n.error(fmt::format("node {} of tree {} is given twice", id[i], tree[i]));
  if (inner == 0) return n.error("trees without a branch are not supported");
  Forest f;
  std::set<int64_t> children;
  for (size_t i = 0; i < count; ++i) {
    if (mode[i] == "LEAF") continue;
    const auto* const m = std::ranges::find(kModes, mode[i]);
    if (m == std::end(kModes)) return n.error(fmt::format("'nodes_modes' holds '{}'", mode[i]));
    f.trees.features.push_back(feature[i]);
    f.trees.modes.push_back(m - std::begin(kModes));
    f.trees.splits.push_back(split[i]);
    f.trees.missing.push_back(missing[i] != 0);
    for (const auto& [ids, to] : {std::pair(&yes, &f.trees.left), std::pair(&no, &f.trees.right)}) {
      const auto at = place.find({tree[i], (*ids)[i]});
      if (at == place.end()) return n.error(fmt::format("node {} of tree {} leads to {}", id[i], tree[i], (*ids)[i]));
      to->push_back(at->second);
      children.insert(at->second);
    }
  }
  std::set<int64_t> rooted;
  for (size_t i = 0; i < count; ++i) {
    const int64_t at = place[{tree[i], id[i]}];
    if (children.contains(at)) continue;
    if (!rooted.insert(tree[i]).second) return n.error(fmt::format("tree {} has two roots", tree[i]));
    f.trees.roots.push_back(at);
  }

  DLC_TRY(const auto of_tree, n.attr_ints(kind + "_treeids", {}));
  DLC_TRY(const auto of_node, n.attr_ints(kind + "_nodeids", {}));
  DLC_TRY(f.weight_class, n.attr_ints(kind + "_ids", {}));
  DLC_TRY(f.weights, numbers(n, kind + "_weights"));
  if (of_tree.size() != f.weights.size() || of_node.size() != f.weights.size() ||
      f.weight_class.size() != f.weights.size())
    return n.error(fmt::format("the attributes '{}_…' differ in length", kind));
  DLC_TRY(f.leaves, Leaves::make(n, n.type(0).dtype == kF64 ? kF64 : kF32, leaves, targets));
  for (size_t i = 0; i < f.weights.size(); ++i) {
    const auto at = place.find({of_tree[i], of_node[i]});
    if (at == place.end() || at->second >= 0)
      return n.error(fmt::format("node {} of tree {} is no leaf, but has a weight", of_node[i], of_tree[i]));
    if (f.weight_class[i] < 0 || f.weight_class[i] >= targets)
      return n.error(fmt::format("'{}_ids' holds {}", kind, f.weight_class[i]));
    f.leaves.add(-1 - at->second, f.weight_class[i], f.weights[i]);
  }
  return f;
}

// The trees' results in f32, with what is added to each target.
Result<ValueId> grown(const NodeView& n, Forest f, const std::string& aggregate, const std::vector<double>& base) {
  ValueId x = n.in(0);
  const DType type = f.leaves.weight.dtype();
  if (n.type(0).dtype != type) {
    DLC_TRY(x, n.emit("cast", {x}, {{"to", type}}));
  }
  DLC_TRY(ValueId y, aggregated(n, x, std::move(f.trees), std::move(f.leaves), aggregate));
  if (type != kF32) {
    DLC_TRY(y, n.emit("cast", {y}, {{"to", kF32}}));
  }
  if (base.empty()) return y;
  DLC_TRY(Tensor t, Tensor::make(kF32, {static_cast<int64_t>(base.size())}));
  for (size_t i = 0; i < base.size(); ++i) t.set_double(static_cast<int64_t>(i), base[i]);
  return n.emit("add", {y, n.add_constant(std::move(t))});
}

Result<Values> tree_regressor(const NodeView& n) {
  DLC_TRY(const int64_t targets, n.attr_int("n_targets", 1));
  DLC_TRY(Forest f, read_forest(n, "target", targets));
  DLC_TRY(const auto base, numbers(n, "base_values"));
  if (!base.empty() && static_cast<int64_t>(base.size()) != targets)
    return n.error(fmt::format("{} base values are given for {} targets", base.size(), targets));
  DLC_TRY(std::string aggregate, n.attr_string("aggregate_function", "SUM"));
  std::ranges::transform(aggregate, aggregate.begin(), ::tolower);
  DLC_TRY(const ValueId y, grown(n, std::move(f), aggregate, base));
  DLC_TRY(const ValueId z, post_transformed(n, y));
  return Values{z};
}

// The label of the largest score, and the scores. Of two classes of which weights name one alone, that one's score
// decides both: above 1/2 where weights are not negative, above 0 otherwise.
Result<Values> tree_classifier(const NodeView& n) {
  if (!n.has_attr("classlabels_int64s")) return n.error("the labels must be integers", "strings are not supported");
  DLC_TRY(const auto labels, n.attr_ints("classlabels_int64s", {}));
  const auto count = static_cast<int64_t>(labels.size());
  DLC_TRY(Forest f, read_forest(n, "class", count));
  DLC_TRY(auto base, numbers(n, "base_values"));
  const std::set<int64_t> named(f.weight_class.begin(), f.weight_class.end());
  const bool positive = std::ranges::all_of(f.weights, [](double w) { return w >= 0; });
  const bool binary = count == 2 && named.size() == 1;
  if (binary && base.size() == 1) base.insert(*named.begin() == 0 ? base.end() : base.begin(), 0.0);
  if ((!base.empty() && static_cast<int64_t>(base.size()) != count) || (binary && !base.empty() && *named.begin() != 0))
    return n.error(fmt::format("{} base values do not fit the classes", base.size()));
  DLC_TRY(const ValueId y, grown(n, std::move(f), "sum", base));
  DLC_TRY(const Tensor names, Tensor::from<int64_t>(kS64, {count}, labels));
  const ValueId table = n.add_constant(names);
  const auto label_at = [&](ValueId at) { return n.emit("gather", {table, at}, {{"axis", Expr(0)}}); };
  if (!binary) {
    DLC_TRY(const ValueId best, n.emit("arg_max", {y}, {{"axis", std::vector<Expr>{1}}, {"keepdims", Expr(0)}}));
    DLC_TRY(const ValueId label, label_at(best));
    DLC_TRY(const ValueId scores, post_transformed(n, y));
    return Values{label, scores};
  }
  DLC_TRY(const ValueId which, list(n, {*named.begin()}));
  DLC_TRY(const ValueId score, n.emit("gather", {y, which}, {{"axis", Expr(1)}}));
  DLC_TRY(const ValueId limit, n.scalar(kF32, positive ? 0.5 : 0.0));
  DLC_TRY(ValueId second, n.emit("greater", {score, limit}));
  DLC_TRY(second, n.emit("cast", {second}, {{"to", kS64}}));
  DLC_TRY(second, n.emit("squeeze", {second}, {{"axes", std::vector<Expr>{1}}}));
  DLC_TRY(const ValueId label, label_at(second));
  if (*named.begin() == 1) {
    DLC_TRY(const ValueId scores, post_transformed(n, y));
    return Values{label, scores};
  }
  DLC_TRY(const std::string kind, n.attr_string("post_transform", "NONE"));
  const bool logistic = kind == "LOGISTIC";
  ValueId other = kNoValue;
  if (positive && !logistic) {
    DLC_TRY(const ValueId one, n.scalar(kF32, 1));
    DLC_TRY(other, n.emit("sub", {one, score}));
  } else {
    DLC_TRY(other, n.emit("neg", {score}));
  }
  DLC_TRY(const ValueId both, n.emit("concat", {other, score}, {{"axis", Expr(1)}}));
  if (!logistic) return Values{label, both};
  DLC_TRY(const ValueId scores, n.emit("sigmoid", {both}));
  return Values{label, scores};
}

constexpr OpEntry kTable[] = {
    {"ai.onnx.ml", "TreeEnsemble", tree_ensemble, "t", "nodes_hitrates"},
    {"ai.onnx.ml", "TreeEnsembleRegressor", tree_regressor, "t", "nodes_hitrates nodes_hitrates_as_tensor"},
    {"ai.onnx.ml", "TreeEnsembleClassifier", tree_classifier, "t",
     "nodes_hitrates nodes_hitrates_as_tensor post_transform"},
};

}  // namespace

std::span<const OpEntry> tree_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
