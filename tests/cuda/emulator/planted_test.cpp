// Every planted mistake is found, as what it is; what is right runs without a fault and computes what it should.

#include <cmath>
#include <numeric>

#include "dlc_test/catch.h"
#include "emu.h"

namespace dlc::test {
namespace {

struct Planted {
  int bug;
  const char* fault;  // empty: none
};

const std::string& image() { return module_of("kernels/planted.cu", true); }

std::vector<uint16_t> small_halves(size_t n) {  // 1 + i/1024 for a few i
  std::vector<uint16_t> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<uint16_t>(0x3c00 + i * 37 % 64);
  return v;
}
float half_value(uint16_t h) { return 1.0f + static_cast<float>(h - 0x3c00) / 1024; }

std::string named(const char* kernel, int bug) { return kernel + ("_" + std::to_string(bug)); }

}  // namespace

TEST_CASE("planted mistakes of a matrix product are found") {
  const auto [bug, fault] =
      GENERATE(Planted{0, ""}, Planted{1, "pending copy"}, Planted{2, "pending copy"}, Planted{3, "uninitialised"},
               Planted{4, "pending copy"}, Planted{5, "out of bounds"}, Planted{6, "out of bounds"},
               Planted{7, "out of bounds"}, Planted{8, "race"});
  const unsigned seed = GENERATE(0u, 3u);
  const Device device(R"({"seed": )" + std::to_string(seed) + "}");
  const Kernels kernels(image());
  const int m = 40, n = 40, k = 200;
  const auto a = small_halves(static_cast<size_t>(m * k)), b = small_halves(static_cast<size_t>(k * n));
  const Buffer da = device.upload(a), db = device.upload(b), dc = device.buffer(4u * m * n);
  CHECK(kernels.launch(named("gemm", bug), {2, 2, 1}, {128, 1, 1}, 3 * 2 * 2 * 32 * 40, {da, db, dc, m, n, k}) == 0);
  CAPTURE(bug, seed);
  CHECK(device.finish() == (*fault ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS));
  INFO(device.first_text());
  CHECK(device.first_fault() == fault);
  if (bug != 0) return;
  const auto c = device.download<float>(dc);
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0;
      for (int i = 0; i < k; ++i)
        sum += static_cast<double>(half_value(a[static_cast<size_t>(row * k + i)])) *
               half_value(b[static_cast<size_t>(i * n + column)]);
      CHECK(std::abs(c[static_cast<size_t>(row * n + column)] - sum) <= 1e-5 * sum);
    }
  const auto counters = device.counters("gemm_0");
  CHECK(counters["shared_loads"]["wavefronts"] == counters["shared_loads"]["phases"]);
  CHECK(counters["shared_stores"]["wavefronts"] > counters["shared_stores"]["phases"]);  // rows of 80 bytes
  CHECK(counters["mma"] == 4 * 4 * 7 * 2 * 2);
  CHECK(counters["barriers"] == 4 * 7);
}

TEST_CASE("planted mistakes of a reduction are found") {
  const auto [bug, fault] =
      GENERATE(Planted{0, ""}, Planted{1, "out of bounds"}, Planted{2, "deadlock"}, Planted{3, "out of bounds"},
               Planted{4, "divergent"}, Planted{5, "divergent"}, Planted{6, "uninitialised"},
               Planted{7, "out of bounds"}, Planted{8, "race"}, Planted{9, "race"});
  const Device device(R"({"seed": 5})");
  const Kernels kernels(image());
  const int rows = 3, n = 1000;
  std::vector<float> x(static_cast<size_t>(rows * n));
  std::iota(x.begin(), x.end(), 0.0f);
  const Buffer dx = device.upload(x), dy = device.buffer(4u * rows);
  CHECK(kernels.launch(named("row_sum", bug), {3, 1, 1}, {256, 1, 1}, 0, {dx, dy, n}) == 0);
  CAPTURE(bug);
  CHECK(device.finish() == (*fault ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS));
  INFO(device.first_text());
  CHECK(device.first_fault() == fault);
  if (bug == 0) CHECK(device.download<float>(dy) == std::vector<float>{499500, 1499500, 2499500});
}

