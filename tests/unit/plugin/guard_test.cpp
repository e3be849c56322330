// Compiled code refuses the sizes that its program assumes away: an executable with a message, a library with -2.

#include "dlc/plugin/compiled.h"
#include "dlc_test/catch.h"
#include "dlc_test/library.h"

using namespace dlc;

namespace {

Program guarded() {
  auto g = parse_graph(R"(dlc.graph 1
graph @g (N in 0..64) {
  in    %a: f32[2,1,N]
  in    %b: f32[N,1,N]
  %0: f32[2,1,N] = mul(%a, %b) loc "scale"
  out   %0 "y"
})");
  if (!g) FAIL(to_string(g.error()));
  auto p = lower_to_program(*g);
  if (!p) FAIL(to_string(p.error()));
  return *p;
}

struct Compiled {
  PluginRegistry plugins{{.paths = {DLC_BINARY_DIR "/lib/dlc/plugins"}, .defaults = false}};
  Backend* cpu = nullptr;
  CompiledPartition part;
  EmitResult files;

  explicit Compiled(const std::string& options) {
    REQUIRE_OK(cpu, plugins.find("cpu"));
    REQUIRE_OK(const Hardware native, load_hardware("native"));
    REQUIRE_OK(part, compile_partition("cpu", cpu, guarded(), native, options, &files));
  }
};

}  // namespace

TEST_CASE("an executable checks the guards of its program", "[plugin]") {
  Compiled c("{}");
  REQUIRE_OK(const auto device, c.cpu->open("cpu:"));
  REQUIRE_OK(const auto executable, device->load(c.part.executable, c.part.compiled_weights()));
  const auto run = [&](int64_t n) -> Result<std::vector<Tensor>> {
    DLC_TRY(Tensor a, Tensor::make(kF32, {2, 1, n}));
    DLC_TRY(Tensor b, Tensor::make(kF32, {n, 1, n}));
    for (int64_t i = 0; i < a.elements(); ++i) a.set_double(i, static_cast<double>(i + 1));
    for (int64_t i = 0; i < b.elements(); ++i) b.set_double(i, 2);
    return executable->run(std::vector<Tensor>{a, b});
  };
  REQUIRE_OK(const auto two, run(2));
  CHECK(two[0].get_double(3) == 8);
  REQUIRE_ERROR(run(1), "N = 1 is not supported by this compilation: it assumes N == 2 (node scale)");
  REQUIRE_ERROR(run(0), "N = 0 is not supported by this compilation: it assumes N == 2 (node scale)");
  CHECK(run(2).has_value());
}

TEST_CASE("a library returns -2 for sizes it was not compiled for", "[plugin]") {
  Compiled c(R"({"format": "so", "name": "guarded"})");
  const auto* header = c.files.find("header");
  REQUIRE(header != nullptr);
  CHECK_THAT(std::string(reinterpret_cast<const char*>(header->data()), header->size()),
             Catch::Matchers::Contains("Compiled for N >= 0, N <= 64, N == 2."));
  const auto* bytes = c.files.find("library");
  REQUIRE(bytes != nullptr);
  const dlc_test::LoadedLibrary library(*bytes, "guarded");
  const float a[] = {1, 2, 3, 4}, b[] = {2, 2, 2, 2};
  float y[] = {7, 7, 7, 7};
  const void* in[] = {a, b};
  void* out[] = {y};
  alignas(64) std::byte workspace[4096];
  for (const int64_t n : {-1, 0, 1, 3, 65}) {
    CHECK(library.workspace_bytes(&n) == -2);
    CHECK(library.run(in, out, workspace, &n, nullptr) == -2);
  }
  CHECK(y[0] == 7);
  const int64_t two = 2;
  CHECK(library.workspace_bytes(&two) >= 0);
  REQUIRE(library.workspace_bytes(&two) <= static_cast<int64_t>(sizeof(workspace)));
  CHECK(library.run(in, out, workspace, &two, nullptr) == 0);
  CHECK(y[3] == 8);
}
