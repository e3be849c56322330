// The device is asked in rounds, because a question crosses the plugin boundary as text: first for every fusion group
// as a whole; for those that it does not take, then for all their shorter beginnings. What is left of a group when its
// beginning has a place is a group of the next round.
#include "core/map/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/map/plan.h"
#include "dlc/passes/merge.h"

namespace dlc::map {

namespace {

constexpr const char* kExtern = "it has no kernel and runs only through the interpreter";
constexpr const char* kControl = "only a run decides what of its bodies runs: they run on the host";

using Views = std::map<ValueId, ValueId>;

// Questions to the device: a program of calls that have nothing to do with each other.
class Questions {
 public:
  explicit Questions(const Graph& g) : g_(g) { program_.symbols = g.symbols; }

  // An input that `views` names is a view of another value. Returns the number of the call.
  size_t add(const FusionGroup& group, const Views& views) {
    Call c;
    c.kernel = static_cast<int>(program_.kernels.size());
    c.locations = group.kernel.locations;
    program_.kernels.push_back(group.kernel);
    program_.kernels.back().name = fmt::format("q{}", c.kernel);
    for (const ValueId v : group.inputs) c.buffers.push_back(input(v, views));
    for (const ValueId v : group.outputs) c.buffers.push_back(buffer(v, BufferKind::output));
    program_.calls.push_back(std::move(c));
    return program_.calls.size() - 1;
  }

  // Per call: what the device says against it.
  Result<std::vector<std::optional<Refusal>>> ask(const AskDevice& device) const {
    std::vector<std::optional<Refusal>> out(program_.calls.size());
    if (out.empty()) return out;
    DLC_TRY(const std::vector<Refusal> refused, device(program_));
    for (const Refusal& r : refused) out.at(static_cast<size_t>(r.call)) = r;
    return out;
  }

 private:
  // Called by its number: a value is in several questions, and may be called anything.
  int buffer(ValueId v, BufferKind kind) {
    ProgramBuffer b;
    b.name = fmt::format("b{}", program_.buffers.size());
    b.type = g_.value(v).type;
    b.kind = kind;
    program_.buffers.push_back(std::move(b));
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  int input(ValueId v, const Views& views) {
    const auto view = views.find(v);
    const ValueId base = view == views.end() || g_.value(v).constant ? kNoValue : view->second;
    if (const auto it = inputs_.find({v, base}); it != inputs_.end()) return it->second;
    int made = -1;
    if (g_.value(v).constant) {
      made = buffer(v, BufferKind::constant);
      program_.weights.emplace_back(program_.buffers.back().name, *g_.value(v).constant);
    } else if (base == kNoValue) {
      made = buffer(v, BufferKind::input);
    } else {
      const int whole = input(base, {});
      made = buffer(v, BufferKind::temp);
      program_.buffers.back().alias = BufferAlias{whole, Expr(0)};
    }
    return inputs_[{v, base}] = made;
  }

  const Graph& g_;
  Program program_;
  std::map<std::pair<ValueId, ValueId>, int> inputs_;  // value and what it is a view of
};

class Placer {
 public:
  Placer(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
         const ModelNodes& model)
      : g_(g), users_(g.all_users()), hw_(hw), device_(device), ask_(ask), model_(model) {
    out_.nodes.resize(g.node_count());
  }

  Result<Placed> run() {
    DLC_TRY(const auto groups, fuse(g_));
    std::vector<Part> open;
    for (const FusionGroup& group : groups) {
      open.push_back({open.size(), group.nodes, {}, 0});
      if (group.is_view && rule_of(group.nodes[0]) == nullptr) add_view(group);
    }
    units_.resize(groups.size());
    while (!open.empty()) {
      DLC_TRY(open, round(open));
    }
    for (std::vector<Unit>& units : units_) std::ranges::move(units, std::back_inserter(out_.units));
    settle_views();
    for (auto& [d, more] : problems_) {
      if (more > 0) d.message += fmt::format(" (also {} more nodes)", more);
      out_.problems.push_back(std::move(d));
    }
    return std::move(out_);
  }

 private:
  // Nodes of one fusion group that have no place yet.
  struct Part {
    size_t group = 0;
    std::vector<NodeId> nodes;
    // Of the longest beginning that no rule forbids, or of one that the device does in other sizes.
    std::optional<Refusal> against;
    size_t longest = 0;                      // its length
    std::optional<Refusal> alone, together;  // of its first node, and of the shortest beginning with another
  };
  // A beginning of a part, and the calls that ask for it: with operands that are views as they lie, and with all
  // operands as they are said.
  struct Candidate {
    size_t length = 0;
    FusionGroup group;
    std::vector<ValueId> views;
    size_t as_view = 0, plain = 0;
  };

