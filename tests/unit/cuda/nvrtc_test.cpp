// Generated text through NVRTC, where it is found: no kernel spills a register, none has a performance warning.
#include "dlc/ops/generate.h"
#include "dlc_test/catch.h"
#include "dlc_test/skip.h"
#include "plugins/cuda/codegen/codegen.h"
#include "plugins/cuda/compile/compile.h"

using namespace dlc;

namespace {

// One kernel of every record.
std::vector<Kernel> corpus() {
  const RecordSet& set = RecordSet::builtin();
  std::vector<Kernel> all;
  for (const std::string& name : set.names()) {
    const Record& record = *set.find(name);
    if (record.is_extern()) continue;
    const auto use = generate(set, record, 0);
    if (!use) continue;
    REQUIRE_OK(Kernel k, set.instantiate(record, use->operands, use->attrs));
    all.push_back(std::move(k));
  }
  return all;
}

}  // namespace

TEST_CASE("no kernel of a record spills, and none has a performance warning") {
  if (const auto found = cuda::nvrtc_available(); !found) DLC_SKIP(to_string(found.error()));
  const std::vector<Kernel> all = corpus();
  std::vector<const Kernel*> kernels;
  for (const Kernel& k : all) kernels.push_back(&k);
  REQUIRE_OK(const cuda::Module m, cuda::generate(kernels));
  REQUIRE_OK(const cuda::DeviceCode code, cuda::compile_for_device(m.text, "sm_80"));
  CHECK(code.kernels.size() >= all.size());
  for (const cuda::KernelFacts& k : code.kernels) {
    INFO(k.name);
    CHECK(k.registers > 0);
    CHECK(k.spill_bytes == 0);
  }
  for (const std::string& w : code.warnings) FAIL_CHECK(w);
}

TEST_CASE("PTX, and a text that does not compile") {
  if (const auto found = cuda::nvrtc_available(); !found) DLC_SKIP(to_string(found.error()));
  const std::string text =
      "#include \"dlc_dev.h\"\n// ---- kernel k7_mul: fc1/mul\nextern \"C\" __global__ void f(float* x) {\n";
  REQUIRE_OK(const cuda::DeviceCode ptx, cuda::compile_for_device(text + "  *x = 1;\n}\n", "compute_80"));
  const std::string_view code(reinterpret_cast<const char*>(ptx.bytes.data()), ptx.bytes.size());
  CHECK(code.contains(".target sm_80"));
  const auto bad = cuda::compile_for_device(text + "  *x = y;\n}\n", "sm_80");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().diagnostics[0].loc.node == "k7_mul: fc1/mul");
  CHECK(bad.error().message().contains("identifier \"y\" is undefined"));
}

TEST_CASE("a text that the host's compiler does not take names its kernel") {
  const auto bad =
      cuda::compile_for_host("#include \"dlc_dev.h\"\n// ---- kernel k7_mul: fc1/mul\nint f() { return y; }\n");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().diagnostics[0].loc.node == "k7_mul: fc1/mul");
}
