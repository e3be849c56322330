// The commands that look for a fault: compare, bisect, reduce. What they find here is there by construction: a machine
// whose plugin computes nonsense, a pass that changes a bit, a command that dislikes one op.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "dlc/io/numpy.h"
#include "dlc_test/skip.h"
#include "tests/cli/integer_means.h"
#include "tests/error/json.h"

using namespace dlc;
using namespace dlc::test;
using Catch::Matchers::Contains;

namespace {

const std::string kLying = " --plugin-path " DLC_BINARY_DIR "/tests/lying";

// The plugin tests/unit/plugin/lying gives zeros for every result.
void lying_machine(const Folder& f) { f.write("m.yaml", "dlc_hw: 1\nname: liar\nplugin: lying\nclock: 1.0GHz\n"); }

nlohmann::json differs(const Folder& f, const std::string& arguments) {
  const Outcome o = dlc::test::dlc(f, arguments + " --json");
  INFO("dlc " << arguments << "\n" << o.out << o.err);
  REQUIRE(o.code == 1);
  const auto j = nlohmann::json::parse(o.out, nullptr, false);
  REQUIRE(j.is_object());
  REQUIRE(j.contains("match"));
  CHECK(j["match"] == false);
  return j;
}

// x -> conv -> batch norm -> relu: folding the norm into the weights rounds anew.
onnx::ModelProto normalised() {
  auto m = model();
  input(m, "x", {1, 3, 8, 8});
  weight(m, "w", {4, 3, 3, 3});
  for (const char* name : {"scale", "shift", "mean", "variance"}) {
    auto* t = weight(m, name, {4});
    for (int i = 0; i < 4; ++i) t->set_float_data(i, 0.3F + 0.17F * static_cast<float>(i));
  }
  node(m, "Conv", "conv", {"x", "w"}, "c");
  node(m, "BatchNormalization", "norm", {"c", "scale", "shift", "mean", "variance"}, "n");
  node(m, "Relu", "act", {"n"}, "y");
  output(m, "y", {1, 4, 6, 6});
  return m;
}

// A program in the folder that fails on graphs which have the op.
std::string dislikes(const Folder& f, const std::string& op, int code) {
  f.write("dislikes.sh", "grep -q '= " + op + "(' \"$1\" && { echo \"no " + op + " here\"; exit " +
                             std::to_string(code) + "; }\nexit 0\n");
  return "sh " + (f / "dislikes.sh") + " {}";
}

}  // namespace

TEST_CASE("compare with another device, static and symbolic", "[cli]") {
  const Folder f("compare_against");
  f.write("m.onnx", mlp());
  f.write("s.onnx", mlp("N"));
  for (const std::string what : {"m.onnx", "s.onnx", "s.onnx --dim N=3"})
    for (const char* devices : {"--device cpu: --against interp:", "--device interp: --against cpu:",
                                "--device cpu:?threads=2 --against cpu:?threads=1"}) {
      const auto j = json_of(f, "compare " + what + " " + devices);
      CHECK(j["match"] == true);
      CHECK(j["layers"].size() >= 1);
    }
  const auto j = json_of(f, "compare m.onnx --device interp: --against cpu:");
  REQUIRE(j["layers"].size() == 3);  // the model's own nodes, in its order
  CHECK(j["layers"][0]["name"] == "fc");
  CHECK(j["layers"][2]["kernel"] == "y");
  CHECK(j["against"] == "cpu:");
  const std::string q = DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_int8.onnx --hw=asic --dim N=1";
  const auto asic = json_of(f, "compare " + q + " --device asic:func --against cpu:");
  CHECK(asic["layers"].size() > 8);
}

