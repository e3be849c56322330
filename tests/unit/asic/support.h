// Whole layers: a graph of committed integers, compiled for nx16, run on a device and in the interpreter.
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dlc/graph/graph.h"
#include "dlc/hw/load.h"
#include "dlc/map/partition.h"
#include "dlc/numerics/commit.h"
#include "dlc/program/program.h"
#include "dlc_test/need.h"
#include "plugins/asic/runtime/devices.h"

namespace dlc::asic {

using dlc_test::need;

// nx16 with an array of size x size, its text and its recipes.
struct TestMachine {
  HardwareText text;
  std::shared_ptr<const HwDescription> hw;
  std::shared_ptr<const RecordSet> recipes;
};
const TestMachine& machine(int size);
// The same with other params and a changed text; or another machine of hwdesc.
TestMachine make_machine(const std::string& params, const std::function<void(std::string&)>& edit = {},
                         const std::string& file = "asic.yaml");

// What the plugin would answer.
AskDevice ask(const TestMachine& m);

// Builds graphs of recipes with seeded constants.
class LayerBuilder {
 public:
  LayerBuilder(const TestMachine& m, uint64_t seed) : random_(seed) { graph_.records = m.recipes; }

  int64_t in(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }
  ValueId input(std::vector<int64_t> shape);
  ValueId constant(DType t, std::vector<int64_t> shape, int64_t lo, int64_t hi);
  ValueId scalar(DType t, int64_t value) { return constant(t, {}, value, value); }
  ValueId node(std::string op, std::vector<ValueId> inputs, Attrs attrs);
  // int_conv with bias and requantize.
  ValueId conv(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t pad, bool depthwise = false);
  ValueId add(ValueId a, ValueId b);
  const std::vector<Expr>& shape(ValueId v) const { return graph_.value(v).type.shape; }
  int64_t dim(ValueId v, size_t d) const { return *shape(v)[d].constant(); }

  Graph finish(std::vector<ValueId> outputs);
  std::vector<Tensor> inputs();  // seeded values

 private:
  Graph graph_;
  std::mt19937_64 random_;
  int named_ = 0;
};

std::vector<Expr> list(std::initializer_list<int64_t> values);

// Compiles the graph, runs it on `uri` and compares every output with the interpreter's, bit for bit.
RunCounts check_layers(const TestMachine& m, const Graph& g, const std::vector<Tensor>& inputs, const std::string& uri);
RunCounts check_layers(const TestMachine& m, const Program& program, const std::vector<Tensor>& inputs,
                       const std::string& uri);

}  // namespace dlc::asic
