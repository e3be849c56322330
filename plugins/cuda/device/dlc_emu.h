// The boundary between a kernel module compiled for the host and the emulator that runs it.
//
// The module is a shared object without undefined symbols: the emulator finds `dlc_emu` in it and points it to its
// table. Compiled with -fsanitize=thread (instrumentation alone; no runtime of it is linked) and DLC_EMU_CHECKS, every
// load and store of the kernel tells the emulator first.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct DlcEmuIndex {
  unsigned x, y, z;
};

struct DlcEmuPlace {  // of the thread that runs now
  DlcEmuIndex thread, block, block_dim, grid_dim;
  unsigned char* shared;
};

struct DlcEmuParam {
  uint32_t bytes;          // 0: the end
  bool pointer, writable;  // what it points to
};

enum DlcEmuElement : int { kEmuF16, kEmuBF16, kEmuTF32, kEmuS8, kEmuU8, kEmuE4M3, kEmuE5M2 };
enum DlcEmuAccess : unsigned {
  kEmuRead = 0,
  kEmuWrite = 1,
  kEmuAnyAlignment = 2
};  // the last added to one of the others
enum DlcEmuShuffle : int { kEmuShuffleXor, kEmuShuffleDown, kEmuShuffleUp, kEmuShuffleIndex };

// Lines are those of the kernel text: lanes that wait together must wait at the same one.
struct DlcEmuApi {
  uint32_t version;
  DlcEmuPlace* place;
  // Checks an access of the running thread; does not return where it is out of bounds. The site is a return address or
  // a line of the text: accesses of the lanes of a warp at the same site are one instruction.
  void (*access)(const void* p, size_t bytes, unsigned kind, uintptr_t site);
  void* (*shared_array)(int id, size_t bytes, size_t alignment);  // the same for all threads of the block
  void (*block_barrier)(int line);
  void (*warp_barrier)(int line);
  uint32_t (*shuffle)(DlcEmuShuffle how, uint32_t value, uint32_t arg, int line);
  uint32_t (*vote)(bool value, int line);  // bit per lane
  void (*cp_async)(void* shared, const void* global, size_t bytes, size_t present, int line);
  void (*cp_async_commit)();
  void (*cp_async_wait)(int groups);
  void (*ldmatrix)(uint32_t* r, int matrices, const void* row, bool transposed, int line);
  void (*mma)(DlcEmuElement a_type, DlcEmuElement b_type, void* c, const uint32_t* a, const uint32_t* b, int line);
  void (*atomic_add_f32)(float* p, float v, int line);
  uint32_t (*atomic_add_u32)(uint32_t* p, uint32_t v, int line);  // acquires and releases: orders blocks
  void (*atomic_set_if_zero)(uint32_t* p, uint32_t v, int line);
};

enum : uint32_t { kDlcEmuVersion = 2 };

#ifdef DLC_HOST_EMU

#define DLC_EMU_EXPORT __attribute__((visibility("default"), used))
#define DLC_EMU_HIDDEN __attribute__((visibility("hidden"), used))
#define DLC_EMU_PLAIN __attribute__((no_sanitize("thread")))

extern "C" {
DLC_EMU_EXPORT const DlcEmuApi* dlc_emu = nullptr;
DLC_EMU_EXPORT extern const uint32_t dlc_emu_version = kDlcEmuVersion;
}

namespace dlc_emu_host {

template <int... I>
struct Numbers {};
template <int N, int... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <int... I>
struct Count<0, I...> {
  using Type = Numbers<I...>;
};

template <class... T, int... I>
DLC_EMU_PLAIN inline void call(void (*kernel)(T...), void** params, Numbers<I...>) {
  kernel(*static_cast<T*>(params[I])...);
}
template <class... T>
DLC_EMU_PLAIN inline void call(void (*kernel)(T...), void** params) {
  call(kernel, params, typename Count<sizeof...(T)>::Type());
}

// One access of an instruction that moves several elements: only the side in the kernel's memory is checked.
DLC_EMU_PLAIN inline void move(void* to, const void* from, size_t bytes, const void* checked, bool write, int line) {
#ifdef DLC_EMU_CHECKS
  dlc_emu->access(checked, bytes, write ? kEmuWrite : kEmuRead, static_cast<uintptr_t>(line));
#else
  (void)checked, (void)write, (void)line;
#endif
  char* t = static_cast<char*>(to);
  const char* f = static_cast<const char*>(from);
  for (size_t i = 0; i < bytes; ++i) t[i] = f[i];
}

template <class T>
struct Param {
  static constexpr DlcEmuParam value{sizeof(T), false, false};
};
template <class T>
struct Param<T*> {
  static constexpr DlcEmuParam value{sizeof(T*), true, true};
};
template <class T>
struct Param<const T*> {
  static constexpr DlcEmuParam value{sizeof(T*), true, false};
};
template <class... T>
const DlcEmuParam* params(void (*)(T...)) {
  static const DlcEmuParam list[] = {Param<T>::value..., {0, false, false}};
  return list;
}

}  // namespace dlc_emu_host

