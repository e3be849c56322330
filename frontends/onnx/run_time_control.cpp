#include "frontends/onnx/run_time_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

constexpr int64_t kMostElements = int64_t{1} << 40;  // of a dim that only a run knows
constexpr const char* kKnowIt = "make it known when compiling: a constant, or dims bound with --dim NAME=VALUE";

// One element of this type, which may have dims of 1.
Result<ValueId> as_scalar(const NodeView& n, ValueId v, DType dtype, std::string_view what) {
  if (v == kNoValue) return v;
  DLC_CHECK(n.check_tensors(std::array{v}));
  const TensorType type = n.graph().value(v).type;
  const bool is_more = std::ranges::any_of(type.shape, [](const Expr& d) { return d.constant() && !d.is(1); });
  if (type.dtype != dtype || is_more)
    return n.error(fmt::format("{} is {}, one element of {} is needed", what, to_string(type), to_string(dtype)));
  if (type.shape.empty()) return v;
  return n.emit("reshape", {v}, {{"shape", std::vector<Expr>{}}});
}

std::optional<int64_t> known_number(const NodeView& n, ValueId v) {
  const auto known = n.settled_ints(v);
  if (!known || known->size() != 1) return std::nullopt;
  return (*known)[0].constant();
}

TensorType type_of(const NodeView& n, ValueId v) { return n.graph().value(v).type; }

// Whether a size in a body is one that the graph around knows by the same name.
bool is_known_outside(const NodeView& n, const Expr& e) {
  const auto symbols = e.symbols();
  return std::ranges::all_of(symbols, [&](const auto& s) { return n.graph().symbols.contains(s); });
}

// ---- if

// What the model's outputs of a branch are: -1 a tensor, else how many elements a sequence has.
Result<std::vector<int64_t>> form_of(const NodeView& n, const Body& b, std::string_view branch) {
  std::vector<int64_t> form;
  for (size_t i = 0; i < b.results.size(); ++i) {
    const auto* elements = n.elements_of(b.results[i]);
    if (elements == nullptr && b.results[i] < kNoValue)
      return n.error(fmt::format("output {} of {} is {}, and the condition is known only when the model runs", i,
                                 branch, n.other_kind(b.results[i])),
                     kKnowIt);
    form.push_back(elements == nullptr ? -1 : static_cast<int64_t>(elements->size()));
  }
  return form;
}

// A dim that both branches agree on, or a new symbol.
Expr joined(const NodeView& n, const Expr& a, const Ranges& of_a, const Expr& b, const Ranges& of_b) {
  if (a == b && is_known_outside(n, a)) return a;
  const Interval x = bounds(a, of_a), y = bounds(b, of_b);
  const Expr s = n.fresh_symbol("either", std::clamp<int64_t>(std::max(x.hi, y.hi), 0, kMostElements));
  n.graph().symbols.find(*s.as_symbol())->second.bounds.lo = std::max<int64_t>(std::min(x.lo, y.lo), 0);
  return s;
}

bool differ_in_rank(const Graph& a, const Graph& b) {
  for (size_t i = 0; i < a.outputs.size(); ++i)
    if (a.value(a.outputs[i]).type.shape.size() != b.value(b.outputs[i]).type.shape.size()) return true;
  return false;
}

// One branch, where what follows can only take the rank of one; a run checks that it is the right one.
Result<Values> assumed_branch(const NodeView& n, ValueId condition) {
  const bool otherwise = n.choose();
  DLC_TRY(const auto* body, n.attr_graph(otherwise ? "else_branch" : "then_branch"));
  return n.inlined_under({condition, !otherwise, n.name()}, *body);
}

Result<std::vector<TensorType>> joined_types(const NodeView& n, const Graph& a, const Graph& b) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const TensorType &x = a.value(a.outputs[i]).type, &y = b.value(b.outputs[i]).type;
    if (x.dtype != y.dtype)
      return n.error(
          fmt::format("the condition is known only when the model runs, and output {} differs in type: {} or "
                      "{}",
                      i, to_string(x), to_string(y)),
          kKnowIt);
    TensorType t{x.dtype, {}};
    for (size_t d = 0; d < x.shape.size(); ++d)
      t.shape.push_back(joined(n, x.shape[d], a.symbols, y.shape[d], b.symbols));
    types.push_back(std::move(t));
  }
  return types;
}

