#include "core/interp/tree_walk.h"

#include <fmt/format.h>

namespace dlc::interp {

// ---- statements --------------------------------------------------------------------------------------------------

namespace {

Result<> run_seq(RunState& run, const StmtCode& s, size_t depth, const AssignFn& assign,
                 std::vector<LoopCode>& around) {
  if (depth == s.loops.size()) return run_statements(run, s.body, assign, around);
  const LoopCode& l = s.loops[depth];
  DLC_TRY(const int64_t n, extent(run, s, l));
  around.push_back(l);
  for (int64_t i = 0; i < n; ++i) {
    run.slot(l.slot) = s.step > 0 ? i : n - 1 - i;
    DLC_CHECK(run_seq(run, s, depth + 1, assign, around));
  }
  around.pop_back();
  return {};
}

}  // namespace

Result<> run_statements(RunState& run, const std::vector<StmtCode>& body, const AssignFn& assign,
                        std::vector<LoopCode>& around) {
  for (const StmtCode& s : body) DLC_CHECK(s.is_seq() ? run_seq(run, s, 0, assign, around) : assign(s, around));
  return {};
}

Result<> TreeWalk::assign(const StmtCode& s, const std::vector<LoopCode>& around) { return loops(s, 0, around); }

Result<> TreeWalk::loops(const StmtCode& s, size_t depth, const std::vector<LoopCode>& around) {
  if (depth == s.loops.size()) return point(s, around);
  DLC_TRY(const int64_t n, extent(run_, s, s.loops[depth]));
  for (int64_t i = 0; i < n; ++i) {
    run_.slot(s.loops[depth].slot) = i;
    DLC_CHECK(loops(s, depth + 1, around));
  }
  return {};
}

Result<> TreeWalk::point(const StmtCode& s, const std::vector<LoopCode>& around) {
  problem_.clear();
  const Scalar v = eval(s.value);
  std::string why;
  std::byte* p = problem_.empty() ? address(s.tensor, s.indices, &why) : nullptr;
  if (!problem_.empty()) return stmt_error(run_, s, problem_, around);
  const auto& name = run_.code->kernel.tensors[static_cast<size_t>(s.tensor)].name;
  if (p == nullptr) return stmt_error(run_, s, "store outside " + name + ": " + why, around);
  if (v.undefined) return stmt_error(run_, s, "an undefined value is stored to " + name, around);
  const Memory& m = run_.tensors[static_cast<size_t>(s.tensor)];
  with_type(s.value.ty, [&](auto tag) { store_element(m.dtype, m.elem, p, v.get<typename decltype(tag)::type>()); });
  return {};
}

std::byte* TreeWalk::address(int tensor, const std::vector<Node>& indices, std::string* why) {
  const Memory& m = run_.tensors[static_cast<size_t>(tensor)];
  int64_t offset = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Scalar i = eval(indices[d]);
    if (i.undefined || i.s64 < 0 || i.s64 >= m.shape[d]) {
      if (why)
        *why = i.undefined ? fmt::format("index {} is undefined", d)
                           : fmt::format("index {} is {}, the extent is {}", d, i.s64, m.shape[d]);
      return nullptr;
    }
    offset += i.s64 * m.strides[d];
  }
  if (offset < m.lowest || offset > m.highest) {
    if (why) *why = fmt::format("byte {} is outside the memory it is a view of", offset);
    return nullptr;
  }
  return m.data + offset;
}

// ---- values ------------------------------------------------------------------------------------------------------

Scalar TreeWalk::eval(const Node& n) {
  switch (n.kind) {
    case NodeKind::constant:
      return n.constant;
    case NodeKind::index: {
      const auto v = n.code.evaluate(run_.env.data());
      return v ? Scalar::of(*v) : Scalar::undef();
    }
    case NodeKind::read:
      return read(n);
    case NodeKind::unary:
      return unary(n);
    case NodeKind::binary:
      return binary(n);
    case NodeKind::select: {
      const Scalar c = condition(n.args[0]);
      if (c.undefined) return c;
      return eval(n.args[c.b ? 1 : 2]);
    }
    case NodeKind::orelse: {
      const Scalar a = eval(n.args[0]);
      return a.undefined ? eval(n.args[1]) : a;
    }
    case NodeKind::call:
      return call(n);
    case NodeKind::cast: {
      const Scalar a = eval(n.args[0]);
      if (a.undefined) return a;
      return with_type(n.args[0].ty, [&](auto from) {
        return with_type(n.ty, [&](auto to) {
          using From = typename decltype(from)::type;
          using To = typename decltype(to)::type;
          return Scalar::of(cast_to<To>(n.to, n.saturate, a.get<From>()));
        });
      });
    }
    case NodeKind::reduce:
      return reduce(n);
    case NodeKind::undef:
      break;
  }
  return Scalar::undef();
}

Scalar TreeWalk::condition(const Node& n) {
  const Scalar c = eval(n);
  if (c.undefined && problem_.empty()) problem_ = "a condition is undefined";
  return c;
}

Scalar TreeWalk::read(const Node& n) {
  const std::byte* p = address(n.tensor, n.args, nullptr);
  if (p == nullptr) return Scalar::undef();
  const Memory& m = run_.tensors[static_cast<size_t>(n.tensor)];
  return with_elem(m.elem, [&](auto container, auto decode) {
    const auto raw = decode(load_raw<typename decltype(container)::type>(p), m.dtype);
    return with_type(n.ty, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (!is_odd_width(m.dtype)) return Scalar::of(convert<T>(raw));
      return Scalar::of(cast_to<T>(m.dtype, false, raw));
    });
  });
}