  // Asks for parts; returns those that have no place then.
  Result<std::vector<Part>> round(const std::vector<Part>& open) {
    Questions questions(g_);
    std::vector<std::vector<Candidate>> candidates;
    for (const Part& part : open) {
      DLC_TRY(candidates.emplace_back(), candidates_of(part));
      for (Candidate& c : candidates.back()) {
        if (c.group.is_view) continue;
        std::ranges::copy_if(c.group.inputs, std::back_inserter(c.views),
                             [&](ValueId v) { return views_.contains(v); });
        c.plain = questions.add(c.group, {});
        if (!c.views.empty()) c.as_view = questions.add(c.group, views_);
      }
    }
    DLC_TRY(const auto against, questions.ask(ask_));
    std::vector<Part> left;
    for (size_t i = 0; i < open.size(); ++i) decide(open[i], candidates[i], against, left);
    return left;
  }

  // The longest beginning alone, or, when the device does not take that, all shorter ones.
  Result<std::vector<Candidate>> candidates_of(const Part& part) const {
    std::vector<Candidate> out;
    bool longest = true;
    for (size_t n = part.nodes.size(); n > 0; --n) {
      const auto nodes = std::span(part.nodes).first(n);
      if (std::ranges::any_of(nodes, [&](NodeId m) { return rule_of(m) != nullptr; })) continue;
      if (n < part.nodes.size() && !closed(nodes)) continue;
      if (!longest || !part.against) {
        DLC_TRY(FusionGroup group, merge_nodes(g_, nodes, users_));
        if (group.is_extern) break;
        out.push_back({n, std::move(group), {}});
        if (longest) break;
      }
      longest = false;
    }
    return out;
  }

  void decide(const Part& part, const std::vector<Candidate>& candidates,
              const std::vector<std::optional<Refusal>>& against, std::vector<Part>& left) {
    Part failed = part;
    for (const Candidate& c : candidates) {
      if (c.group.is_view) {
        add_view(c.group);
        return take(part, c.length, device_, {.rule = "view"}, left);
      }
      const auto views = std::ranges::count_if(c.views, [&](ValueId v) { return views_.contains(v); });
      if (views > 0 && views < std::ssize(c.views)) return left.push_back(part);  // another reader had one moved
      if (views > 0 && !against[c.as_view]) return take(part, c.length, device_, {}, left);
      if (!against[c.plain]) {
        // A reshape costs nothing where its reader can walk the elements as they lie; otherwise the host moves them.
        for (const ValueId v : c.views)
          if (views_.erase(v) > 0) on_host_.insert(g_.value(v).producer);
        return take(part, c.length, device_, {}, left);
      }
      const Refusal& r = *against[views > 0 ? c.as_view : c.plain];
      (c.length == 1 ? failed.alone : failed.together) = r;  // they come longest first
      if (failed.against && (failed.against->too_large || !r.too_large)) continue;
      failed.against = r;
      failed.longest = c.length;
    }
    if (!part.against && failed.against) return left.push_back(std::move(failed));  // now for shorter ones
    const NodeId first = part.nodes.front();
    if (const HwOpRule* r = rule_of(first)) {
      const Refusal rule{.rule = "ops", .why = r->why, .yaml_line = r->loc.line};
      if (r->place == "refuse") problem(first, refused_op(*r, g_.node(first)) + " is refused: " + r->why, rule);
      return take(part, 1, "host", rule, left);
    }
    if (!part.against) {
      const char* why = g_.node(first).bodies.empty() ? kExtern : kControl;
      return take(part, 1, "host", {.rule = "no kernel", .why = why}, left);
    }
    Refusal r = *failed.against;
    if (!r.too_large) return take(part, 1, "host", reason(first, failed), left);
    r.next += fmt::format("{}place it on the host in {}: ops: - {{op: {}, place: host, why: ...}}",
                          r.next.empty() ? "" : ", or ", hw_.file, g_.node(first).op);
    problem(first, r.why, r);
    take(part, failed.longest, "host", r, left);
  }

  // Why its first node alone is not done; where that is because of a neighbour, which one.
  Refusal reason(NodeId n, const Part& part) const {
    Refusal r = part.alone ? *part.alone : *part.against;
    const auto called = [&](NodeId m) { return fmt::format("{} ({})", g_.node(m).op, name(m)); };
    if (r.rule == kNeedsProducer) {
      for (const ValueId v : g_.node(n).inputs) {
        if (v == kNoValue || g_.value(v).constant) continue;
        const NodeId producer = g_.value(v).producer;
        const bool on_host = producer != kNoNode && out_.nodes[static_cast<size_t>(producer)].device == "host";
        r.why += producer == kNoNode ? "; it is an input of the model"
                                     : fmt::format("; {} makes it{}", called(producer), on_host ? ", on the host" : "");
        break;
      }
    }
    if (r.rule == kNeedsReader) {
      const auto& readers = users_[static_cast<size_t>(g_.node(n).outputs[0])];
      if (readers.empty()) {
        r.why += "; it is a result of the model";
      } else if (part.together && readers.size() == 1) {
        r.why += fmt::format("; together with {}, which reads it: {}", called(readers[0]), part.together->why);
        if (part.together->yaml_line > 0) r.yaml_line = part.together->yaml_line;
      } else {
        r.why += fmt::format("; {} reads it apart", called(readers[0]));
      }
    }
    return r;
  }

