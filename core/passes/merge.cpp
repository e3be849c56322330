// The kernels of several nodes in one: tensors are joined by the values they are, statements follow each other.
#include "dlc/passes/merge.h"

#include <algorithm>
#include <set>

#include "core/passes/copy.h"
#include "dlc/kernel/names.h"
#include "dlc/kernel/normal_form.h"

namespace dlc {

namespace {

class Merger {
 public:
  Merger(const Graph& g, std::span<const NodeId> nodes, std::span<const std::vector<NodeId>> users)
      : g_(g), users_(users) {
    group_.nodes.assign(nodes.begin(), nodes.end());
  }

  Result<FusionGroup> run() {
    for (NodeId n : group_.nodes) {
      DLC_TRY(Kernel k, g_.kernel(n));
      find_tensors_that_stay(g_.node(n), k);
    }
    find_signature();
    declare(group_.inputs, Role::input);
    declare(group_.outputs, Role::output);
    for (NodeId n : group_.nodes) {
      const Node& node = g_.node(n);
      for (ValueId v : node.outputs)
        if (!tensor_of_.contains(v)) declare({v}, Role::temp);
      DLC_TRY(Kernel k, g_.kernel(n));
      if (!g_.is_extern(n)) {
        write_out_scalars(node, k);
        DLC_TRY(k, normalise(k));
        append(node, k);
      }
      kernel().name += (kernel().name.empty() ? "" : "_") + node.op;
      for (const auto& l : node.locations)
        if (std::ranges::find(kernel().locations, l) == kernel().locations.end()) kernel().locations.push_back(l);
    }
    return std::move(group_);
  }

 private:
  Kernel& kernel() { return group_.kernel; }

  void find_signature() {
    std::set<ValueId> made, read;
    for (NodeId n : group_.nodes)
      for (ValueId v : g_.node(n).outputs) made.insert(v);
    for (NodeId n : group_.nodes)
      for (ValueId v : g_.node(n).inputs)
        if (v != kNoValue && !made.contains(v) && !is_scalar(v) && read.insert(v).second) group_.inputs.push_back(v);
    for (NodeId n : group_.nodes)
      for (ValueId v : g_.node(n).outputs)
        if (seen_outside(v) || g_.node(n).outputs.size() > 1) group_.outputs.push_back(v);
  }

  bool seen_outside(ValueId v) const {
    if (std::ranges::find(g_.outputs, v) != g_.outputs.end()) return true;
    const auto& users = users_[static_cast<size_t>(v)];
    if (users.empty()) return true;  // a result nobody uses is still written
    return std::ranges::any_of(users,
                               [&](NodeId u) { return std::ranges::find(group_.nodes, u) == group_.nodes.end(); });
  }

  std::string tensor_name(const std::string& wish) {
    std::string name;
    for (char c : wish) name += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
    if (!is_identifier(name) || is_reserved_word(name)) name = "t" + name;
    std::string unique = name;
    for (int i = 1; !names_.insert(unique).second || g_.symbols.contains(unique); ++i)
      unique = name + "_" + std::to_string(i);
    return unique;
  }

  void declare(const std::vector<ValueId>& values, Role role) {
    for (ValueId v : values) {
      const Value& value = g_.value(v);
      const int t = static_cast<int>(kernel().tensors.size());
      const Role as = role == Role::input && value.constant ? Role::constant : role;
      kernel().tensors.push_back({tensor_name(value.name), value.type.dtype, value.type.shape, as, {}});
      tensor_of_[v] = t;
      if (role == Role::input) kernel().inputs.push_back(t);
      if (role == Role::output) kernel().outputs.push_back(t);
    }
  }

  // A constant of one element is a number in the kernel, not a tensor: a scale, a bound, an index. Not where something
  // reads beside it on purpose: concat asks `X[t - 1] ?: ...`.
  bool is_scalar(ValueId v) const {
    const auto& constant = g_.value(v).constant;
    return constant && constant->elements() == 1 && !stays_.contains(v);
  }

  void find_tensors_that_stay(const Node& node, const Kernel& k) {
    const auto check = [&](const Val& v) {
      walk(v, [&](const ValNode& n) {
        if (n.kind != ValKind::read) return;
        const bool first = std::ranges::all_of(n.args, [](const Val& a) { return val::as_expr(a) == Expr(0); });
        for (size_t i = 0; i < k.inputs.size() && i < node.inputs.size() && !first; ++i)
          if (k.inputs[i] == n.tensor) stays_.insert(node.inputs[i]);
      });
    };
    walk(k.body, [&](const Stmt& s) {
      if (s.kind != Stmt::Kind::assign) return;
      check(s.value);
      for (const Val& i : s.indices) check(i);
    });
  }

