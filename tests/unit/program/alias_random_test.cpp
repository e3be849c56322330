// Random graphs of movements and computations: alias sets keep every bit, whatever meets.
#include <cstring>
#include <random>

#include "dlc/graph/state.h"
#include "dlc/program/alias.h"
#include "dlc/program/state.h"
#include "dlc_test/tensors.h"

using namespace dlc;
using dlc_test::noise;

namespace {

// Values of shape [N, c, 4, 6] with several readers each: slices of slices, concats that share operands, transposes
// there and back, residual sums, outputs in the middle.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {
    g_.symbols["N"] = Range(1, 6);
    values_.push_back(g_.add_input("x", {kF32, {Expr::symbol("N"), Expr(4), Expr(4), Expr(6)}}));
  }

  // A cache that grows by some value, and one of fixed shape that is computed in one of many ways; both are read,
  // before and after.
  Graph make_states() {
    g_.symbols["P"] = Range(0, 256);
    const Expr n = Expr::symbol("N");
    const ValueId grows = g_.add_input("grows", {kF32, {n, Expr::symbol("P"), Expr(4), Expr(6)}});
    const ValueId fixed = g_.add_input("fixed", {kF32, {n, Expr(4), Expr(4), Expr(6)}});
    values_.push_back(fixed);
    for (int i = 0; i < 6; ++i) step();
    const ValueId more = any();
    const bool fits = shape(more)[2].is(4) && shape(more)[3].is(6);  // transposes turn the others
    add("concat", {grows, fits ? more : values_[0]}, {{"axis", Expr(1)}});
    const ValueId longer = values_.back();
    values_.pop_back();
    const ValueId next = next_of(fixed);
    values_.push_back(next);
    for (const ValueId v : {draw(2) == 0 ? grows : longer, longer}) {
      add("softmax", {v}, {{"axis", Expr(3)}});
      g_.outputs.push_back(values_.back());
      g_.output_names.push_back("z" + std::to_string(g_.outputs.size()));
      values_.pop_back();
    }
    for (const auto& [v, name] : {std::pair(longer, "longer"), std::pair(next, "next")}) {
      g_.outputs.push_back(v);
      g_.output_names.emplace_back(name);
    }
    Graph g = make(5);
    if (auto ok = declare_states(g, {"grows=longer", "fixed=next"}); !ok) FAIL(to_string(ok.error()));
    return g;
  }

  Graph make(int steps = 14) {
    for (int i = 0; i < steps; ++i) step();
    std::vector<ValueId> unused;
    for (const ValueId v : values_)
      if (g_.users(v).empty()) unused.push_back(v);
    if (draw(3) == 0) unused.push_back(values_[values_.size() / 2]);
    for (const ValueId v : unused) {
      g_.outputs.push_back(v);
      g_.output_names.push_back("y" + std::to_string(g_.outputs.size()));
    }
    return std::move(g_);
  }

 private:
  uint32_t draw(uint32_t n) { return random_() % n; }
  ValueId any() { return values_[draw(3) == 0 ? draw(static_cast<uint32_t>(values_.size())) : values_.size() - 1]; }
  const std::vector<Expr>& shape(ValueId v) { return g_.value(v).type.shape; }

  void add(const std::string& op, std::vector<ValueId> in, Attrs attrs) {
    const auto n = g_.add_node(op, std::move(in), std::move(attrs), {});
    if (n) values_.push_back(g_.node(*n).outputs[0]);  // shapes that do not fit give no node
  }

  void step() {
    const ValueId v = any();
    const int64_t c = shape(v)[1].constant().value_or(0);
    switch (draw(7)) {
      case 0:
        if (const ValueId w = any(); c < 40) add("concat", {v, w}, {{"axis", Expr(1)}});
        break;
      case 1:
        if (const ValueId u = any(), w = any(); c < 40) add("concat", {u, v, w}, {{"axis", Expr(1)}});
        break;
      case 2: {
        if (c < 2) break;
        const auto lo = static_cast<int64_t>(draw(static_cast<uint32_t>(c - 1)));
        add("slice", {v},
            {{"start", std::vector<Expr>{0, lo, 0, 0}},
             {"stop", std::vector<Expr>{shape(v)[0], c - static_cast<int64_t>(draw(2)), shape(v)[2], shape(v)[3]}}});
        break;
      }
      case 3:
        add("transpose", {v}, {{"perm", std::vector<Expr>{0, 2, 1, 3}}});
        break;
      case 4:
        add("add", {v, any()}, {});
        break;
      case 5:
        add("sigmoid", {v}, {});
        break;
      default:
        add("softmax", {v}, {{"axis", Expr(static_cast<int64_t>(1 + draw(3)))}});
        break;
    }
  }

  // A value of four channels that may be computed in the place of v.
  ValueId next_of(ValueId v) {
    const size_t before = values_.size();
    const auto part = [&](ValueId of, int64_t lo, int64_t hi) {
      add("slice", {of},
          {{"start", std::vector<Expr>{0, lo, 0, 0}},
           {"stop", std::vector<Expr>{shape(of)[0], hi, shape(of)[2], shape(of)[3]}}});
      return values_.back();
    };
    switch (draw(4)) {
      case 0: {  // a part of it is new
        const ValueId x = part(values_[0], 1, 3), low = part(v, 0, 1), high = part(v, 3, 4);
        add("concat", {low, x, high}, {{"axis", Expr(1)}});
        break;
      }
      case 1: {  // shifted: its elements move
        const ValueId x = part(values_[0], 0, 1), rest = part(v, 1, 4);
        add("concat", {rest, x}, {{"axis", Expr(1)}});
        break;
      }
      case 2:
        add("add", {v, values_[0]}, {});
        break;
      default:
        add("softmax", {v}, {{"axis", Expr(2)}});
        break;
    }
    const ValueId made = values_.back();
    values_.resize(before);
    return made;
  }

  std::mt19937 random_;
  Graph g_;
  std::vector<ValueId> values_;
};

}  // namespace

