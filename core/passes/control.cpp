// Control flow: what is known outside of a body goes into it, and what nobody needs of it vanishes.
//
//   %1 = if(@true, %x, @two) then {...}      ->   the nodes of `then`
//   %1 = if(%c, %x, @two) then {             ->   %1 = if(%c, %x) then {
//     in %x, in %y                                  in %x, const @y
//   %1 = if(%c, %x, %z) then {out %x}        ->   %1 = where(%c, %x, %z)
//     else {out %z}
//   %1 = loop(_, %c, %x) {carried = 1} body  ->   %x for %1, which no trip changes: an operand of the body
//     {in %i, in %v ... out %v}
//
// Bodies are changed after the graph around them, so that a constant gets as far in as it is used.
#include "dlc/graph/control.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/graph/names.h"
#include "core/passes/passes.h"
#include "dlc/graph/segments.h"

namespace dlc {

namespace {

void add_symbols(const TensorType& t, std::set<std::string>& out) {
  for (const Expr& d : t.shape)
    for (const auto& s : d.symbols()) out.insert(s);
}

// The symbols that a graph needs a value for; those of one node do not count.
std::set<std::string> used_symbols(const Graph& g, NodeId except = kNoNode) {
  std::set<std::string> used;
  for (const NodeId n : g.order()) {
    if (n == except) continue;
    for (const std::string& s : symbols_of(g, n)) used.insert(s);
    for (const ValueId v : g.node(n).inputs)
      if (v != kNoValue) add_symbols(g.value(v).type, used);
  }
  for (const ValueId v : g.outputs) add_symbols(g.value(v).type, used);
  return used;
}

// Whether a body can do without this input: nothing reads it, and no size is bound by it alone.
bool is_idle(const Graph& body, size_t input) {
  const ValueId v = body.inputs[input];
  if (!body.users(v).empty() || std::ranges::count(body.outputs, v) > 0) return false;
  std::set<std::string> shown;
  for (size_t i = 0; i < body.inputs.size(); ++i)
    if (i != input)
      for (const Expr& d : body.value(body.inputs[i]).type.shape)
        if (const auto s = d.as_symbol()) shown.emplace(*s);
  const auto used = used_symbols(body);
  for (const Expr& d : body.value(v).type.shape)
    if (const auto s = d.as_symbol(); s && used.contains(std::string(*s)) && !shown.contains(std::string(*s)))
      return false;
  return true;
}

// A node of control flow while it changes; what it was stays as it is until the new one takes its place.
struct Draft {
  Node node;
  std::vector<Graph> bodies;
  std::vector<ValueId> results;  // of the old node, those that the new one has
  bool changed = false;

  size_t carried() const { return node.op == "loop" ? static_cast<size_t>(carried_of(node)) : 0; }
  // The first operand that is the same for every trip. Both ops have one leading operand more than bodies have inputs
  // before theirs.
  size_t captured() const { return leading_operands(node.op) + carried(); }
  static size_t input_of(size_t operand) { return operand - 1; }
  size_t output_of(size_t result) const { return node.op == "loop" ? result + 1 : result; }
};

template <class T>
void erase_at(std::vector<T>& items, size_t i) {
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(i));
}

// Moves one item to the end.
template <class T>
void move_last(std::vector<T>& items, size_t i) {
  std::rotate(items.begin() + static_cast<std::ptrdiff_t>(i), items.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              items.end());
}

void drop_output(Graph& body, size_t output) {
  erase_at(body.outputs, output);
  erase_at(body.output_names, output);
}

class Control {
 public:
  Control(Graph& g, PassContext& context) : g_(g), context_(context) {}

  Result<> run() {
    for (const NodeId n : g_.order())
      if (!g_.node(n).bodies.empty()) DLC_CHECK(visit(n));
    return {};
  }

 private:
  Result<> visit(NodeId n) {
    DLC_TRY(const auto simpler, replacement(n));
    if (simpler) {
      for (size_t r = 0; r < simpler->size(); ++r) g_.replace_uses(g_.node(n).outputs[r], (*simpler)[r]);
      g_.erase(n);
      ++context_.counts["replaced"];
      return {};
    }
    Draft d{g_.node(n), {}, g_.node(n).outputs};
    for (const auto& body : d.node.bodies) d.bodies.push_back(*body);
    unchanged_state(d);
    constants(d);
    unused_results(n, d);
    for (Graph& body : d.bodies) DLC_CHECK(control(body, context_));
    idle_operands(d);
    return put(n, std::move(d));
  }

  Result<> put(NodeId n, Draft d) {
    d.node.bodies.clear();
    for (Graph& body : d.bodies) d.node.bodies.push_back(std::make_shared<const Graph>(std::move(body)));
    if (!d.changed) {
      g_.node(n).bodies = std::move(d.node.bodies);
      return {};
    }
    std::vector<TensorType> types;
    std::vector<std::string> names;
    for (const ValueId v : d.results) {
      types.push_back(g_.value(v).type);
      names.push_back(g_.value(v).name);
    }
    DLC_TRY(const NodeId made, g_.add_control(std::move(d.node), std::move(types)));
    for (size_t r = 0; r < d.results.size(); ++r) g_.replace_uses(d.results[r], g_.node(made).outputs[r]);
    g_.erase(n);
    detail::rename_results(g_, made, names);
    return {};
  }

