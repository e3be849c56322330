// If, Loop, Scan and SequenceMap. What is known while the model is imported needs no control flow: the branch is taken,
// and the body of a short loop repeated. The rest becomes `if` and `loop` (run_time_control.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/run_time_control.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// Without control flow both branches are computed, and of each pair of results one is taken.
Result<Values> both_branches(const NodeView& n) {
  DLC_TRY(const ValueId condition, scalar_input(n, 0));
  std::array<Values, 2> branches;
  for (size_t b = 0; b < 2; ++b) {
    DLC_TRY(const auto* body, n.attr_graph(b == 0 ? "then_branch" : "else_branch"));
    DLC_TRY(branches[b], n.inlined(*body, {}));
    DLC_CHECK(n.check_tensors(branches[b]));
  }
  const auto& [yes, no] = branches;
  if (yes.size() != no.size()) return n.error("the branches differ in the number of their outputs");
  Values results;
  for (size_t i = 0; i < yes.size(); ++i) {
    const TensorType &a = n.graph().value(yes[i]).type, &b = n.graph().value(no[i]).type;
    if (a != b)
      return n.error(
          fmt::format("the condition is known only when the model runs, and output {} differs in type: {} or "
                      "{}",
                      i, to_string(a), to_string(b)),
          "write a .dlca; or make the condition a constant, or both branches give the same type");
    DLC_TRY(const ValueId r, n.emit("where", {condition, yes[i], no[i]}));
    results.push_back(r);
  }
  return results;
}

Result<Values> if_(const NodeView& n) {
  if (!n.has(0)) return n.error("the condition is missing");
  const auto branch = [&](const std::vector<Expr>& condition) -> Result<Values> {
    DLC_TRY(const auto* body, n.attr_graph(condition[0].is(0) ? "else_branch" : "then_branch"));
    return n.inlined(*body, {});
  };
  const auto is_one = [](const auto& known) { return known && known->size() == 1 && (*known)[0].constant(); };
  if (const auto settled = n.settled_ints(n.in(0)); is_one(settled)) return branch(*settled);
  auto results = n.has_control_flow() ? run_time_if(n) : both_branches(n);
  if (results || !n.can_settle(n.in(0))) return results;
  const auto known = n.known_ints(0, "the condition");  // which makes given inputs constants
  return is_one(known) ? branch(*known) : std::move(results);
}

// Tensors of the same type under one more dim, at `axis`.
Result<ValueId> stacked(const NodeView& n, const Values& parts, int64_t axis) {
  DLC_CHECK(n.check_tensors(parts));
  Values columns;
  for (const ValueId v : parts) {
    DLC_TRY(const ValueId c, n.emit("unsqueeze", {v}, {{"axes", std::vector<Expr>{Expr(axis)}}}));
    columns.push_back(c);
  }
  return concatenated(n, std::move(columns), axis);
}

// A stack of nothing, of the element type and shape that the body declares.
Result<ValueId> empty_stack(const NodeView& n, const onnx::ValueInfoProto& v) {
  const auto& t = v.type().tensor_type();
  if (!v.type().has_tensor_type() || !t.has_shape())
    return n.error(fmt::format("the loop runs zero times, and the shape of '{}' is not declared", v.name()));
  std::vector<int64_t> shape{0};
  for (const auto& d : t.shape().dim()) shape.push_back(d.dim_value());
  DLC_TRY(const DType dtype, element_type(t.elem_type(), n.loc()));
  DLC_TRY(Tensor none, Tensor::make(dtype, shape));
  return n.add_constant(std::move(none));
}

// As many nodes as a loop may become when it is written out.
constexpr int64_t kUnrolledNodes = 1024;

int64_t nodes_in(const onnx::GraphProto& g) {
  int64_t n = g.node_size();
  for (const auto& node : g.node())
    for (const auto& a : node.attribute()) n += a.has_g() ? nodes_in(a.g()) : 0;
  return n;
}