TEST_CASE("alias sets of random graphs keep every bit", "[program][random]") {
  int views = 0, in_place = 0, calls = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const Graph g = RandomGraph(seed).make();
    REQUIRE_OK(const Program plain, lower_to_program(g, {.fuse = seed % 2 == 0, .max_nodes = 32, .may_join = {}}));
    Program aliased = plain;
    REQUIRE_OK(const AliasStats stats, alias_sets(aliased));
    views += stats.views;
    in_place += stats.in_place;
    calls += stats.calls;
    REQUIRE(provably_le(copied_bytes(aliased), copied_bytes(plain), plain.symbols));
    REQUIRE_OK(const Program again, parse_program(print(aliased)));
    REQUIRE(print(again) == print(aliased));
    for (const int64_t n : {1, 3}) {
      const std::vector<Tensor> in{noise({n, 4, 4, 6}, 17)};
      REQUIRE_OK(const auto expected, run_program(plain, in));
      REQUIRE_OK(const auto got, run_program(aliased, in));
      REQUIRE(got.size() == expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        REQUIRE(got[i].shape() == expected[i].shape());
        if (std::memcmp(got[i].bytes(), expected[i].bytes(), got[i].byte_size()) != 0)
          FAIL("output " << i << " differs\n" << print(plain) << print(aliased));
      }
    }
  }
  // The test is about something.
  CHECK(views > 60);
  CHECK(in_place > 30);
  CHECK(calls > 60);
}

TEST_CASE("states of random graphs keep every bit", "[program][random][state]") {
  int states = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    const Graph g = RandomGraph(seed).make_states();
    REQUIRE_OK(const Program plain, lower_to_program(g, {.fuse = seed % 2 == 0, .max_nodes = 32, .may_join = {}}));
    Program kept = plain;
    REQUIRE_OK(const int in_place, states_in_place(kept));
    states += in_place;
    REQUIRE(alias_sets(kept).has_value());
    REQUIRE_OK(const Program again, parse_program(print(kept)));
    REQUIRE(print(again) == print(kept));
    for (const int64_t n : {1, 3})
      for (const int64_t past : {0, 1, 5}) {
        const std::vector<Tensor> in{noise({n, 4, 4, 6}, 17), noise({n, past, 4, 6}, 3), noise({n, 4, 4, 6}, 5)};
        REQUIRE_OK(const auto expected, run_program(plain, in));
        REQUIRE_OK(const auto got, run_program(kept, in));
        REQUIRE(got.size() == expected.size());
        for (size_t i = 0; i < got.size(); ++i) {
          REQUIRE(got[i].shape() == expected[i].shape());
          if (std::memcmp(got[i].bytes(), expected[i].bytes(), got[i].byte_size()) != 0)
            FAIL("output " << i << " differs\n" << print(plain) << print(kept));
        }
      }
  }
  CHECK(states > 60);
}
