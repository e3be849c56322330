// What `dlc explain` says of each node of a model: where it runs, and the true reason why not elsewhere.
#include <map>

#include "tests/error/json.h"
#include "tests/error/quantised.h"

using namespace dlc::test;
using Catch::Matchers::Contains;

namespace {

const std::string kFashion = DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_int8.onnx";

// Why an op of the model is where it is.
std::string why(const nlohmann::json& explanation, const std::string& op) {
  for (const auto& n : explanation["nodes"])
    if (n["op"] == op) return n["why"];
  FAIL("no " << op << " in " << explanation.dump());
  return {};
}

// Each node's text on its own, by the model's name.
std::map<std::string, nlohmann::json> by_node(const nlohmann::json& explanation) {
  std::map<std::string, nlohmann::json> out;
  for (const auto& n : explanation["nodes"]) out.try_emplace(n["node"], n);
  return out;
}

// The accelerator's description with a part of its text changed.
void changed_machine(const Folder& f, const std::string& from, const std::string& to) {
  std::string yaml = read_file(DLC_SOURCE_DIR "/hwdesc/asic.yaml");
  const size_t at = yaml.find(from);
  REQUIRE(at != std::string::npos);
  yaml.replace(at, from.size(), to);
  f.write("my.yaml", yaml);
  f.write("asic.recipes", read_file(DLC_SOURCE_DIR "/hwdesc/asic.recipes"));
}

}  // namespace

TEST_CASE("a node on the host has its own reason, or names the neighbour that keeps it there", "[error]") {
  const Folder f("explain_why");
  f.write("m.onnx", convolution(16, 16, 2));
  const auto j = json_of(f, "explain --hw=asic m.onnx");
  CHECK_THAT(why(j, "int_conv"), Contains("nearest is mac.row: "));
  CHECK_THAT(why(j, "requantize"),
             Contains("nearest is vec: it reads its operand from memory acc, which no instruction "
                      "loads; int_conv (conv) makes it, on the host"));
  CHECK_THAT(why(j, "dequantize_linear"), Contains("nearest is st: its result is f32"));
  CHECK_THAT(why(j, "quantize_linear"), Contains("nearest is ld: an operand is f32"));
  // What stops the compilation is the node that does most, and its reason.
  must_fail(f, "--hw=asic m.onnx -o m.dlca",
            {"asic.yaml:", "nothing of this model runs on nx16; int_conv:", "nearest is mac.row", "(node conv)"});
  f.write("m.onnx", convolution(16, 32, 16));
  CHECK_THAT(why(json_of(f, "explain --hw=asic m.onnx"), "int_conv"),
             Contains("nearest is mac.diag: its result begins inside a vector of 16 channels, which it walks whole"));
}

TEST_CASE("integers on the host are not called floats", "[error]") {
  const Folder f("explain_integers");
  auto m = model();
  input(m, "x", {3, 17}, onnx::TensorProto::UINT8);
  integers(m, "w", {17, 9}, onnx::TensorProto::INT8);
  node(m, "MatMulInteger", "product", {"x", "w"}, "y");
  output(m, "y", {3, 9}, onnx::TensorProto::INT32);
  f.write("m.onnx", m);
  must_fail(f, "--hw=asic m.onnx -o m.dlca",
            {"nothing of this model runs on nx16; int_matmul", "u8, and instructions take", "(node product)"});
  // Without recipes nothing becomes integers.
  f.write("q.onnx", convolution());
  changed_machine(f, "recipes: asic.recipes\n", "");
  must_fail(
      f, "--hw=my.yaml q.onnx -o m.dlca",
      {"my.yaml: error: nothing of this model runs on nx16; conv stays in float: the description names no recipes",
       "(node conv)", "recipes: FILE"});
}