// ---- loop

// The carried values of a loop, whose dims are those of the first ones until a trip changes them.
class State {
 public:
  State(const NodeView& n, Values initial) : n_(n), initial_(std::move(initial)) {}

  Result<> check() const {
    for (size_t c = 0; c < initial_.size(); ++c) {
      if (initial_[c] > kNoValue) continue;
      return n_.error(fmt::format("carried value {} is {}, and only a run knows the number of trips", c,
                                  n_.other_kind(initial_[c])),
                      kKnowIt);
    }
    return {};
  }

  const Values& initial() const { return initial_; }
  size_t size() const { return initial_.size(); }

  // In the body.
  Values inputs(std::span<const TensorType> around) const {
    Values values;
    for (size_t c = 0; c < initial_.size(); ++c)
      values.push_back(n_.graph().add_input(fmt::format("{}.carried{}", n_.name(), c), widened(around[c], c)));
    return values;
  }

  std::vector<TensorType> types() const {
    std::vector<TensorType> types;
    for (const ValueId v : initial_) types.push_back(type_of(n_, v));
    return types;
  }
  // Of the results.
  std::vector<TensorType> last_types() const {
    std::vector<TensorType> types;
    for (size_t c = 0; c < initial_.size(); ++c) types.push_back(widened(type_of(n_, initial_[c]), c));
    return types;
  }

  // Whether a trip leaves every value as it found it; the dims that it changes are symbols from now on.
  Result<bool> fits(const Graph& body, std::span<const ValueId> inputs) {
    bool fits = true;
    for (size_t c = 0; c < inputs.size(); ++c) {
      const TensorType &before = body.value(inputs[c]).type, &after = body.value(body.outputs[c + 1]).type;
      if (before.dtype != after.dtype || before.shape.size() != after.shape.size())
        return n_.error(fmt::format("carried value {} is {}, and {} after a trip; only a run knows the number of trips",
                                    c, to_string(before), to_string(after)),
                        "a carried value keeps its type and rank");
      for (size_t d = 0; d < before.shape.size(); ++d)
        if (before.shape[d] != after.shape[d] && changing_.emplace(c, d).second) fits = false;
    }
    return fits;
  }

 private:
  TensorType widened(TensorType t, size_t c) const {
    for (size_t d = 0; d < t.shape.size(); ++d)
      if (changing_.contains({c, d})) t.shape[d] = n_.fresh_symbol(fmt::format("carried{}_{}", c, d), kMostElements);
    return t;
  }

  const NodeView& n_;
  Values initial_;
  std::set<std::pair<size_t, size_t>> changing_;  // value and dim
};

struct Trips {
  ValueId number = kNoValue, condition = kNoValue;  // absent: no limit, true
  std::optional<Expr> exactly;                      // where the condition never ends it
};

// The inputs of the body's proto in the body being made, from the trip and the carried values; then what it gives.
using Inputs = std::function<Result<Values>(ValueId trip, const Values& state)>;

