// Ensembles of decision trees (ai.onnx.ml).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
  for (const int64_t r : t.roots) order.push_back({r, 0});
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

Result<Values> tree_ensemble(const NodeView& n) {
  DLC_TRY(const Tensor weights, n.attr_tensor("leaf_weights"));
  DLC_TRY(const auto targets, n.attr_ints("leaf_targetids", {}));
  const auto leaves = static_cast<int64_t>(targets.size());
  DLC_TRY(const int64_t count, n.attr_int("n_targets", 1));
  if (weights.elements() != leaves || leaves == 0)
    return n.error("'leaf_weights' and 'leaf_targetids' differ in length");
  constexpr int64_t kMostWeights = int64_t{1} << 26;
  if (count < 1 || leaves > kMostWeights / count) return n.error(fmt::format("attribute 'n_targets' is {}", count));
  DLC_TRY(Trees t, read_trees(n, leaves));
  DLC_TRY(const auto sets, read_members(n, t));
  DLC_TRY(const int64_t depth, depth_of(n, t, sets));
  expand_members(t, sets);
  const auto nodes = static_cast<int64_t>(t.size());
  for (auto* ids : {&t.left, &t.right})
    for (int64_t& id : *ids)
      if (id < 0) id = nodes - 1 - id;  // leaves come after the nodes

  const DType type = n.type(0).dtype;
  DLC_TRY(Tensor splits, Tensor::make(type, {nodes}));
  DLC_TRY(Tensor missing, Tensor::make(kBool, {nodes}));
  for (size_t i = 0; i < t.size(); ++i) {
    splits.set_double(static_cast<int64_t>(i), t.splits[i]);
    missing.set_int(static_cast<int64_t>(i), t.missing[i] ? 1 : 0);
  }
  DLC_TRY(Tensor weight, Tensor::make(type, {leaves, count}));
  DLC_TRY(Tensor has, Tensor::make(kBool, {leaves, count}));
  for (int64_t l = 0; l < leaves; ++l) {
    const int64_t k = targets[static_cast<size_t>(l)];
    if (k < 0 || k >= count) return n.error(fmt::format("'leaf_targetids' holds {}", k));
    weight.set_double(l * count + k, weights.get_double(l));
    has.set_int(l * count + k, 1);
  }
  Values in{n.in(0)};
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
  in.push_back(n.add_constant(std::move(weight)));
  in.push_back(n.add_constant(std::move(has)));
  DLC_TRY(const int64_t aggregate, n.attr_int("aggregate_function", 1));
  constexpr const char* kAggregates[] = {"average", "sum", "min", "max"};
  if (aggregate < 0 || aggregate > 3) return n.error(fmt::format("attribute 'aggregate_function' is {}", aggregate));
  DLC_TRY(const ValueId y,
          n.emit("tree_ensemble", in, {{"depth", Expr(depth)}, {"aggregate", kAggregates[aggregate]}}));
  DLC_TRY(const int64_t transform, n.attr_int("post_transform", 0));
  if (transform == 0) return Values{y};
  if (transform == 1) return n.emit_all("softmax", {y}, {{"axis", Expr(1)}});
  if (transform == 2) return n.emit_all("sigmoid", {y});
  return n.error(fmt::format("attribute 'post_transform' is {}", transform), "0, 1 and 2 are supported");
}

constexpr OpEntry kTable[] = {
    {"ai.onnx.ml", "TreeEnsemble", tree_ensemble, "t", "nodes_hitrates"},
};

}  // namespace

std::span<const OpEntry> tree_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
