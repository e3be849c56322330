// Weights that are larger than what a reader would like to hold: they are mapped, and packed straight into the file.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "dlc_test/skip.h"
#include "tests/error/run.h"

using namespace dlc::test;

namespace {

constexpr int64_t kWidth = 4096, kLayers = 32;
constexpr int64_t kMatrix = kWidth * kWidth * 4;          // bytes; 2 GiB in all
constexpr int64_t kMore = int64_t{256} << 20;             // of memory than of packed weights
constexpr int64_t kDisk = 3 * kMatrix * kLayers + kMore;  // the weights, the artifact, a library's weights

// y = relu(relu(x * w0) * w1) ...
onnx::ModelProto deep() {
  auto m = model();
  input(m, "x", {4, kWidth});
  std::string value = "x";
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string n = std::to_string(i);
    auto* t = m.mutable_graph()->add_initializer();
    t->set_name("w" + n);
    t->set_data_type(onnx::TensorProto::FLOAT);
    t->add_dims(kWidth);
    t->add_dims(kWidth);
    t->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, text] : {std::pair<std::string, std::string>{"location", "weights.bin"},
                                    {"offset", std::to_string(i * kMatrix)},
                                    {"length", std::to_string(kMatrix)}}) {
      auto* e = t->add_external_data();
      e->set_key(key);
      e->set_value(text);
    }
    node(m, "MatMul", "product" + n, {value, "w" + n}, "p" + n);
    node(m, "Relu", "relu" + n, {"p" + n}, "r" + n);
    value = "r" + n;
  }
  output(m, value, {4, kWidth});
  return m;
}

void write_weights(const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  std::vector<float> row(static_cast<size_t>(kWidth));
  for (int64_t r = 0; r < kWidth * kLayers; ++r) {
    for (int64_t c = 0; c < kWidth; ++c)
      row[static_cast<size_t>(c)] = static_cast<float>((r * 31 + c * 17) % 251 - 125) / 8192.0F;
    out.write(reinterpret_cast<const char*>(row.data()), kWidth * 4);
  }
  REQUIRE(out.good());
}

int64_t peak_of_children() {
  rusage u{};
  REQUIRE(getrusage(RUSAGE_CHILDREN, &u) == 0);
  return static_cast<int64_t>(u.ru_maxrss) * 1024;
}

}  // namespace

TEST_CASE("two gigabytes of weights need no more memory than they have bytes", "[.memory]") {
  const Folder f("memory");
  if (static_cast<int64_t>(std::filesystem::space(f / ".").available) < kDisk)
    DLC_SKIP("less than 6.25 GiB of disk are free");
  write_weights(f / "weights.bin");
  f.write("deep.onnx", deep());
  for (const char* output : {"deep.dlca", "deep.so"}) {
    must_succeed(f, std::string("deep.onnx -o ") + output);
    INFO(output);
    CHECK(peak_of_children() <= kMatrix * kLayers + kMore);
  }
  CHECK(std::filesystem::file_size(f / "deep.dlca") < static_cast<uint64_t>(kMatrix * kLayers + (int64_t{1} << 20)));
}
