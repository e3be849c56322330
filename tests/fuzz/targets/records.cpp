// Op records: what parses prints, reads back, and can be used.
#include <cstdlib>

#include "dlc/ops/generate.h"
#include "dlc/ops/record.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto set = dlc::RecordSet::parse(dlc::fuzz::text(data, size), "fuzz.ops", &dlc::RecordSet::builtin());
  if (!set) return 0;
  for (const std::string& name : set->names()) {
    const dlc::Record& r = *set->find(name);
    if (dlc::RecordSet::builtin().find(name) != nullptr) continue;
    if (!dlc::RecordSet::parse(r.print(), "printed.ops", &*set)) std::abort();
    (void)dlc::generate(*set, r, 1, {.tries = 3});
  }
  return 0;
}