  // A carried value that every trip hands on as it is is an operand like any other.
  void unchanged_state(Draft& d) {
    for (size_t c = d.carried(); c-- > 0;) {
      Graph& body = d.bodies[0];
      const ValueId initial = d.node.inputs[c + 2];
      const bool same = body.outputs[c + 1] == body.inputs[c + 1] &&
                        g_.value(d.results[c]).type == g_.value(initial).type && d.results.size() > 1;
      if (!same) continue;
      move_last(body.inputs, c + 1);
      drop_output(body, c + 1);
      move_last(d.node.inputs, c + 2);
      d.node.attrs["carried"] = Expr(carried_of(d.node) - 1);
      g_.replace_uses(d.results[c], initial);
      erase_at(d.results, c);
      d.changed = true;
      ++context_.counts["carried"];
    }
  }

  void constants(Draft& d) {
    for (size_t i = d.node.inputs.size(); i-- > d.captured();) {
      const auto& constant = g_.value(d.node.inputs[i]).constant;
      const auto fits = [&](const Graph& body) {  // so that its shape binds no symbol
        return body.value(body.inputs[Draft::input_of(i)]).type == type_of(*constant);
      };
      if (!constant || !std::ranges::all_of(d.bodies, fits)) continue;
      for (Graph& body : d.bodies) {
        const size_t input = Draft::input_of(i);
        Value& v = body.value(body.inputs[input]);
        v.constant = *constant;
        v.type = type_of(*constant);
        erase_at(body.inputs, input);
      }
      erase_at(d.node.inputs, i);
      d.changed = true;
      ++context_.counts["constants"];
    }
  }

  // Results that nobody uses, except carried ones, which the next trip may use.
  void unused_results(NodeId n, Draft& d) {
    std::set<ValueId> needed;  // to show a size
    if (const auto found = found_symbols(g_); !found.empty()) {
      const auto used = used_symbols(g_, n);
      for (const auto& [symbol, v] : found)
        if (used.contains(symbol)) needed.insert(v);
    }
    for (size_t r = d.results.size(); r-- > d.carried() && d.results.size() > 1;) {
      const ValueId v = d.results[r];
      if (needed.contains(v) || !g_.users(v).empty() || std::ranges::count(g_.outputs, v) > 0) continue;
      for (Graph& body : d.bodies) drop_output(body, d.output_of(r));
      erase_at(d.results, r);
      d.changed = true;
      ++context_.counts["results"];
    }
  }

  void idle_operands(Draft& d) {
    for (size_t i = d.node.inputs.size(); i-- > d.captured();) {
      const size_t input = Draft::input_of(i);
      if (!std::ranges::all_of(d.bodies, [&](const Graph& body) { return is_idle(body, input); })) continue;
      for (Graph& body : d.bodies) erase_at(body.inputs, input);
      erase_at(d.node.inputs, i);
      d.changed = true;
      ++context_.counts["operands"];
    }
  }

  // Values that stand for the node's results, without control flow.
  Result<std::optional<std::vector<ValueId>>> replacement(NodeId id) {
    const Node n = g_.node(id);
    if (n.op == "loop") return no_trips(n);
    const auto& condition = g_.value(n.inputs[0]).constant;
    if (condition) return branch(n, condition->get_int(0) != 0 ? 0 : 1);
    return selected(n);
  }

