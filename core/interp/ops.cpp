#include "core/interp/ops.h"

#include <algorithm>
#include <cstring>

namespace dlc::interp {

namespace {

// ---- undefined lanes ---------------------------------------------------------------------------------------------

void or_mask(Vec& dst, const Vec& src, bool src_uniform, int n) {
  if (!src.any_undefined) return;
  if (!dst.any_undefined) {
    if (src_uniform)
      std::memset(dst.undefined, 1, static_cast<size_t>(n));
    else
      std::memcpy(dst.undefined, src.undefined, static_cast<size_t>(n));
    dst.any_undefined = true;
    return;
  }
  for (int i = 0; i < n; ++i) dst.undefined[i] |= src.undefined[src_uniform ? 0 : i];
}

int lanes(const Instr& i, const Frame& f) { return i.uniform ? 1 : f.n; }

Vec& begin(const Instr& i, Frame& f) {
  Vec& d = f.regs[i.dst];
  d.data = d.home;
  d.any_undefined = false;
  return d;
}

void mark(Vec& d, int lane, int n) {
  if (!d.any_undefined) std::memset(d.undefined, 0, static_cast<size_t>(n));
  d.any_undefined = true;
  d.undefined[lane] = 1;
}

// ---- element-wise ------------------------------------------------------------------------------------------------

template <class T, class R, class F>
inline void map1(const Instr& i, Frame& f, F op) {
  const int n = lanes(i, f);
  Vec& d = begin(i, f);
  const Vec& a = f.regs[i.a];
  const T* __restrict x = a.as<T>();
  R* __restrict r = d.as<R>();
  for (int k = 0; k < n; ++k) r[k] = op(x[k]);
  or_mask(d, a, i.a_uniform, n);
}

template <class T, class R, class F>
inline void map2(const Instr& i, Frame& f, F op) {
  const int n = lanes(i, f);
  Vec& d = begin(i, f);
  const Vec &a = f.regs[i.a], &b = f.regs[i.b];
  const T* __restrict x = a.as<T>();
  const T* __restrict y = b.as<T>();
  R* __restrict r = d.as<R>();
  if (i.a_uniform == i.b_uniform) {
    for (int k = 0; k < n; ++k) r[k] = op(x[k], y[k]);
  } else if (i.b_uniform) {
    const T c = y[0];
    for (int k = 0; k < n; ++k) r[k] = op(x[k], c);
  } else {
    const T c = x[0];
    for (int k = 0; k < n; ++k) r[k] = op(c, y[k]);
  }
  or_mask(d, a, i.a_uniform, n);
  or_mask(d, b, i.b_uniform, n);
}

template <class F, class T>
void total(const Instr& i, Frame& f) {
  map2<T, T>(i, f, [](T x, T y) { return F::template f<T>(x, y); });
}
template <class F, class T, bool swapped>
void compare(const Instr& i, Frame& f) {
  map2<T, uint8_t>(i, f, [](T x, T y) -> uint8_t { return swapped ? F::template f<T>(y, x) : F::template f<T>(x, y); });
}
template <class F, class T>
void partial(const Instr& i, Frame& f) {
  const int n = lanes(i, f);
  Vec& d = begin(i, f);
  const Vec &a = f.regs[i.a], &b = f.regs[i.b];
  or_mask(d, a, i.a_uniform, n);
  or_mask(d, b, i.b_uniform, n);
  const T* x = a.as<T>();
  const T* y = b.as<T>();
  T* r = d.as<T>();
  for (int k = 0; k < n; ++k) {
    bool undefined = false;
    r[k] = F::template f<T>(x[i.a_uniform ? 0 : k], y[i.b_uniform ? 0 : k], undefined);
    if (undefined) mark(d, k, n);
  }
}

// A partial functor whose second operand is known to be good.
template <class F, class T>
void defined(const Instr& i, Frame& f) {
  map2<T, T>(i, f, [](T x, T y) {
    bool undefined = false;
    return F::template f<T>(x, y, undefined);
  });
}

// `and`, `or`: the second operand counts only where the first does not decide.
template <bool is_or>
void logical(const Instr& i, Frame& f) {
  const int n = lanes(i, f);
  Vec& d = begin(i, f);
  const Vec &a = f.regs[i.a], &b = f.regs[i.b];
  const uint8_t* x = a.as<uint8_t>();
  const uint8_t* y = b.as<uint8_t>();
  auto* r = d.as<uint8_t>();
  for (int k = 0; k < n; ++k) {
    const int ka = i.a_uniform ? 0 : k, kb = i.b_uniform ? 0 : k;
    const bool decided = (x[ka] != 0) == is_or;
    r[k] = decided ? is_or : y[kb];
    if ((a.any_undefined && a.undefined[ka]) || (!decided && b.any_undefined && b.undefined[kb])) mark(d, k, n);
  }
}

template <class T>
Instr::Fn arithmetic(BinaryOp op, bool is_defined) {
  switch (op) {
    case BinaryOp::add:
      return total<Add, T>;
    case BinaryOp::sub:
      return total<Sub, T>;
    case BinaryOp::mul:
      return total<Mul, T>;
    case BinaryOp::floor_div:
      return is_defined ? defined<FloorDiv, T> : partial<FloorDiv, T>;
    case BinaryOp::mod:
      return is_defined ? defined<FloorMod, T> : partial<FloorMod, T>;
    default:
      break;
  }
  if constexpr (is_real<T>) {
    return total<Div, T>;
  } else {
    switch (op) {
      case BinaryOp::shl:
        return is_defined ? defined<ShiftLeft, T> : partial<ShiftLeft, T>;
      case BinaryOp::shr:
        return is_defined ? defined<ShiftRight, T> : partial<ShiftRight, T>;
      case BinaryOp::bit_and:
        return total<BitAnd, T>;
      case BinaryOp::bit_or:
        return total<BitOr, T>;
      default:
        return total<BitXor, T>;
    }
  }
}

template <class T>
void negate(const Instr& i, Frame& f) {
  map1<T, T>(i, f, [](T x) {
    if constexpr (is_real<T>)
      return -x;
    else
      return Sub::f(T{0}, x);
  });
}
template <class T>
void bit_not(const Instr& i, Frame& f) {
  map1<T, T>(i, f, [](T x) { return static_cast<T>(~x); });
}
void logical_not(const Instr& i, Frame& f) {
  map1<uint8_t, uint8_t>(i, f, [](uint8_t x) { return static_cast<uint8_t>(x == 0); });
}

template <class T, Fn fn>
void function(const Instr& i, Frame& f) {
  map1<T, T>(i, f, [](T x) { return unary_fn(fn, x); });
}
template <class T, size_t... N>
Instr::Fn pick_function(Fn fn, std::index_sequence<N...>) {
  static constexpr Instr::Fn table[] = {function<T, static_cast<Fn>(N)>...};
  return table[static_cast<size_t>(fn)];
}

template <class From, class To>
void cast(const Instr& i, Frame& f) {
  const DType to = i.to;
  const bool saturate = i.saturate;
  if constexpr (!is_real<From> && !std::is_same_v<From, uint64_t> &&
                (std::is_same_v<To, int64_t> || std::is_same_v<To, int32_t>)) {
    if (saturate) {  // clamp, in a form that becomes vector code
      const auto lo = static_cast<int64_t>(to.min_value()), hi = static_cast<int64_t>(to.max_value());
      map1<From, To>(i, f, [lo, hi](From x) {
        const auto v = static_cast<int64_t>(x);
        return static_cast<To>(v < lo ? lo : v > hi ? hi : v);
      });
      return;
    }
  }
  map1<From, To>(i, f, [to, saturate](From x) { return cast_to<To>(to, saturate, x); });
}
template <class From, class To>
void change_type(const Instr& i, Frame& f) {
  map1<From, To>(i, f, [](From x) { return convert<To>(x); });
}

// ---- choices -----------------------------------------------------------------------------------------------------

template <class T>
void select(const Instr& i, Frame& f) {
  const int n = lanes(i, f);
  Vec& d = begin(i, f);
  const Vec &c = f.regs[i.a], &a = f.regs[i.b], &b = f.regs[i.c];
  if (c.any_undefined) f.odd = true;
  const uint8_t* cond = c.as<uint8_t>();
  const T* x = a.as<T>();
  const T* y = b.as<T>();
  T* r = d.as<T>();
  if (i.a_uniform) {
    const Vec& chosen = cond[0] ? a : b;
    const bool chosen_uniform = cond[0] ? i.b_uniform : i.c_uniform;
    if (chosen_uniform == i.uniform)
      d.data = chosen.data;
    else
      std::fill_n(r, n, chosen.as<T>()[0]);
    return or_mask(d, chosen, chosen_uniform, n);
  }
  if (!i.b_uniform && !i.c_uniform) {
    for (int k = 0; k < n; ++k) r[k] = cond[k] ? x[k] : y[k];
  } else {
    for (int k = 0; k < n; ++k) r[k] = cond[k] ? x[i.b_uniform ? 0 : k] : y[i.c_uniform ? 0 : k];
  }
  if (!a.any_undefined && !b.any_undefined && !c.any_undefined) return;
  for (int k = 0; k < n; ++k) {
    const bool undefined =
        (c.any_undefined && c.undefined[k]) || (cond[k] ? a.any_undefined && a.undefined[i.b_uniform ? 0 : k]
                                                        : b.any_undefined && b.undefined[i.c_uniform ? 0 : k]);
    if (undefined) mark(d, k, n);
  }
}

template <class T>
void branch(const Instr& i, Frame& f) {
  execute(*i.nest->blocks[f.regs[i.a].as<uint8_t>()[0] ? 0 : 1], f);
  select<T>(i, f);
}

template <class T>
void orelse(const Instr& i, Frame& f) {
  const int n = lanes(i, f);
  Vec& d = begin(i, f);
  const Vec &a = f.regs[i.a], &b = f.regs[i.b];
  const T* __restrict x = a.as<T>();
  const T* __restrict y = b.as<T>();
  T* __restrict r = d.as<T>();
  if (!a.any_undefined) {
    if (i.a_uniform == i.uniform)
      d.data = a.data;
    else
      std::fill_n(r, n, x[0]);
    return;
  }
  if (!i.a_uniform && !b.any_undefined) {  // a guarded read with a default: most of all strips that come here
    const uint8_t* __restrict undefined = a.undefined;
    if (i.b_uniform) {
      const T c = y[0];
      for (int k = 0; k < n; ++k) r[k] = undefined[k] ? c : x[k];
    } else {
      for (int k = 0; k < n; ++k) r[k] = undefined[k] ? y[k] : x[k];
    }
    return;
  }
  for (int k = 0; k < n; ++k) {
    const int ka = i.a_uniform ? 0 : k, kb = i.b_uniform ? 0 : k;
    r[k] = a.undefined[ka] ? y[kb] : x[ka];
    if (a.undefined[ka] && b.any_undefined && b.undefined[kb]) mark(d, k, n);
  }
}

template <class T>
void constant(const Instr& i, Frame& f) {
  begin(i, f).as<T>()[0] = i.constant.get<T>();
}

}  // namespace

void index_op(const Instr& i, Frame& f) {
  const int rows = i.uniform ? 1 : f.rows, cols = i.uniform ? 1 : f.cols;
  Vec& d = begin(i, f);
  const auto first = i.code.evaluate(f.env);
  if (!first) {
    std::memset(d.undefined, 1, static_cast<size_t>(rows * cols));
    std::memset(d.data, 0, static_cast<size_t>(rows * cols) * 8);
    d.any_undefined = true;
    return;
  }
  int64_t row = 0, col = 0;
  for (const Term& t : i.terms) (t.slot == i.row_slot ? row : col) = t.coefficient.evaluate(f.env).value_or(0);
  auto* r = d.as<int64_t>();
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < cols; ++x) r[y * cols + x] = *first + y * row + x * col;
}

