/* Plugins that a host must refuse, one for each BAD_*. */
#include <dlc/plugin/dlc_plugin.h>

static const dlc_compiler_v1 compiler = {sizeof(dlc_compiler_v1), 0, 0};
#ifdef BAD_RUNTIME_SIZE
static const dlc_runtime_v1 runtime = {8};
#else
static const dlc_runtime_v1 runtime = {sizeof(dlc_runtime_v1)};
#endif

static const dlc_plugin_v1 plugin = {
#if defined(BAD_SMALL)
    24,
#elif defined(BAD_LARGE)
    1u << 30,
#elif defined(BAD_BEYOND)
    4096, /* plausible, and beyond the end of the library */
#else
    sizeof(dlc_plugin_v1),
#endif
#ifdef BAD_VERSION
    7,
#else
    DLC_ABI_MAJOR,
#endif
    DLC_ABI_MINOR,
#ifdef BAD_NAME
    "somebody_else",
#else
    NAME,
#endif
    "0.1.0",
#ifdef BAD_IR
    "dlc.program 9",
#else
    "dlc.program 1",
#endif
    NAME, &compiler, &runtime};

#ifdef BAD_SYMBOL
const dlc_plugin_v1* dlc_plugin_v0_entry(void) { return &plugin; }
#elif defined(BAD_NULL)
const dlc_plugin_v1* dlc_plugin_v1_entry(void) { return 0; }
#else
const dlc_plugin_v1* dlc_plugin_v1_entry(void) { return &plugin; }
#endif