#ifdef DLC_EMU_CHECKS
// What -fsanitize=thread calls before a load or a store.
#define DLC_EMU_SITE reinterpret_cast<uintptr_t>(__builtin_return_address(0))
extern "C" {
DLC_EMU_HIDDEN inline void __tsan_init() {}
DLC_EMU_HIDDEN inline void __tsan_func_entry(void*) {}
DLC_EMU_HIDDEN inline void __tsan_func_exit() {}
#define DLC_EMU_ACCESS(NAME, BYTES, KIND) \
  DLC_EMU_HIDDEN DLC_EMU_PLAIN inline void __tsan_##NAME(void* p) { dlc_emu->access(p, BYTES, KIND, DLC_EMU_SITE); }
#define DLC_EMU_ACCESS_2(NAME, BYTES, KIND)                         \
  DLC_EMU_HIDDEN DLC_EMU_PLAIN inline void __tsan_##NAME(void* p) { \
    dlc_emu->access(p, BYTES, kEmuRead + KIND, DLC_EMU_SITE);       \
    dlc_emu->access(p, BYTES, kEmuWrite + KIND, DLC_EMU_SITE);      \
  }
// "Unaligned" are those that the compiler made of smaller ones.
#define DLC_EMU_ACCESSES(BYTES)                                               \
  DLC_EMU_ACCESS(read##BYTES, BYTES, kEmuRead)                                \
  DLC_EMU_ACCESS(write##BYTES, BYTES, kEmuWrite)                              \
  DLC_EMU_ACCESS(unaligned_read##BYTES, BYTES, kEmuRead + kEmuAnyAlignment)   \
  DLC_EMU_ACCESS(unaligned_write##BYTES, BYTES, kEmuWrite + kEmuAnyAlignment) \
  DLC_EMU_ACCESS_2(read_write##BYTES, BYTES, 0)                               \
  DLC_EMU_ACCESS_2(unaligned_read_write##BYTES, BYTES, kEmuAnyAlignment)
DLC_EMU_ACCESSES(1)
DLC_EMU_ACCESSES(2)
DLC_EMU_ACCESSES(4)
DLC_EMU_ACCESSES(8)
DLC_EMU_ACCESSES(16)
#undef DLC_EMU_ACCESSES
#undef DLC_EMU_ACCESS
#undef DLC_EMU_ACCESS_2
DLC_EMU_HIDDEN DLC_EMU_PLAIN inline void __tsan_read_range(void* p, size_t n) {
  dlc_emu->access(p, n, kEmuRead + kEmuAnyAlignment, DLC_EMU_SITE);
}
DLC_EMU_HIDDEN DLC_EMU_PLAIN inline void __tsan_write_range(void* p, size_t n) {
  dlc_emu->access(p, n, kEmuWrite + kEmuAnyAlignment, DLC_EMU_SITE);
}
DLC_EMU_HIDDEN DLC_EMU_PLAIN inline void* __tsan_memcpy(void* to, const void* from, size_t n) {
  dlc_emu->access(from, n, kEmuRead + kEmuAnyAlignment, DLC_EMU_SITE);
  dlc_emu->access(to, n, kEmuWrite + kEmuAnyAlignment, DLC_EMU_SITE);
  return __builtin_memcpy(to, from, n);
}
DLC_EMU_HIDDEN DLC_EMU_PLAIN inline void* __tsan_memmove(void* to, const void* from, size_t n) {
  dlc_emu->access(from, n, kEmuRead + kEmuAnyAlignment, DLC_EMU_SITE);
  dlc_emu->access(to, n, kEmuWrite + kEmuAnyAlignment, DLC_EMU_SITE);
  return __builtin_memmove(to, from, n);
}
DLC_EMU_HIDDEN DLC_EMU_PLAIN inline void* __tsan_memset(void* to, int value, size_t n) {
  dlc_emu->access(to, n, kEmuWrite + kEmuAnyAlignment, DLC_EMU_SITE);
  return __builtin_memset(to, value, n);
}
}
#endif

#endif
