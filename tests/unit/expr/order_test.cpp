// Comparisons of addresses: what the memory plan and its check rely on.
#include "core/expr/order.h"

#include <fmt/format.h>

#include "dlc_test/catch.h"

using namespace dlc;

namespace {

Expr parsed(std::string_view text) {
  auto e = parse_expr(text);
  if (!e) FAIL(to_string(e.error()));
  return *e;
}

struct Claims {
  Ranges symbols{{"H", Range(1, 1 << 20)}, {"N", Range(1, 1 << 20)}, {"W", Range(1, 1 << 20)}};
  detail::Order order{symbols};

  bool le(std::string_view a, std::string_view b) {
    return order.provably_le(order.address(parsed(a)), order.address(parsed(b)));
  }
};

}  // namespace

TEST_CASE("each size of a sum has a partner in a sum that is larger") {
  Claims c;
  CHECK(c.le("64*((4*N*H*W + 63)//64) + 64*((8*N*((H + 1)//2) + 63)//64)",
             "64*((32*N*((H + 1)//2) + 63)//64) + 64*((12*N*H*W + 63)//64) + 64*((N + 63)//64)"));
  CHECK(c.le("4*N*H + 4*N*W", "4*N*H + 4*N*W + 64"));
  CHECK_FALSE(c.le("4*N*H + 8*N*W", "4*N*H + 4*N*W + 64"));  // one partner is too small
  CHECK_FALSE(c.le("4*N*H + 4*N*H", "6*N*H + 4*N"));         // one partner cannot stand for two
}

TEST_CASE("a sum is below a maximum when it is below one of the sums") {
  Claims c;
  CHECK(c.le("4*N*H + 4", "max(4*N*W, 8*N*H)"));
  CHECK_FALSE(c.le("4*N*H + 5", "max(4*N*W, 4*N*H + 4)"));
}

TEST_CASE("which of two is larger may depend on one symbol alone") {
  Claims c;
  CHECK_FALSE(c.le("48*N*((H + 15)//16)", "8*N*((H + 1)//2)"));  // at H = 1
  CHECK_FALSE(c.le("8*N*((H + 1)//2)", "48*N*((H + 15)//16)"));  // where H is large
  CHECK(c.le("8*N*((H + 1)//2)", "88*N*((H + 15)//16)"));
}

TEST_CASE("parts that share no symbol: the least values of each add up") {
  Claims c;
  // 8 - 8 % N lies in 1..8, N*W - N is at least 0 though the interval of each term says less.
  CHECK(c.le("N*(8//N)", "8*H*W"));
  CHECK(c.le("N*(8//N)", "7 + H"));
  CHECK_FALSE(c.le("N*(8//N)", "6 + H"));
  CHECK_FALSE(c.le("8*H*W", "N*(8//N)"));
  CHECK(c.le("N", "N*W + 3 - 3 % H"));
  CHECK_FALSE(c.le("N + 1", "N*W"));
}

TEST_CASE("unrelated sizes need searches for each, not for each pair") {
  constexpr int kSizes = 40;
  Ranges symbols;
  std::vector<Expr> sizes;  // 6 each, which only a proof that looks at both factors together could say
  for (int i = 0; i < kSizes; ++i) {
    symbols.emplace(fmt::format("N{}", i), Range(1, 1 << 20));
    sizes.push_back(parsed(fmt::format("select(N{0} - 5, 2, 1)*select(N{0} - 5, 3, 6)", i)));
  }
  detail::Order order(symbols);
  for (const Expr& a : sizes)
    for (const Expr& b : sizes) CHECK(order.provably_le(a, b) == (a == b));
  CHECK(order.searches() > 0);
  CHECK(order.searches() <= 8 * kSizes);
}