TEST_CASE("planted mistakes of an element-wise kernel are found") {
  const auto [bug, fault] =
      GENERATE(Planted{0, ""}, Planted{1, "out of bounds"}, Planted{2, "read only"}, Planted{3, "uninitialised"},
               Planted{4, "out of bounds"}, Planted{5, "misaligned"}, Planted{6, "race"});
  const Device device;
  const Kernels kernels(image());
  const int n = 512;
  const Buffer dx = device.upload(std::vector<float>(n, 3.0f)), dy = device.buffer(4u * n);
  CHECK(kernels.launch(named("scale", bug), {5, 1, 1}, {32, 1, 1}, 0, {dx, dy, n}) == 0);
  CAPTURE(bug);
  CHECK(device.finish() == (*fault ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS));
  INFO(device.first_text());
  CHECK(device.first_fault() == fault);
  if (bug != 0) return;
  CHECK(device.download<float>(dy) == std::vector<float>(n, 6.0f));
  const auto counters = device.counters("scale_0");  // 32 lanes x 16 bytes: 16 sectors, all of them used
  CHECK(counters["loads"]["requests"] == 4);
  CHECK(counters["loads"]["sectors"] == 64);
  CHECK(counters["stores"]["sectors"] == 64);
  CHECK(counters["stores"]["bytes"] == 2048);
}

TEST_CASE("planted mistakes of an exchange through shared memory are found") {
  const auto [bug, fault] =
      GENERATE(Planted{0, ""}, Planted{1, "uninitialised"}, Planted{2, "uninitialised"}, Planted{3, "uninitialised"},
               Planted{4, "divergent"}, Planted{5, "uninitialised"}, Planted{6, "uninitialised"});
  const Device device;
  const Kernels kernels(image());
  std::vector<unsigned char> x(64), mirrored(64);
  std::iota(x.begin(), x.end(), static_cast<unsigned char>(0));
  for (size_t i = 0; i < 64; ++i) mirrored[i] = static_cast<unsigned char>(i ^ 31);
  const Buffer dx = device.upload(x), dy = device.buffer(64);
  CHECK(kernels.launch(named("mirror", bug), {1, 1, 1}, {64, 1, 1}, 64, {dx, dy, 60}) == 0);
  CAPTURE(bug);
  CHECK(device.finish() == (*fault ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS));
  INFO(device.first_text());
  CHECK(device.first_fault() == fault);
  if (bug == 0) CHECK(device.download<unsigned char>(dy) == mirrored);
}

TEST_CASE("planted mistakes between blocks are found") {
  const auto [bug, fault] = GENERATE(Planted{0, ""}, Planted{1, "race"}, Planted{2, "uninitialised"},
                                     Planted{3, "race"}, Planted{4, "race"}, Planted{5, "race"});
  const Device device;
  const Kernels kernels(image());
  const int n = 500;
  const Buffer dx = device.upload(std::vector<float>(n, 1.0f)), parts = device.buffer(4 * 4), dy = device.buffer(4);
  const Buffer counter = device.upload(std::vector<unsigned>{0});
  CHECK(kernels.launch(named("all_sum", bug), {4, 1, 1}, {128, 1, 1}, 0, {dx, parts, counter, dy, n}) == 0);
  CAPTURE(bug);
  CHECK(device.finish() == (*fault ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS));
  INFO(device.first_text());
  CHECK(device.first_fault() == fault);
  if (bug == 0) CHECK(device.download<float>(dy) == std::vector<float>{500});
}

TEST_CASE("planted mistakes of a warp's operations are found") {
  const auto [bug, fault] =
      GENERATE(Planted{0, ""}, Planted{1, "divergent"}, Planted{2, "deadlock"}, Planted{3, "misaligned"},
               Planted{4, "out of bounds"}, Planted{5, "out of bounds"}, Planted{6, "limit"}, Planted{7, "deadlock"});
  const Device device;
  const Kernels kernels(image());
  const Buffer dx = device.upload(small_halves(128)), dy = device.buffer(4 * 32);
  CHECK(kernels.launch(named("operations", bug), {1, 1, 1}, {32, 1, 1}, 0, {dx, dy}) == 0);
  CAPTURE(bug);
  CHECK(device.finish() == (*fault ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS));
  INFO(device.first_text());
  CHECK(device.first_fault() == fault);
}

TEST_CASE("a fault names the kernel, the block, the thread, the buffer and the line") {
  const Device device;
  const Kernels kernels(image());
  const Buffer dx = device.upload(std::vector<float>(512, 3.0f)), dy = device.buffer(2048);
  CHECK(kernels.launch("scale_1", {5, 1, 1}, {32, 1, 1}, 0, {dx, dy, 512}) == 0);
  CHECK(device.finish() == CUDA_ERROR_LAUNCH_FAILED);
  const auto fault = device.report()["faults"][0];
  CHECK(fault["kernel"] == "scale_1");
  CHECK(fault["block"] == nlohmann::json::array({4, 0, 0}));
  CHECK(fault["thread"] == nlohmann::json::array({0, 0, 0}));
  CHECK(fault["buffer"] == "parameter 1 of 2048 bytes");
  CHECK(fault["offset"] == 2048);
  CHECK(fault["bytes"] == 16);
  CHECK(fault["line"].get<int>() > 0);
}

}  // namespace dlc::test
