// One executable of `cpu:` that several threads run at once: each has the results that it would have alone.
#include <cstring>
#include <thread>

#include "dlc/plugin/compiled.h"
#include "dlc_test/catch.h"

using namespace dlc;

TEST_CASE("threads that run one executable wait for each other", "[plugin]") {
  PluginRegistry plugins{{.paths = {DLC_BINARY_DIR "/lib/dlc/plugins"}, .defaults = false}};
  REQUIRE_OK(Backend * cpu, plugins.find("cpu"));
  REQUIRE_OK(const Hardware native, load_hardware("native"));
  // Two kernels with a buffer between them; each thread has another N, so that the arena changes with each run.
  REQUIRE_OK(const Graph g, parse_graph(R"(dlc.graph 1
graph @g (N in 1..4096) {
  in    %x: f32[N,64]
  %0: f32[64,N] = transpose(%x) {perm = [1, 0]}
  %1: f32[64,N] = softmax(%0) {axis = 1}
  out   %1 "y"
}
)"));
  REQUIRE_OK(Program p, lower_to_program(g));
  REQUIRE_OK(const CompiledPartition part, compile_partition("cpu", cpu, std::move(p), native, "{}"));
  REQUIRE_OK(const auto device, cpu->open("cpu:?threads=1"));
  REQUIRE_OK(const auto executable, device->load(part.executable, part.compiled_weights()));
  constexpr int kThreads = 4, kRuns = 50;
  std::vector<Tensor> inputs, wanted;
  for (int64_t i = 0; i < kThreads; ++i) {
    REQUIRE_OK(Tensor x, Tensor::make(kF32, {100 + 300 * i, 64}));
    for (int64_t e = 0; e < x.elements(); ++e) x.set_double(e, static_cast<double>((e * 7 + i) % 23) * 0.25);
    REQUIRE_OK(auto y, executable->run(std::span(&x, 1)));
    inputs.push_back(std::move(x));
    wanted.push_back(std::move(y[0]));
  }
  std::vector<int> right(kThreads, 0);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        for (int run = 0; run < kRuns; ++run) {
          const auto y = executable->run(std::span(&inputs[i], 1));
          if (y && (*y)[0].shape() == wanted[i].shape() &&
              std::memcmp((*y)[0].bytes(), wanted[i].bytes(), wanted[i].byte_size()) == 0)
            ++right[i];
          static_cast<void>(executable->counters());
        }
      });
  }
  CHECK(right == std::vector<int>(kThreads, kRuns));
}
