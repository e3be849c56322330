// Reductions over strips: lanes of the statement with one accumulator each, or lanes of the reduction's own loops that
// are folded at the end.
#include <algorithm>
#include <cstring>

#include "core/interp/ops.h"

namespace dlc::interp {

namespace {

template <class T>
class Reduction {
 public:
  Reduction(const Instr& i, Frame& f)
      : instr_(i), nest_(*i.nest), f_(f), reducer_{nest_.op, nest_.to}, acc_(f.regs[nest_.acc]) {}

  void run() {
    const int rows = f_.rows, cols = f_.cols, n = f_.n;
    lanes_ = nest_.own_lanes ? own_lanes() : n;
    acc_.any_undefined = false;
    std::fill_n(acc_.as<T>(), lanes_, reducer_.identity());
    if (reducer_.is_arg()) std::fill_n(best(), lanes_, int64_t{-1});
    loop(0);
    f_.rows = rows, f_.cols = cols, f_.n = n;
    finish();
  }

 private:
  int64_t* best() { return f_.regs[nest_.best].as<int64_t>(); }

  int own_lanes() const {
    int64_t n = extent(nest_.lanes.back());
    if (nest_.lanes.size() == 2 && n < kStrip) n *= extent(nest_.lanes[0]);
    return static_cast<int>(std::clamp<int64_t>(n, 1, kStrip));
  }

  // Extents were checked when the program was bound.
  int64_t extent(const LoopCode& l) const { return l.extent.evaluate(f_.env).value_or(0); }

  void loop(size_t depth) {
    if (depth == nest_.loops.size()) return nest_.own_lanes ? strips() : body();
    const LoopCode& l = nest_.loops[depth];
    const int64_t n = extent(l);
    for (int64_t i = 0; i < n; ++i) {
      f_.env[l.slot] = i;
      if (depth + 1 < nest_.loops.size() || nest_.own_lanes) execute(*nest_.blocks[depth], f_);
      loop(depth + 1);
    }
  }

  void strips() {
    const LoopCode& col = nest_.lanes.back();
    const LoopCode* row = nest_.lanes.size() == 2 ? &nest_.lanes[0] : nullptr;
    const int64_t n_rows = row ? extent(*row) : 1, n_cols = extent(col);
    const int64_t width = std::min<int64_t>(kStrip, std::max<int64_t>(1, n_cols));
    const int64_t height = kStrip / width;
    for (int64_t r = 0; r < n_rows; r += height) {
      for (int64_t c = 0; c < n_cols; c += width) {
        if (row) f_.env[row->slot] = r;
        f_.env[col.slot] = c;
        f_.rows = static_cast<int>(std::min(height, n_rows - r));
        f_.cols = static_cast<int>(std::min(width, n_cols - c));
        f_.n = f_.rows * f_.cols;
        body();
      }
    }
  }

  bool rounds_each_step() const { return is_real<T> && nest_.to.is_narrow_float(); }

  void body() {
    execute(*nest_.blocks.back(), f_);
    const int n = nest_.own_lanes ? f_.n : lanes_;
    const Vec& v = f_.regs[nest_.body];
    const T* x = v.as<T>();
    if (v.any_undefined) {
      if (!acc_.any_undefined) std::memset(acc_.undefined, 0, static_cast<size_t>(lanes_));
      acc_.any_undefined = true;
      for (int k = 0; k < n; ++k) acc_.undefined[k] |= v.undefined[nest_.body_uniform ? 0 : k];
    }
    if (reducer_.is_arg()) return fold_arg(x, n);
    switch (nest_.op) {
      case ReduceOp::sum:
        if (rounds_each_step()) return fold(x, n, [this](T a, T b) { return reducer_.combine(a, b); });
        return fold(x, n, [](T a, T b) { return Add::f(a, b); });
      case ReduceOp::max:
        return fold(x, n, [](T a, T b) { return Max::f(a, b); });
      case ReduceOp::min:
        return fold(x, n, [](T a, T b) { return Min::f(a, b); });
      default:
        return fold(x, n, [this](T a, T b) { return reducer_.combine(a, b); });
    }
  }

