// Extern ops: their references, run as nodes of a graph; sizes only the data knows become symbols with values.
#include "core/graph/extern_ops.h"
#include "dlc/graph/graph.h"
#include "dlc_test/catch.h"
#include "dlc_test/graph_text.h"

using namespace dlc;
using dlc_test::elements;
using dlc_test::floats;
using dlc_test::parsed;

namespace {

std::vector<std::vector<double>> results(const Graph& g, std::vector<Tensor> inputs) {
  REQUIRE_OK(auto tensors, run_graph(g, inputs));
  std::vector<std::vector<double>> all;
  for (const Tensor& t : tensors) all.push_back(elements(t));
  return all;
}

}  // namespace

TEST_CASE("every extern record has a reference", "[graph][extern]") {
  const RecordSet& records = RecordSet::builtin();
  for (const auto& name : records.names()) {
    INFO(name);
    CHECK(records.find(name)->is_extern() == (find_extern_op(name) != nullptr));
  }
}

TEST_CASE("top_k", "[graph][extern]") {
  const Tensor x = floats({2, 4}, {1, 5, 5, 2, -1, -4, 0, -3});
  const Graph largest = parsed(R"(
  in %x: f32[2,4]
  %v: f32[2,2], %i: s64[2,2] = top_k(%x) {k = 2}
  out %v
  out %i
)");
  CHECK(results(largest, {x}) == std::vector<std::vector<double>>{{5, 5, 0, -1}, {1, 2, 2, 0}});
  const Graph smallest = parsed(R"(
  in %x: f32[2,4]
  %v: f32[1,4], %i: s64[1,4] = top_k(%x) {k = 1, axis = 0, largest = 0}
  out %v
  out %i
)");
  CHECK(results(smallest, {x}) == std::vector<std::vector<double>>{{-1, -4, 0, -3}, {1, 1, 1, 1}});
}

TEST_CASE("non_zero finds out its size, and what follows knows it", "[graph][extern]") {
  const Graph g = parsed(R"(
  in %x: f32[2,3]
  %i: s64[2,K] = non_zero(%x) {count = K}
  %t: s64[K,2] = transpose(%i) {perm = [1, 0]}
  out %t
)",
                         "(K in 0..6)");
  const Tensor x[] = {floats({2, 3}, {0, 3, 0, 1, 0, 2})};
  REQUIRE_OK(auto y, run_graph(g, x));
  CHECK(y[0].shape() == std::vector<int64_t>{3, 2});
  CHECK(elements(y[0]) == std::vector<double>{0, 1, 1, 0, 1, 2});
  const Tensor none[] = {floats({2, 3}, {0, 0, 0, 0, 0, 0})};
  REQUIRE_OK(auto z, run_graph(g, none));
  CHECK(z[0].shape() == std::vector<int64_t>{0, 2});
}

TEST_CASE("non_max_suppression keeps the best of overlapping boxes", "[graph][extern]") {
  const Graph g = parsed(R"(
  in %boxes: f32[1,4,4]
  in %scores: f32[1,1,4]
  const @most: s64[] = 3
  const @iou: f32[] = 0.5
  const @score: f32[] = 0.2
  %i: s64[K,3] = non_max_suppression(%boxes, %scores, @most, @iou, @score) {count = K}
  out %i
)",
                         "(K in 0..)");
  // The second overlaps the first (9/11 of their union), the fourth scores too little; corners in any order.
  const Tensor boxes = floats({1, 4, 4}, {0, 0, 10, 10, 10, 11, 0, 1, 20, 20, 30, 30, 50, 50, 60, 60});
  const Tensor scores = floats({1, 1, 4}, {0.8F, 0.9F, 0.5F, 0.1F});
  CHECK(results(g, {boxes, scores}) == std::vector<std::vector<double>>{{0, 0, 1, 0, 0, 2}});
}