// The one number that an operand is, if the run does not decide it. `settle`: given inputs may become constants.
std::optional<int64_t> number(const NodeView& n, ValueId v, bool settle) {
  auto known = n.settled_ints(v);
  if (!known && settle && n.can_settle(v)) {
    const auto given = n.known_ints_of(v, "value");
    if (given) known = *given;
  }
  if (!known || known->size() != 1) return std::nullopt;
  return (*known)[0].constant();
}

// Inputs: trip count, condition, carried values. The body takes the iteration, the condition and the carried values,
// and gives the condition, the carried values and what is stacked. Nothing: it is not known how often the body runs, or
// that is more than `most` nodes.
Result<std::optional<Values>> unrolled(const NodeView& n, const onnx::GraphProto& body, size_t carried, int64_t most,
                                       bool settle) {
  const auto outputs = static_cast<size_t>(body.output_size());
  const int64_t most_trips = most / std::max<int64_t>(nodes_in(body), 1);
  std::optional<int64_t> trips = INT64_MAX, going = 1;
  if (n.has(0)) trips = number(n, n.in(0), settle);
  if (n.has(1)) going = number(n, n.in(1), settle);
  if (!trips || !going) return std::nullopt;
  const bool counted = n.has(0);
  Values state(n.inputs().begin() + static_cast<std::ptrdiff_t>(n.input_count() - carried), n.inputs().end());
  std::vector<Values> stacks(outputs - carried - 1);
  if (counted && *going != 0 && *trips > most_trips) return std::nullopt;
  const bool is_idle = *going == 0 || *trips <= 0;
  if (is_idle && !stacks.empty() && most < INT64_MAX) return std::nullopt;  // a `loop` knows the shape of no rows
  for (int64_t i = 0; *going != 0 && i < *trips; ++i) {
    if (i >= most_trips) return std::nullopt;
    DLC_TRY(Tensor index, Tensor::make(kS64, {}));
    index.set_int(0, i);
    DLC_TRY(const ValueId yes, n.scalar(kBool, 1));
    Values arguments{n.add_constant(std::move(index)), yes};
    arguments.insert(arguments.end(), state.begin(), state.end());
    DLC_TRY(const Values results, n.inlined(body, std::move(arguments)));
    state.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
    for (size_t s = 0; s < stacks.size(); ++s) stacks[s].push_back(results[carried + 1 + s]);
    if (i + 1 == *trips) break;  // nobody asks any more
    going = number(n, results[0], settle);
    if (!going) return std::nullopt;
  }
  Values results = state;
  for (size_t s = 0; s < stacks.size(); ++s) {
    ValueId v = kNoValue;
    if (stacks[s].empty()) {
      DLC_TRY(v, empty_stack(n, body.output(static_cast<int>(carried + 1 + s))));
    } else {
      DLC_TRY(v, stacked(n, stacks[s], 0));
    }
    results.push_back(v);
  }
  return results;
}

// Written out where that is short. Sequences have as many elements as the trips make of them, so that a loop over them
// can only be written out.
Result<Values> loop(const NodeView& n) {
  DLC_TRY(const auto* body, n.attr_graph("body"));
  const size_t carried = n.input_count() > 2 ? n.input_count() - 2 : 0;
  if (static_cast<size_t>(body->input_size()) != carried + 2 || static_cast<size_t>(body->output_size()) < carried + 1)
    return n.error("the body's inputs and outputs do not fit the carried values");
  DLC_TRY(auto short_one, unrolled(n, *body, carried, n.has_control_flow() ? kUnrolledNodes : INT64_MAX, false));
  if (short_one) return *std::move(short_one);
  bool never_ends = false;
  auto results = n.has_control_flow()
                     ? run_time_loop(n, *body, carried, never_ends)
                     : n.error("only a run knows the number of trips, and a library has no runtime for that",
                               "write a .dlca; or make it known when compiling: a constant, or --dim NAME=VALUE");
  if (results || never_ends) return results;
  DLC_TRY(auto long_one, unrolled(n, *body, carried, INT64_MAX, true));
  return long_one ? Result<Values>(*std::move(long_one)) : std::move(results);
}