  std::optional<std::vector<ValueId>> no_trips(const Node& n) const {
    const auto is_at_most_0 = [&](ValueId v) {
      return v != kNoValue && g_.value(v).constant && g_.value(v).constant->get_int(0) <= 0;
    };
    const auto carried = static_cast<size_t>(carried_of(n));
    if ((!is_at_most_0(n.inputs[0]) && !is_at_most_0(n.inputs[1])) || n.outputs.size() != carried) return std::nullopt;
    std::vector<ValueId> initial(n.inputs.begin() + 2, n.inputs.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
    for (size_t c = 0; c < carried; ++c)
      if (g_.value(initial[c]).type != g_.value(n.outputs[c]).type) return std::nullopt;
    return initial;
  }

  // Both branches only hand on what they are given: one of each pair is taken.
  Result<std::optional<std::vector<ValueId>>> selected(const Node& n) {
    std::vector<std::array<ValueId, 2>> pairs(n.outputs.size());
    for (size_t b = 0; b < n.bodies.size(); ++b) {
      const Graph& body = *n.bodies[b];
      if (!body.order().empty()) return std::nullopt;
      for (size_t r = 0; r < n.outputs.size(); ++r) {
        if (body.value(body.outputs[r]).constant) {
          if (type_of(*body.value(body.outputs[r]).constant) != g_.value(n.outputs[r]).type) return std::nullopt;
          pairs[r][b] = kNoValue;
          continue;
        }
        const auto input = std::ranges::find(body.inputs, body.outputs[r]) - body.inputs.begin();
        pairs[r][b] = n.inputs[static_cast<size_t>(input) + 1];
        if (g_.value(pairs[r][b]).type != g_.value(n.outputs[r]).type) return std::nullopt;
      }
    }
    std::vector<ValueId> results;
    for (size_t r = 0; r < pairs.size(); ++r) {
      for (size_t b = 0; b < 2; ++b) {
        const Value& v = n.bodies[b]->value(n.bodies[b]->outputs[r]);
        if (v.constant) pairs[r][b] = g_.add_constant(v.name, *v.constant);
      }
      DLC_TRY(const NodeId where, g_.add_node("where", {n.inputs[0], pairs[r][0], pairs[r][1]}, {}, n.locations));
      results.push_back(g_.node(where).outputs[0]);
    }
    return results;
  }

  // The branch that is always taken, its nodes among those of the graph.
  Result<std::optional<std::vector<ValueId>>> branch(const Node& n, size_t taken) {
    const Graph& body = *n.bodies[taken];
    const std::vector<ValueId> operands(n.inputs.begin() + 1, n.inputs.end());
    const auto sizes = sizes_of(body, operands);
    if (!sizes) return std::nullopt;
    const auto here = [&](TensorType t) {
      for (Expr& e : t.shape) e = substitute(e, *sizes);
      return t;
    };
    for (size_t r = 0; r < n.outputs.size(); ++r)
      if (here(body.value(body.outputs[r]).type) != g_.value(n.outputs[r]).type) return std::nullopt;
    std::map<ValueId, ValueId> to{{kNoValue, kNoValue}};
    for (size_t i = 0; i < operands.size(); ++i) to[body.inputs[i]] = operands[i];
    const auto use = [&](ValueId v) {
      const auto [at, fresh] = to.try_emplace(v, kNoValue);
      if (fresh) at->second = g_.add_constant(body.value(v).name, *body.value(v).constant);
      return at->second;
    };
    for (const NodeId id : body.order()) {
      Node copy = body.node(id);
      std::ranges::transform(copy.inputs, copy.inputs.begin(), use);
      for (auto& [name, value] : copy.attrs) {
        if (auto* e = std::get_if<Expr>(&value)) *e = substitute(*e, *sizes);
        if (auto* list = std::get_if<std::vector<Expr>>(&value))
          for (Expr& e : *list) e = substitute(e, *sizes);
      }
      std::vector<TensorType> types;
      for (const ValueId v : copy.outputs) types.push_back(here(body.value(v).type));
      DLC_TRY(const NodeId made, copy.bodies.empty() ? g_.add_node(copy.op, copy.inputs, copy.attrs, copy.locations)
                                                     : g_.add_control(std::move(copy), std::move(types)));
      detail::rename_results(g_, made, detail::result_names(body, id));
      for (size_t r = 0; r < g_.node(made).outputs.size(); ++r) to[body.node(id).outputs[r]] = g_.node(made).outputs[r];
    }
    std::vector<ValueId> results;
    for (const ValueId v : body.outputs) results.push_back(use(v));
    return results;
  }

  // What a body's symbols are out here; nothing where that is not certain.
  std::optional<std::map<std::string, Expr, std::less<>>> sizes_of(const Graph& body,
                                                                   const std::vector<ValueId>& operands) {
    std::map<std::string, Expr, std::less<>> sizes;
    for (size_t i = 0; i < operands.size(); ++i) {
      const TensorType &inside = body.value(body.inputs[i]).type, &outside = g_.value(operands[i]).type;
      for (size_t d = 0; d < inside.shape.size(); ++d) {
        const auto s = inside.shape[d].as_symbol();
        if (!s) continue;
        const auto [known, fresh] = sizes.emplace(std::string(*s), outside.shape[d]);
        if (!fresh && known->second != outside.shape[d]) return std::nullopt;
      }
    }
    for (const auto& [name, range] : body.symbols) {
      if (const auto known = sizes.find(name); known != sizes.end()) {
        const Interval real = bounds(known->second, g_.symbols);
        const bool fits = real.lo >= range.bounds.lo && real.hi <= range.bounds.hi && range.divisible_by == 1;
        const bool itself = known->second.as_symbol() == name;
        if (!fits && !itself) return std::nullopt;
        continue;
      }
      std::string fresh = name;  // that the body finds out itself
      for (int i = 1; g_.symbols.contains(fresh); ++i) fresh = name + "_" + std::to_string(i);
      g_.symbols.emplace(fresh, Range(range.bounds.lo, range.bounds.hi));
      sizes.emplace(name, Expr::symbol(fresh));
    }
    return sizes;
  }

  Graph& g_;
  PassContext& context_;
};

}  // namespace

Result<> control(Graph& g, PassContext& context) { return Control(g, context).run(); }

}  // namespace dlc
