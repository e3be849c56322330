#include "tests/cosim_layers/networks.h"

#include <cstdlib>
#include <random>

#include "dlc/map/fill_lanes.h"
#include "dlc/map/partition.h"
#include "frontends/onnx/onnx.h"

namespace dlc::asic {

namespace {

const bool kFound = [] {
  setenv("DLC_RTL_PATH", (std::string(DLC_BINARY_DIR) + "/lib/dlc/rtl").c_str(), 0);
  return true;
}();

// The part of a network that the device runs, with seeded inputs.
template <class F>
void on_device(const std::string& path, const TestMachine& m, const F& check) {
  Graph g = need(with_smallest_shapes(need(import_onnx(path))));
  need(commit_numerics(g, m.recipes));
  need(fill_lanes(g, *m.hw));
  const Partitioning parts = need(partition(g, *m.hw, "asic", ask(m)));
  int parts_on_device = 0;
  for (const Partition& p : parts.partitions) {
    if (p.device == "host") continue;
    ++parts_on_device;
    std::mt19937_64 random(7);
    std::vector<Tensor> inputs;
    for (const ValueId v : p.graph.inputs) {
      std::vector<int64_t> shape;
      for (const Expr& e : p.graph.value(v).type.shape) shape.push_back(*e.constant());
      Tensor x = need(Tensor::make(p.graph.value(v).type.dtype, shape));
      for (int64_t i = 0; i < x.elements(); ++i) x.set_int(i, static_cast<int64_t>(random() % 256) - 128);
      inputs.push_back(std::move(x));
    }
    check(p.graph, inputs);
  }
  CHECK(parts_on_device == 1);
}

}  // namespace

CosimReport cosim(const TestMachine& m, const Graph& g, const std::vector<Tensor>& inputs, uint64_t seed) {
  REQUIRE(kFound);
  const Program program = need(lower_to_program(g));
  const AcceleratorImage image = need(compile_for(*m.hw, program));
  auto loaded = std::make_shared<const Loaded>(need(read_container(need(write_container(*m.hw, m.text, image)))));
  DeviceUri uri = need(parse_device_uri("asic:rtl?jitter=24&backpressure=10&seed=" + std::to_string(seed)));
  Driver rtl = need(Driver::make(loaded, need(open_port(uri, *loaded))));
  CosimReport report = need(cosimulate(*loaded, rtl, inputs));
  INFO(to_json(report));
  CHECK(report.bit_exact);
  const auto want = need(run_program(program, inputs));
  REQUIRE(report.outputs.size() == want.size());
  for (size_t i = 0; i < want.size(); ++i)
    for (int64_t e = 0; e < want[i].elements(); ++e) REQUIRE(report.outputs[i].get_int(e) == want[i].get_int(e));
  return report;
}

void check_network(const TestMachine& m, const std::string& path) {
  on_device(path, m, [&](const Graph& g, const std::vector<Tensor>& inputs) {
    const CosimReport r = cosim(m, g, inputs, 3);
    CHECK(r.writes > 1000);
    int64_t sum = 0;
    for (const LayerCount& l : r.counts.layers) {
      INFO(l.name);
      CHECK(l.predicted_cycles > 0);
      CHECK(l.measured_cycles > 0);
      CHECK(l.mac_utilization <= 1);
      sum += l.measured_cycles;
    }
    CHECK(sum == r.counts.cycles);
  });
}

void check_prediction(const TestMachine& m, const std::string& path) {
  on_device(path, m, [&](const Graph& g, const std::vector<Tensor>& inputs) {
    const AcceleratorImage image = need(compile_for(*m.hw, need(lower_to_program(g))));
    auto loaded = std::make_shared<const Loaded>(need(read_container(need(write_container(*m.hw, m.text, image)))));
    Driver rtl = need(Driver::make(loaded, need(open_port(need(parse_device_uri("asic:rtl")), *loaded))));
    need(rtl.run(inputs));
    std::vector<double> errors;
    for (const LayerCount& l : rtl.counts().layers) {
      const auto measured = static_cast<double>(l.measured_cycles);
      errors.push_back(std::abs(static_cast<double>(l.predicted_cycles) - measured) / std::max(measured, 1.0));
    }
    std::ranges::sort(errors);
    INFO(path << ": " << to_json(rtl.counts()));
    CHECK(errors[errors.size() / 2] <= m.hw->cost.error_budget.at("median"));
    CHECK(errors.back() <= m.hw->cost.error_budget.at("p95"));
  });
}

}  // namespace dlc::asic