  void write_out_scalars(const Node& node, Kernel& k) const {
    std::map<int, Val> numbers;
    for (size_t i = 0; i < k.inputs.size() && i < node.inputs.size(); ++i)
      if (k.inputs[i] >= 0 && node.inputs[i] != kNoValue && is_scalar(node.inputs[i]))
        numbers[k.inputs[i]] = repeated_value(*g_.value(node.inputs[i]).constant);
    if (!numbers.empty())
      rewrite_values(k.body, [&](const Val& v) -> Val {
        auto number = v->kind == ValKind::read ? numbers.find(v->tensor) : numbers.end();
        return number == numbers.end() ? nullptr : number->second;
      });
  }

  void append(const Node& node, const Kernel& k) {
    std::vector<int> place(k.tensors.size(), -1);
    for (size_t i = 0; i < k.inputs.size() && i < node.inputs.size(); ++i)
      if (k.inputs[i] >= 0 && node.inputs[i] != kNoValue && tensor_of_.contains(node.inputs[i]))
        place[static_cast<size_t>(k.inputs[i])] = tensor_of_.at(node.inputs[i]);
    for (size_t i = 0; i < k.outputs.size(); ++i)
      place[static_cast<size_t>(k.outputs[i])] = tensor_of_.at(node.outputs[i]);
    for (size_t t = 0; t < place.size(); ++t) {
      if (place[t] >= 0 || k.tensors[t].role != Role::temp) continue;
      place[t] = static_cast<int>(kernel().tensors.size());
      KernelTensor temp = k.tensors[t];
      temp.name = tensor_name(temp.name);
      kernel().tensors.push_back(std::move(temp));
    }
    std::vector<Stmt> body = k.body;
    walk_assignments(body, [&](Stmt& s) { s.tensor = place[static_cast<size_t>(s.tensor)]; });
    rewrite_values(body, [&](const Val& v) -> Val {
      if (v->kind != ValKind::read) return nullptr;
      auto moved = std::make_shared<ValNode>(*v);
      moved->tensor = place[static_cast<size_t>(v->tensor)];
      return moved;
    });
    std::ranges::move(body, std::back_inserter(kernel().body));
    for (const Expr& e : k.assumptions)
      if (std::ranges::find(kernel().assumptions, e) == kernel().assumptions.end()) kernel().assumptions.push_back(e);
  }

  static void walk_assignments(std::vector<Stmt>& body, const std::function<void(Stmt&)>& f) {
    for (Stmt& s : body) {
      if (s.kind == Stmt::Kind::seq)
        walk_assignments(s.body, f);
      else
        f(s);
    }
  }

  static void rewrite_values(std::vector<Stmt>& body, const std::function<Val(const Val&)>& f) {
    walk_assignments(body, [&](Stmt& s) {
      s.value = rewrite(s.value, f);
      for (Val& i : s.indices) i = rewrite(i, f);
    });
  }

  const Graph& g_;
  std::span<const std::vector<NodeId>> users_;
  FusionGroup group_;
  std::set<ValueId> stays_;  // constants of one element that are tensors all the same
  std::map<ValueId, int> tensor_of_;
  std::set<std::string> names_;
};

}  // namespace

Result<FusionGroup> merge_nodes(const Graph& g, std::span<const NodeId> nodes) {
  return merge_nodes(g, nodes, g.all_users());
}

Result<FusionGroup> merge_nodes(const Graph& g, std::span<const NodeId> nodes,
                                std::span<const std::vector<NodeId>> users) {
  DLC_TRY(auto group, Merger(g, nodes, users).run());
  group.kernel = inline_temporaries(group.kernel, g.symbols);
  if (nodes.size() == 1) {
    group.is_extern = g.is_extern(nodes[0]);
    const auto copy = as_copy(g, nodes[0]);
    // Of its only input: one that copies because of what a constant beside it holds reads both.
    group.is_view = copy && is_reshape(*copy) && !g.value(copy->from).constant && group.inputs.size() == 1;
  }
  return group;
}

}  // namespace dlc