TEST_CASE("compare names the node and the element where two devices part", "[cli]") {
  const Folder f("compare_parts");
  lying_machine(f);
  f.write("m.dlcg",
          "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x) loc \"first\"\n  %1: f32[4] = exp(%0) loc "
          "\"second\"\n  out %1 \"y\"\n}\n");
  const auto j = differs(f, "compare m.dlcg --hw=m.yaml --device lying: --against interp:" + kLying);
  CHECK(j["first_diverging"] == "first");
  CHECK_THAT(j["layers"][0]["first_difference"].get<std::string>(), Contains("[0]: ") && Contains(" for "));
  f.write("p.dlcp", must_succeed(f, "m.dlcg --emit=program").out);
  must_fail(f, "compare p.dlcp --against cpu:", {"is a program", "leave --against out"});
  must_fail(f, "compare m.dlcg --against onnxruntime", {"is no ONNX model"});
  must_fail(f, "compare m.dlcg --against tpu:", {"tpu"});
}

TEST_CASE("compare with onnxruntime, or say that there is none", "[cli]") {
  const Folder f("compare_onnxruntime");
  f.write("m.onnx", mlp("N"));
  must_fail(f, "compare m.onnx --against onnxruntime",
            {"there is no onnxruntime to compare with", "pip install onnxruntime", "DLC_PYTHON"},
            "export DLC_PYTHON=/nonexistent/python; ");
  f.write("python", "#!/bin/sh\necho \"No module named 'onnxruntime'\"\nexit 42\n");
  std::filesystem::permissions(f / "python", std::filesystem::perms::owner_all);
  must_fail(f, "compare m.onnx --against onnxruntime", {"No module named 'onnxruntime'"},
            "export DLC_PYTHON=" + (f / "python") + "; ");
}

TEST_CASE("compare and bisect with onnxruntime, and leave the files beside the model alone", "[.onnxruntime]") {
  const char* python = std::getenv("DLC_PYTHON");
  const std::string found = python != nullptr ? python : "python3";
  if (std::system((found + " -c 'import onnxruntime, numpy' 2>/dev/null").c_str()) != 0)
    DLC_SKIP("onnxruntime is in no Debian package, and no Python has it (set DLC_PYTHON)");
  const Folder f("with_onnxruntime");
  f.write("m.onnx", mlp("N"));
  for (const char* name : {"inputs.npz", "values.npz", "names"}) f.write(name, "mine");
  const auto j = json_of(f, "compare m.onnx --dim N=3 --against onnxruntime");
  CHECK(j["match"] == true);
  CHECK(j["layers"].size() == 3);
  CHECK(json_of(f, "bisect m.onnx --dim N=3 --against onnxruntime")["match"] == true);
  for (const char* name : {"inputs.npz", "values.npz", "names"}) CHECK(read_file(f / name) == "mine");
}

TEST_CASE("bisect names the pass after which a bit changes", "[cli]") {
  const Folder f("bisect_pass");
  f.write("m.onnx", normalised());
  const auto good = json_of(f, "bisect m.onnx");
  CHECK(good["match"] == true);
  CHECK(good["guilty"].is_null());
  CHECK(good["steps"].size() > 8);  // the import, every pass, the partition's program and code
  const auto j = differs(f, "bisect m.onnx --tolerance 0 --save d");
  const auto& guilty = j["guilty"];
  CHECK(guilty["stage"] == "pass");
  CHECK(guilty["name"] == "batch_norm_fold");
  CHECK(guilty["value"] == "y");
  CHECK(guilty["nodes_before"] == 3);
  CHECK(guilty["nodes_after"] == 2);
  CHECK(j["steps"].back()["match"] == false);
  CHECK_THAT(guilty["first_difference"].get<std::string>(), Contains(" for "));
  // What was saved is what the pass makes of it.
  must_succeed(f, "opt d/before.dlct --passes=batch_norm_fold -o again.dlct");
  CHECK(read_file(f / "again.dlct") == read_file(f / "d/after.dlct"));
  const Outcome text = dlc::test::dlc(f, "bisect m.onnx --tolerance 0");
  CHECK_THAT(text.out, Contains("the answer changes after pass batch_norm_fold\n") &&
                           Contains("3 nodes before it, 2 after") && Contains("dlc opt DIR/before.dlct --passes="));
}

