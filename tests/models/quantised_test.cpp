// Quantised networks: the graph's meaning against onnxruntime, and the committed integers against the graph's meaning.
//
// The project's own network is always there; the MLPerf Tiny networks are other people's files, used where they lie.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "dlc/hw/load.h"
#include "dlc/io/numpy.h"
#include "dlc/numerics/commit.h"
#include "dlc/passes/pass.h"
#include "dlc_test/skip.h"
#include "frontends/onnx/onnx.h"

using namespace dlc;
namespace fs = std::filesystem;

namespace {

const std::string kSource = DLC_SOURCE_DIR;

Tensor find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [n, t] : tensors)
    if (n == name) return t;
  FAIL("no tensor " + name);
  return {};
}

// The images of references/fashion.npz as the network takes them.
Tensor fashion_images() {
  REQUIRE_OK(auto reference, read_npz(kSource + "/tests/models/references/fashion.npz"));
  const Tensor bytes = find(reference, "images_u8");
  REQUIRE_OK(Tensor x, Tensor::make(kF32, bytes.shape()));
  auto values = x.as_mutable<float>();
  for (int64_t i = 0; i < x.elements(); ++i)
    values[static_cast<size_t>(i)] = static_cast<float>(bytes.get_int(i)) / 255.0f;
  return x;
}

int64_t argmax(const Tensor& t, int64_t row, int64_t columns) {
  int64_t best = 0;
  for (int64_t c = 1; c < columns; ++c)
    if (t.get_double(row * columns + c) > t.get_double(row * columns + best)) best = c;
  return best;
}

void check_close(const Tensor& y, const Tensor& reference, double tolerance) {
  REQUIRE(y.shape() == reference.shape());
  double worst = 0;
  double largest = 0;
  for (int64_t i = 0; i < y.elements(); ++i) {
    worst = std::max(worst, std::abs(y.get_double(i) - reference.get_double(i)));
    largest = std::max(largest, std::abs(reference.get_double(i)));
  }
  CHECK(worst <= tolerance * largest);
  const int64_t columns = y.shape().back();
  for (int64_t r = 0; r < y.elements() / columns; ++r) CHECK(argmax(y, r, columns) == argmax(reference, r, columns));
}

// Commits the model's numerics and compares every committed layer with the quantize_linear it stands for, on the same
// network input.
void check_committed(const std::string& path, std::span<const Tensor> inputs, int64_t layers) {
  REQUIRE_OK(const Graph reference, import_onnx(path));
  Graph committed = reference;
  REQUIRE_OK(const HwDescription hw, load_hw(kSource + "/hwdesc/asic.yaml"));
  REQUIRE_OK(auto recipes, load_recipes(hw));
  REQUIRE_OK(const NumericsReport report, commit_numerics(committed, recipes));
  CHECK(static_cast<int64_t>(report.committed.size()) >= layers);

  std::map<std::string, Tensor> expected;
  REQUIRE_OK(auto y0, run_graph(reference, inputs, {}, [&](NodeId n, std::span<const Tensor> results) {
               for (size_t i = 0; i < results.size(); ++i)
                 expected[reference.value(reference.node(n).outputs[i]).name] = results[i];
             }));
  std::map<ValueId, Tensor> got;
  REQUIRE_OK(auto y1, run_graph(committed, inputs, {}, [&](NodeId n, std::span<const Tensor> results) {
               for (size_t i = 0; i < results.size(); ++i) got[committed.node(n).outputs[i]] = results[i];
             }));
  int compared = 0;
  for (const auto& c : report.committed) {
    const auto e = expected.find(c.reference);
    if (e == expected.end() || !got.contains(c.value)) continue;  // a quantize_linear that was moved above a reshape
    const Tensor& a = got.at(c.value);
    const int64_t shift = e->second.dtype() == kU8 ? 128 : 0;
    int64_t worst = 0;
    for (int64_t i = 0; i < a.elements(); ++i)
      worst = std::max(worst, std::abs(a.get_int(i) + shift - e->second.get_int(i)));
    INFO(c.name << " (" << c.rule << ")");
    CHECK(worst <= 1);
    ++compared;
  }
  CHECK(compared >= layers / 2);
  for (size_t i = 0; i < y0.size(); ++i) {
    const int64_t columns = y0[i].shape().empty() ? 1 : y0[i].shape().back();
    for (int64_t r = 0; r < y0[i].elements() / columns; ++r)
      CHECK(argmax(y0[i], r, columns) == argmax(y1[i], r, columns));
  }
}

struct RealModel {
  const char* file;     // below ../shared/models/real
  const char* vectors;  // inputs x, and onnxruntime's outputs y_<form>
  const char* outputs;
  int64_t layers;  // quantised layers it has at least
};

// Sample i of x, divided by `scale`, as the model takes it.
Tensor sample(const Graph& g, const Tensor& x, int64_t i, float scale) {
  std::vector<int64_t> shape;
  for (const Expr& d : g.value(g.inputs[0]).type.shape) shape.push_back(d.constant().value_or(1));
  REQUIRE_OK(Tensor one, Tensor::make(kF32, shape));
  for (int64_t k = 0; k < one.elements(); ++k)
    one.set_double(k, static_cast<float>(x.get_double(i * one.elements() + k)) / scale);
  return one;
}

