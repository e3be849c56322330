// Sequences and optional values: lists of values that the importer keeps (importer.h). No node is made for them.
#include <fmt/format.h>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

// The known position at input `at`; `count` is one past the last that is allowed.
Result<size_t> position(const NodeView& n, size_t at, size_t count) {
  DLC_TRY(const Expr e, known_scalar(n, at, "position"));
  if (!e.constant()) return n.error("the position must be known when compiling");
  const auto size = static_cast<int64_t>(n.sequence(0).size());
  const int64_t p = *e.constant() < 0 ? *e.constant() + size : *e.constant();
  if (p < 0 || p >= static_cast<int64_t>(count))
    return n.error(fmt::format("position {} is outside a sequence of {} elements", *e.constant(), size));
  return static_cast<size_t>(p);
}

Result<Values> construct(const NodeView& n) { return Values{n.make_sequence(n.inputs())}; }

Result<Values> empty(const NodeView& n) { return Values{n.make_sequence({})}; }

Result<Values> insert(const NodeView& n) {
  Values elements = n.sequence(0);
  size_t at = elements.size();
  if (n.has(2)) {
    DLC_TRY(at, position(n, 2, elements.size() + 1));
  }
  elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(at), n.in(1));
  return Values{n.make_sequence(std::move(elements))};
}

Result<Values> erase(const NodeView& n) {
  Values elements = n.sequence(0);
  if (elements.empty()) return n.error("the sequence is empty");
  size_t at = elements.size() - 1;
  if (n.has(1)) {
    DLC_TRY(at, position(n, 1, elements.size()));
  }
  elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(at));
  return Values{n.make_sequence(std::move(elements))};
}

Result<Values> at(const NodeView& n) {
  DLC_TRY(const size_t p, position(n, 1, n.sequence(0).size()));
  return Values{n.sequence(0)[p]};
}

Result<Values> length(const NodeView& n) {
  DLC_TRY(Tensor count, Tensor::make(kS64, {}));
  count.set_int(0, static_cast<int64_t>(n.sequence(0).size()));
  return Values{n.add_constant(std::move(count))};
}

// Along one axis, or stacked along a new one.
Result<Values> concat(const NodeView& n) {
  Values parts = n.sequence(0);
  if (parts.empty()) return n.error("the sequence is empty");
  DLC_TRY(const int64_t attr, n.attr_int("axis", {}));
  DLC_TRY(const int64_t stack, n.attr_int("new_axis", 0));
  const auto rank = static_cast<int64_t>(n.graph().value(parts[0]).type.shape.size());
  DLC_TRY(const int64_t axis, checked_axis(n, attr, rank + (stack != 0 ? 1 : 0)));
  for (ValueId& v : parts) {
    if (stack == 0) break;
    DLC_TRY(v, n.emit("unsqueeze", {v}, {{"axes", std::vector<Expr>{Expr(axis)}}}));
  }
  DLC_TRY(const ValueId y, concatenated(n, std::move(parts), axis));
  return Values{y};
}

// Parts of the given sizes, of one size, or of 1; those of 1 may lose the axis.
Result<Values> split(const NodeView& n) {
  DLC_TRY(const int64_t attr, n.attr_int("axis", 0));
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  DLC_TRY(const int64_t keepdims, n.attr_int("keepdims", 1));
  const auto shape = n.type(0).shape;
  const auto extent = shape[static_cast<size_t>(axis)].constant();
  if (!extent) return n.error("the axis must be known when compiling", "bind it with --dim NAME=VALUE");
  std::vector<int64_t> sizes;
  if (n.has(1)) {
    DLC_TRY(const auto known, n.known_ints(1, "split"));
    for (const Expr& e : known) {
      if (!e.constant() || *e.constant() < 0) return n.error("the sizes must be known when compiling");
      sizes.push_back(*e.constant());
    }
    if (n.rank(1) == 0 && sizes[0] > 0) DLC_CHECK(n.spend(*extent / sizes[0]));
    if (n.rank(1) == 0 && sizes[0] > 0)
      for (int64_t left = *extent - sizes[0]; left > 0; left -= sizes[0]) sizes.push_back(std::min(left, sizes[0]));
  } else {
    DLC_CHECK(n.spend(*extent));
    sizes.assign(static_cast<size_t>(*extent), 1);
  }
  Values parts;
  int64_t from = 0;
  for (const int64_t size : sizes) {
    std::vector<Expr> start(shape.size(), Expr(0));
    std::vector<Expr> stop = shape;
    start[static_cast<size_t>(axis)] = from;
    if (size > *extent - from) return n.error(fmt::format("the sizes sum to more than the {} elements", *extent));
    stop[static_cast<size_t>(axis)] = from += size;
    DLC_TRY(ValueId part, n.emit("slice", {n.in(0)}, {{"start", start}, {"stop", stop}}));
    if (!n.has(1) && keepdims == 0) {
      DLC_TRY(part, n.emit("squeeze", {part}, {{"axes", std::vector<Expr>{Expr(axis)}}}));
    }
    parts.push_back(part);
  }
  if (from != *extent) return n.error(fmt::format("the sizes sum to {}, the axis has {} elements", from, *extent));
  return Values{n.make_sequence(std::move(parts))};
}

Result<Values> optional(const NodeView& n) { return Values{n.has(0) ? n.in(0) : n.make_nothing()}; }

Result<Values> get_element(const NodeView& n) {
  if (!n.has(0) || n.is_nothing(0)) return n.error("the optional value is absent");
  return Values{n.in(0)};
}

Result<Values> has_element(const NodeView& n) {
  DLC_TRY(const ValueId v, n.scalar(kBool, n.has(0) && !n.is_nothing(0) ? 1 : 0));
  return Values{v};
}

Result<Values> identity(const NodeView& n) {
  if (!n.has(0)) return n.error("input 0 is missing");
  return Values{n.in(0)};
}

constexpr OpEntry kTable[] = {
    {"", "SequenceConstruct", construct, "t*"},
    {"", "SequenceEmpty", empty, "", "dtype"},
    {"", "SequenceInsert", insert, "stT"},
    {"", "SequenceErase", erase, "sT"},
    {"", "SequenceAt", at, "st"},
    {"", "SequenceLength", length, "s"},
    {"", "ConcatFromSequence", concat, "s"},
    {"", "SplitToSequence", split, "tT", "keepdims"},
    {"", "Optional", optional, "V", "type"},
    {"", "OptionalGetElement", get_element, "v"},
    {"", "OptionalHasElement", has_element, "V"},
    {"", "Identity", identity, "v"},
};

}  // namespace

std::span<const OpEntry> sequence_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