TEST_CASE("a copy that no instruction makes is told with what it must be", "[error]") {
  const Folder f("explain_copy");
  f.write("m.onnx", convolution());
  must_fail(f, "--hw=asic,AXI_B=8 m.onnx -o m.dlca",
            {"asic.yaml:", "ld of nx16: the loop x steps 8 bytes in external memory, and must step 16"});
  must_fail(f, "--hw=asic,C=8 m.onnx -o m.dlca",
            {"asic.yaml:", "ld of nx16: the loop x steps 8 bytes on chip, and must step 16"});
  auto m = convolution();
  auto* pads = m.mutable_graph()->mutable_node(3)->add_attribute();
  pads->set_name("pads");
  pads->set_type(onnx::AttributeProto::INTS);
  for (int i = 0; i < 4; ++i) pads->add_ints(1);
  m.mutable_graph()->mutable_output(0)->mutable_type()->clear_tensor_type();
  m.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  integers(m, "z11", {}, onnx::TensorProto::INT8);
  m.mutable_graph()->mutable_initializer(m.graph().initializer_size() - 1)->set_int32_data(0, -11);
  for (int n = 0; n < 2; ++n) m.mutable_graph()->mutable_node(n)->set_input(2, "z11");
  f.write("m.onnx", m);
  must_succeed(f, "--hw=asic m.onnx -o fits.dlca");
  changed_machine(f, "(x + x0)*AXI_B + l] else fill\"", "(x + x0)*AXI_B + l] else 0\"");
  must_fail(f, "--hw=my.yaml m.onnx -o m.dlca",
            {"my.yaml:",
             "no instruction makes a copy that this needs; nearest is ld: the value it fills with is 0, and "
             "must be -11",
             "(node conv)"});
}

TEST_CASE("every node of a model is explained", "[error]") {
  const Folder f("explain_every");
  const auto j = json_of(f, "explain --hw=asic --dim N=1 " + kFashion);
  CHECK(j["problems"].empty());
  int device = 0, host = 0;
  for (const auto& n : j["nodes"]) {
    INFO(n.dump());
    if (n["rule"] == "folded") continue;
    if (n["device"] == "host") {
      ++host;
      CHECK(n["line"] > 0);
      if (n["rule"] != "ops") CHECK_THAT(n["why"].get<std::string>(), Contains("nearest is"));
    } else if (n["rule"] != "view") {
      ++device;
      CHECK_THAT(n["how"].get<std::string>(), Contains("vec"));
      CHECK_THAT(n["how"].get<std::string>(), Contains("cycles predicted"));
    }
  }
  CHECK(device > 10);
  CHECK(host == 4);  // what quantises, what lays taps of both axes into lanes, what dequantises
  onnx::ModelProto m;
  REQUIRE(m.ParseFromString(read_file(kFashion)));
  for (const std::string machine : {"asic", "native"}) {
    const auto said =
        by_node(json_of(f, std::string("explain --dim N=1 --hw=").append(machine).append(" ").append(kFashion)));
    for (const auto& n : m.graph().node()) {
      INFO(machine << " " << n.name() << " " << n.output(0));
      CHECK(said.contains(n.name().empty() ? n.output(0) : n.name()));
    }
  }
  const auto said = by_node(j);
  CHECK(said.at("stem_relu")["rule"] == "folded");
  CHECK(said.at("stem_relu")["device"] == "asic");
  CHECK_THAT(said.at("stem_relu")["why"].get<std::string>(), Contains("it is part of stem"));
}