// `first`: what the proto gives begins with the condition.
Result<Values> make_loop(const NodeView& n, const onnx::GraphProto& proto, Values initial, Trips trips,
                         const Inputs& inputs, bool conditional, bool* never_ends = nullptr) {
  State state(n, std::move(initial));
  DLC_CHECK(state.check());
  bool endless = false;
  Body body;
  for (bool fits = false; !fits;) {
    Values carried;
    const auto around = state.types();
    DLC_TRY(body, n.body("body", [&]() -> Result<Values> {
      const ValueId trip = n.graph().add_input(n.name() + ".trip", {kS64, {}});
      carried = state.inputs(around);
      DLC_TRY(Values arguments, inputs(trip, carried));
      DLC_TRY(Values results, n.inlined(proto, std::move(arguments)));
      if (!conditional) {
        DLC_TRY(const ValueId yes, n.scalar(kBool, 1));
        results.insert(results.begin(), yes);
      }
      DLC_CHECK(n.check_tensors(results));
      DLC_TRY(results[0], as_scalar(n, results[0], kBool, "the condition that the body gives"));
      endless = known_number(n, results[0]).value_or(0) != 0;
      return results;
    }));
    DLC_TRY(fits, state.fits(body.graph, carried));
  }
  const bool unlimited = trips.number == kNoValue;
  const bool begins = trips.condition == kNoValue || known_number(n, trips.condition).value_or(0) != 0;
  if (never_ends != nullptr) *never_ends = endless && unlimited && begins;
  if (endless && unlimited && begins)
    return n.error("the loop never ends: there is no number of trips, and its condition is always true");
  if (!endless || trips.condition != kNoValue) trips.exactly.reset();
  std::vector<TensorType> types = state.last_types();
  std::optional<Expr> rows = trips.exactly;
  for (size_t r = state.size() + 1; r < body.graph.outputs.size(); ++r) {
    TensorType t = body.graph.value(body.graph.outputs[r]).type;
    for (Expr& d : t.shape)
      if (!is_known_outside(n, d)) d = n.fresh_symbol("row", kMostElements);
    if (!rows) rows = n.fresh_symbol("trips", kMostElements);
    t.shape.insert(t.shape.begin(), *rows);
    types.push_back(std::move(t));
  }
  Values operands{trips.number, trips.condition};
  operands.insert(operands.end(), state.initial().begin(), state.initial().end());
  std::vector<Body> bodies;
  bodies.push_back(std::move(body));
  return n.control("loop", std::move(operands), std::move(bodies), std::move(types),
                   {{"carried", Expr(static_cast<int64_t>(state.size()))}});
}

// ---- scan

// A dim of a tensor as a value.
Result<ValueId> extent(const NodeView& n, ValueId v, int64_t axis) {
  DLC_TRY(const ValueId one, n.emit("shape", {v}, {{"start", Expr(axis)}, {"end", Expr(axis + 1)}}));
  return as_scalar(n, one, kS64, "the length");
}

// The last index first.
Result<ValueId> reversed(const NodeView& n, ValueId v, int64_t axis) {
  const auto shape = type_of(n, v).shape;
  std::vector<Expr> start(shape.size(), Expr(0)), stop = shape, step(shape.size(), Expr(1));
  const auto at = static_cast<size_t>(axis);
  start[at] = shape[at] - 1;
  stop[at] = -shape[at] - 1;
  step[at] = Expr(-1);
  return n.emit("slice", {v}, {{"start", start}, {"stop", stop}, {"step", step}});
}

// The first dim becomes dim `axis`.
Result<ValueId> with_rows_at(const NodeView& n, ValueId v, int64_t axis) {
  const auto rank = static_cast<int64_t>(type_of(n, v).shape.size());
  DLC_TRY(const int64_t to, checked_axis(n, axis, rank));
  if (to == 0) return v;
  std::vector<Expr> perm;
  for (int64_t d = 1; d < rank; ++d) perm.emplace_back(d);
  perm.insert(perm.begin() + to, Expr(0));
  return n.emit("transpose", {v}, {{"perm", perm}});
}

}  // namespace

