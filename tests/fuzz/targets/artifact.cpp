// Artifacts: the container, and the model in it.
#include "dlc/io/artifact.h"

#include "dlc/plugin/compiled.h"
#include "tests/fuzz/targets/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dlc::fuzz::MemoryFile file(data, size);
  if (const auto a = dlc::Artifact::open(file.path()))
    for (const std::string& name : a->names()) (void)a->section(name);
  (void)dlc::CompiledModel::read(file.path());
  return 0;
}
