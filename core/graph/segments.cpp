#include "dlc/graph/segments.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/graph/names.h"

namespace dlc {

namespace {

using Kind = Segment::Kind;

Kind kind_of(const Graph& g, NodeId n) {
  return !g.node(n).bodies.empty() ? Kind::control : g.is_extern(n) ? Kind::reference : Kind::program;
}

void add_symbols(const Expr& e, std::set<std::string>& out) {
  for (const auto& s : e.symbols()) out.insert(s);
}

// Symbols that a tensor of this type gives a value by its shape alone.
void add_bound(const TensorType& t, std::set<std::string>& out) {
  for (const Expr& d : t.shape)
    if (const auto s = d.as_symbol()) out.insert(std::string(*s));
}

class Cutter {
 public:
  explicit Cutter(const Graph& g) : g_(g), segment_of_(g.node_count(), -1) {
    for (const ValueId v : g.inputs) note(v);
    for (auto& [symbol, v] : found_symbols(g)) source_.emplace(symbol, v);
  }

  Result<std::vector<Segment>> run() {
    DLC_CHECK(assign());
    std::vector<std::vector<NodeId>> nodes(static_cast<size_t>(segments_));
    for (const NodeId n : g_.order()) nodes[static_cast<size_t>(segment_of_[static_cast<size_t>(n)])].push_back(n);
    // Inputs and constants that are outputs are handed on by the first segment, or by one more if that is control flow.
    const bool hands_on = std::ranges::any_of(g_.outputs, [&](ValueId v) { return g_.value(v).producer == kNoNode; });
    if (hands_on && !nodes[0].empty() && kind_of(g_, nodes[0][0]) == Kind::control) {
      nodes.emplace_back();
      ++segments_;
    }
    // What each segment needs from before it: operands, and values that bind its symbols.
    std::vector<std::set<ValueId>> needs(nodes.size());
    for (size_t s = 0; s < nodes.size(); ++s) needs[s] = needs_of(nodes[s], static_cast<int>(s));
    std::vector<Segment> out;
    for (size_t s = 0; s < nodes.size(); ++s) {
      std::set<ValueId> wanted;
      for (size_t later = s + 1; later < nodes.size(); ++later) wanted.insert(needs[later].begin(), needs[later].end());
      DLC_TRY(Segment segment, build(nodes[s], needs[s], wanted));
      out.push_back(std::move(segment));
    }
    return out;
  }

 private:
  void note(ValueId v) {
    std::set<std::string> bound;
    add_bound(g_.value(v).type, bound);
    for (const std::string& s : bound) source_.emplace(s, v);
  }

  std::vector<NodeId> producers(NodeId n) const {
    std::vector<NodeId> out;
    for (const ValueId v : g_.node(n).inputs)
      if (v != kNoValue && g_.value(v).producer != kNoNode) out.push_back(g_.value(v).producer);
    for (const std::string& s : symbols_of(g_, n)) {
      const auto it = source_.find(s);
      if (it == source_.end()) continue;
      const NodeId p = g_.value(it->second).producer;
      if (p != kNoNode && p != n) out.push_back(p);
    }
    return out;
  }

  // As many nodes of one kind as are ready, then as many of the next; of control flow one.
  Result<> assign() {
    std::vector<NodeId> left = g_.order();
    constexpr std::array kKinds = {Kind::program, Kind::reference, Kind::control};
    for (size_t turn = 0; !left.empty(); ++turn) {
      const Kind kind = kKinds[turn % kKinds.size()];
      std::vector<NodeId> rest;
      bool moved = false;
      for (const NodeId n : left) {
        const auto needs = producers(n);
        const bool ready = std::ranges::all_of(needs, [&](NodeId p) {
          const int s = segment_of_[static_cast<size_t>(p)];
          return s >= 0 && (s < segments_ || kind_of(g_, p) == kind_of(g_, n));
        });
        if (ready && kind_of(g_, n) == kind && !(moved && kind == Kind::control)) {
          segment_of_[static_cast<size_t>(n)] = segments_;
          moved = true;
        } else {
          rest.push_back(n);
        }
      }
      if (!moved && rest.size() == left.size() && ++stuck_ > kKinds.size())
        return fail({}, "the nodes wait for each other");
      if (moved) {
        stuck_ = 0;
        ++segments_;
      }
      left = std::move(rest);
    }
    segments_ = std::max(segments_, 1);
    return {};
  }

