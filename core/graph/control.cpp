#include "dlc/graph/control.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "core/graph/bind.h"

namespace dlc {

namespace {

constexpr std::array<std::string_view, 2> kIfBodies = {"then", "else"};
constexpr std::array<std::string_view, 1> kLoopBodies = {"body"};

Loc location(const Node& n) {
  Loc where;
  for (const auto& l : n.locations) where.node += (where.node.empty() ? "" : ", ") + l;
  return where;
}

// Whether a tensor can be both.
bool can_be(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d].constant() && b.shape[d].constant() && a.shape[d] != b.shape[d]) return false;
  return true;
}

class Checker {
 public:
  Checker(const Graph& g, const Node& n, std::span<const TensorType> results) : g_(g), n_(n), results_(results) {}

  Result<> run() {
    const auto names = body_names(n_.op);
    if (names.empty()) return error(fmt::format("{} is no control flow, and has no bodies", n_.op));
    if (n_.bodies.size() != names.size())
      return error(fmt::format("{} has {} bodies, not {}", n_.op, names.size(), n_.bodies.size()));
    const size_t leading = leading_operands(n_.op);
    if (n_.inputs.size() < leading) return error(fmt::format("{} has at least {} operands", n_.op, leading));
    for (size_t i = leading; i < n_.inputs.size(); ++i)
      if (n_.inputs[i] == kNoValue) return error(fmt::format("{}: operand {} is missing", n_.op, i));
    const bool is_loop = n_.op == "loop";
    if (!is_loop && n_.inputs[0] == kNoValue) return error("if: the condition is missing");
    DLC_CHECK(scalar(n_.inputs[leading - 1], kBool, "the condition"));
    if (!is_loop) return both();
    DLC_CHECK(scalar(n_.inputs[0], kS64, "the number of trips"));
    return loop();
  }

 private:
  std::unexpected<Error> error(std::string message) const { return fail(location(n_), std::move(message)); }

  Result<> scalar(ValueId v, DType dtype, std::string_view what) const {
    if (v == kNoValue || g_.value(v).type == TensorType{dtype, {}}) return {};
    return error(fmt::format("{}: {} is {}, not {}[]", n_.op, what, to_string(g_.value(v).type), to_string(dtype)));
  }

  // A body's inputs from `first` on are the node's operands from `operand` on.
  Result<> inputs(const Graph& body, std::string_view name, size_t first, size_t operand) const {
    if (body.inputs.size() - first != n_.inputs.size() - operand)
      return error(fmt::format("{}: {} takes {} values, {} are given", n_.op, name, body.inputs.size(),
                               n_.inputs.size() - operand + first));
    for (size_t i = first; i < body.inputs.size(); ++i) {
      const TensorType& given = g_.value(n_.inputs[operand + i - first]).type;
      const Value& taken = body.value(body.inputs[i]);
      if (!can_be(taken.type, given))
        return error(fmt::format("{}: %{} of {} is {}, but the operand is {}", n_.op, taken.name, name,
                                 to_string(taken.type), to_string(given)));
    }
    return {};
  }

  Result<> result(const Graph& body, std::string_view name, size_t output, size_t result) const {
    const TensorType& made = body.value(body.outputs[output]).type;
    if (can_be(made, results_[result])) return {};
    return error(fmt::format("{}: output {} of {} is {}, which is no {}", n_.op, output, name, to_string(made),
                             to_string(results_[result])));
  }

  Result<> both() const {
    for (size_t b = 0; b < n_.bodies.size(); ++b) {
      const Graph& body = *n_.bodies[b];
      const std::string_view name = kIfBodies[b];
      DLC_CHECK(inputs(body, name, 0, 1));
      if (body.outputs.size() != results_.size())
        return error(fmt::format("if: {} gives {} values, not {}", name, body.outputs.size(), results_.size()));
      for (size_t r = 0; r < results_.size(); ++r) DLC_CHECK(result(body, name, r, r));
    }
    return {};
  }

  Result<> loop() const {
    const Graph& body = *n_.bodies[0];
    const int64_t count = carried_of(n_);
    if (count < 0 || static_cast<uint64_t>(count) > n_.inputs.size() - 2 ||
        static_cast<uint64_t>(count) > results_.size())
      return error(fmt::format("loop: {} values cannot be carried", count));
    const auto carried = static_cast<size_t>(count);
    if (body.inputs.empty() || body.value(body.inputs[0]).type != TensorType{kS64, {}})
      return error("loop: the first input of body is the trip, s64[]");
    DLC_CHECK(inputs(body, "body", 1, 2));
    if (body.outputs.size() != results_.size() + 1)
      return error(fmt::format("loop: body gives {} values, not {}", body.outputs.size(), results_.size() + 1));
    if (body.value(body.outputs[0]).type != TensorType{kBool, {}})
      return error("loop: the first output of body is the condition, bool[]");
    for (size_t c = 0; c < carried; ++c) {
      DLC_CHECK(result(body, "body", c + 1, c));
      const TensorType& in = body.value(body.inputs[c + 1]).type;
      if (const TensorType& out = body.value(body.outputs[c + 1]).type; !can_be(in, out))
        return error(
            fmt::format("loop: carried value {} is {}, and {} after a trip", c, to_string(in), to_string(out)));
    }
    for (size_t r = carried; r < results_.size(); ++r) {
      TensorType row = results_[r];
      if (row.shape.empty()) return error(fmt::format("loop: result {} is stacked and has no dims", r));
      row.shape.erase(row.shape.begin());
      if (const TensorType& made = body.value(body.outputs[r + 1]).type; !can_be(made, row))
        return error(fmt::format("loop: output {} of body is {}, which are no rows of {}", r + 1, to_string(made),
                                 to_string(results_[r])));
    }
    return {};
  }

