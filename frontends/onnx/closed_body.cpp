// Bodies of control flow as graphs of their own. A value from around a body becomes an input of it, a constant is the
// body's own; a size that only the graph around shows comes in with a value that has it among its dims.
#include <fmt/format.h>

#include <algorithm>

#include "dlc/graph/control.h"
#include "dlc/graph/segments.h"
#include "frontends/onnx/importer.h"

namespace dlc::onnx_frontend {

namespace {

using Symbols = std::set<std::string>;

void add_symbols(const TensorType& t, Symbols& out) {
  for (const Expr& d : t.shape)
    for (const auto& s : d.symbols()) out.insert(s);
}

// Symbols that stand in the graph, and those that an input shows.
std::pair<Symbols, Symbols> symbols_in(const Graph& g) {
  Symbols used, shown;
  for (size_t v = 0; v < g.value_count(); ++v) add_symbols(g.value(static_cast<ValueId>(v)).type, used);
  for (const NodeId n : g.order())
    for (const std::string& s : symbols_of(g, n)) used.insert(s);
  for (const ValueId v : g.inputs)
    for (const Expr& d : g.value(v).type.shape)
      if (const auto s = d.as_symbol()) shown.emplace(*s);
  return {std::move(used), std::move(shown)};
}

}  // namespace

Result<Body> Importer::body(std::string name, const std::function<Result<std::vector<ValueId>>()>& make,
                            const Loc& where) {
  if (level() >= static_cast<size_t>(kMaxBodyDepth))
    return fail(where, fmt::format("bodies are nested more than {} deep", kMaxBodyDepth));
  Body b;
  b.graph.name = std::move(name);
  b.graph.symbols = graph().symbols;
  b.graph.records = graph().records;
  levels_.emplace_back(b.graph);
  auto results = make();
  b.captured = std::move(levels_.back().operands);
  levels_.pop_back();
  if (!results) return std::unexpected(std::move(results).error());
  b.results = *std::move(results);
  const auto add = [&](ValueId v) {
    b.graph.outputs.push_back(v);
    b.graph.output_names.push_back(b.graph.value(v).name);
  };
  for (const ValueId v : b.results) {
    if (v == kNoValue) return fail(where, "a body gives an output that is absent");
    if (v > kNoValue) add(v);
    if (const Bundle* bundle = this->bundle(v); bundle != nullptr)
      for (const ValueId element : bundle->elements) {
        if (!other_kind(element).empty()) return fail(where, "a body gives a sequence of sequences");
        add(element);
      }
  }
  DLC_CHECK(close(b, where));
  return b;
}

// Every symbol of the body is bound by one of its inputs, or found out inside.
Result<> Importer::close(Body& b, const Loc& where) {
  const auto [used, shown] = symbols_in(b.graph);
  const auto found = found_symbols(b.graph);
  for (const std::string& s : used) {
    if (shown.contains(s) || found.contains(s)) continue;
    const ValueId v = showing(s, level());
    if (v == kNoValue) return fail(where, fmt::format("internal error: nothing around the body shows {}", s));
    b.captured.emplace_back(v, b.graph.add_input(graph().value(v).name, graph().value(v).type));
  }
  std::erase_if(b.graph.symbols, [&](const auto& symbol) {
    return !used.contains(symbol.first) && std::ranges::none_of(b.graph.inputs, [&](ValueId v) {
      return std::ranges::any_of(b.graph.value(v).type.shape, [&](const Expr& d) { return d.mentions(symbol.first); });
    });
  });
  return {};
}

Result<ValueId> Importer::assumed(ValueId v, Scope& scope) {
  if (!scope.assumption || v <= kNoValue || graph().value(v).constant) return v;
  const bool is_own = scope.level == level();  // and not that of a body inside it, whose values have the same numbers
  if (const auto known = scope.checked.find(v); is_own && known != scope.checked.end()) return known->second;
  const auto& [outer, holds, node] = *scope.assumption;
  const ValueId condition = captured(outer, scope.level);
  DLC_TRY(const NodeId n, graph().add_node("assumed", {v, condition}, {{"holds", Expr(holds ? 1 : 0)}}, {node}));
  const ValueId result = graph().node(n).outputs[0];
  if (const auto elements = values().elements(v); !elements.empty()) values().assume(result, elements);
  if (is_own) scope.checked.emplace(v, result);
  return result;
}

bool Importer::choose() {
  if (chosen_ == choices_.size()) choices_.push_back(false);
  return choices_[chosen_++];
}

ValueId Importer::capture(ValueId v, size_t level) {
  if (v == kNoValue) return v;
  Level& in = levels_[level];
  if (const auto known = in.captured.find(v); known != in.captured.end()) return known->second;
  ValueId inside = kNoValue;
  if (const Bundle* outside = bundle(v); outside != nullptr) {
    Bundle copy{outside->present, {}};
    for (const ValueId e : std::vector(outside->elements)) copy.elements.push_back(capture(e, level));
    inside = add_bundle(std::move(copy));
  } else {
    Level& around = levels_[level - 1];
    const Value& value = around.graph->value(v);
    if (value.constant) {
      inside = in.graph->add_constant(value.name, *value.constant);
    } else {
      const auto elements = around.known->elements(v);
      inside = in.graph->add_input(value.name, value.type);
      in.operands.emplace_back(v, inside);
      if (!elements.empty()) in.known->assume(inside, elements);
    }
  }
  return in.captured[v] = inside;
}

ValueId Importer::captured(ValueId v, size_t from) {
  for (size_t l = from + 1; l < levels_.size(); ++l) v = capture(v, l);
  return v;
}

// A value of that level one of whose dims is the symbol; from further outside if there is none yet.
ValueId Importer::showing(const std::string& symbol, size_t level) {
  Level& l = levels_[level];
  if (const auto known = l.showing.find(symbol); known != l.showing.end()) return known->second;
  ValueId found = kNoValue;
  for (size_t v = 0; v < l.graph->value_count() && found == kNoValue; ++v)
    if (std::ranges::any_of(l.graph->value(static_cast<ValueId>(v)).type.shape,
                            [&](const Expr& d) { return d.as_symbol() == symbol; }))
      found = static_cast<ValueId>(v);
  if (found == kNoValue && level > 0)
    if (const ValueId outside = showing(symbol, level - 1); outside != kNoValue) found = capture(outside, level);
  return l.showing[symbol] = found;
}

std::vector<ValueId> Importer::align(std::span<Body> bodies, const Graph& around) {
  std::vector<ValueId> all;
  for (const Body& b : bodies)
    for (const auto& [outside, inside] : b.captured)
      if (std::ranges::count(all, outside) == 0) all.push_back(outside);
  for (Body& b : bodies) {
    std::erase_if(b.graph.inputs, [&](ValueId v) {
      return std::ranges::any_of(b.captured, [&](const auto& c) { return c.second == v; });
    });
    for (const ValueId v : all) {
      const auto known = std::ranges::find(b.captured, v, &std::pair<ValueId, ValueId>::first);
      if (known != b.captured.end()) {
        b.graph.inputs.push_back(known->second);
        continue;
      }
      const TensorType& type = around.value(v).type;
      for (const Expr& d : type.shape)
        for (const auto& s : d.symbols()) b.graph.symbols.emplace(s, around.symbols.find(s)->second);
      b.graph.add_input(around.value(v).name, type);
    }
  }
  return all;
}

}  // namespace dlc::onnx_frontend