// Element `at` of a tensor's axis, without that axis.
Result<ValueId> element(const NodeView& n, ValueId v, int64_t axis, int64_t at) {
  DLC_CHECK(n.check_tensors(std::array{v}));
  const auto shape = n.graph().value(v).type.shape;
  std::vector<Expr> start(shape.size(), Expr(0));
  std::vector<Expr> stop = shape;
  start[static_cast<size_t>(axis)] = at;
  stop[static_cast<size_t>(axis)] = at + 1;
  DLC_TRY(const ValueId row, n.emit("slice", {v}, {{"start", start}, {"stop", stop}}));
  return n.emit("squeeze", {row}, {{"axes", std::vector<Expr>{Expr(axis)}}});
}

Result<std::vector<Walk>> walks(const NodeView& n, const char* axes, const char* directions, size_t count) {
  DLC_TRY(const auto axis, n.attr_ints(axes, std::vector<int64_t>(count, 0)));
  DLC_TRY(const auto direction, n.attr_ints(directions, std::vector<int64_t>(count, 0)));
  if (axis.size() != count || direction.size() != count)
    return n.error(fmt::format("'{}' and '{}' need {} entries", axes, directions, count));
  std::vector<Walk> out;
  for (size_t i = 0; i < count; ++i) out.push_back({axis[i], direction[i] != 0});
  return out;
}

// One pass over the scanned inputs from this state: the last state, then the stacked outputs.
Result<Values> scan_over(const NodeView& n, const onnx::GraphProto& body, Values state, const Values& scanned,
                         std::vector<Walk> in, const std::vector<Walk>& out) {
  DLC_CHECK(n.check_tensors(scanned));
  for (size_t i = 0; i < scanned.size(); ++i) {
    const auto& shape = n.graph().value(scanned[i]).type.shape;
    DLC_TRY(in[i].axis, checked_axis(n, in[i].axis, static_cast<int64_t>(shape.size())));
  }
  const auto length_of = [&](size_t i) {
    return n.graph().value(scanned[i]).type.shape[static_cast<size_t>(in[i].axis)];
  };
  for (size_t i = 1; i < scanned.size(); ++i)
    if (length_of(i).constant() && length_of(0).constant() && length_of(i) != length_of(0))
      return n.error("the scanned inputs differ in length");
  const auto length = length_of(0).constant();
  if (length == 0 && !n.has_control_flow()) return n.error("nothing to scan");
  const bool long_one = length == 0 || (length && *length > kUnrolledNodes / std::max<int64_t>(nodes_in(body), 1));
  if (!length && !n.has_control_flow())
    return n.error("the length must be known when compiling, since a library has no runtime for loops",
                   "write a .dlca; or bind it with --dim NAME=VALUE");
  if (n.has_control_flow() && (!length || long_one)) {
    auto results = run_time_scan(n, body, state, scanned, in, out);
    if (results || !length || length == 0) return results;
  }
  std::vector<Values> stacks(out.size());
  for (int64_t t = 0; t < *length; ++t) {
    Values arguments = state;
    for (size_t i = 0; i < scanned.size(); ++i) {
      DLC_TRY(const ValueId e, element(n, scanned[i], in[i].axis, in[i].backward ? *length - 1 - t : t));
      arguments.push_back(e);
    }
    DLC_TRY(const Values results, n.inlined(body, std::move(arguments)));
    state.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(state.size()));
    for (size_t i = 0; i < out.size(); ++i) stacks[i].push_back(results[state.size() + i]);
  }
  Values results = state;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].backward) std::ranges::reverse(stacks[i]);
    const auto rank = static_cast<int64_t>(n.graph().value(stacks[i][0]).type.shape.size());
    DLC_TRY(const int64_t axis, checked_axis(n, out[i].axis, rank + 1));
    DLC_TRY(const ValueId v, stacked(n, stacks[i], axis));
    results.push_back(v);
  }
  return results;
}

