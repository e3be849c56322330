#include "dlc/ops/record.h"
#include "dlc_test/catch.h"

using namespace dlc;

TEST_CASE("smoke") {
  const RecordSet& set = RecordSet::builtin();
  if (!RecordSet::builtin_errors().empty()) FAIL(to_string(RecordSet::builtin_errors()));
  const Expr N = Expr::symbol("N");
  auto t = [](std::vector<Expr> s, DType d = kF32) { return Operand::of({d, s}); };
  auto show = [&](const char* op, std::vector<Operand> o, Attrs a) {
    const Record* r = set.find(op);
    REQUIRE(r);
    REQUIRE_OK(Kernel k, set.instantiate(*r, o, a));
    INFO(print(k));
    if (auto ok = verify(k); !ok) FAIL(to_string(ok.error()));
    WARN(print(k));
  };
  show("matmul", {t({N, 4, 8}), t({8, 16})}, {});
  show("conv", {t({N, 64, 56, 56}), t({64, 64, 3, 3}), t({64})},
       {{"pad_lo", std::vector<Expr>{1, 1}}, {"pad_hi", std::vector<Expr>{1, 1}}, {"stride", std::vector<Expr>{2, 2}}});
  show("softmax", {t({N, 4, 8}, kF16)}, {});
  show("add", {t({N, 4, 8}), t({4, 1})}, {});
  show("layer_norm", {t({N, 4, 8}), t({8})}, {});
}