TEST_CASE("bisect saves over nothing that it reads", "[cli]") {
  const Folder f("bisect_save");
  const std::string text = "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x)\n  out %0 \"y\"\n}\n";
  for (const char* name : {"before.dlct", "after.dlct"}) {
    f.write(name, text);
    must_fail(f, std::string("bisect ") + name + " --save .", {"is an input of this command"});
    CHECK(read_file(f / name) == text);
  }
  must_fail(f, "bisect before.dlct --save after.dlct", {"after.dlct"});
}

TEST_CASE("bisect goes on behind the passes", "[cli]") {
  const Folder f("bisect_device");
  lying_machine(f);
  f.write("m.dlcg", "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = exp(%x) loc \"n\"\n  out %0 \"y\"\n}\n");
  const auto j = differs(f, "bisect m.dlcg --hw=m.yaml --device lying:" + kLying);
  CHECK(j["guilty"]["stage"] == "device");
  CHECK(j["guilty"]["name"] == "the code of plugin lying");
  CHECK(j["guilty"]["partition"] == 0);
  CHECK(j["guilty"]["elements_wrong"] == 4);
  const auto failed = differs(f, "bisect m.dlcg --hw=m.yaml --device lying:wrong_type" + kLying);
  CHECK_THAT(failed["guilty"]["failure"].get<std::string>(), Contains("gave 'y' as s64[4]"));
  const std::string q = DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_int8.onnx --hw=asic --dim N=1";
  const auto asic = json_of(f, "bisect " + q + " --device asic:func");
  CHECK(asic["steps"][1]["name"] == "commit_numerics");
  must_succeed(f, "m.dlcg -o m.dlca");
  must_fail(f, "bisect m.dlca", {"is no graph any more"});
}

TEST_CASE("reduce finds the one op that a command dislikes", "[cli]") {
  const Folder f("reduce_op");
  f.write("m.onnx", normalised());
  const auto j = json_of(f, "reduce m.onnx -o small.dlct --json -- " + dislikes(f, "relu", 7));
  CHECK(j["nodes_before"] == 3);
  CHECK(j["nodes_after"] == 1);
  CHECK(j["ending"] == "exit code 7");
  const std::string small = read_file(f / "small.dlct");
  CHECK_THAT(small, Contains("= relu(") && !Contains("conv"));
  CHECK_THAT(small, Contains("f32[1,1,1,1]"));
  // Every command takes it, and the same search finds the same.
  must_succeed(f, "compare small.dlct");
  must_succeed(f, "bisect small.dlct");
  must_succeed(f, "run small.dlct --device cpu:" + std::string(j["inputs"] == "" ? "" : " --input small.inputs.npz"));
  must_succeed(f, "small.dlct -o small.dlca");
  must_succeed(f, "reduce m.onnx -o again.dlct -- " + dislikes(f, "relu", 7));
  CHECK(read_file(f / "again.dlct") == small);
  // By what it prints; and what does not fail is refused.
  must_succeed(f, "reduce m.onnx -o match.dlct --match 'no re.u here' -- " + dislikes(f, "relu", 7));
  CHECK(read_file(f / "match.dlct") == small);
  must_fail(f, "reduce m.onnx -o none.dlct --match 'something else' -- " + dislikes(f, "relu", 7),
            {"the command does not fail on the model as it was read: exit code 7, and no line matches"});
  must_fail(f, "reduce m.onnx -o none.dlct -- " + dislikes(f, "tanh", 7), {"exit code 0", "--expect-exit"});
  must_fail(f, "reduce m.onnx -o none.dlct --expect-exit 3 -- " + dislikes(f, "relu", 7), {"exit code 7"});
  must_fail(f, "reduce m.onnx -o none.dlct -- ./no_such_program {}", {"no_such_program", "cannot run the program"});
  must_be_usage(f, "reduce m.onnx -o none.dlct -- sh run.sh", {"the command has no {}"});
  must_be_usage(f, "reduce m.onnx -o none.dlct --match '(' -- sh {}", {"is no regular expression"});
}