  void take(const Part& part, size_t length, const std::string& device, const Refusal& r, std::vector<Part>& left) {
    const auto end = part.nodes.begin() + static_cast<std::ptrdiff_t>(length);
    units_[part.group].push_back({{part.nodes.begin(), end}, device == device_});
    for (const NodeId n : units_[part.group].back().nodes) note(n, device, r);
    if (end != part.nodes.end()) left.push_back({part.group, {end, part.nodes.end()}, {}, 0});
  }

  void note(NodeId n, const std::string& device, const Refusal& r) {
    out_.nodes[static_cast<size_t>(n)] = {n, name(n), g_.node(n).op, device, r.rule, r.why, r.next, r.yaml_line};
  }

  const std::string& name(NodeId n) const {
    const Node& node = g_.node(n);
    return node.locations.empty() ? node.op : node.locations.front();
  }

  // Problems that say the same are one.
  void problem(NodeId n, const std::string& message, const Refusal& r) {
    const auto same = std::ranges::find_if(problems_, [&](const auto& p) { return p.first.message == message; });
    if (same != problems_.end()) {
      if (same->first.loc.node != name(n)) ++same->second;
      return;
    }
    problems_.push_back({{Severity::error, {hw_.file, r.yaml_line, 0, name(n)}, message, r.next}, 0});
  }

  // Only the last node of the part is seen outside it.
  bool closed(std::span<const NodeId> part) const {
    for (const NodeId n : part.first(part.size() - 1))
      for (const ValueId v : g_.node(n).outputs) {
        if (std::ranges::find(g_.outputs, v) != g_.outputs.end()) return false;
        for (const NodeId u : users_[static_cast<size_t>(v)])
          if (std::ranges::find(part, u) == part.end()) return false;
      }
    return true;
  }

  // ---- views

  void add_view(const FusionGroup& group) {
    const auto deeper = views_.find(group.inputs[0]);
    views_[group.outputs[0]] = deeper == views_.end() ? group.inputs[0] : deeper->second;
  }

  // Views whose elements somebody else must see in order are made by the host.
  void settle_views() {
    std::map<NodeId, const Unit*> unit_of;
    for (const Unit& u : out_.units)
      for (const NodeId n : u.nodes) unit_of[n] = &u;
    for (size_t i = out_.units.size(); i-- > 0;) {
      Unit& u = out_.units[i];
      if (!u.on_device || out_.nodes[static_cast<size_t>(u.nodes[0])].rule != "view") continue;
      const ValueId v = g_.node(u.nodes[0]).outputs[0];
      bool host = on_host_.contains(u.nodes[0]) || std::ranges::find(g_.outputs, v) != g_.outputs.end();
      for (const NodeId user : users_[static_cast<size_t>(v)]) host |= !unit_of.at(user)->on_device;
      // A view of what the host made is made there too.
      const NodeId producer = g_.value(g_.node(u.nodes[0]).inputs[0]).producer;
      if (!host && (producer == kNoNode || !unit_of.at(producer)->on_device)) host = !views_.contains(v);
      if (!host) continue;
      u.on_device = false;
      note(u.nodes[0], "host", {.rule = "view", .why = "its elements must be moved into another layout"});
    }
  }

  // ---- rules

  // As the rule calls it.
  std::string refused_op(const HwOpRule& r, const Node& node) const {
    for (const std::string& op : r.ops)
      if (op != "*" && is_named(node, op)) return op;
    return node.op;
  }

  // Whether the node is this op, or came of one when the model became integers.
  bool is_named(const Node& node, const std::string& op) const {
    if (op == "*" || op == node.op) return true;
    return std::ranges::any_of(node.locations, [&](const std::string& name) {
      const auto was = model_.ops.find(name);
      return was != model_.ops.end() && was->second.contains(op);
    });
  }

  // The first entry of `ops` for the node: it names its op, and each of its `types` is one of its operands or results.
  const HwOpRule* rule_of(NodeId n) const {
    const Node& node = g_.node(n);
    const auto has_type = [&](DType t) {
      const auto is = [&](ValueId v) { return v != kNoValue && g_.value(v).type.dtype == t; };
      return std::ranges::any_of(node.inputs, is) || std::ranges::any_of(node.outputs, is);
    };
    for (const HwOpRule& r : hw_.ops) {
      const bool named = std::ranges::any_of(r.ops, [&](const std::string& op) { return is_named(node, op); });
      if (named && std::ranges::all_of(r.types, has_type)) return &r;
    }
    return nullptr;
  }

  const Graph& g_;
  std::vector<std::vector<NodeId>> users_;
  const HwDescription& hw_;
  const std::string& device_;
  const AskDevice& ask_;
  const ModelNodes& model_;
  Views views_;                           // reshaped values that are read as they lie, and what they are views of
  std::set<NodeId> on_host_;              // reshapes that are not
  std::vector<std::vector<Unit>> units_;  // per group
  std::vector<std::pair<Diagnostic, int>> problems_;  // and how many more nodes have it
  Placed out_;
};

}  // namespace

Result<Placed> place(const Graph& g, const HwDescription& hw, const std::string& device, const AskDevice& ask,
                     const ModelNodes& model) {
  return Placer(g, hw, device, ask, model).run();
}

}  // namespace dlc::map
