#include "tests/fuzz/bound_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/interp/lower.h"

namespace dlc::fuzz {

namespace {

using interp::LoopCode;
using interp::Node;
using interp::NodeKind;
using interp::StmtCode;

class Walk {
 public:
  Walk(const interp::Lowered& code, int64_t most_work)
      : code_(code), most_work_(most_work), env_(static_cast<size_t>(code.slots.size())) {}

  Result<std::vector<BoundTensor>> run(const std::vector<const BoundTensor*>& inputs, const Bindings& symbols) {
    const Kernel& k = code_.kernel;
    for (const int slot : code_.parameters) {
      const auto it = symbols.find(code_.slots.name(slot));
      if (it == symbols.end()) return fail({}, "no value for symbol " + code_.slots.name(slot));
      env_[static_cast<size_t>(slot)] = it->second;
    }
    for (size_t i = 0; i < k.tensors.size(); ++i) {
      BoundTensor t{k.tensors[i].dtype, {}, {}};
      if (k.tensors[i].view) return fail({}, "a view has no bounds");
      int64_t n = 1;
      for (const auto& d : code_.tensors[i].shape) {
        t.shape.push_back(d.evaluate(env_.data()).value_or(0));
        n *= t.shape.back();
        if (n < 0 || n > most_work_) return fail({}, "a tensor is too large");
      }
      t.elements.resize(static_cast<size_t>(n));
      tensors_.push_back(std::move(t));
    }
    for (size_t i = 0; i < k.inputs.size() && i < inputs.size(); ++i)
      if (k.inputs[i] >= 0 && inputs[i]) tensors_[static_cast<size_t>(k.inputs[i])] = *inputs[i];
    DLC_CHECK(statements(code_.body));
    if (work_ > most_work_) return fail({}, "too much work");
    std::vector<BoundTensor> results;
    for (const int t : k.outputs) results.push_back(tensors_[static_cast<size_t>(t)]);
    return results;
  }

 private:
  Result<> statements(const std::vector<StmtCode>& body) {
    for (const StmtCode& s : body) DLC_CHECK(loops(s, 0));
    return {};
  }

  Result<> loops(const StmtCode& s, size_t depth) {
    if (depth == s.loops.size()) return s.is_seq() ? statements(s.body) : store(s);
    const LoopCode& l = s.loops[depth];
    const auto n = l.extent.evaluate(env_.data());
    if (!n || *n < 0) return fail({}, "an extent has no value");
    if (work_ > most_work_) return fail({}, "too much work");
    for (int64_t i = 0; i < *n; ++i) {
      env_[static_cast<size_t>(l.slot)] = s.is_seq() && s.step < 0 ? *n - 1 - i : i;
      DLC_CHECK(loops(s, depth + 1));
    }
    return {};
  }

  Result<> store(const StmtCode& s) {
    const ValNode& v = *s.source->value;
    const Number x = eval(v, s.value);
    BoundTensor& t = tensors_[static_cast<size_t>(s.tensor)];
    bool certain = true;
    const auto at = address(s.tensor, s.source->indices, s.indices, certain);
    if (!certain) {
      std::ranges::fill(t.elements, Number::unknown());
      return {};
    }
    if (!at) return fail({}, "a store outside its tensor");
    if (x.undefined) return fail({}, "an undefined value is stored");
    t.elements[*at] = cast(v.type, t.dtype, false, x);
    return {};
  }

  std::optional<size_t> address(int tensor, const std::vector<Val>& vals, const std::vector<Node>& nodes,
                                bool& certain) {
    const BoundTensor& t = tensors_[static_cast<size_t>(tensor)];
    int64_t at = 0;
    for (size_t d = 0; d < nodes.size(); ++d) {
      const Number i = eval(*vals[d], nodes[d]);
      certain = certain && i.known;
      if (!i.is_usable() || i.i < 0 || i.i >= t.shape[d]) return std::nullopt;
      at = at * t.shape[d] + i.i;
    }
    return static_cast<size_t>(at);
  }

