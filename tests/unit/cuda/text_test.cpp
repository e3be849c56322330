// What the text of a kernel looks like, whole: golden/NAME.kernel becomes golden/NAME.cu.
#include "dlc/io/file.h"
#include "dlc_test/catch.h"
#include "plugins/cuda/codegen/codegen.h"

using namespace dlc;

namespace {

std::string file(const std::string& name) {
  REQUIRE_OK(const MappedFile f, map_file(DLC_SOURCE_DIR "/tests/unit/cuda/golden/" + name));
  return std::string(f.text());
}

void check(const std::string& name) {
  REQUIRE_OK(const Kernel k, parse_kernel(file(name + ".kernel"), name));
  const Kernel* one = &k;
  REQUIRE_OK(const cuda::Module m, cuda::generate(std::span(&one, 1)));
  INFO(m.text);
  CHECK(m.text == file(name + ".cu"));
}

}  // namespace

TEST_CASE("a convolution with what follows it: a thread computes a point") { check("conv"); }

TEST_CASE("a long reduction with few results: a block computes a point; a seq loop repeats its launches") {
  check("mean");
}