TEST_CASE("what is folded away says into what", "[error]") {
  const Folder f("explain_folded");
  auto m = model();
  input(m, "x", {2, 3});
  scalar(m, "one", 1);
  node(m, "Neg", "minus", {"one"}, "c");
  node(m, "Identity", "same", {"x"}, "s");
  node(m, "Exp", "unused", {"s"}, "u");
  auto* to = node(m, "Cast", "cast", {"s"}, "f")->add_attribute();
  to->set_name("to");
  to->set_type(onnx::AttributeProto::INT);
  to->set_i(onnx::TensorProto::FLOAT);
  node(m, "Mul", "times", {"f", "c"}, "t");
  node(m, "Relu", "last", {"t"}, "y");
  output(m, "y", {2, 3});
  f.write("m.onnx", m);
  const auto said = by_node(json_of(f, "explain m.onnx"));
  CHECK(said.size() == 6);
  CHECK(said.at("minus")["why"] == "it is a constant");
  CHECK(said.at("unused")["why"] == "its result is not used");
  CHECK(said.at("same")["why"] == "it passes on what it is given");
  CHECK(said.at("cast")["why"] == "it is part of times");
  CHECK(said.at("times")["rule"] == "");
}

TEST_CASE("nodes of one name are explained one by one", "[error]") {
  const Folder f("explain_names");
  auto m = model();
  input(m, "x", {4});
  node(m, "Relu", "n", {"x"}, "h");
  node(m, "Neg", "n", {"h"}, "k");
  node(m, "Exp", "y", {"k"}, "z");
  node(m, "Sigmoid", "", {"z"}, "y");  // called y by its result
  output(m, "y", {4});
  f.write("m.onnx", m);
  const auto nodes = by_node(json_of(f, "explain m.onnx"));
  CHECK(nodes.size() == 4);
  for (const char* name : {"n", "n_2", "y", "y_2"}) CHECK(nodes.contains(name));
}

TEST_CASE("all that keeps a model from being imported is told at once, each with the next step", "[error]") {
  const Folder f("explain_import");
  auto m = model();
  m.add_opset_import()->set_domain("com.microsoft");
  m.mutable_opset_import(1)->set_version(1);
  input(m, "x", {2, 3});
  input(m, "words", {2}, onnx::TensorProto::STRING);
  node(m, "Convv", "typo", {"x"}, "a");
  node(m, "Relu", "reads_typo", {"a"}, "b");  // nothing can be said of what reads a missing value
  node(m, "Relu", "other_domain", {"x"}, "c")->set_domain("com.microsoft");
  auto* attribute = node(m, "Softmax", "attribute", {"x"}, "d")->add_attribute();
  attribute->set_name("axes");
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(1);
  node(m, "MatMul", "shapes", {"x", "x"}, "e");
  node(m, "Relu", "good", {"x"}, "y");
  output(m, "y", {2, 3});
  f.write("m.onnx", m);
  for (const char* command : {"explain m.onnx", "run m.onnx", "m.onnx -o m.dlca"}) {
    const Outcome o = dlc::test::dlc(f, command);
    INFO(o.err);
    CHECK(o.code == 1);
    for (const char* part :
         {"element type STRING is not supported (node words)",
          "op Convv is not supported (node typo)\n  next: did you mean Conv?",
          "op com.microsoft.Relu is not supported (node other_domain)\n  next: Relu of the default domain is supported",
          "attribute 'axes' is not supported here (node attribute)\n  next: did you mean axis?", "(node shapes)"})
      CHECK_THAT(o.err, Contains(part));
    CHECK_THAT(o.err, !Contains("reads_typo") && !Contains("good"));
  }
}

TEST_CASE("the text of an explanation says each kernel once, in the model's order", "[error]") {
  const Folder f("explain_text");
  const std::string text =
      must_succeed(f, "explain --dim N=1 " DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_float.onnx").out;
  CHECK_THAT(text, !Contains("; folded") && !Contains("   ; "));
  CHECK_THAT(text, Contains("flat           Flatten                   its result lies as what it reads does"));
  CHECK(text.find("\nflat ") < text.find("\nlogits "));
  const size_t how = text.find("k0_conv: ");
  REQUIRE(how != std::string::npos);
  CHECK(text.find("k0_conv: ", how + 1) == std::string::npos);
  const std::string asic = must_succeed(f, "explain --hw=asic --dim N=1 " + kFashion).out;
  CHECK_THAT(asic, Contains("k0_quantize_linear\n    no instruction computes this; nearest is ld: "));
}
