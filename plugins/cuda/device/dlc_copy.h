// Memory: loads and stores of several elements at once, asynchronous copies to shared memory, matrices for mma.
#pragma once

#include "dlc_base.h"

namespace dlc {

// N elements that lie together and are moved by one instruction: 2, 4, 8 or 16 bytes, aligned to their size.
template <class T, int N>
struct alignas(sizeof(T) * N) Vec {
  T v[N];
  DLC_D T& operator[](int i) { return v[i]; }
  DLC_D const T& operator[](int i) const { return v[i]; }
};

#ifndef DLC_HOST_EMU
// A type of BYTES that one instruction moves.
template <int BYTES>
struct Moved;
template <>
struct Moved<2> {
  using Type = uint16_t;
};
template <>
struct Moved<4> {
  using Type = uint32_t;
};
template <>
struct Moved<8> {
  using Type = uint2;
};
template <>
struct Moved<16> {
  using Type = uint4;
};
#endif

template <int N, class T>
DLC_D Vec<T, N> load(const T* p DLC_LINE) {
#ifdef DLC_HOST_EMU
  Vec<T, N> r;
  dlc_emu_host::move(&r, p, sizeof r, p, false, line);
  return r;
#else
  using W = typename Moved<sizeof(T) * N>::Type;
  union {
    W word;
    Vec<T, N> vec;
  } u;
  u.word = *reinterpret_cast<const W*>(p);
  return u.vec;
#endif
}

template <int N, class T>
DLC_D void store(T* p, const Vec<T, N>& x DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu_host::move(p, &x, sizeof x, p, true, line);
#else
  using W = typename Moved<sizeof(T) * N>::Type;
  union {
    W word;
    Vec<T, N> vec;
  } u;
  u.vec = x;
  *reinterpret_cast<W*>(p) = u.word;
#endif
}

// BYTES (4, 8 or 16) from global to shared memory, there once cp_async_wait has waited for its group. Where not
// `present`, zeros, and nothing is read.
template <int BYTES>
DLC_D void cp_async(void* shared, const void* global, bool present = true DLC_LINE) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async moves 4, 8 or 16 bytes");
#ifdef DLC_HOST_EMU
  dlc_emu->cp_async(shared, global, BYTES, present ? BYTES : 0, line);
#else
  const int bytes = present ? BYTES : 0;
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes),
                 "n"(BYTES)
                 : "memory");
#endif
}

// This thread's copies since the last commit are a group.
DLC_D void cp_async_commit() {
#ifdef DLC_HOST_EMU
  dlc_emu->cp_async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until at most GROUPS of this thread's latest groups are under way; others see them after a barrier.
template <int GROUPS>
DLC_D void cp_async_wait() {
#ifdef DLC_HOST_EMU
  dlc_emu->cp_async_wait(GROUPS);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}

// Matrices of 8 rows of 16 bytes. Lane 8 i + r gives the address of row r of matrix i; register i of lane l is bytes
// 4 (l % 4) .. of row l / 4 of matrix i. Transposed (16-bit elements): elements (2 (l % 4), l / 4) and the one below
// it.
DLC_D void ldmatrix(uint32_t (&r)[1], const void* row DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->ldmatrix(r, 1, row, false, line);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared_address(row))
               : "memory");
#endif
}
DLC_D void ldmatrix(uint32_t (&r)[2], const void* row DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->ldmatrix(r, 2, row, false, line);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
#endif
}
DLC_D void ldmatrix(uint32_t (&r)[4], const void* row DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->ldmatrix(r, 4, row, false, line);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}
DLC_D void ldmatrix_transposed(uint32_t (&r)[2], const void* row DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->ldmatrix(r, 2, row, true, line);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
#endif
}
DLC_D void ldmatrix_transposed(uint32_t (&r)[4], const void* row DLC_LINE) {
#ifdef DLC_HOST_EMU
  dlc_emu->ldmatrix(r, 4, row, true, line);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

}  // namespace dlc