void undef_op(const Instr& i, Frame& f) {
  const int n = lanes(i, f);
  Vec& d = begin(i, f);
  std::memset(d.undefined, 1, static_cast<size_t>(n));
  std::memset(d.data, 0, static_cast<size_t>(n) * 8);
  d.any_undefined = true;
}

Instr::Fn binary_op(BinaryOp op, Ty ty, bool defined) {
  if (op == BinaryOp::logical_and) return logical<false>;
  if (op == BinaryOp::logical_or) return logical<true>;
  return with_type(ty, [&](auto tag) -> Instr::Fn {
    using T = typename decltype(tag)::type;
    switch (op) {
      case BinaryOp::eq:
        return compare<Eq, T, false>;
      case BinaryOp::ne:
        return compare<Ne, T, false>;
      case BinaryOp::lt:
        return compare<Lt, T, false>;
      case BinaryOp::le:
        return compare<Le, T, false>;
      case BinaryOp::gt:
        return compare<Lt, T, true>;
      case BinaryOp::ge:
        return compare<Le, T, true>;
      default:
        break;
    }
    if constexpr (std::is_same_v<T, uint8_t>)
      return undef_op;
    else
      return arithmetic<T>(op, defined);
  });
}

Instr::Fn unary_op(UnaryOp op, Ty ty) {
  if (op == UnaryOp::logical_not) return logical_not;
  return with_type(ty, [&](auto tag) -> Instr::Fn {
    using T = typename decltype(tag)::type;
    if constexpr (!is_real<T>) {
      if (op == UnaryOp::bit_not) return bit_not<T>;
    }
    if constexpr (std::is_same_v<T, uint8_t>)
      return undef_op;
    else
      return negate<T>;
  });
}