TEST_CASE("reduce does not take turns between the results of a node", "[cli]") {
  const Folder f("reduce_turns");
  f.write("m.dlcg",
          "dlc.graph 1\ngraph @g {\n  in %x: f32[8,6]\n  %0: f32[8,6] = neg(%x)\n"
          "  %1: f32[8,2], %2: s64[8,2] = top_k(%0) {axis = 1, k = 2}\n  out %1 \"v\"\n  out %2 \"i\"\n}\n");
  const auto j = json_of(f, "reduce m.dlcg -o small.dlct --json -- " + dislikes(f, "top_k", 7));
  CHECK(j["nodes_after"] == 1);
  CHECK(j["tries"] < 60);
}

TEST_CASE("reduce takes crashes, time and tensors into account", "[cli]") {
  const Folder f("reduce_ways");
  lying_machine(f);
  f.write(
      "m.dlcg",
      "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x) loc \"a\"\n  %1: f32[4] = exp(%0) loc \"b\"\n"
      "  %2: f32[4] = tanh(%1) loc \"c\"\n  out %2 \"y\"\n}\n");
  const std::string dlc = DLC_BINARY_DIR "/bin/dlc";
  const auto crash = json_of(f, "reduce m.dlcg -o crash.dlct --json -- env DLC_CRASH_DIR= " + dlc +
                                    " run {} --input {inputs} --hw=m.yaml --device lying:crash_read" + kLying);
#ifndef __SANITIZE_ADDRESS__  // which ends by itself
  CHECK(crash["ending"] == "signal 11");
#endif
  CHECK(crash["nodes_after"] <= 1);  // it crashes whatever it is given
  const auto compared = json_of(f, "reduce m.dlcg -o first.dlct --match '.match.: false' --json -- " + dlc +
                                       " compare {} --hw=m.yaml --device lying:" + kLying);
  CHECK(compared["nodes_after"] <= 1);
  const auto hang = json_of(f, "reduce m.dlcg -o hang.dlct --time-limit 0.2 --tries 5 --json -- sh -c 'sleep 5' {}");
  CHECK(hang["ending"] == "not done in time");
}

TEST_CASE("reduce does not wait for what a command leaves behind, and leaves nothing behind itself", "[cli]") {
  const Folder f("reduce_processes");
  f.write("m.dlcg", "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x)\n  out %0 \"y\"\n}\n");
  const auto j =
      json_of(f, "reduce m.dlcg -o small.dlct --tries 3 --time-limit 20 --json -- sh -c 'sleep 60 & exit 7' {}");
  CHECK(j["ending"] == "exit code 7");
  // Stopped: the command and what it started end, and there is a result.
  f.write("slow.sh",
          "grep -q neg \"$1\" || exit 0\ntest -e first && { sleep 61 & echo $! >child; wait; }\ntouch first; exit 7\n");
  f.write("stop.sh", "mkdir tmp; export TMPDIR=$PWD/tmp\n" DLC_BINARY_DIR
                     "/bin/dlc reduce m.dlcg -o stopped.dlct -- sh slow.sh {} >said &\np=$!\n"
                     "while ! test -s child; do sleep 0.1; done\nkill -TERM $p\nwait $p; echo $? >code\n"
                     "grep -qs 'State:.[RSD]' /proc/$(cat child)/status && echo alive >alive\nls tmp >left\n");
  std::system(("cd '" + (f / ".") + "' && sh stop.sh 2>errors").c_str());
  INFO(read_file(f / "errors") << read_file(f / "said"));
  CHECK(read_file(f / "code") == "143\n");
  CHECK_FALSE(std::filesystem::exists(f / "alive"));
  CHECK(read_file(f / "left").empty());
  CHECK_THAT(read_file(f / "said"), Contains("stopped by a signal"));
  CHECK_THAT(read_file(f / "stopped.dlct"), Contains("neg"));
}

TEST_CASE("reduce matches in linear time, and tells which syntax it has", "[cli]") {
  const Folder f("reduce_match");
  f.write("m.dlcg", "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x)\n  out %0 \"y\"\n}\n");
  f.write("print.sh", "printf '%4000s' x | tr ' ' a; exit 7\n");
  const Outcome o = dlc::test::dlc(f, "reduce m.dlcg -o s.dlct --match '^(a+)+$' -- sh print.sh {}", "ulimit -t 20; ");
  INFO(o.err);
  CHECK(o.code == 1);
  CHECK_THAT(o.err, Contains("no line matches"));
  must_be_usage(f, "reduce m.dlcg -o s.dlct --match '(a)\\1' -- sh {}", {"is no regular expression"});
}

