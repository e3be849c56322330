/* What a library with one verilated model exports: `dlc_rtl_v2()`. C, so that the library can be loaded by any build.
 */
#ifndef DLC_RTL_ABI_H
#define DLC_RTL_ABI_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

/* How the memory behind the AXI port behaves. Everything random follows from `seed`. */
typedef struct dlc_rtl_config {
  uint64_t seed;
  uint64_t memory_bytes; /* from address 0; beyond it the bus answers DECERR */
  uint32_t latency;      /* cycles from an accepted address to the first beat or the write answer */
  uint32_t jitter;       /* up to so many more */
  uint32_t backpressure; /* per cent of cycles in which a ready or valid of the memory is held low */
  uint32_t outstanding;  /* reads the memory accepts at once */
  uint32_t stall;        /* per cent of cycles in which each engine is held, independently */
  uint64_t error_begin;  /* an access that touches [begin, end) is answered SLVERR */
  uint64_t error_end;
} dlc_rtl_config;

typedef struct dlc_rtl_event {
  uint32_t retire; /* 1: instruction `index` of `queue` retired; 0: `queue` wrote `data` */
  uint32_t queue;
  uint32_t index;
  uint32_t bytes;
  uint64_t address;
  uint64_t start; /* of a retire: the cycle in which the engine took the instruction */
  uint64_t cycle;
  const char* memory;
  const uint8_t* data;
} dlc_rtl_event;

typedef struct dlc_rtl dlc_rtl;

/* Functions that return int give 0, or -1 after which error() says why: an assertion of the RTL, an AXI rule broken. */
typedef struct dlc_rtl_table {
  uint64_t size; /* of this table */
  uint64_t arch_hash;
  uint64_t read_latency; /* of the machine's memory, as its description has it */
  dlc_rtl* (*create)(const dlc_rtl_config*);
  void (*destroy)(dlc_rtl*);
  int (*rd32)(dlc_rtl*, uint32_t offset, uint32_t* value);
  int (*wr32)(dlc_rtl*, uint32_t offset, uint32_t value);
  int (*mem_rd)(dlc_rtl*, uint64_t address, void* data, uint64_t bytes);
  int (*mem_wr)(dlc_rtl*, uint64_t address, const void* data, uint64_t bytes);
  int (*run)(dlc_rtl*, uint64_t max_cycles, int* irq); /* until the interrupt or max_cycles */
  int (*reset)(dlc_rtl*);
  uint64_t (*now)(const dlc_rtl*);
  const char* (*error)(const dlc_rtl*);
  void (*observe)(dlc_rtl*, void (*event)(void*, const dlc_rtl_event*), void* context);
  /* Waveform of cycles [begin, end) into `path`; -1 when the library was built without tracing. */
  int (*trace)(dlc_rtl*, const char* path, uint64_t begin, uint64_t end);
} dlc_rtl_table;

const dlc_rtl_table* dlc_rtl_v2(void);

#ifdef __cplusplus
}
#endif
#endif