  const Graph& g_;
  const Node& n_;
  std::span<const TensorType> results_;
};

// Rows of one shape under each other.
Result<Tensor> stacked(std::vector<Tensor> rows, size_t output) {
  std::vector<int64_t> shape = rows[0].shape();
  for (size_t i = 1; i < rows.size(); ++i)
    if (rows[i].shape() != rows[0].shape())
      return fail(
          {},
          fmt::format("loop: output {} of the body is {} in the first trip and {} in trip {}", output,
                      to_string(rows[0].dtype(), rows[0].shape()), to_string(rows[i].dtype(), rows[i].shape()), i),
          "what is stacked has one shape in all trips");
  shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
  DLC_TRY(Tensor all, Tensor::make(rows[0].dtype(), std::move(shape)));
  std::byte* to = all.mutable_bytes();
  for (Tensor& row : rows) {
    if (row.byte_size() > 0) std::memcpy(to, row.bytes(), row.byte_size());
    to += row.byte_size();
    row = {};
  }
  return all;
}

// No rows, of the shape that the body would have given; a size that only a trip finds out is 0.
Result<Tensor> no_rows(const TensorType& row, const Bindings& symbols) {
  std::vector<int64_t> shape{0};
  for (const Expr& d : row.shape) shape.push_back(evaluate(d, symbols).value_or(0));
  return Tensor::make(row.dtype, std::move(shape));
}

Result<bool> truth(const Tensor& t, std::string_view what) {
  if (t.elements() != 1) return fail({}, fmt::format("{} has {} elements, not one", what, t.elements()));
  return t.get_int(0) != 0;
}

Result<std::vector<Tensor>> run_loop(size_t carried, const BodyType& type, std::span<const Tensor> operands,
                                     const RunBody& run) {
  int64_t trips = INT64_MAX;
  if (operands[0].is_valid()) trips = operands[0].get_int(0);
  bool going = true;
  if (operands[1].is_valid()) {
    DLC_TRY(going, truth(operands[1], "the condition"));
  }
  std::vector<Tensor> state(operands.begin() + 2, operands.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
  const auto captured = operands.subspan(2 + carried);
  std::vector<std::vector<Tensor>> rows(type.outputs.size() - 1 - carried);
  int64_t trip = 0;
  for (; going && trip < trips; ++trip) {
    DLC_TRY(Tensor index, Tensor::make(kS64, {}));
    index.set_int(0, trip);
    std::vector<Tensor> inputs{std::move(index)};
    std::ranges::move(state, std::back_inserter(inputs));
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    DLC_TRY(auto results, run(0, std::move(inputs)));
    DLC_TRY(going, truth(results[0], "the condition of the next trip"));
    for (size_t c = 0; c < carried; ++c) state[c] = std::move(results[c + 1]);
    for (size_t r = 0; r < rows.size(); ++r) rows[r].push_back(std::move(results[carried + 1 + r]));
  }
  std::vector<Tensor> results = std::move(state);
  Bindings symbols;
  if (trip == 0 && !rows.empty())  // the sizes of the rows that there are none of
    for (size_t i = 1; i < type.inputs.size(); ++i)
      DLC_CHECK(
          bind_shown(fmt::format("operand {}", i + 1), type.inputs[i], operands[i + 1].shape(), type.symbols, symbols));
  for (size_t r = 0; r < rows.size(); ++r) {
    DLC_TRY(Tensor all,
            trip == 0 ? no_rows(type.outputs[carried + 1 + r], symbols) : stacked(std::move(rows[r]), carried + 1 + r));
    results.push_back(std::move(all));
  }
  return results;
}

}  // namespace

std::span<const std::string_view> body_names(std::string_view op) {
  if (op == "if") return kIfBodies;
  if (op == "loop") return kLoopBodies;
  return {};
}

size_t leading_operands(std::string_view op) { return op == "if" ? 1 : 2; }

int64_t carried_of(const Node& n) {
  const auto it = n.attrs.find("carried");
  const auto* e = it == n.attrs.end() ? nullptr : std::get_if<Expr>(&it->second);
  return e == nullptr ? 0 : e->constant().value_or(-1);
}

Result<> check_control(const Graph& g, const Node& n, std::span<const TensorType> results) {
  return Checker(g, n, results).run();
}

BodyType body_type(const Graph& body) {
  BodyType t;
  t.symbols = body.symbols;
  for (const ValueId v : body.inputs) t.inputs.push_back(body.value(v).type);
  for (const ValueId v : body.outputs) t.outputs.push_back(body.value(v).type);
  return t;
}

Result<std::vector<Tensor>> run_control(std::string_view op, int64_t carried, std::span<const BodyType> bodies,
                                        std::span<const Tensor> operands, const RunBody& run) {
  if (op == "loop") return run_loop(static_cast<size_t>(carried), bodies[0], operands, run);
  DLC_TRY(const bool yes, truth(operands[0], "the condition"));
  return run(yes ? 0 : 1, {operands.begin() + 1, operands.end()});
}

}  // namespace dlc