TEST_CASE("what an earlier text had beside it does not outlive it", "[cli]") {
  const Folder f("reduce_stale");
  f.write("m.onnx", normalised());
  f.write("x.weights.npz", "of an earlier one");
  f.write("x.inputs.npz", "of an earlier one");
  const auto j = json_of(f, "reduce m.onnx -o x.dlct --json -- " + dislikes(f, "relu", 7));
  CHECK(j["inputs"] == "");  // the command does not ask for them
  CHECK_FALSE(std::filesystem::exists(f / "x.inputs.npz"));
  CHECK(std::filesystem::exists(f / "x.weights.npz") == (j["weights"] != ""));
  CHECK(j["complete"] == true);
  CHECK(json_of(f, "reduce m.onnx -o y.dlct --tries 2 --json -- " + dislikes(f, "relu", 7))["complete"] == false);
  f.write("g.dlcg", "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x)\n  out %0 \"y\"\n}\n");
  f.write("z.weights.npz", "of an earlier one");
  must_succeed(f, "opt g.dlcg -o z.dlct");
  CHECK_FALSE(std::filesystem::exists(f / "z.weights.npz"));
}

TEST_CASE("bisect blames no pass for a device that is not there, and makes no folder for nothing", "[cli]") {
  const Folder f("bisect_nothing");
  f.write("m.onnx", mlp());
  must_fail(f, "bisect m.onnx --device nosuch --save d", {"'nosuch' is not a device URI"});
  must_fail(f, "bisect m.onnx --device nosuch: --save d", {"nosuch"});
  must_fail(f, "bisect m.onnx --device asic:func --save d", {"nothing in the model", "asic:func"});
  must_fail(f, "bisect m.onnx --against nosuch:", {"nosuch"});
  must_succeed(f, "bisect m.onnx --save d");
  CHECK_FALSE(std::filesystem::exists(f / "d"));
  std::set<std::string> names;  // a pass that runs twice is told apart
  const auto bisected = json_of(f, "bisect m.onnx");
  for (const auto& s : bisected["steps"]) CHECK(names.insert(s["name"]).second);
}

TEST_CASE("bisect holds what comes behind commit_numerics against the machine's integers", "[cli]") {
  const Folder f("bisect_commit");
  f.write("m.onnx", integer_means());
  const auto j = json_of(f, "bisect m.onnx --hw=asic --device asic:func");
  CHECK(j["guilty"].is_null());
  REQUIRE(j["committed"].is_object());
  CHECK(j["committed"]["value"] == "y");
  CHECK(j["committed"]["elements_wrong"] > 0);
  CHECK(j["committed"]["largest_difference"] == 1);
  CHECK_THAT(must_succeed(f, "bisect m.onnx --hw=asic --device asic:func").out, Contains("docs/numerics.md"));
}

TEST_CASE("bisect goes into the bodies of control flow", "[cli]") {
  const Folder f("bisect_body");
  lying_machine(f);
  auto m = model();
  input(m, "x", {4});
  input(m, "c", {}, onnx::TensorProto::BOOL);
  auto* n = node(m, "If", "choice", {"c"}, "y");
  for (const auto& [branch, op, name] : {std::tuple("then_branch", "Exp", "yes"), {"else_branch", "Neg", "no"}}) {
    auto* a = n->add_attribute();
    a->set_name(branch);
    a->set_type(onnx::AttributeProto::GRAPH);
    a->mutable_g()->set_name(branch);
    auto* inner = a->mutable_g()->add_node();
    inner->set_op_type(op);
    inner->set_name(name);
    inner->add_input("x");
    inner->add_output(std::string(name) + "_out");
    auto* out = a->mutable_g()->add_output();
    out->set_name(std::string(name) + "_out");
    out->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    out->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
  }
  output(m, "y", {4});
  f.write("m.onnx", m);
  const auto j = differs(f, "bisect m.onnx --hw=m.yaml --device lying:" + kLying);
  CHECK(j["guilty"]["stage"] == "device");
  const auto layers = j["guilty"]["layers"].get<std::string>();
  CHECK((layers == "yes" || layers == "no"));
  CHECK_THAT(j["guilty"]["step"].get<std::string>(), Contains("in a body of partition 0"));
}

