// A float model on the command line: quantised, compiled for the accelerator, run there and through the interpreter.
#include <cmath>
#include <set>

#include "dlc/io/numpy.h"
#include "tests/error/json.h"

using namespace dlc;
using namespace dlc::test;

namespace {

const char* const kFloat = DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_float.onnx";
const char* const kInt8 = DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_int8.onnx";

Tensor images(int64_t n) {
  REQUIRE_OK(Tensor t, Tensor::make(kF32, {n, 1, 28, 28}));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_double(i, 0.5 + 0.5 * std::sin(0.37 * static_cast<double>(i)));
  return t;
}

Tensor logits(const Folder& f, const std::string& file) {
  REQUIRE_OK(const NamedTensors all, read_tensors(f / file));
  REQUIRE(all.size() == 1);
  return all[0].second;
}

}  // namespace

TEST_CASE("quantize, compile, run: near the float model", "[cli]") {
  const Folder f("quantize");
  f.write("m.onnx", read_file(kFloat));
  REQUIRE(write_tensors(f / "x.npz", {{"image", images(4)}, {"label", images(2)}}).has_value());
  REQUIRE(write_tensors(f / "one.npz", {{"image", images(1)}}).has_value());
  const auto j = json_of(f, "quantize m.onnx --data x.npz -o q.onnx --hw=asic");
  CHECK(j["samples"] == 4);
  CHECK(j["layers"].size() == 8);
  for (const auto& layer : j["layers"]) {
    CHECK(layer["quantised"] == true);
    CHECK(layer["sqnr_db"].get<double>() > 25);
  }
  must_succeed(f, "q.onnx --hw=asic --dim N=1 -o q.dlca");
  must_succeed(f, "run q.dlca --device asic:func --input one.npz -o asic.npz");
  must_succeed(f, "run q.onnx --dim N=1 --device interp: --hw=asic --input one.npz -o integers.npz");
  must_succeed(f, "run m.onnx --device interp: --input one.npz -o float.npz");
  const Tensor on_asic = logits(f, "asic.npz"), integers = logits(f, "integers.npz"), wanted = logits(f, "float.npz");
  double signal = 0, noise = 0;
  for (int64_t i = 0; i < wanted.elements(); ++i) {
    CHECK(on_asic.get_double(i) == integers.get_double(i));
    signal += wanted.get_double(i) * wanted.get_double(i);
    noise += std::pow(wanted.get_double(i) - on_asic.get_double(i), 2);
  }
  CHECK(noise < 0.01 * signal);
}

TEST_CASE("the options of quantize do something", "[cli]") {
  const Folder f("quantize_options");
  f.write("m.onnx", read_file(kFloat));
  REQUIRE(write_tensors(f / "x.npz", {{"image", images(6)}}).has_value());
  std::set<std::string> models;
  for (const std::string options : {"", "--range min-max", "--range percentile --percentile 99", "--symmetric",
                                    "--no-bias-correction", "--samples 2"}) {
    must_succeed(f, "quantize m.onnx --data x.npz -o q.onnx " + options);
    models.insert(read_file(f / "q.onnx"));
  }
  must_succeed(f, "quantize m.onnx --data random:2 -o q.onnx");
  models.insert(read_file(f / "q.onnx"));
  must_succeed(f, "quantize m.onnx --data random:2 -o q.onnx --seed 9");
  models.insert(read_file(f / "q.onnx"));
  CHECK(models.size() == 8);
  must_succeed(f, "quantize m.onnx --data random:2 -o q.onnx --seed 9");
  CHECK(models.contains(read_file(f / "q.onnx")));  // the same bytes
  const auto j = json_of(f, "quantize m.onnx --data random:1 -o q.onnx --keep conv3");
  for (const auto& layer : j["layers"]) CHECK(layer["quantised"] == (layer["name"] != "conv3"));
}

TEST_CASE("quantize says what is wrong, and leaves no file", "[cli]") {
  const Folder f("quantize_errors");
  f.write("m.onnx", read_file(kFloat));
  f.write("q.onnx", read_file(kInt8));
  REQUIRE(write_tensors(f / "wrong.npz", {{"picture", images(1)}, {"label", images(1)}}).has_value());
  REQUIRE_OK(const Tensor small, Tensor::make(kF32, {3, 1, 9, 9}));
  REQUIRE(write_tensors(f / "small.npz", {{"image", small}}).has_value());
  must_fail(f, "quantize q.onnx --data random:1 -o o.onnx", {"quantised already", "give the float model"});
  must_fail(f, "quantize m.onnx --data wrong.npz -o o.onnx", {"no array for the input 'image'", "picture, label"});
  must_fail(f, "quantize m.onnx --data small.npz -o o.onnx", {"image"});
  must_fail(f, "quantize m.onnx --data random:none -o o.onnx", {"random:none", "random:8"});
  must_fail(f, "quantize m.onnx --data none.npz -o o.onnx", {"none.npz"});
  must_fail(f, "quantize m.onnx --data random:1 -o m.onnx", {"m.onnx"});
  must_fail(f, "quantize m.onnx --data random:1 -o o.onnx --keep con3", {"no node is called 'con3'", "'conv3'"});
  must_fail(f, "quantize m.onnx --data random:1 -o o.onnx --min-sqnr 99", {"nothing of this model can be quantised"});
  must_fail(f, "quantize m.onnx --data small.npz -o o.onnx", {"small.npz: error"});
  REQUIRE(write_tensors(f / "lone.npz", {{"picture", images(2)}}).has_value());  // dlc run takes no other name either
  must_fail(f, "quantize m.onnx --data lone.npz -o o.onnx", {"lone.npz", "no array for the input 'image'"});
  Tensor nan = images(9);
  nan.set_double(28 * 28 * 8, std::nan(""));
  REQUIRE(write_tensors(f / "nan.npz", {{"image", nan}}).has_value());
  must_fail(f, "quantize m.onnx --data nan.npz -o o.onnx", {"nan.npz: error: sample 8: input 'image' is nan"});
  // What cannot be written is said before the samples are read.
  f.write("gelu.dlct",
          "dlc.graph 1\ngraph @g {\n  in %x: f32[1,4]\n  %a: f32[1,4] = gelu(%x) loc \"soft\"\n  out %a \"y\"\n}\n");
  must_fail(f, "quantize gelu.dlct --data none.npz -o o.onnx", {"gelu.dlct", "writer has no form of gelu", "soft"});
  must_fail(f, "quantize m.onnx --data random:1 -o o.onnx --percentile 99", {"--percentile", "--range percentile"});
  for (const std::string bad : {"--percentile nan", "--min-sqnr nan", "--seed -1", "--seed 99999999999999999999"})
    must_be_usage(f, "quantize m.onnx --data random:1 -o o.onnx " + bad, {"is not a number from"});
  must_be_usage(f, "quantize m.onnx -o o.onnx", {"--data"});
  must_be_usage(f, "quantize m.onnx --data random:1 -o o.onnx --range best", {"range"});
}
