// --state and dlc run --step: a sequence of steps, on every device and in every form of the model.
#include "dlc/io/numpy.h"
#include "tests/error/json.h"

using namespace dlc;
using namespace dlc::test;

namespace {

const char* const kGrow = R"(dlc.graph 1
graph @g (P in 0..1048576, S) {
  in    %x: f32[2,S]
  in    %kv.past: f32[2,P]
  in    %log.past: f32[4]
  %e: f32[2,S] = exp(%x)
  %y: f32[2,P + S] = concat(%kv.past, %e) {axis = 1}
  %z: f32[2] = reduce_sum(%y) {axes = [1], keepdims = 0}
  %n: f32[4] = add(%log.past, %log.past)
  out   %z "z"
  out   %y "kv.present"
  out   %n "log.present"
}
)";
const std::string kStates = " --dim P=0..6 --state '*.past=*.present' ";

void write(const Folder& f, const std::string& file, const NamedTensors& tensors) {
  REQUIRE(write_tensors(f / file, tensors).has_value());
}

Tensor row(std::vector<int64_t> shape, double first) {
  REQUIRE_OK(Tensor t, Tensor::make(kF32, std::move(shape)));
  for (int64_t i = 0; i < t.elements(); ++i) t.set_double(i, first + 0.25 * static_cast<double>(i));
  return t;
}

Tensor tensor(const NamedTensors& all, const std::string& name) {
  const auto it = std::ranges::find(all, name, &NamedTensors::value_type::first);
  INFO(name);
  REQUIRE(it != all.end());
  return it->second;
}

void same(const Tensor& a, const Tensor& b) {
  CHECK(a.shape() == b.shape());
  CHECK(std::equal(a.bytes(), a.bytes() + a.byte_size(), b.bytes(), b.bytes() + b.byte_size()));
}

}  // namespace

TEST_CASE("steps on states are runs with what was handed on", "[cli]") {
  const Folder f("cli_states");
  f.write("g.dlct", kGrow);
  write(f, "prompt.npz", {{"x", row({2, 3}, -1)}, {"log.past", row({4}, 1)}});
  write(f, "step.npz", {{"x", row({2, 1}, 0.5)}});
  for (const std::string form : {"text", "artifact"})
    for (const std::string device : {"cpu:", "cpu:?threads=2", "interp:"}) {
      INFO(form << " on " << device);
      std::string model = "g.dlct" + kStates;
      if (form == "artifact") {
        must_succeed(f, model + "-o g.dlca");
        model = "g.dlca";
      }
      const auto j = json_of(
          f, "run " + model + " --device '" + device + "' --input prompt.npz --step step.npz --step step.npz -o y.npz");
      CHECK(j["runs"] == 3);
      REQUIRE_OK(const NamedTensors y, read_tensors(f / "y.npz"));
      Tensor past = row({2, 0}, 0), log = row({4}, 1);
      for (const std::string step : {"0", "1", "2"}) {
        write(f, "all.npz",
              {{"x", step == "0" ? row({2, 3}, -1) : row({2, 1}, 0.5)}, {"kv.past", past}, {"log.past", log}});
        must_succeed(f, "run g.dlct --dim P=0..6 --device '" + device + "' --input all.npz -o one.npz");
        REQUIRE_OK(const NamedTensors one, read_tensors(f / "one.npz"));
        same(tensor(y, step + ":z"), tensor(one, "z"));
        past = tensor(one, "kv.present");
        log = tensor(one, "log.present");
      }
      same(tensor(y, "kv.present"), past);
      same(tensor(y, "log.present"), log);
    }
  // As samples: one step for each.
  write(f, "each.npz", {{"x", row({1, 1}, 1)}});
  f.write(
      "one.dlct",
      "dlc.graph 1\ngraph @g (P in 0..6) {\n  in %x: f32[1,1]\n  in %past: f32[1,P]\n"
      "  %0: f32[1,P + 1] = concat(%past, %x) {axis = 1}\n  %1: f32[1] = reduce_sum(%0) {axes = [1], keepdims = 0}\n"
      "  out %0 \"present\"\n  out %1 \"sum\"\n}\n");
  write(f, "each.npz", {{"x", row({4, 1}, 1)}});
  must_succeed(f, "run one.dlct --state past=present --each --input each.npz -o y.npz");
  REQUIRE_OK(const NamedTensors y, read_tensors(f / "y.npz"));
  CHECK(tensor(y, "sum").get_double(3) == 1 + 1.25 + 1.5 + 1.75);
  CHECK(tensor(y, "present").shape() == std::vector<int64_t>{1, 4});
}

TEST_CASE("a model with states is compared, bisected and measured as any other", "[cli]") {
  const Folder f("cli_states_tools");
  f.write("g.dlct", kGrow);
  for (const std::string command : {"compare", "compare --against cpu:", "bisect"})
    CHECK(json_of(f, command + " g.dlct --device cpu:" + kStates)["match"] == true);
  must_succeed(f, "g.dlct" + kStates + "-o g.dlca");
  const auto j = json_of(f, "bench g.dlca --dim P=4 --dim S=2 --runs 5");  // of 6: each step is taken back
  CHECK(j["runs"] == 5);
}