  std::set<ValueId> needs_of(const std::vector<NodeId>& nodes, int segment) const {
    std::set<ValueId> needs;
    std::set<std::string> used, bound;
    const auto use = [&](ValueId v) {
      needs.insert(v);
      add_bound(g_.value(v).type, bound);
    };
    for (const NodeId n : nodes) {
      for (const ValueId v : g_.node(n).inputs) {
        if (v == kNoValue || g_.value(v).constant) continue;
        const NodeId p = g_.value(v).producer;
        if (p == kNoNode || segment_of_[static_cast<size_t>(p)] != segment) use(v);
        for (const Expr& d : g_.value(v).type.shape) add_symbols(d, used);
      }
      for (const std::string& s : symbols_of(g_, n)) used.insert(s);
      if (g_.is_extern(n))
        for (const ValueId v : g_.node(n).outputs) add_bound(g_.value(v).type, bound);
    }
    for (const std::string& s : used)
      if (const auto it = source_.find(s); !bound.contains(s) && it != source_.end()) use(it->second);
    return needs;
  }

  Result<Segment> build(const std::vector<NodeId>& nodes, const std::set<ValueId>& needs,
                        const std::set<ValueId>& wanted) const {
    Segment segment;
    segment.kind = nodes.empty() ? Kind::program : kind_of(g_, nodes[0]);
    Graph& g = segment.graph;
    g.name = g_.name;
    g.symbols = g_.symbols;
    g.records = g_.records;
    std::map<ValueId, ValueId> to{{kNoValue, kNoValue}};
    const auto constant = [&](ValueId v) { to[v] = g.add_constant(g_.value(v).name, *g_.value(v).constant); };
    for (const ValueId v : g_.inputs)  // in the model's order
      if (needs.contains(v) || segments_ == 1) to[v] = g.add_input(g_.value(v).name, g_.value(v).type);
    for (const ValueId v : needs)
      if (!to.contains(v)) to[v] = g.add_input(g_.value(v).name, g_.value(v).type);
    for (const NodeId n : nodes) {
      const Node& old = g_.node(n);
      std::vector<ValueId> inputs;
      for (const ValueId v : old.inputs) {
        if (!to.contains(v)) constant(v);
        inputs.push_back(to.at(v));
      }
      DLC_TRY(const NodeId made, g.add_copy(g_, n, std::move(inputs)));
      detail::rename_results(g, made, detail::result_names(g_, n));
      for (size_t i = 0; i < old.outputs.size(); ++i) to[old.outputs[i]] = g.node(made).outputs[i];
    }
    outputs(segment, nodes, wanted, to, constant);
    return segment;
  }