  template <class F>
  void fold(const T* __restrict x, int n, F op) {
    T* __restrict a = acc_.as<T>();
    if (nest_.body_uniform) {
      const T c = x[0];
      for (int k = 0; k < n; ++k) a[k] = op(a[k], c);
    } else {
      for (int k = 0; k < n; ++k) a[k] = op(a[k], x[k]);
    }
  }

  void fold_arg(const T* x, int n) {
    T* a = acc_.as<T>();
    int64_t* at = best();
    const int64_t first = f_.env[nest_.position_slot];
    for (int k = 0; k < n; ++k) {
      const T v = x[nest_.body_uniform ? 0 : k];
      if (at[k] >= 0 && !reducer_.better(v, a[k])) continue;
      a[k] = v;
      at[k] = first + (nest_.own_lanes ? k : 0);
    }
  }

  void finish() {
    Vec& d = f_.regs[instr_.dst];
    d.data = d.home;
    d.any_undefined = acc_.any_undefined;
    if (nest_.own_lanes) {
      if (acc_.any_undefined) d.undefined[0] = 1;
      return reducer_.is_arg() ? fold_arg_lanes(d) : fold_lanes(d);
    }
    if (acc_.any_undefined) std::memcpy(d.undefined, acc_.undefined, static_cast<size_t>(lanes_));
    if (!reducer_.is_arg()) {
      const T* a = acc_.as<T>();
      T* r = d.as<T>();
      if (is_real<T> || nest_.to.bits >= 64)
        std::copy_n(a, lanes_, r);
      else
        for (int k = 0; k < lanes_; ++k) r[k] = reducer_.narrow(a[k]);
      return;
    }
    std::copy_n(best(), lanes_, d.as<int64_t>());
    for (int k = 0; k < lanes_; ++k)
      if (best()[k] < 0) mark_undefined(d, k);
  }

  void mark_undefined(Vec& d, int lane) {
    if (!d.any_undefined) std::memset(d.undefined, 0, static_cast<size_t>(lanes_));
    d.any_undefined = true;
    d.undefined[lane] = 1;
  }

  void fold_lanes(Vec& d) {
    const T* a = acc_.as<T>();
    T r = a[0];
    for (int k = 1; k < lanes_; ++k) {
      if (nest_.op == ReduceOp::sum && !rounds_each_step())
        r = Add::f(r, a[k]);
      else
        r = reducer_.combine(r, a[k]);
    }
    d.as<T>()[0] = reducer_.narrow(r);
  }

  void fold_arg_lanes(Vec& d) {
    const T* a = acc_.as<T>();
    int64_t at = -1;
    T value{};
    for (int k = 0; k < lanes_; ++k) {
      const int64_t p = best()[k];
      if (p < 0) continue;
      const bool tie = at >= 0 && !reducer_.better(a[k], value) && !reducer_.better(value, a[k]);
      if (at < 0 || reducer_.better(a[k], value) || (tie && p < at)) {
        at = p;
        value = a[k];
      }
    }
    d.as<int64_t>()[0] = at;
    if (at < 0) {
      d.any_undefined = true;
      d.undefined[0] = 1;
    }
  }

  const Instr& instr_;
  const Nest& nest_;
  Frame& f_;
  Reducer<T> reducer_;
  Vec& acc_;
  int lanes_ = 0;
};

template <class T>
void reduce(const Instr& i, Frame& f) {
  Reduction<T>(i, f).run();
}

}  // namespace

Instr::Fn reduce_op(Ty body) {
  return with_type(body, [](auto tag) -> Instr::Fn { return reduce<typename decltype(tag)::type>; });
}

}  // namespace dlc::interp