TEST_CASE("a state that cannot be is one clear error", "[cli]") {
  const Folder f("cli_bad_states");
  f.write("g.dlct", kGrow);
  write(f, "long.npz", {{"x", row({2, 7}, -1)}});
  write(f, "five.npz", {{"x", row({2, 5}, -1)}});
  must_fail(f, "g.dlct --state past -o o.dlca",
            {"g.dlct", "state 'past': an input and an output are wanted", "--state past=present"});
  must_fail(f, "g.dlct --state kv.pas=kv.present -o o.dlca", {"has no input 'kv.pas'", "did you mean 'kv.past'?"});
  must_fail(f, "g.dlct --state kv.past=kv.presents -o o.dlca",
            {"has no output 'kv.presents'", "did you mean 'kv.present'?"});
  must_fail(f, "g.dlct --state log.past=z -o o.dlca", {"'z' cannot be the next 'log.past'", "f32[2]"});
  must_fail(f, "g.dlct --state kv.past=kv.present -o o.dlca",
            {"how long it may become is not said", "--dim P=0..4096"});
  must_fail(f, "g.dlct --state '*.past=kv.present' -o o.dlca", {"both names have one *, or none"});
  must_fail(f, "g.dlct --dim P=0..6 --state kv.past=kv.present --state 'kv.*=kv.present' -o o.dlca", {"both names"});
  must_fail(f, "g.dlct --dim P=0..6 --state kv.past=kv.present --state kv.past=z -o o.dlca",
            {"a value belongs to one state"});
  must_fail(f, "run g.dlct --dim P=0..6 --step five.npz", {"the model has no states", "--state past=present"});
  must_succeed(f, "g.dlct" + kStates + "-o g.dlca");
  must_fail(f, "run g.dlca --state kv.past=kv.present --step five.npz", {"says its states itself"});
  for (const std::string device : {"cpu:", "interp:"}) {
    must_fail(f, "run g.dlca --device " + device + " --step long.npz",
              {"state 'kv.past' is full: with 0 of 6 there is no room for 7 more", "--dim P="});
    must_fail(f, "run g.dlca --device " + device + " --step five.npz --step five.npz",
              {"state 'kv.past' is full: with 5 of 6 there is no room for 5 more", "in step 1"});
  }
  f.write("h.dlct",
          "dlc.graph 1\ngraph @h (P in 1..6) {\n  in %x: f32[1]\n  in %past: f32[P]\n"
          "  %0: f32[P + 1] = concat(%past, %x) {axis = 0}\n  out %0 \"present\"\n}\n");
  write(f, "x.npz", {{"x", row({1}, 1)}});
  must_fail(f, "run h.dlct --state past=present --step x.npz",
            {"state 'past' has no value yet, and its P cannot be 0", "--dim P=0.."});
  write(f, "past.npz", {{"kv.past", row({2, 1}, 1)}});
  must_fail(f, "run g.dlca --step past.npz",
            {"past.npz", "'kv.past' is a state, which a step has from the one before", "--input"});
  write(f, "three.npz", {{"x", row({3, 1}, 1)}});
  write(f, "none.npz", {{"x", row({2, 0}, 1)}});
  must_fail(f, "run g.dlca --step none.npz", {"dim S is 0, the model takes 1 to -P + 6", "--dim S=0..6"});
  f.write("twice.dlct",
          "dlc.graph 1\ngraph @t (P in 0..8) {\n  in %x: f32[2*P]\n  in %past: f32[2*P]\n"
          "  %y: f32[2*P] = add(%x, %past)\n  out %y \"present\"\n  state %past -> \"present\"\n}\n");
  write(f, "six.npz", {{"x", row({6}, 1)}});
  must_fail(f, "run twice.dlct --step six.npz", {"state 'past' has no value yet, and no input has P as a dim"});
  f.write("only.dlct",
          "dlc.graph 1\ngraph @o {\n  in %past: f32[2]\n  %y: f32[2] = neg(%past)\n  out %y \"present\"\n"
          "  state %past -> \"present\"\n}\n");
  must_fail(f, "run only.dlct --step six.npz", {"the model has no input 'x': it takes none"});
  // Another batch than the state's.
  f.write("batch.dlct",
          "dlc.graph 1\ngraph @b (N in 1..4, P in 0..8) {\n  in %x: f32[N,1]\n  in %past: f32[N,P]\n"
          "  %y: f32[N,P + 1] = concat(%past, %x) {axis = 1}\n  out %y \"present\"\n"
          "  state %past -> \"present\"\n}\n");
  write(f, "one.npz", {{"x", row({2, 1}, 1)}});
  must_fail(f, "run batch.dlct --step one.npz --step three.npz",
            {"state 'past' is f32[2,1], this step takes f32[N,P] with N = 3", "begin anew"});
}
