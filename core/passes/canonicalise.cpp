// Canonical form: fewer ways to say the same.
//
//   copy that moves nothing (cast to its own type, slice of everything, x * 1)  -> its input
//   copy of a copy                                                              -> one reshape or transpose
//   copy that keeps row-major order (transpose of unit dims)                    -> reshape
//   pad by zeros before conv or avg_pool                                        -> their own padding
//   x^2, x^3                                                                    -> products
//
// Copies are recognised by their kernels (core/passes/copy.h), not by their names.
#include <algorithm>

#include "core/passes/copy.h"
#include "core/passes/passes.h"
#include "dlc/ops/attributes.h"

namespace dlc {

namespace {

class Canonicaliser {
 public:
  Canonicaliser(Graph& g, PassContext& context) : g_(g), context_(context) {}

  Result<> run() {
    for (NodeId n : g_.order()) {
      DLC_CHECK(visit_copy(n));
      if (!g_.node(n).erased) DLC_CHECK(join_padding(n));
      if (!g_.node(n).erased) DLC_CHECK(multiply_out(n));
    }
    return {};
  }

 private:
  void replace(NodeId n, ValueId by) {
    const ValueId result = g_.node(n).outputs[0];
    g_.replace_uses(result, by);
    g_.erase(n);
    copies_.erase(result);
  }

  void add_locations(NodeId first, NodeId n) {
    std::vector<std::string> all = g_.node(first).locations;
    for (const auto& l : g_.node(n).locations)
      if (std::ranges::find(all, l) == all.end()) all.push_back(l);
    g_.node(n).locations = std::move(all);
  }

  // Replaces n, whose inputs were visited before, by a simpler copy if there is one.
  Result<> visit_copy(NodeId n) {
    auto copy = as_copy(g_, n);
    if (!copy) return {};
    const ValueId result = g_.node(n).outputs[0];
    const bool is_result = std::ranges::find(g_.outputs, result) != g_.outputs.end();
    bool merged = false;
    if (auto first = copies_.find(copy->from); first != copies_.end()) {
      Copy both = compose(first->second, *copy);
      if (is_identity(both) || is_reshape(both) || as_transpose(both)) {
        add_locations(g_.value(copy->from).producer, n);
        copy = std::move(both);
        merged = true;
      }
    }
    // A result that is an input stays a copy: outputs own their bytes.
    const bool from_input = std::ranges::find(g_.inputs, copy->from) != g_.inputs.end();
    if (is_identity(*copy) && !(is_result && from_input)) {
      ++context_.counts["copies removed"];
      replace(n, copy->from);
      return {};
    }
    const std::string op = g_.node(n).op;
    if (is_identity(*copy)) {
      if (merged) return rebuild(n, *copy, "identity", {}, merged);
    } else if (is_reshape(*copy)) {
      if (merged || op != "reshape") return rebuild(n, *copy, "reshape", {{"shape", copy->result_shape}}, merged);
    } else if (auto perm = as_transpose(*copy); perm && (merged || op != "transpose")) {
      return rebuild(n, *copy, "transpose", {{"perm", std::vector<Expr>(perm->begin(), perm->end())}}, merged);
    }
    copies_.emplace(result, *std::move(copy));
    return {};
  }

  Result<> rebuild(NodeId n, const Copy& copy, const std::string& op, Attrs attrs, bool merged) {
    const Node& old = g_.node(n);
    std::vector<std::string> locations = old.locations;
    const std::string name = g_.value(old.outputs[0]).name;
    DLC_TRY(NodeId made, g_.add_node(op, {copy.from}, std::move(attrs), std::move(locations)));
    const ValueId result = g_.node(made).outputs[0];
    ++context_.counts[merged ? "copies merged" : "copies renamed"];
    replace(n, result);
    g_.rename(result, name);
    if (auto again = as_copy(g_, made)) copies_.emplace(result, *std::move(again));
    return {};
  }

  bool is_zero(ValueId v) const {
    const auto& constant = g_.value(v).constant;
    return constant && constant->elements() == 1 && constant->get_double(0) == 0;
  }