Scalar TreeWalk::unary(const Node& n) {
  const Scalar a = eval(n.args[0]);
  if (a.undefined) return a;
  return with_type(n.ty, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T x = a.get<T>();
    if (n.unary_op() == UnaryOp::logical_not) return Scalar::of(static_cast<T>(x == T{0}));
    if constexpr (is_real<T>) {
      return Scalar::of(static_cast<T>(-x));
    } else {
      return Scalar::of(n.unary_op() == UnaryOp::neg ? Sub::f(T{0}, x) : static_cast<T>(~x));
    }
  });
}

Scalar TreeWalk::binary(const Node& n) {
  const BinaryOp op = n.binary_op();
  const Scalar a = eval(n.args[0]);
  if (a.undefined) return a;
  if (op == BinaryOp::logical_and || op == BinaryOp::logical_or) {
    if ((a.b != 0) == (op == BinaryOp::logical_or)) return a;
    return eval(n.args[1]);
  }
  const Scalar b = eval(n.args[1]);
  if (b.undefined) return b;
  return with_type(n.args[0].ty, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T x = a.get<T>(), y = b.get<T>();
    const auto total = [&](auto functor) { return Scalar::of(decltype(functor)::f(x, y)); };
    const auto truth = [&](bool v) { return Scalar::of(static_cast<uint8_t>(v)); };
    const auto partial = [&](auto functor) {
      Scalar r;
      r.set(decltype(functor)::f(x, y, r.undefined));
      return r;
    };
    switch (op) {
      case BinaryOp::eq:
        return truth(Eq::f(x, y));
      case BinaryOp::ne:
        return truth(Ne::f(x, y));
      case BinaryOp::lt:
        return truth(Lt::f(x, y));
      case BinaryOp::le:
        return truth(Le::f(x, y));
      case BinaryOp::gt:
        return truth(Lt::f(y, x));
      case BinaryOp::ge:
        return truth(Le::f(y, x));
      default:
        break;
    }
    if constexpr (std::is_same_v<T, uint8_t>) {
      return Scalar::undef();  // no arithmetic on bool: verify() refuses it
    } else {
      switch (op) {
        case BinaryOp::add:
          return total(Add{});
        case BinaryOp::sub:
          return total(Sub{});
        case BinaryOp::mul:
          return total(Mul{});
        case BinaryOp::floor_div:
          return partial(FloorDiv{});
        case BinaryOp::mod:
          return partial(FloorMod{});
        default:
          break;
      }
      if constexpr (is_real<T>) {
        return total(Div{});
      } else {
        switch (op) {
          case BinaryOp::shl:
            return partial(ShiftLeft{});
          case BinaryOp::shr:
            return partial(ShiftRight{});
          case BinaryOp::bit_and:
            return total(BitAnd{});
          case BinaryOp::bit_or:
            return total(BitOr{});
          default:
            return total(BitXor{});
        }
      }
    }
  });
}

Scalar TreeWalk::call(const Node& n) {
  std::vector<Scalar> args;
  for (const Node& a : n.args) {
    args.push_back(eval(a));
    if (args.back().undefined) return args.back();
  }
  return with_type(n.args[0].ty, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T x = args[0].get<T>();
    if constexpr (std::is_same_v<T, uint8_t>) {
      return Scalar::undef();  // verify() refuses it
    } else {
      const auto fold = [&](auto functor) {
        T r = x;
        for (size_t i = 1; i < args.size(); ++i) r = decltype(functor)::f(r, args[i].get<T>());
        return Scalar::of(r);
      };
      const auto partial = [&](auto functor) {
        Scalar r;
        r.set(decltype(functor)::f(x, args[1].get<T>(), r.undefined));
        return r;
      };
      switch (n.fn()) {
        case Fn::min:
          return fold(Min{});
        case Fn::max:
          return fold(Max{});
        case Fn::pow:
          return fold(Pow{});
        case Fn::fmod:
          return partial(TruncMod{});
        case Fn::tdiv:
          return partial(TruncDiv{});
        case Fn::is_nan:
          return Scalar::of(static_cast<uint8_t>(is_nan(x)));
        case Fn::is_inf:
          return Scalar::of(static_cast<uint8_t>(is_inf(x)));
        default:
          return Scalar::of(unary_fn(n.fn(), x));
      }
    }
  });
}

// ---- reductions --------------------------------------------------------------------------------------------------

Scalar TreeWalk::reduce(const Node& n) {
  const Node& body = n.args[0];
  return with_type(body.ty, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Reducer<T> reducer{n.reduce_op(), n.to};
    T acc = reducer.identity();
    int64_t best = -1;
    bool undefined = false;
    std::vector<int64_t> extents;
    const auto fold = [&](int64_t position) {
      const Scalar v = eval(body);
      undefined |= v.undefined;
      if (undefined) return;
      const T x = v.get<T>();
      if (!reducer.is_arg()) {
        acc = reducer.combine(acc, x);
      } else if (best < 0 || reducer.better(x, acc)) {
        acc = x;
        best = position;
      }
    };
    const auto nest = [&](auto& self, size_t depth) -> void {
      const LoopCode& l = n.loops[depth];
      const auto extent = l.extent.evaluate(run_.env.data());
      undefined |= !extent;
      for (int64_t i = 0; !undefined && i < *extent; ++i) {
        run_.slot(l.slot) = i;
        if (depth + 1 == n.loops.size())
          fold(i);
        else
          self(self, depth + 1);
      }
    };
    nest(nest, 0);
    if (undefined || (reducer.is_arg() && best < 0)) return Scalar::undef();
    return reducer.is_arg() ? Scalar::of(best) : Scalar::of(acc);
  });
}

}  // namespace dlc::interp