  Number eval(const ValNode& v, const Node& n) {
    if (++work_ > most_work_) return Number::unknown();
    switch (n.kind) {
      case NodeKind::constant:
        if (v.kind == ValKind::real) return rounded(v.type, Number::real(v.real));
        return v.type.is_float() ? cast(kS64, v.type, false, Number::integer(v.integer)) : Number::integer(v.integer);
      case NodeKind::index: {
        const auto i = n.code.evaluate(env_.data());
        return i ? Number::integer(*i) : Number::undef();
      }
      case NodeKind::read: {
        bool certain = true;
        const auto at = address(n.tensor, v.args, n.args, certain);
        if (!certain) return Number::unknown();
        return at ? tensors_[static_cast<size_t>(n.tensor)].elements[*at] : Number::undef();
      }
      case NodeKind::unary: {
        const Number a = arg(v, n, 0);
        return a.is_usable() ? unary(v.unary_op(), v.type, a) : a;
      }
      case NodeKind::binary:
        return binary_value(v, n);
      case NodeKind::select:
        return choice(v, n);
      case NodeKind::orelse: {
        const Number a = arg(v, n, 0);
        return a.undefined ? arg(v, n, 1) : a;
      }
      case NodeKind::call: {
        Number r = arg(v, n, 0);
        if (!r.is_usable()) return r;
        const DType t = v.args[0]->type;
        if (n.args.size() == 1) return call(v.fn(), t, r, nullptr);
        for (size_t i = 1; i < n.args.size(); ++i) {
          const Number b = arg(v, n, i);
          if (!b.is_usable()) return b;
          r = call(v.fn(), t, r, &b);
        }
        return r;
      }
      case NodeKind::cast:
        return cast(v.args[0]->type, v.to, v.saturate, arg(v, n, 0));
      case NodeKind::reduce: {
        Fold fold(v.reduce_op(), v.to);
        reduce(v, n, 0, fold);
        return fold.result();
      }
      case NodeKind::undef:
        break;
    }
    return Number::undef();
  }

  Number arg(const ValNode& v, const Node& n, size_t i) { return eval(*v.args[i], n.args[i]); }

  Number binary_value(const ValNode& v, const Node& n) {
    const BinaryOp op = v.binary_op();
    const Number a = arg(v, n, 0);
    if (op == BinaryOp::logical_and || op == BinaryOp::logical_or) {
      const bool decides = op == BinaryOp::logical_or;
      if (a.undefined || (a.known && (a.i != 0) == decides)) return a;
      const Number b = arg(v, n, 1);
      return a.known || (b.is_usable() && (b.i != 0) == decides) ? b : Number::unknown();
    }
    if (a.undefined) return a;
    const Number b = arg(v, n, 1);
    if (b.undefined) return b;
    return a.known && b.known ? binary(op, v.args[0]->type, a, b) : Number::unknown();
  }

  // Where the condition is not certain, either side.
  Number choice(const ValNode& v, const Node& n) {
    const Number c = arg(v, n, 0);
    if (c.undefined) return c;
    if (c.known) return arg(v, n, c.i ? 1 : 2);
    const Number a = arg(v, n, 1), b = arg(v, n, 2);
    if (!a.is_usable() || !b.is_usable()) return Number::unknown();
    if (!v.type.is_float()) return a.i == b.i ? a : Number::unknown();
    if (!std::isfinite(a.v) || !std::isfinite(b.v)) return Number::unknown();
    return Number::real(a.v, std::abs(a.v - b.v) + std::max(a.error, b.error));
  }

  void reduce(const ValNode& v, const Node& n, size_t depth, Fold& fold) {
    const LoopCode& l = n.loops[depth];
    const int64_t extent = l.extent.evaluate(env_.data()).value_or(0);
    for (int64_t i = 0; i < extent && work_ <= most_work_; ++i) {
      env_[static_cast<size_t>(l.slot)] = i;
      if (depth + 1 == n.loops.size())
        fold.add(arg(v, n, 0), v.args[0]->type, i);
      else
        reduce(v, n, depth + 1, fold);
    }
  }

  const interp::Lowered& code_;
  const int64_t most_work_;
  std::vector<int64_t> env_;
  std::vector<BoundTensor> tensors_;
  int64_t work_ = 0;
};

}  // namespace

BoundTensor bound_tensor(const Tensor& t) {
  BoundTensor b{t.dtype(), t.shape(), {}};
  for (int64_t i = 0; i < t.elements(); ++i)
    b.elements.push_back(t.dtype().is_float() ? Number::real(t.get_double(i)) : Number::integer(t.get_int(i)));
  return b;
}

std::optional<std::string> difference(const BoundTensor& want, const Tensor& got) {
  if (got.shape() != want.shape)
    return fmt::format("shape {} expected, {} computed", to_string(want.dtype, want.shape),
                       to_string(got.dtype(), got.shape()));
  for (int64_t i = 0; i < got.elements(); ++i) {
    const Number& x = want.elements[static_cast<size_t>(i)];
    if (!x.is_usable()) continue;
    if (!want.dtype.is_float()) {
      if (got.get_int(i) != x.i) return fmt::format("element {}: {} expected, {} computed", i, x.i, got.get_int(i));
      continue;
    }
    const double y = got.get_double(i), tolerance = kForms * x.error;
    const bool same = x.v == y || (std::isnan(x.v) && std::isnan(y)) || std::abs(x.v - y) <= tolerance;
    if (!same) return fmt::format("element {}: {} expected, {} computed, may differ by {:.2g}", i, x.v, y, tolerance);
  }
  return std::nullopt;
}

Result<std::vector<BoundTensor>> walk(const Kernel& kernel, const std::vector<const BoundTensor*>& inputs,
                                      int64_t most_work, const Bindings& symbols) {
  DLC_TRY(const auto code, interp::lower(kernel, {}));
  return Walk(*code, most_work).run(inputs, symbols);
}

}  // namespace dlc::fuzz