Result<Values> run_time_if(const NodeView& n) {
  DLC_TRY(const ValueId condition, as_scalar(n, n.in(0), kBool, "the condition"));
  std::vector<Body> bodies;
  std::vector<std::vector<int64_t>> forms;
  for (const auto& [attribute, name] : {std::pair("then_branch", "then"), std::pair("else_branch", "else")}) {
    DLC_TRY(const auto* proto, n.attr_graph(attribute));
    DLC_TRY(Body b, n.body(name, [&] { return n.inlined(*proto, {}); }));
    DLC_TRY(forms.emplace_back(), form_of(n, b, attribute));
    bodies.push_back(std::move(b));
  }
  if (forms[0].size() != forms[1].size()) return n.error("the branches differ in the number of their outputs");
  if (forms[0] != forms[1])
    return n.error(
        "the branches give sequences of different lengths, and the condition is known only when the model "
        "runs",
        kKnowIt);
  if (differ_in_rank(bodies[0].graph, bodies[1].graph)) return assumed_branch(n, condition);
  DLC_TRY(auto types, joined_types(n, bodies[0].graph, bodies[1].graph));
  if (types.empty()) return n.error("the branches give nothing");
  DLC_TRY(const Values tensors, n.control("if", {condition}, std::move(bodies), std::move(types)));
  Values results;
  size_t next = 0;
  for (const int64_t count : forms[0]) {
    if (count < 0) {
      results.push_back(tensors[next++]);
      continue;
    }
    const auto first = tensors.begin() + static_cast<std::ptrdiff_t>(next);
    results.push_back(n.make_sequence({first, first + count}));
    next += static_cast<size_t>(count);
  }
  return results;
}

Result<Values> run_time_loop(const NodeView& n, const onnx::GraphProto& body, size_t carried, bool& never_ends) {
  Trips trips;
  DLC_TRY(trips.number, as_scalar(n, n.in(0), kS64, "the number of trips"));
  if (!n.has(1) || known_number(n, n.in(1)).value_or(0) == 0) {
    DLC_TRY(trips.condition, as_scalar(n, n.in(1), kBool, "the condition"));
  }
  if (trips.number != kNoValue)
    if (const auto known = n.settled_ints(trips.number); known && known->size() == 1) {
      const Expr& count = (*known)[0];
      if (bounds(count, n.graph().symbols).lo >= 0)
        trips.exactly = count;
      else if (count.constant())
        trips.exactly = Expr(0);
    }
  const Values initial(n.inputs().end() - static_cast<std::ptrdiff_t>(carried), n.inputs().end());
  return make_loop(
      n, body, initial, trips,
      [&](ValueId trip, const Values& state) -> Result<Values> {
        DLC_TRY(const ValueId yes, n.scalar(kBool, 1));
        Values arguments{trip, yes};
        arguments.insert(arguments.end(), state.begin(), state.end());
        return arguments;
      },
      true, &never_ends);
}

Result<Values> run_time_scan(const NodeView& n, const onnx::GraphProto& body, const Values& state,
                             const Values& scanned, const std::vector<Walk>& in, const std::vector<Walk>& out) {
  const auto length_of = [&](ValueId v, size_t i) { return type_of(n, v).shape[static_cast<size_t>(in[i].axis)]; };
  const Expr length = length_of(scanned[0], 0);
  Values walked;
  for (size_t i = 0; i < scanned.size(); ++i) {
    std::vector<Expr> shape = type_of(n, scanned[i]).shape;
    shape[static_cast<size_t>(in[i].axis)] = length;
    ValueId v = scanned[i];
    if (shape != type_of(n, v).shape) {  // a run finds out whether they are of one length
      DLC_TRY(v, n.emit("reshape", {v}, {{"shape", shape}}));
    }
    if (in[i].backward) {
      DLC_TRY(v, reversed(n, v, in[i].axis));
    }
    walked.push_back(v);
  }
  Trips trips;
  DLC_TRY(trips.number, extent(n, walked[0], in[0].axis));
  trips.exactly = length;
  const auto inputs = [&](ValueId trip, const Values& carried) -> Result<Values> {
    Values arguments = carried;
    for (size_t i = 0; i < walked.size(); ++i) {
      DLC_TRY(const ValueId element, n.emit("gather", {n.captured(walked[i]), trip}, {{"axis", Expr(in[i].axis)}}));
      arguments.push_back(element);
    }
    return arguments;
  };
  DLC_TRY(Values results, make_loop(n, body, state, trips, inputs, false));
  for (size_t i = 0; i < out.size(); ++i) {
    ValueId& v = results[state.size() + i];
    if (out[i].backward) {
      DLC_TRY(v, reversed(n, v, 0));
    }
    DLC_TRY(v, with_rows_at(n, v, out[i].axis));
  }
  return results;
}

}  // namespace dlc::onnx_frontend