  // conv and avg_pool read zeros outside their input: a pad by zeros of the spatial dims is more of the same.
  Result<> join_padding(NodeId n) {
    Node& user = g_.node(n);
    if ((user.op != "conv" && user.op != "avg_pool") || user.inputs.empty()) return {};
    const NodeId p = g_.value(user.inputs[0]).producer;
    if (p == kNoNode || g_.node(p).op != "pad") return {};
    const Node& pad = g_.node(p);
    const Attributes padding(*g_.record_set().find("pad"), pad.attrs);
    if (padding.text("mode") != "constant") return {};
    if (pad.inputs.size() > 1 && pad.inputs[1] != kNoValue && !is_zero(pad.inputs[1])) return {};
    const size_t rank = g_.value(user.inputs[0]).type.shape.size();
    if (rank < 3) return {};
    const auto los = padding.list("lo", rank), his = padding.list("hi", rank);
    if (!los || !his) return {};
    const auto &lo = *los, &hi = *his;
    for (size_t d = 0; d < rank; ++d) {
      if (d < 2 ? !(lo[d].is(0) && hi[d].is(0)) : !(lo[d].constant() >= 0 && hi[d].constant() >= 0)) return {};
    }
    Attrs attrs = user.attrs;
    const Attributes own_attrs(*g_.record_set().find(user.op), user.attrs);
    const auto own_lo = own_attrs.list("pad_lo", rank - 2), own_hi = own_attrs.list("pad_hi", rank - 2);
    if (!own_lo || !own_hi) return {};
    auto pad_lo = *own_lo, pad_hi = *own_hi;
    if (user.op == "avg_pool") {
      // In ceil mode a window may start in the data, padded or not, but not in the pool's own high padding.
      if (own_attrs.integer("ceil_mode") != 0) return {};
      // The padding counts as elements, so that the pool's own must, too.
      const bool own = std::ranges::any_of(pad_lo, [](const Expr& e) { return !e.is(0); }) ||
                       std::ranges::any_of(pad_hi, [](const Expr& e) { return !e.is(0); });
      if (own && own_attrs.integer("count_include_pad") != 1) return {};
      attrs.insert_or_assign("count_include_pad", Expr(1));
    }
    for (size_t d = 0; d < rank - 2; ++d) {
      pad_lo[d] += lo[d + 2];
      pad_hi[d] += hi[d + 2];
    }
    attrs.insert_or_assign("pad_lo", pad_lo);
    attrs.insert_or_assign("pad_hi", pad_hi);

    std::vector<ValueId> inputs = user.inputs;
    inputs[0] = pad.inputs[0];
    add_locations(p, n);
    std::vector<std::string> locations = user.locations;
    const ValueId result = user.outputs[0];
    const std::string op = user.op, name = g_.value(result).name;
    auto made = g_.add_node(op, std::move(inputs), std::move(attrs), std::move(locations));
    if (!made) return {};  // the op does not take this much padding
    const ValueId joined = g_.node(*made).outputs[0];
    replace(n, joined);
    g_.rename(joined, name);
    ++context_.counts["paddings joined"];
    return {};
  }

  // Small powers are products. A cube of a narrow float is none: its square would be rounded.
  Result<> multiply_out(NodeId n) {
    const Node node = g_.node(n);
    if (node.op != "pow") return {};
    const ValueId x = node.inputs[0];
    const TensorType type = g_.value(node.outputs[0]).type;
    const auto& exponent = g_.value(node.inputs[1]).constant;
    if (!exponent || exponent->elements() != 1 || !type.dtype.is_float() || g_.value(x).type != type) return {};
    const double power = exponent->get_double(0);
    if (power != 2 && (power != 3 || type.dtype.bytes() < 4)) return {};
    const std::string name = g_.value(node.outputs[0]).name;
    ValueId product = x;
    for (int i = 1; i < power; ++i) {
      DLC_TRY(const NodeId made, g_.add_node("mul", {product, x}, {}, node.locations));
      product = g_.node(made).outputs[0];
    }
    replace(n, product);
    g_.rename(product, name);
    ++context_.counts["powers"];
    return {};
  }

  Graph& g_;
  PassContext& context_;
  std::map<ValueId, Copy> copies_;  // results of visited nodes that are copies
};

}  // namespace

Result<> canonicalise(Graph& g, PassContext& context) {
  DLC_CHECK(Canonicaliser(g, context).run());
  return dce(g, context);
}

}  // namespace dlc