Instr::Fn call_op(Fn fn, Ty ty) {
  return with_type(ty, [&](auto tag) -> Instr::Fn {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, uint8_t>) {
      return undef_op;
    } else {
      switch (fn) {
        case Fn::min:
          return total<Min, T>;
        case Fn::max:
          return total<Max, T>;
        case Fn::pow:
          return total<Pow, T>;
        case Fn::fmod:
          return partial<TruncMod, T>;
        case Fn::tdiv:
          return partial<TruncDiv, T>;
        case Fn::is_nan:
          return [](const Instr& i, Frame& f) { map1<T, uint8_t>(i, f, [](T x) { return uint8_t{is_nan(x)}; }); };
        case Fn::is_inf:
          return [](const Instr& i, Frame& f) { map1<T, uint8_t>(i, f, [](T x) { return uint8_t{is_inf(x)}; }); };
        default:
          return pick_function<T>(fn, std::make_index_sequence<static_cast<size_t>(Fn::is_inf) + 1>());
      }
    }
  });
}

Instr::Fn cast_op(Ty from, Ty to) {
  return with_type(from, [&](auto f) {
    return with_type(to,
                     [&](auto t) -> Instr::Fn { return cast<typename decltype(f)::type, typename decltype(t)::type>; });
  });
}
Instr::Fn convert_op(Ty from, Ty to) {
  return with_type(from, [&](auto f) {
    return with_type(
        to, [&](auto t) -> Instr::Fn { return change_type<typename decltype(f)::type, typename decltype(t)::type>; });
  });
}
Instr::Fn select_op(Ty ty) {
  return with_type(ty, [&](auto tag) -> Instr::Fn { return select<typename decltype(tag)::type>; });
}
Instr::Fn branch_op(Ty ty) {
  return with_type(ty, [&](auto tag) -> Instr::Fn { return branch<typename decltype(tag)::type>; });
}
Instr::Fn orelse_op(Ty ty) {
  return with_type(ty, [&](auto tag) -> Instr::Fn { return orelse<typename decltype(tag)::type>; });
}
Instr::Fn constant_op(Ty ty) {
  return with_type(ty, [&](auto tag) -> Instr::Fn { return constant<typename decltype(tag)::type>; });
}

}  // namespace dlc::interp
