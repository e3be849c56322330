// A plugin that breaks the promises of its interface, or crashes: in the way that is named by the description's text
// when it compiles, and by the device's URI when it runs, "lying:wrong_type".
#include <cstdint>
#include <cstdlib>
#include <string>

#include "dlc/plugin/dlc_plugin.h"

struct dlc_device {
  std::string how;
};
struct dlc_executable {
  std::string how;
};

namespace {

constexpr uint64_t kHuge = uint64_t{1} << 62;

int32_t put(const dlc_sink* sink, const char* name, const std::string& text) {
  return sink->put(sink->context, name, text.data(), text.size());
}
// Nothing, once it is mended.
bool says(const dlc_emit_request* request, const char* how) {
  if (std::getenv("LYING_IS_MENDED") != nullptr) return false;
  return std::string(request->hardware).find(how) != std::string::npos;
}

volatile int zero = 0;
int* volatile nowhere = nullptr;

int deeper(int n) {
  volatile char much[4096];
  much[n % 4096] = 1;
  return n == zero - 1 ? 0 : deeper(n + 1) + much[0];  // deeper than any stack
}

int crash(const std::string& how) {
  if (how == "crash_abort") std::abort();
  if (how == "crash_divide") return 12345 / zero;
  if (how == "crash_deep") return deeper(0);
  return *nowhere;
}

int32_t match(const dlc_emit_request* request, const dlc_sink* result, const dlc_error*) {
  return says(request, "huge_match") ? result->put(result->context, "match.json", "x", kHuge) : 0;
}

int32_t emit(const dlc_emit_request* request, const dlc_sink* result, const dlc_error* error) {
  if (says(request, "crash_emit")) return crash("crash_emit");
  if (says(request, "internal_emit")) {
    error->report(error->context, DLC_ERROR, "", 0, 0, "", "internal error in plugin: two and two", "");
    return 1;
  }
  if (says(request, "huge_emit")) result->put(result->context, "report.json", "x", kHuge);  // and goes on
  if (says(request, "null_emit")) return result->put(result->context, "report.json", nullptr, 8);
  if (says(request, "piece")) {  // of "weights": 4 bytes, then some that do not continue them
    if (result->put_at(result->context, "weights", 0, "abcd", 4) != 0) return 1;
    if (says(request, "far_piece")) return result->put_at(result->context, "weights", kHuge, "x", 1);
    if (says(request, "gap_piece")) return result->put_at(result->context, "weights", 5, "x", 1);
    if (says(request, "wide_piece")) return result->put_at(result->context, "weights", 2, "xyz", 3);
    if (says(request, "huge_piece")) return result->put_at(result->context, "weights", 4, "x", kHuge);
    if (says(request, "round_piece")) return result->put_at(result->context, "weights", 4, "x", ~uint64_t{3});
    if (says(request, "null_piece")) return result->put_at(result->context, "weights", 4, nullptr, 1);
    if (result->put_at(result->context, "weights", 4, "efgh", 4) != 0) return 1;
    if (result->put_at(result->context, "weights", 2, "CDEF", 4) != 0) return 1;
  }
  if (says(request, "odd_json")) {
    put(result, "report.json", R"({"kernels": [3, {"name": 4}, {"name": {}, "notes": 5}], "layers": [{"plan": 7}]})");
    put(result, "timing.json", R"([{"name": 3, "ms": "long"}, 4, {"name": [], "ms": {}}])");
  }
  return put(result, "executable", "code");
}

int32_t list(const dlc_sink* result, const dlc_error*) { return put(result, "lying:", R"({"available": true})"); }

int32_t open(const char* uri, dlc_device** device, const dlc_error*) {
  *device = new dlc_device{uri};
  return 0;
}

int32_t load(dlc_device* device, const void*, uint64_t, const dlc_tensor*, uint64_t, dlc_executable** result,
             const dlc_error*) {
  *result = new dlc_executable{device->how.substr(device->how.find(':') + 1)};
  return 0;
}

// Its results are zeros: f32[4], where nothing else is said.
int32_t run(dlc_executable* executable, const dlc_tensor*, uint64_t, void* context,
            void* (*output)(void*, uint64_t, const char*, const int64_t*, uint64_t), const dlc_error*) {
  const std::string& how = executable->how;
  if (how.starts_with("crash_")) return crash(how);
  const int64_t four[] = {4}, other[] = {7, 1}, huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  if (how == "wrong_type") return output(context, 0, "s64", four, 1) == nullptr;
  if (how == "wrong_shape") return output(context, 0, "f32", other, 2) == nullptr;
  if (how == "no_type") return output(context, 0, "f33", four, 1) == nullptr;
  if (how == "no_shape") return output(context, 0, "f32", nullptr, 1) == nullptr;
  if (how == "huge_rank") return output(context, 0, "f32", four, kHuge) == nullptr;
  if (how == "wrong_place") return output(context, 1, "f32", four, 1) == nullptr;
  if (how == "goes_on") {  // though the host has no memory for the result
    output(context, 0, "f32", huge, 2);
    output(context, 0, "f32", four, 1);
    return 0;
  }
  return output(context, 0, "f32", four, 1) == nullptr;
}

int32_t counters(dlc_executable* executable, const dlc_sink* result, const dlc_error*) {
  if (executable->how == "huge_counters") return result->put(result->context, "counters.json", "x", kHuge);
  if (executable->how == "odd_counters")
    return put(
        result, "counters.json",
        R"({"cycles": "many", "macs": {}, "sim_seconds": [], "bit_exact": 3, "threads": "all", "model": 5, "runs": 9, "odd": 1,
                   "mac_utilization": "high", "layers": [3, {"name": 4, "ms": "x", "measured_cycles": []}]})");
  if (executable->how == "deep_counters") return put(result, "counters.json", R"({"a":)" + std::string(200000, '['));
  return put(result, "counters.json", R"({"cycles": 7})");
}

constexpr dlc_compiler_v1 kCompiler{sizeof(dlc_compiler_v1), match, emit};
constexpr dlc_runtime_v1 kRuntime{sizeof(dlc_runtime_v1),
                                  list,
                                  open,
                                  [](dlc_device* d) { delete d; },
                                  load,
                                  [](dlc_executable* e) { delete e; },
                                  run,
                                  counters,
                                  nullptr};
constexpr dlc_plugin_v1 kPlugin{sizeof(dlc_plugin_v1), DLC_ABI_MAJOR, DLC_ABI_MINOR, "lying",  "1",
                                "dlc.program 1",       "lying",       &kCompiler,    &kRuntime};

}  // namespace

extern "C" __attribute__((visibility("default"))) const dlc_plugin_v1* dlc_plugin_v1_entry(void) { return &kPlugin; }
