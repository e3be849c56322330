// If, Loop, Scan and SequenceMap. A graph has no branches and no loops: the branch is taken, and the body repeated,
// while the model is imported. So a trip count must be known then (NodeView::known_ints), and a condition unless both
// branches give the same types.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<int64_t> known_number(const NodeView& n, ValueId v, std::string_view what) {
  DLC_TRY(const auto known, n.known_ints_of(v, what));
  if (known.size() != 1 || !known[0].constant()) return n.error(fmt::format("{} must be one known number", what));
  return *known[0].constant();
}

// Where only the run knows the condition: both branches are computed, and of each pair of results one is taken.
Result<Values> both_branches(const NodeView& n) {
  DLC_TRY(const ValueId condition, scalar_input(n, 0));
  DLC_TRY(const auto* then_body, n.attr_graph("then_branch"));
  DLC_TRY(const auto* else_body, n.attr_graph("else_branch"));
  DLC_TRY(const Values yes, n.inlined(*then_body, {}));
  DLC_TRY(const Values no, n.inlined(*else_body, {}));
  if (yes.size() != no.size()) return n.error("the branches differ in the number of their outputs");
  Values results;
  for (size_t i = 0; i < yes.size(); ++i) {
    const bool tensors = yes[i] > kNoValue && no[i] > kNoValue;
    if (!tensors || n.graph().value(yes[i]).type != n.graph().value(no[i]).type)
      return n.error(fmt::format("the condition is known only when the model runs, and output {} differs in type{}", i,
                                 tensors ? fmt::format(": {} or {}", to_string(n.graph().value(yes[i]).type),
                                                       to_string(n.graph().value(no[i]).type))
                                         : ""),
                     "make the condition a constant, or both branches give the same type");
    DLC_TRY(const ValueId r, n.emit("where", {condition, yes[i], no[i]}));
    results.push_back(r);
  }
  return results;
}

Result<Values> if_(const NodeView& n) {
  if (!n.has(0)) return n.error("the condition is missing");
  const auto known = n.known_ints(0, "the condition");
  if (!known || known->size() != 1 || !(*known)[0].constant()) return both_branches(n);
  DLC_TRY(const auto* body, n.attr_graph((*known)[0].is(0) ? "else_branch" : "then_branch"));
  return n.inlined(*body, {});
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

// Inputs: trip count, condition, carried values. The body takes the iteration, the condition and the carried values,
// and gives the condition, the carried values and what is stacked.
Result<Values> loop(const NodeView& n) {
  DLC_TRY(const auto* body, n.attr_graph("body"));
  const size_t carried = n.input_count() > 2 ? n.input_count() - 2 : 0;
  const auto outputs = static_cast<size_t>(body->output_size());
  if (static_cast<size_t>(body->input_size()) != carried + 2 || outputs < carried + 1)
    return n.error("the body's inputs and outputs do not fit the carried values");
  int64_t trips = INT64_MAX;
  if (n.has(0)) {
    DLC_TRY(trips, known_number(n, n.in(0), "the trip count"));
  }
  bool going = true;
  if (n.has(1)) {
    DLC_TRY(const int64_t first, known_number(n, n.in(1), "the condition"));
    going = first != 0;
  }
  Values state(n.inputs().begin() + static_cast<std::ptrdiff_t>(n.input_count() - carried), n.inputs().end());
  std::vector<Values> stacks(outputs - carried - 1);
  for (int64_t i = 0; going && i < trips; ++i) {
    DLC_TRY(Tensor index, Tensor::make(kS64, {}));
    index.set_int(0, i);
    DLC_TRY(const ValueId yes, n.scalar(kBool, 1));
    Values arguments{n.add_constant(std::move(index)), yes};
    arguments.insert(arguments.end(), state.begin(), state.end());
    DLC_TRY(const Values results, n.inlined(*body, std::move(arguments)));
    state.assign(results.begin() + 1, results.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
    for (size_t s = 0; s < stacks.size(); ++s) stacks[s].push_back(results[carried + 1 + s]);
    if (i + 1 == trips) break;  // nobody asks any more
    DLC_TRY(const int64_t next, known_number(n, results[0], "the condition of the loop's next iteration"));
    going = next != 0;
  }
  Values results = state;
  for (size_t s = 0; s < stacks.size(); ++s) {
    ValueId v = kNoValue;
    if (stacks[s].empty()) {
      DLC_TRY(v, empty_stack(n, body->output(static_cast<int>(carried + 1 + s))));
    } else {
      DLC_TRY(v, stacked(n, stacks[s], 0));
    }
    results.push_back(v);
  }
  return results;
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

// How a Scan walks one of its inputs or outputs.
struct Walk {
  int64_t axis = 0;
  bool backward = false;
};

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
                         const std::vector<Walk>& in, const std::vector<Walk>& out) {
  std::optional<int64_t> length;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < scanned.size(); ++i) {
    const auto& shape = n.graph().value(scanned[i]).type.shape;
    DLC_TRY(const int64_t axis, checked_axis(n, in[i].axis, static_cast<int64_t>(shape.size())));
    const auto extent = shape[static_cast<size_t>(axis)].constant();
    if (!extent) return n.error("the length must be known when compiling", "bind it with --dim NAME=VALUE");
    if (length && *length != *extent) return n.error("the scanned inputs differ in length");
    length = extent;
    axes.push_back(axis);
  }
  if (!length || *length == 0) return n.error("nothing to scan");
  std::vector<Values> stacks(out.size());
  for (int64_t t = 0; t < *length; ++t) {
    Values arguments = state;
    for (size_t i = 0; i < scanned.size(); ++i) {
      DLC_TRY(const ValueId e, element(n, scanned[i], axes[i], in[i].backward ? *length - 1 - t : t));
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