TEST_CASE("a printed command can be pasted", "[cli]") {
  const Folder f("bisect_paste");
  f.write("m.onnx", normalised());
  const Outcome o = dlc::test::dlc(f, "bisect m.onnx --tolerance 0 --save \"a folder's\"");
  CHECK(o.code == 1);
  const size_t at = o.out.find("dlc opt ");
  REQUIRE(at != std::string::npos);
  std::string command = o.out.substr(at + 4);
  command.resize(command.find('\n'));
  must_succeed(f, command);
  CHECK(read_file(f / "after.dlct") == read_file(f / "a folder's/after.dlct"));
  // With commas in a pass's argument.
  f.write("g.dlcg", "dlc.graph 1\ngraph @g {\n  in %x: f32[4]\n  %0: f32[4] = neg(%x)\n  out %0 \"y\"\n}\n");
  must_succeed(f, "opt g.dlcg '--passes=dce,commit_numerics(asic,R=8,C=8),cse'");
}

TEST_CASE("compare and bisect carry types that numpy has not to onnxruntime", "[.onnxruntime]") {
  const char* python = std::getenv("DLC_PYTHON");
  const std::string found = python != nullptr ? python : "python3";
  if (std::system((found + " -c 'import onnxruntime, numpy' 2>/dev/null").c_str()) != 0)
    DLC_SKIP("onnxruntime is in no Debian package, and no Python has it (set DLC_PYTHON)");
  const Folder f("carried");
  for (const int type :
       {16 /* bfloat16 */, 17 /* float8e4m3fn */, 19 /* float8e5m2 */, 22 /* int4 */, 21 /* uint4 */}) {
    INFO(type);
    auto m = model(21);
    m.set_ir_version(10);
    input(m, "x", {8}, type);
    output(m, "x2", {8}, type);
    output(m, "y", {8});
    auto* to = node(m, "Cast", "widen", {"x"}, "w")->add_attribute();
    to->set_name("to");
    to->set_type(onnx::AttributeProto::INT);
    to->set_i(onnx::TensorProto::FLOAT);
    node(m, "Abs", "positive", {"w"}, "y");
    auto* back = node(m, "Cast", "narrow", {"y"}, "x2")->add_attribute();
    back->set_name("to");
    back->set_type(onnx::AttributeProto::INT);
    back->set_i(type);
    f.write("m.onnx", m);
    const auto j = json_of(f, "compare m.onnx --against onnxruntime");
    CHECK(j["layers"].size() == 3);
    CHECK(json_of(f, "bisect m.onnx --against onnxruntime")["match"] == true);
  }
}

TEST_CASE("explain says how often a node of a function is there", "[cli]") {
  const Folder f("explain_function");
  auto m = model();
  m.set_ir_version(9);
  auto* domain = m.add_opset_import();
  domain->set_domain("my");
  domain->set_version(1);
  auto* function = m.add_functions();
  function->set_domain("my");
  function->set_name("Twice");
  function->add_input("a");
  function->add_output("b");
  *function->add_opset_import() = m.opset_import(0);
  auto* inner = function->add_node();
  inner->set_op_type("Exp");
  inner->set_name("e");
  inner->add_input("a");
  inner->add_output("b");
  input(m, "x", {4});
  node(m, "Twice", "one", {"x"}, "y")->set_domain("my");
  node(m, "Twice", "two", {"y"}, "z")->set_domain("my");
  output(m, "z", {4});
  f.write("m.onnx", m);
  const auto explained = json_of(f, "explain m.onnx");
  for (const auto& n : explained["nodes"]) CHECK(n["times"] == (n["node"] == "e" ? 2 : 1));
  CHECK_THAT(must_succeed(f, "explain m.onnx").out, Contains("(the same in 2 calls)"));
}