  // Results that later segments read, and results of the model.
  template <class Constant>
  void outputs(Segment& segment, const std::vector<NodeId>& nodes, const std::set<ValueId>& wanted,
               std::map<ValueId, ValueId>& to, const Constant& constant) const {
    Graph& g = segment.graph;
    const auto add = [&](ValueId v, const std::string& name) {  // one name is one value
      if (std::ranges::count(g.output_names, name) > 0) return;
      g.outputs.push_back(to.at(v));
      g.output_names.push_back(name);
    };
    const bool whole = segments_ == 1;
    const bool first =
        nodes.empty() || (segment_of_[static_cast<size_t>(nodes[0])] == 0 && segment.kind != Kind::control);
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      const ValueId v = g_.outputs[i];
      const NodeId p = g_.value(v).producer;
      const bool own = p != kNoNode && std::ranges::count(nodes, p) > 0;
      if (!own && !(p == kNoNode && (whole || first))) continue;
      if (!to.contains(v) && g_.value(v).constant) constant(v);
      if (!to.contains(v)) to[v] = g.add_input(g_.value(v).name, g_.value(v).type);
      if (whole) {
        g.outputs.push_back(to.at(v));
        g.output_names.push_back(g_.output_names[i]);
      } else {
        add(v, g_.output_names[i]);
      }
    }
    for (const NodeId n : nodes)
      for (const ValueId v : g_.node(n).outputs)
        if (wanted.contains(v)) add(v, g_.value(v).name);
  }

  const Graph& g_;
  std::vector<int> segment_of_;
  int segments_ = 0;
  size_t stuck_ = 0;
  std::map<std::string, ValueId, std::less<>> source_;  // of symbols
};

}  // namespace

std::map<std::string, ValueId, std::less<>> found_symbols(const Graph& g) {
  std::set<std::string> known;
  for (const ValueId v : g.inputs)
    for (const Expr& d : g.value(v).type.shape) add_symbols(d, known);
  std::map<std::string, ValueId, std::less<>> out;
  for (const NodeId n : g.order()) {
    if (!g.is_extern(n)) continue;
    for (const ValueId v : g.node(n).outputs) {
      std::set<std::string> bound;
      add_bound(g.value(v).type, bound);
      for (const std::string& s : bound)
        if (!known.contains(s)) out.emplace(s, v);
    }
  }
  return out;
}

std::vector<NodeId> order_by_sizes(const Graph& g) {
  const std::vector<NodeId> order = g.order();
  const auto found = found_symbols(g);
  if (found.empty()) return order;
  std::vector<NodeId> sorted;
  enum class Mark : uint8_t { unseen, open, done };
  std::vector<Mark> marks(g.node_count(), Mark::unseen);
  for (const NodeId first : order) {
    std::vector<NodeId> stack{first};
    while (!stack.empty()) {
      const NodeId n = stack.back();
      Mark& mark = marks[static_cast<size_t>(n)];
      if (mark != Mark::unseen) {
        if (mark == Mark::open) sorted.push_back(n);
        mark = Mark::done;
        stack.pop_back();
        continue;
      }
      mark = Mark::open;
      const auto before = [&](ValueId v) {
        const NodeId p = v == kNoValue ? kNoNode : g.value(v).producer;
        if (p != kNoNode && marks[static_cast<size_t>(p)] == Mark::unseen) stack.push_back(p);
      };
      std::ranges::for_each(g.node(n).inputs, before);
      for (const std::string& s : symbols_of(g, n))
        if (const auto it = found.find(s); it != found.end()) before(it->second);
    }
  }
  return sorted;
}

std::vector<std::string> symbols_of(const Graph& g, NodeId n) {
  std::set<std::string> used;
  for (const auto& [name, value] : g.node(n).attrs) {
    if (const auto* e = std::get_if<Expr>(&value)) add_symbols(*e, used);
    if (const auto* list = std::get_if<std::vector<Expr>>(&value))
      for (const Expr& e : *list) add_symbols(e, used);
  }
  for (const ValueId v : g.node(n).outputs)
    for (const Expr& d : g.value(v).type.shape) add_symbols(d, used);
  return {used.begin(), used.end()};
}

Result<std::vector<Segment>> cut_at_externs(const Graph& g) {
  const auto order = g.order();
  if (std::ranges::none_of(order, [&](NodeId n) { return g.is_extern(n); })) {
    std::vector<Segment> whole(1);
    whole[0].graph = g;
    return whole;
  }
  const Graph apart = detail::with_names_apart(g);
  return Cutter(apart).run();
}

}  // namespace dlc