// Of the first output, and row i of what is expected.
double largest_difference(const Graph& g, const std::vector<Tensor>& inputs, const Tensor& expected, int64_t i) {
  REQUIRE_OK(const auto y, run_graph(g, inputs));
  double largest = 0;
  for (int64_t k = 0; k < y[0].elements(); ++k)
    largest = std::max(largest, std::abs(y[0].get_double(k) - expected.get_double(i * y[0].elements() + k)));
  return largest;
}

}  // namespace

TEST_CASE("fashion-mnist float follows onnxruntime") {
  REQUIRE_OK(Graph g, import_onnx(kSource + "/tests/models/fashion_mnist/fashion_float.onnx"));
  REQUIRE_OK(auto timings, run_passes(g, default_graph_pipeline()));
  REQUIRE_OK(auto reference, read_npz(kSource + "/tests/models/references/fashion.npz"));
  REQUIRE_OK(auto y, run_graph(g, std::vector<Tensor>{fashion_images()}));
  check_close(y[0], find(reference, "logits_float"), 1e-5);
}

TEST_CASE("fashion-mnist int8 is onnxruntime's result exactly, optimised or not") {
  REQUIRE_OK(auto reference, read_npz(kSource + "/tests/models/references/fashion.npz"));
  REQUIRE_OK(Graph g, import_onnx(kSource + "/tests/models/fashion_mnist/fashion_int8.onnx"));
  REQUIRE_OK(auto plain, run_graph(g, std::vector<Tensor>{fashion_images()}));
  check_close(plain[0], find(reference, "logits_int8"), 0);
  REQUIRE_OK(auto timings, run_passes(g, default_graph_pipeline()));
  REQUIRE_OK(auto optimised, run_graph(g, std::vector<Tensor>{fashion_images()}));
  check_close(optimised[0], find(reference, "logits_int8"), 0);
}

TEST_CASE("fashion-mnist int8: committed integers are within one step of the quantised meaning on every layer") {
  const std::vector<Tensor> x{fashion_images()};
  check_committed(kSource + "/tests/models/fashion_mnist/fashion_int8.onnx", x, 8);
}

TEST_CASE("MLPerf Tiny: onnxruntime's results, and committed integers on every layer", "[.networks]") {
  const fs::path real = fs::path(kSource) / "../shared/models/real";
  if (!fs::exists(real)) DLC_SKIP("there is no " << real.string());
  const RealModel models[] = {{"mlperf_onnx/resnet8_qdq.onnx", "resnet8", "y_qdq", 12},
                              {"mlperf_onnx/kws_qdq.onnx", "kws", "y_qdq", 10},
                              {"mlperf_onnx/vww_qdq.onnx", "vww", "y_qdq", 28},
                              {"mlperf_onnx/ad_qdq.onnx", "ad", "y_qdq", 10}};
  for (const auto& m : models) {
    INFO(m.file);
    REQUIRE_OK(auto vectors, read_npz((real / "vectors" / (std::string(m.vectors) + ".npz")).string()));
    const Tensor x = find(vectors, "x");
    const Tensor expected = find(vectors, m.outputs);
    const std::string path = (real / m.file).string();
    REQUIRE_OK(const Graph g, import_onnx(path));
    const int64_t samples = std::min<int64_t>(x.shape()[0], 3);
    for (int64_t i = 0; i < samples; ++i) {
      const std::vector<Tensor> inputs{sample(g, x, i, std::string_view(m.vectors) == "vww" ? 255.0F : 1.0F)};
      CHECK(largest_difference(g, inputs, expected, i) == 0);
      if (i == 0) check_committed(path, inputs, m.layers);
    }
  }
}

TEST_CASE("quantised networks that other tools made are onnxruntime's result exactly, optimised or not",
          "[.networks]") {
  const fs::path real = fs::path(kSource) / "../shared/models/real";
  if (!fs::exists(real)) DLC_SKIP("there is no " << real.string());
  const RealModel models[] = {{"micro_kws/micro_kws_m_static_qoperator.onnx", "micro_kws", "y_qoperator", 0},
                              {"micro_kws/micro_kws_m_static_qdq.onnx", "micro_kws", "y_qdq", 0},
                              {"mlperf_onnx/sww_qdq.onnx", "sww", "y_qdq", 0},
                              {"mlperf_onnx/micro_speech_qdq.onnx", "micro_speech", "y_qdq", 0}};
  for (const auto& m : models) {
    INFO(m.file);
    REQUIRE_OK(auto vectors, read_npz((real / "vectors" / (std::string(m.vectors) + ".npz")).string()));
    const Tensor x = find(vectors, "x");
    REQUIRE_OK(Graph g, import_onnx((real / m.file).string()));
    for (const bool optimised : {false, true}) {
      if (optimised) {
        REQUIRE_OK(auto timings, run_passes(g, default_graph_pipeline()));
      }
      for (int64_t i = 0; i < 4; ++i)
        CHECK(largest_difference(g, {sample(g, x, i, 1.0F)}, find(vectors, m.outputs), i) == 0);
    }
  }
}