// Opset 8 has sequence lengths first, and a batch axis before everything.
Result<Values> scan(const NodeView& n) {
  DLC_TRY(const auto* body, n.attr_graph("body"));
  const bool batched = n.opset() < 9;
  DLC_TRY(const int64_t count, n.attr_int("num_scan_inputs", {}));
  const size_t first = batched ? 1 : 0;
  if (batched && n.has(0)) return n.error("sequence_lens is not supported");
  if (count < 1 || static_cast<size_t>(count) + first > n.input_count()) return n.error("'num_scan_inputs' is wrong");
  const size_t states = n.input_count() - first - static_cast<size_t>(count);
  if (static_cast<size_t>(body->input_size()) != states + static_cast<size_t>(count) ||
      static_cast<size_t>(body->output_size()) < states)
    return n.error("the body's inputs and outputs do not fit the states");
  const size_t stacks = static_cast<size_t>(body->output_size()) - states;
  for (size_t i = first; i < n.input_count(); ++i)
    if (!n.has(i)) return n.error(fmt::format("input {} is missing", i));
  const auto all = n.inputs().begin() + static_cast<std::ptrdiff_t>(first);
  const Values state(all, all + static_cast<std::ptrdiff_t>(states));
  const Values scanned(all + static_cast<std::ptrdiff_t>(states), n.inputs().end());
  if (!batched) {
    DLC_TRY(const auto in, walks(n, "scan_input_axes", "scan_input_directions", static_cast<size_t>(count)));
    DLC_TRY(const auto out, walks(n, "scan_output_axes", "scan_output_directions", stacks));
    return scan_over(n, *body, state, scanned, in, out);
  }
  DLC_TRY(const auto in, walks(n, "", "directions", static_cast<size_t>(count)));
  const auto batch = n.rank(first) > 0 ? n.type(first).shape[0].constant() : std::nullopt;
  if (!batch || *batch < 1) return n.error("the batch must be known when compiling", "bind it with --dim NAME=VALUE");
  std::vector<Values> columns(states + stacks);
  for (int64_t b = 0; b < *batch; ++b) {
    Values own_state;
    Values own;
    for (const ValueId v : state) {
      DLC_TRY(const ValueId e, element(n, v, 0, b));
      own_state.push_back(e);
    }
    for (const ValueId v : scanned) {
      DLC_TRY(const ValueId e, element(n, v, 0, b));
      own.push_back(e);
    }
    DLC_TRY(const Values results, scan_over(n, *body, own_state, own, in, std::vector<Walk>(stacks)));
    for (size_t i = 0; i < columns.size(); ++i) columns[i].push_back(results[i]);
  }
  Values results;
  for (const Values& column : columns) {
    DLC_TRY(const ValueId v, stacked(n, column, 0));
    results.push_back(v);
  }
  return results;
}

// The body for each element; a tensor among the inputs is the same for all of them.
Result<Values> sequence_map(const NodeView& n) {
  DLC_TRY(const auto* body, n.attr_graph("body"));
  if (!n.is_sequence(0)) return n.error("input 0 must be a sequence");
  const size_t count = n.sequence(0).size();
  std::vector<Values> columns(static_cast<size_t>(body->output_size()));
  for (size_t e = 0; e < count; ++e) {
    Values arguments;
    for (size_t i = 0; i < n.input_count(); ++i) {
      if (n.is_sequence(i) && n.sequence(i).size() != count) return n.error("the sequences differ in length");
      arguments.push_back(n.is_sequence(i) ? n.sequence(i)[e] : n.in(i));
    }
    DLC_TRY(const Values results, n.inlined(*body, std::move(arguments)));
    for (size_t i = 0; i < columns.size(); ++i) columns[i].push_back(results[i]);
  }
  Values results;
  for (Values& column : columns) results.push_back(n.make_sequence(std::move(column)));
  return results;
}

constexpr OpEntry kTable[] = {
    {"", "If", if_, "t", "then_branch else_branch"},
    {"", "Loop", loop, "TTV*"},
    {"", "Scan", scan, "TT*"},
    {"", "SequenceMap", sequence_map, "sV*"},
};

}  // namespace

std::span<const OpEntry> control_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
