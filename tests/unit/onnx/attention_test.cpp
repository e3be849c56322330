// Ops of opsets 23 and 24, on numbers that can be checked by hand; ONNX's own tests have the many forms.
#include <cmath>

#include "models.h"

using namespace dlc;
using namespace dlc_test;
using Catch::Matchers::Contains;

TEST_CASE("RMS normalisation and swish", "[onnx]") {
  OneNode t("RMSNormalization", 23, {1, 2}, {"x", "s"});
  initializer(t.m, "s", {2}, {2, 1});
  set_float(t.n, "epsilon", 0);
  const auto y = elements(run(t.m, {3, 4}));
  CHECK(y[0] == Approx(6 / std::sqrt(12.5)));
  CHECK(y[1] == Approx(4 / std::sqrt(12.5)));
  OneNode s("Swish", 24, {2});
  set_float(s.n, "alpha", 2);
  CHECK(elements(run(s.m, {0, 1}))[1] == Approx(1 / (1 + std::exp(-2.0))));
}

TEST_CASE("Rotary positions turn pairs, of the first elements if so asked", "[onnx]") {
  for (const bool ids : {true, false}) {
    OneNode t("RotaryEmbedding", 23, {1, 1, 1, 4}, {"x", "cos", "sin"});
    const std::vector<int64_t> table = ids ? std::vector<int64_t>{2, 1} : std::vector<int64_t>{1, 1, 1};
    initializer(t.m, "cos", table, ids ? std::vector<float>{9, 0} : std::vector<float>{0});
    initializer(t.m, "sin", table, ids ? std::vector<float>{9, 1} : std::vector<float>{1});
    if (ids) {
      t.n->add_input("at");
      integers(t.m, "at", {1, 1}, {1});
    }
    set_int(t.n, "rotary_embedding_dim", 2);
    CHECK(elements(run(t.m, {1, 2, 3, 4})) == std::vector<double>{-2, 1, 3, 4});
  }
}

// Queries of 0 weigh every key they see alike.
TEST_CASE("Attention: causal, masked, capped, with a past", "[onnx]") {
  const auto attention = [](bool capped) {
    OneNode t("Attention", 23, {1, 1, 2, 1}, {"x", "k", "v"});
    initializer(t.m, "k", {1, 1, 2, 1}, {1, 2});
    initializer(t.m, "v", {1, 1, 2, 1}, {10, 20});
    if (capped) set_float(t.n, "softcap", 1);
    return t;
  };
  for (const bool capped : {false, true}) {
    OneNode all = attention(capped);
    CHECK(elements(run(all.m, {0, 0})) == std::vector<double>{15, 15});
    OneNode causal = attention(capped);
    set_int(causal.n, "is_causal", 1);
    CHECK(elements(run(causal.m, {0, 0})) == std::vector<double>{10, 15});
    OneNode masked = attention(capped);
    masked.n->add_input("m");
    integers(masked.m, "m", {2, 2}, {0, 1, 1, 0}, onnx::TensorProto::BOOL);
    CHECK(elements(run(masked.m, {0, 0})) == std::vector<double>{20, 10});
    OneNode past = attention(capped);
    for (const char* in : {"", "k", "v"}) past.n->add_input(in);
    past.n->add_output("present");
    past.m.mutable_graph()->add_output()->set_name("present");
    set_int(past.n, "is_causal", 1);
    const auto y = elements(run(past.m, {0, 0}));  // three and four keys
    CHECK(y[0] == Approx(40.0 / 3));
    CHECK(y[1] == 15);
  }
  OneNode scores = attention(false);
  set_int(scores.n, "qk_matmul_output_mode", 7);
  const auto g = import(scores.m);
  REQUIRE_FALSE(g.has_value());
  CHECK_THAT(to_string(g.error()), Contains("'qk_matmul_output_mode' is 7"));
}

TEST_CASE("Attention: a query that sees no key gets 0, and its weights are 0", "[onnx]") {
  for (const bool weights : {false, true}) {
    OneNode t("Attention", 23, {1, 1, 2, 1}, {"x", "k", "v", "m"});
    initializer(t.m, "k", {1, 1, 2, 1}, {1, 2});
    initializer(t.m, "v", {1, 1, 2, 1}, {10, 20});
    integers(t.m, "m", {2, 2}, {0, 0, 1, 0}, onnx::TensorProto::BOOL);
    if (weights) {
      for (const char* out : {"", "", "w"}) t.n->add_output(out);
      set_int(t.n, "qk_matmul_output_mode", 3);
      t.m.mutable_graph()->mutable_output(0)->set_name("w");
    }
    CHECK(elements(run(t.m, {0, 0})) == (weights ? std::vector<double>{0, 0, 1, 0} : std::vector<double>{0, 10}));
  }
}

TEST_CASE("Attention: windows, a short mask, and queries at the end of a cache", "[onnx]") {
  const auto attention = [](int opset) {
    OneNode t("Attention", opset, {1, 1, 2, 1}, {"x", "k", "v"});
    initializer(t.m, "k", {1, 1, 4, 1}, {1, 2, 3, 4});
    initializer(t.m, "v", {1, 1, 4, 1}, {10, 20, 30, 40});
    return t;
  };
  OneNode window = attention(25);
  set_int(window.n, "left_window_size", 0);
  set_int(window.n, "right_window_size", 1);
  CHECK(elements(run(window.m, {0, 0})) == std::vector<double>{15, 25});
  OneNode mask = attention(23);
  mask.n->add_input("m");
  integers(mask.m, "m", {2, 1}, {1, 1}, onnx::TensorProto::BOOL);
  CHECK(elements(run(mask.m, {0, 0})) == std::vector<double>{10, 10});
  OneNode cache = attention(24);
  for (const char* in : {"", "", "", "n"}) cache.n->add_input(in);
  integers(cache.m, "n", {1}, {3});
  set_int(cache.n, "is_causal", 1);
  CHECK(elements(run(cache.m, {0, 0})) == std::vector<double>{15, 20});
}
