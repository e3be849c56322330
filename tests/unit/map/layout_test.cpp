// Blocked layouts: pack, unpack, padding.
#include "core/map/target.h"
#include "dlc_test/catch.h"

using namespace dlc;
using dlc::map::Layout;

TEST_CASE("channels lie in vectors, what pads the last one is 0") {
  const Layout l = Layout::of({kS8, {Expr(1), Expr(5), Expr(2), Expr(3)}}, 4);
  CHECK(l.words() == std::vector<int64_t>{1, 2, 2, 3});
  REQUIRE(l.bytes() == 48);
  auto t = Tensor::make(kS8, {1, 5, 2, 3});
  REQUIRE(t.has_value());
  for (int64_t i = 0; i < 30; ++i) t->set_int(i, i + 1);
  std::vector<std::byte> bytes(48, std::byte{99});
  map::pack(l, *t, bytes.data());
  const auto at = [&](int64_t c, int64_t y, int64_t x) {
    return static_cast<int>(bytes[static_cast<size_t>((((c / 4) * 2 + y) * 3 + x) * 4 + c % 4)]);
  };
  CHECK(at(0, 0, 0) == 1);
  CHECK(at(3, 1, 2) == 24);
  CHECK(at(4, 0, 1) == 26);
  CHECK(at(5, 0, 1) == 0);
  auto back = Tensor::make(kS8, {1, 5, 2, 3});
  REQUIRE(back.has_value());
  map::unpack(l, bytes.data(), *back);
  for (int64_t i = 0; i < 30; ++i) CHECK(back->get_int(i) == i + 1);
}

TEST_CASE("vectors and scalars have layouts too") {
  CHECK(Layout::of({kS8, {}}, 16).bytes() == 16);
  CHECK(Layout::of({kS8, {Expr(17)}}, 16).bytes() == 32);
  CHECK(Layout::of({kS8, {Expr(3), Expr(17)}}, 16).bytes() == 96);
}
