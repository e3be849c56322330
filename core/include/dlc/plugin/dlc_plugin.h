/* The plugin boundary of dlc: plain C, one exported symbol.
 *
 * A plugin is a shared library that exports
 *
 *     const dlc_plugin_v1* dlc_plugin_v1_entry(void);
 *
 * C++ authors do not write against this file: they derive from dlc::Backend (dlc/plugin/backend.h) and put
 * DLC_PLUGIN(MyBackend) in one .cpp.
 *
 * Rules. Every struct begins with its size in bytes as the writer knows it; a reader uses min(its own, the given) and
 * treats what is missing as zero; elements of an array are as far apart as its first element's size says. New fields
 * only at the end. The plugin's tables are static data of its library. A null function pointer means "not supported".
 * No exception and no C++ object crosses. Strings are UTF-8, zero-terminated, and live as long as the plugin unless
 * said otherwise. IR crosses as versioned text, weights as a table of pointers that are valid during the call.
 * Functions return 0 on success; on failure they return nonzero and fill `error` through dlc_error's callback. */
#ifndef DLC_PLUGIN_H
#define DLC_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DLC_ABI_MAJOR 1u
#define DLC_ABI_MINOR 2u

/* Element types are text: "f32", "s8", ... (dlc/base/dtype.h). */
typedef struct dlc_tensor {
  uint64_t struct_size;
  const char* name;
  const char* dtype;
  const int64_t* shape;
  uint64_t rank;
  void* data; /* dense, row-major */
  uint64_t bytes;
  /* Since 1.2. Of a state, whose memory this is: the shape of the value in it, at its origin, of the same rank. */
  const int64_t* holds;
} dlc_tensor;

/* Where a callee reports diagnostics: called once per diagnostic, arguments valid during the call, severity one of
 * DLC_NOTE, DLC_WARNING, DLC_ERROR. */
#define DLC_NOTE 0
#define DLC_WARNING 1
#define DLC_ERROR 2
typedef struct dlc_error {
  uint64_t struct_size;
  void* context;
  void (*report)(void* context, int32_t severity, const char* file, int32_t line, int32_t column, const char* node,
                 const char* message, const char* hint);
} dlc_error;

/* Where a callee hands over named bytes: "object", "stream", "listing", "report.json" ... */
typedef struct dlc_sink {
  uint64_t struct_size;
  void* context;
  /* Nonzero: the host could not take it; the callee stops and fails. */
  int32_t (*put)(void* context, const char* name, const void* bytes, uint64_t size);
  /* Since 1.1. A piece of a file that is too large to be held: it continues what was put of it at `offset`, or replaces
   * bytes of that. As put() otherwise. */
  int32_t (*put_at)(void* context, const char* name, uint64_t offset, const void* bytes, uint64_t size);
} dlc_sink;

/* One partition to compile. */
typedef struct dlc_emit_request {
  uint64_t struct_size;
  const char* program; /* `dlc.program 1` text */
  const dlc_tensor* weights;
  uint64_t weight_count;
  const char* hardware;        /* the YAML text the user chose */
  const char* hardware_file;   /* for messages, and where `like:` is looked for */
  const char* hardware_params; /* overrides of its params: "R=8,C=8" */
  const char* options;         /* JSON object: {"format": "dlca" | "so" | "o" | "a", "name": "resnet8"} */
} dlc_emit_request;

typedef struct dlc_compiler_v1 {
  uint64_t struct_size;
  /* Which calls of this program the plugin cannot compile, as JSON: {"refused": [{"call": 3, "rule": "...", "why":
   * "...", "line": 12, "next": "...", "too_large": false}]}; all but "call" may be missing. Each call is a question of
   * its own. May only narrow what the YAML allows. too_large: such calls are done, but not of this size. NULL:
   * everything is taken. */
  int32_t (*match)(const dlc_emit_request* request, const dlc_sink* result, const dlc_error* error);
  /* Compiles. Puts "executable" (what load() takes), and may put "report.json". Where the options ask for a library it
   * puts that instead: "library", "header", and "weights" for a file beside it (best in pieces). "listing" is the text
   * that the options ask for. A plugin that lays constants out anew puts "program", the program that it compiled: the
   * same function with the same inputs and outputs, and "constant/NAME" with the bytes of each of its constants that
   * the request lacks; the artifact then holds that program and those constants, which load() is given. */
  int32_t (*emit)(const dlc_emit_request* request, const dlc_sink* result, const dlc_error* error);
} dlc_compiler_v1;

typedef struct dlc_device dlc_device;         /* an opened device */
typedef struct dlc_executable dlc_executable; /* a loaded partition */

typedef struct dlc_runtime_v1 {
  uint64_t struct_size;
  /* Device URIs this plugin can open here, one put() per URI: name = URI, bytes = JSON {"available": bool, "why":
   * "..."}. */
  int32_t (*list)(const dlc_sink* result, const dlc_error* error);
  int32_t (*open)(const char* uri, dlc_device** device, const dlc_error* error);
  void (*close)(dlc_device* device);
  /* `weights` stay valid until unload. */
  int32_t (*load)(dlc_device* device, const void* executable, uint64_t size, const dlc_tensor* weights,
                  uint64_t weight_count, dlc_executable** result, const dlc_error* error);
  void (*unload)(dlc_executable* executable);
  /* Runs to completion. dlc calls one executable from one thread at a time. `output` is called for each result in order
   * with its type, and returns where to write its bytes (NULL: fail). */
  int32_t (*run)(dlc_executable* executable, const dlc_tensor* inputs, uint64_t input_count, void* context,
                 void* (*output)(void* context, uint64_t index, const char* dtype, const int64_t* shape, uint64_t rank),
                 const dlc_error* error);
  /* Counters of the last run as a JSON object (cycles, per-layer figures); the device defines the keys. */
  int32_t (*counters)(dlc_executable* executable, const dlc_sink* result, const dlc_error* error);
  /* Since 1.2. As run(), on states that are kept in place: outputs that are `keeping` the input that the program's text
   * pairs them with. `inputs` lacks those inputs, `output` is not called for those outputs (its index counts the
   * others); `states` has the memory of each, in the order of the program's `state` lines, which the run changes. NULL:
   * programs come without `state` lines. */
  int32_t (*run_in_place)(dlc_executable* executable, const dlc_tensor* inputs, uint64_t input_count,
                          const dlc_tensor* states, uint64_t state_count, void* context,
                          void* (*output)(void* context, uint64_t index, const char* dtype, const int64_t* shape,
                                          uint64_t rank),
                          const dlc_error* error);
} dlc_runtime_v1;

typedef struct dlc_plugin_v1 {
  uint64_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char* name;        /* "cpu" */
  const char* version;     /* "0.1.0" */
  const char* ir_versions; /* "dlc.program 1" (comma-separated) */
  const char* schemes;     /* device URI schemes, comma-separated: "cpu" */
  const dlc_compiler_v1* compiler;
  const dlc_runtime_v1* runtime;
} dlc_plugin_v1;

typedef const dlc_plugin_v1* (*dlc_plugin_v1_entry_fn)(void);
#define DLC_PLUGIN_ENTRY "dlc_plugin_v1_entry"

#ifdef __cplusplus
}
#endif

#endif
