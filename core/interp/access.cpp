// Where the elements of a strip lie: address maps bound to one run, loads and stores over rows and columns.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/interp/ops.h"
#include "dlc/base/checked.h"

namespace dlc::interp {

// ---- binding -----------------------------------------------------------------------------------------------------

void* Arena::bytes(size_t n) {
  n = (n + 63) / 64 * 64;
  if (blocks_.empty() || used_ + n > size_) {
    size_ = std::max<size_t>(n, size_t{1} << 16);
    blocks_.emplace_back(new std::byte[size_ + 64]);
    used_ = (64 - reinterpret_cast<uintptr_t>(blocks_.back().get()) % 64) % 64;
    size_ += used_;
  }
  void* p = blocks_.back().get() + used_;
  used_ += n;
  return p;
}

namespace {

// The values a slot takes in this statement; extent < 0 when the slot is no loop of it.
struct SlotExtents {
  int64_t* extent;
};

bool add_extents(const std::vector<LoopCode>& loops, const RunState& run, SlotExtents& e) {
  for (const LoopCode& l : loops) {
    const auto n = l.extent.evaluate(run.env.data());
    if (!n || *n < 0) return false;
    e.extent[l.slot] = *n;
  }
  return true;
}

// Whether base + sum coefficient * slot stays in [0, extent) over all loops.
bool always_inside(const BoundDim& d, const SlotExtents& e) {
  int64_t lo = d.base, hi = d.base;
  for (int t = 0; t < d.n_terms; ++t) {
    int64_t reach;
    const int64_t last = std::max<int64_t>(0, e.extent[d.terms[t].slot] - 1);
    if (__builtin_mul_overflow(d.terms[t].coefficient, last, &reach)) return false;
    if (__builtin_add_overflow(reach < 0 ? lo : hi, reach, reach < 0 ? &lo : &hi)) return false;
  }
  return lo >= 0 && hi < d.extent;
}

bool bind_access(const Access& a, RunState& run, const SlotExtents& extents, Arena& arena, BoundAccess& out) {
  const Memory& m = run.tensors[static_cast<size_t>(a.tensor)];
  out.memory = &m;
  out.data = m.data;
  out.n_dims = static_cast<int>(a.dims.size());
  out.dims = arena.get<BoundDim>(a.dims.size());
  out.proven = m.dense_bounds;
  size_t n_terms = 0;
  for (const AccessDim& d : a.dims) n_terms += d.terms.size();
  out.terms = arena.get<BoundTerm>(n_terms);
  for (size_t k = 0; k < a.dims.size(); ++k) {
    const AccessDim& d = a.dims[k];
    BoundDim& b = out.dims[k];
    b.plan = &d;
    b.extent = m.shape[k];
    b.stride = m.strides[k];
    b.terms = arena.get<BoundTerm>(d.terms.size());
    for (const Term& t : d.terms) {
      const auto c = t.coefficient.evaluate(run.env.data());
      if (!c) return false;
      if (t.slot == a.row_slot) b.row = *c;
      if (t.slot == a.col_slot) b.col = *c;
      if (*c == 0 || d.kind != AccessDim::Kind::affine) continue;
      b.terms[b.n_terms++] = {t.slot, *c};
      BoundTerm* same =
          std::find_if(out.terms, out.terms + out.n_terms, [&](const auto& o) { return o.slot == t.slot; });
      if (same == out.terms + out.n_terms) *same = {t.slot, 0}, ++out.n_terms;
      same->coefficient += *c * b.stride;
    }
    out.row += b.row * b.stride;
    out.col += b.col * b.stride;
    if (d.kind == AccessDim::Kind::affine) {
      const auto base = d.base.evaluate(run.env.data());
      if (!base) return false;
      b.base = *base;
      out.base += b.base * b.stride;
      b.check = !always_inside(b, extents);
    } else {
      b.check = !d.in_bounds;
      out.has_reg |= d.kind == AccessDim::Kind::reg && !d.reg_uniform;
    }
    out.proven &= !b.check && d.kind == AccessDim::Kind::affine;
  }
  return true;
}

}  // namespace

std::optional<Frame> bind(const Program& p, RunState& run, const std::vector<LoopCode>& around, Arena& arena) {
  SlotExtents extents{arena.get<int64_t>(run.env.size())};
  for (const auto* loops : {&around, &p.loops, &p.inner_loops})
    if (!add_extents(*loops, run, extents)) return std::nullopt;
  Frame f;
  f.run = &run;
  f.env = run.env.data();
  f.accesses = arena.get<BoundAccess>(p.accesses.size());
  for (size_t i = 0; i < p.accesses.size(); ++i)
    if (!bind_access(p.accesses[i], run, extents, arena, f.accesses[i])) return std::nullopt;
  f.regs = arena.get<Vec>(p.regs.size());
  for (size_t i = 0; i < p.regs.size(); ++i) {
    const size_t lanes = p.regs[i].uniform ? 1 : kStrip;
    f.regs[i].home = arena.raw(lanes * 8);
    f.regs[i].data = f.regs[i].home;
    f.regs[i].undefined = reinterpret_cast<uint8_t*>(arena.raw(lanes));
  }
  return f;
}

// ---- addresses of a strip ----------------------------------------------------------------------------------------

namespace {

constexpr int kMaxRank = 32;

// The strip's first element and, per dim, the first index; `clipped` when some lane is out of bounds.
struct Place {
  int64_t offset = 0;
  std::array<int64_t, kMaxRank> first;
  bool clipped = false;
  bool undefined = false;  // an index is undefined in all lanes
};

int64_t dot(const BoundTerm* terms, int n, const int64_t* env) {
  int64_t r = 0;
  for (int i = 0; i < n; ++i) r += terms[i].coefficient * env[terms[i].slot];
  return r;
}

int64_t reg_value(const AccessDim& d, const Frame& f, int lane) {
  const Vec& v = f.regs[d.reg];
  return d.reg_ty == Ty::s32 ? v.as<int32_t>()[lane] : v.as<int64_t>()[lane];
}

void find_place(const BoundAccess& a, const Frame& f, int rows, int cols, Place& p) {
  p.offset = a.base + dot(a.terms, a.n_terms, f.env);
  if (a.proven) return;
  for (int k = 0; k < a.n_dims; ++k) {
    const BoundDim& d = a.dims[k];
    int64_t& v = p.first[static_cast<size_t>(k)];
    if (d.plan->kind == AccessDim::Kind::affine) {
      if (!d.check) continue;
      v = d.base + dot(d.terms, d.n_terms, f.env);
    } else if (d.plan->kind == AccessDim::Kind::scalar) {
      const auto e = d.plan->base.evaluate(f.env);
      p.undefined |= !e;
      v = e.value_or(0);
      p.offset += v * d.stride;
    } else if (d.plan->reg_uniform) {
      const Vec& r = f.regs[d.plan->reg];
      p.undefined |= r.any_undefined;
      v = reg_value(*d.plan, f, 0);
      if (v < 0 || v >= d.extent) p.undefined = true;
      if (!p.undefined) p.offset += v * d.stride;
      continue;
    } else {
      continue;
    }
    const int64_t down = d.row * (rows - 1), right = d.col * (cols - 1);
    const int64_t lo = v + std::min<int64_t>(0, down) + std::min<int64_t>(0, right);
    const int64_t hi = v + std::max<int64_t>(0, down) + std::max<int64_t>(0, right);
    p.clipped |= d.check && (lo < 0 || hi >= d.extent);
  }
}

// Lanes [begin, end) of row y whose checked indices are in bounds.
void clip_row(const BoundAccess& a, const Place& p, int y, int cols, int& begin, int& end) {
  int64_t b = 0, e = cols;
  for (int k = 0; k < a.n_dims; ++k) {
    const BoundDim& d = a.dims[k];
    if (!d.check || d.plan->kind == AccessDim::Kind::reg) continue;
    const int64_t v = p.first[static_cast<size_t>(k)] + y * d.row;
    if (d.col == 0) {
      if (v < 0 || v >= d.extent) e = b;
    } else if (d.col == 1) {  // no division: this is the inner loop of padded convolutions
      b = std::max(b, -v);
      e = std::min(e, d.extent - v);
    } else if (d.col > 0) {
      b = std::max(b, ceil_div(-v, d.col));
      e = std::min(e, ceil_div(d.extent - v, d.col));
    } else {
      b = std::max(b, floor_div(v - d.extent, -d.col) + 1);
      e = std::min(e, floor_div(v, -d.col) + 1);
    }
  }
  begin = static_cast<int>(b);
  end = static_cast<int>(std::max(b, e));
}

bool bytes_inside(const BoundAccess& a, const Place& p, int rows, int cols) {
  const int64_t down = a.row * (rows - 1), right = a.col * (cols - 1);
  return p.offset + std::min<int64_t>(0, down) + std::min<int64_t>(0, right) >= a.memory->lowest &&
         p.offset + std::max<int64_t>(0, down) + std::max<int64_t>(0, right) <= a.memory->highest;
}

// Byte offset of every lane; bad lanes are undefined or out of bounds.
struct LaneOffsets {
  std::array<int64_t, kStrip> offset;
  std::array<uint8_t, kStrip> bad;
  bool any_bad = false;
};

void find_lanes(const BoundAccess& a, const Frame& f, const Place& p, int rows, int cols, LaneOffsets& out) {
  for (int y = 0, k = 0; y < rows; ++y) {
    int begin = 0, end = cols;
    if (p.clipped) clip_row(a, p, y, cols, begin, end);
    for (int x = 0; x < cols; ++x, ++k) {
      out.offset[static_cast<size_t>(k)] = p.offset + y * a.row + x * a.col;
      out.bad[static_cast<size_t>(k)] = p.undefined || x < begin || x >= end;
    }
  }
  const int n = rows * cols;
  for (int d = 0; d < a.n_dims; ++d) {
    const BoundDim& dim = a.dims[d];
    if (dim.plan->kind != AccessDim::Kind::reg || dim.plan->reg_uniform) continue;
    const Vec& r = f.regs[dim.plan->reg];
    for (int k = 0; k < n; ++k) {
      const int64_t v = reg_value(*dim.plan, f, k);
      const bool inside = v >= 0 && v < dim.extent && !(r.any_undefined && r.undefined[k]);
      out.bad[static_cast<size_t>(k)] |= !inside;
      if (inside) out.offset[static_cast<size_t>(k)] += v * dim.stride;
    }
  }
  for (int k = 0; k < n; ++k) {
    const int64_t o = out.offset[static_cast<size_t>(k)];
    if (!a.memory->dense_bounds) out.bad[static_cast<size_t>(k)] |= o < a.memory->lowest || o > a.memory->highest;
    out.any_bad |= out.bad[static_cast<size_t>(k)];
  }
}

template <class Container, class T, class Decode>
void load_row(std::byte* dst, const std::byte* src, int64_t stride, int n, Decode decode) {
  T* __restrict r = reinterpret_cast<T*>(dst);
  const auto value = [&](const std::byte* p) { return convert<T>(decode(load_raw<Container>(p))); };
  if (stride == static_cast<int64_t>(sizeof(Container))) {
    for (int k = 0; k < n; ++k) r[k] = value(src + static_cast<size_t>(k) * sizeof(Container));
  } else if (stride == 0) {
    if (n > 0) std::fill_n(r, n, value(src));
  } else {
    for (int k = 0; k < n; ++k) r[k] = value(src + k * stride);
  }
}

template <class Container, class From>
void store_row(std::byte* dst, int64_t stride, const std::byte* src, int n, bool uniform, auto encode) {
  const From* v = reinterpret_cast<const From*>(src);
  if (uniform) {
    const Container c = encode(v[0]);
    for (int k = 0; k < n; ++k) store_raw<Container>(dst + k * stride, c);
  } else if (stride == static_cast<int64_t>(sizeof(Container))) {
    for (int k = 0; k < n; ++k) store_raw<Container>(dst + static_cast<size_t>(k) * sizeof(Container), encode(v[k]));
  } else {
    for (int k = 0; k < n; ++k) store_raw<Container>(dst + k * stride, encode(v[k]));
  }
}

}  // namespace

RowLoad load_rows(Elem elem, Ty ty, bool odd_width) {
  return with_elem(elem, [&](auto container, auto decode) {
    return with_type(ty, [&](auto tag) -> RowLoad {
      using C = typename decltype(container)::type;
      using T = typename decltype(tag)::type;
      using D = decltype(decode);
      if (odd_width)
        return [](std::byte* dst, const std::byte* src, int64_t stride, int n, DType dtype) {
          load_row<C, T>(dst, src, stride, n, [dtype](C c) { return cast_to<T>(dtype, false, D{}(c, dtype)); });
        };
      return [](std::byte* dst, const std::byte* src, int64_t stride, int n, DType dtype) {
        load_row<C, T>(dst, src, stride, n, [dtype](C c) { return D{}(c, dtype); });
      };
    });
  });
}

RowStore store_rows(Elem elem, Ty ty, bool odd_width) {
  return with_elem(elem, [&](auto container, auto) {
    return with_type(ty, [&](auto tag) -> RowStore {
      using C = typename decltype(container)::type;
      using T = typename decltype(tag)::type;
      // Integer to integer of a whole container: the low bits, whatever the sign.
      if constexpr (!is_real<T> && !is_real<C>) {
        if (!odd_width && !is_coded(elem) && elem != Elem::b8)
          return [](std::byte* dst, int64_t stride, const std::byte* src, int n, bool uniform, DType) {
            store_row<C, T>(dst, stride, src, n, uniform, [](T v) { return static_cast<C>(v); });
          };
      }
      if constexpr (is_real<C>)
        return [](std::byte* dst, int64_t stride, const std::byte* src, int n, bool uniform, DType) {
          store_row<C, T>(dst, stride, src, n, uniform, [](T v) { return convert<C>(v); });
        };
      return [](std::byte* dst, int64_t stride, const std::byte* src, int n, bool uniform, DType dtype) {
        const Elem e = elem_of(dtype);
        store_row<C, T>(dst, stride, src, n, uniform, [&](T v) {
          std::array<std::byte, 8> bytes;
          store_element(dtype, e, bytes.data(), v);
          return load_raw<C>(bytes.data());
        });
      };
    });
  });
}

void load_op(const Instr& i, Frame& f) {
  const BoundAccess& a = f.accesses[i.access];
  const int rows = i.uniform ? 1 : f.rows, cols = i.uniform ? 1 : f.cols, n = rows * cols;
  const auto move = reinterpret_cast<RowLoad>(i.move);
  const int64_t size = size_of(static_cast<Ty>(i.op));
  Vec& d = f.regs[i.dst];
  d.any_undefined = false;
  Place p;
  find_place(a, f, rows, cols, p);
  if (!p.undefined && !a.has_reg && (a.proven || a.memory->dense_bounds || bytes_inside(a, p, rows, cols))) {
    const std::byte* src = a.data + p.offset;
    if (!p.clipped) {
      if (rows == 1 || a.row == a.col * cols) return move(d.data, src, a.col, n, a.memory->dtype);
      for (int y = 0; y < rows; ++y) move(d.data + y * cols * size, src + y * a.row, a.col, cols, a.memory->dtype);
      return;
    }
    d.any_undefined = true;
    for (int y = 0; y < rows; ++y) {
      int begin = 0, end = cols;
      clip_row(a, p, y, cols, begin, end);
      std::byte* r = d.data + y * cols * size;
      uint8_t* undefined = d.undefined + y * cols;
      std::memset(r, 0, static_cast<size_t>(cols * size));
      std::memset(undefined, 1, static_cast<size_t>(cols));
      if (begin >= end) continue;
      std::memset(undefined + begin, 0, static_cast<size_t>(end - begin));
      move(r + begin * size, src + y * a.row + begin * a.col, a.col, end - begin, a.memory->dtype);
    }
    return;
  }
  LaneOffsets lanes;
  find_lanes(a, f, p, rows, cols, lanes);
  d.any_undefined = lanes.any_bad;
  if (lanes.any_bad) std::memcpy(d.undefined, lanes.bad.data(), static_cast<size_t>(n));
  for (int k = 0; k < n; ++k) {
    std::byte* r = d.data + k * size;
    if (lanes.bad[static_cast<size_t>(k)])
      std::memset(r, 0, static_cast<size_t>(size));
    else
      move(r, a.data + lanes.offset[static_cast<size_t>(k)], 0, 1, a.memory->dtype);
  }
}

bool store_strip(const Program& p, Frame& f, const BoundAccess& a) {
  const Vec& v = f.regs[p.value];
  if (v.any_undefined) {
    const int n = p.value_uniform ? 1 : f.n;
    if (std::any_of(v.undefined, v.undefined + n, [](uint8_t u) { return u != 0; })) return false;
  }
  Place place;
  find_place(a, f, f.rows, f.cols, place);
  if (place.undefined || place.clipped) return false;
  const auto put = reinterpret_cast<RowStore>(p.put);
  const int64_t size = size_of(p.value_ty);
  const DType dtype = a.memory->dtype;
  if (!a.has_reg) {
    if (!a.proven && !a.memory->dense_bounds && !bytes_inside(a, place, f.rows, f.cols)) return false;
    std::byte* dst = a.data + place.offset;
    if (f.rows == 1 || a.row == a.col * f.cols) {
      put(dst, a.col, v.data, f.n, p.value_uniform, dtype);
      return true;
    }
    for (int y = 0; y < f.rows; ++y)
      put(dst + y * a.row, a.col, v.data + (p.value_uniform ? 0 : y * f.cols * size), f.cols, p.value_uniform, dtype);
    return true;
  }
  LaneOffsets lanes;
  find_lanes(a, f, place, f.rows, f.cols, lanes);
  if (lanes.any_bad) return false;
  for (int k = 0; k < f.n; ++k)
    put(a.data + lanes.offset[static_cast<size_t>(k)], 0, v.data + (p.value_uniform ? 0 : k * size), 1, p.value_uniform,
        dtype);
  return true;
}

}  // namespace dlc::interp
