// Models with states, step by step: the same bits as the model that is given every value, and nothing copied that
// stays.
#include "dlc/graph/state.h"

#include <cstring>
#include <random>

#include "dlc/plugin/compiled.h"
#include "dlc_test/catch.h"
#include "dlc_test/library.h"

using namespace dlc;

namespace {

Graph parsed(const std::string& text, const std::vector<std::string>& states) {
  auto g = parse_graph("dlc.graph 1\n" + text);
  if (!g) FAIL(to_string(g.error()));
  if (auto ok = declare_states(*g, states); !ok) FAIL(to_string(ok.error()));
  if (auto ok = verify(*g); !ok) FAIL(to_string(ok.error()));
  return *g;
}

struct Models {
  PluginRegistry plugins{{.paths = {DLC_BINARY_DIR "/lib/dlc/plugins"}, .defaults = false}};

  // One partition on cpu.
  CompiledModel compile(const Graph& g) {
    CompiledModel m;
    m.name = g.name;
    m.symbols = g.symbols;
    m.states = g.states;
    for (const ValueId v : g.inputs) m.inputs.push_back({g.value(v).name, g.value(v).type});
    for (size_t i = 0; i < g.outputs.size(); ++i) m.outputs.push_back({g.output_names[i], g.value(g.outputs[i]).type});
    REQUIRE_OK(Program program, lower_to_program(g));
    REQUIRE_OK(Backend * cpu, plugins.find("cpu"));
    REQUIRE_OK(const Hardware native, load_hardware("native"));
    REQUIRE_OK(CompiledPartition part, compile_partition("cpu", cpu, std::move(program), native, "{}"));
    m.partitions.push_back(std::move(part));
    return m;
  }
  Session open(const CompiledModel& m, const std::string& device) {
    REQUIRE_OK(Session s, Session::open(m, plugins, {.device = device}));
    return s;
  }
};

Tensor random_tensor(const Port& port, const Bindings& symbols, uint64_t seed) {
  std::vector<int64_t> shape;
  for (const Expr& d : port.type.shape) shape.push_back(evaluate(d, symbols).value_or(-1));
  REQUIRE_OK(Tensor t, Tensor::make(port.type.dtype, shape));
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < t.elements(); ++i) t.set_double(i, std::uniform_real_distribution(-1.0, 1.0)(random));
  return t;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::equal(a.bytes(), a.bytes() + a.byte_size(), b.bytes());
}

// The states of a model without them, handed on by hand.
struct ByHand {
  const CompiledModel& model;
  Session session;
  std::vector<Tensor> states;
  std::vector<Tensor> step(const std::vector<StatePair>& pairs, std::vector<Tensor> others) {
    std::vector<Tensor> inputs, outputs;
    size_t next = 0;
    for (const Port& p : model.inputs) {
      const auto s = std::ranges::find(pairs, p.name, &StatePair::input);
      inputs.push_back(s == pairs.end() ? others[next++] : states[static_cast<size_t>(s - pairs.begin())]);
    }
    REQUIRE_OK(const auto results, session.run(inputs));
    for (size_t i = 0; i < results.size(); ++i) {
      const auto s = std::ranges::find(pairs, model.outputs[i].name, &StatePair::output);
      if (s == pairs.end())
        outputs.push_back(results[i]);
      else
        states[static_cast<size_t>(s - pairs.begin())] = results[i];
    }
    return outputs;
  }
};

// One head of attention with a cache of keys and values that grows.
const std::string kDecoder = R"(graph @decoder (N in 1..4, P in 0..16, S in 1..16) {
  in    %x: f32[N,S,8]
  in    %past.key: f32[N,P,8]
  in    %past.value: f32[N,P,8]
  in    %wq: f32[8,8]
  in    %wk: f32[8,8]
  in    %wv: f32[8,8]
  %q: f32[N,S,8] = matmul(%x, %wq)
  %k: f32[N,S,8] = matmul(%x, %wk)
  %v: f32[N,S,8] = matmul(%x, %wv)
  %keys: f32[N,P + S,8] = concat(%past.key, %k) {axis = 1}
  %values: f32[N,P + S,8] = concat(%past.value, %v) {axis = 1}
  %t: f32[N,8,P + S] = transpose(%keys) {perm = [0, 2, 1]}
  %scores: f32[N,S,P + S] = matmul(%q, %t)
  %weights: f32[N,S,P + S] = softmax(%scores) {axis = 2}
  %y: f32[N,S,8] = matmul(%weights, %values)
  out   %y "y"
  out   %keys "present.key"
  out   %values "present.value"
}
)";

Tensor numbers(DType type, std::vector<int64_t> shape, std::vector<int64_t> values) {
  REQUIRE_OK(Tensor t, Tensor::make(type, std::move(shape)));
  for (size_t i = 0; i < values.size(); ++i) t.set_int(static_cast<int64_t>(i), values[i]);
  return t;
}

}  // namespace

TEST_CASE("a cache that grows is updated in place, prompt and tokens", "[plugin][state]") {
  Models models;
  const Graph with = parsed(kDecoder, {"past.*=present.*"});
  CHECK(print(with).find("S in 1..-P + 16") != std::string::npos);
  const CompiledModel stateful = models.compile(with), plain = models.compile(parsed(kDecoder, {}));
  CHECK(stateful.partitions[0].own_program.find("keeping past.key") != std::string::npos);
  for (const std::string device : {"cpu:?threads=1", "cpu:?threads=2", "interp:"})
    for (const int64_t n : {1, 3}) {
      CAPTURE(device, n);
      Session session = models.open(stateful, device);
      ByHand hand{plain, models.open(plain, device), {}};
      for (int i = 0; i < 2; ++i) hand.states.push_back(random_tensor(plain.inputs[1], {{"N", n}, {"P", 0}}, 1));
      const std::vector<Port> ports = session.step_inputs();
      REQUIRE(ports.size() == 4);
      uint64_t seed = 1;
      for (const int64_t s : {5, 1, 1, 4, 1}) {
        std::vector<Tensor> others;
        for (size_t i = 0; i < ports.size(); ++i)
          others.push_back(random_tensor(ports[i], {{"N", n}, {"S", s}}, i == 0 ? ++seed : i));
        REQUIRE_OK(const auto made, session.step(others));
        const auto expected = hand.step(stateful.states, others);
        REQUIRE(made.size() == 1);
        CHECK(same_bits(made[0], expected[0]));
        for (size_t i = 0; i < 2; ++i) {
          REQUIRE_OK(const Tensor state, session.state(i));
          CHECK(same_bits(state, hand.states[i]));
        }
      }
      // 12 of 16 are used: a step of 5 is refused, and changes nothing; what was added can be taken back.
      std::vector<Tensor> others;
      for (size_t i = 0; i < ports.size(); ++i) others.push_back(random_tensor(ports[i], {{"N", n}, {"S", 5}}, i));
      REQUIRE_ERROR(session.step(others), "state 'past.key' is full: with 12 of 16 there is no room for 5 more");
      REQUIRE_OK(const Tensor state, session.state(0));
      CHECK(same_bits(state, hand.states[0]));
      for (size_t i = 0; i < 2; ++i) REQUIRE(session.shrink_state(i, std::vector<int64_t>{n, 11, 8}).has_value());
      CHECK(session.step(others).has_value());
      CHECK(session.state_bytes() == 2 * n * 16 * 8 * 4);
    }
}

TEST_CASE("of a cache that grows only the new rows are moved", "[plugin][state]") {
  Models models;
  const CompiledModel stateful = models.compile(parsed(kDecoder, {"past.*=present.*"}));
  Session session = models.open(stateful, "cpu:?threads=1");
  std::vector<Tensor> others;
  for (size_t i = 0; i < 4; ++i) others.push_back(random_tensor(session.step_inputs()[i], {{"N", 2}, {"S", 3}}, i));
  for (int i = 0; i < 3; ++i) CHECK(session.step(others).has_value());
  CHECK(session.counters(0).find("k_concat") == std::string::npos);
  CHECK(stateful.partitions[0].own_program.find("concat") == std::string::npos);
}

TEST_CASE("all values can be given to a model with states, too", "[plugin][state]") {
  Models models;
  const CompiledModel stateful = models.compile(parsed(kDecoder, {"past.*=present.*"})),
                      plain = models.compile(parsed(kDecoder, {}));
  for (const std::string device : {"cpu:", "interp:"}) {
    Session a = models.open(stateful, device), b = models.open(plain, device);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < plain.inputs.size(); ++i)
      inputs.push_back(random_tensor(plain.inputs[i], {{"N", 2}, {"P", 7}, {"S", 3}}, i));
    REQUIRE_OK(const auto x, a.run(inputs));
    REQUIRE_OK(const auto y, b.run(inputs));
    for (size_t i = 0; i < 3; ++i) CHECK(same_bits(x[i], y[i]));
    REQUIRE_ERROR(a.state(0), "state 'past.key' has no value yet");
  }
}

TEST_CASE("sessions do not share their states, and begin where they are told", "[plugin][state]") {
  Models models;
  const CompiledModel stateful = models.compile(parsed(kDecoder, {"past.*=present.*"}));
  Session a = models.open(stateful, "cpu:"), b = models.open(stateful, "cpu:");
  std::vector<Tensor> others;
  for (size_t i = 0; i < 4; ++i) others.push_back(random_tensor(a.step_inputs()[i], {{"N", 1}, {"S", 2}}, i));
  CHECK(a.step(others).has_value());
  REQUIRE_ERROR(b.state(0), "state 'past.key' has no value yet");
  REQUIRE_OK(const Tensor key, a.state(0));
  REQUIRE_OK(const Tensor value, a.state(1));
  REQUIRE(b.set_state(0, key).has_value());
  REQUIRE(b.set_state(1, value).has_value());
  REQUIRE_OK(const auto x, a.step(others));
  REQUIRE_OK(const auto y, b.step(others));
  CHECK(same_bits(x[0], y[0]));
  a.clear_states();
  REQUIRE_ERROR(a.state(0), "state 'past.key' has no value yet");
  const Tensor wrong = numbers(kF32, {1, 2, 9}, {});
  REQUIRE_ERROR(b.set_state(0, wrong), "input 'past.key' is f32[1,2,9], the model takes f32[N,P,8]");
  const Tensor large = numbers(kF32, {1, 17, 8}, {});
  REQUIRE_ERROR(b.set_state(0, large), "'past.key' is f32[1,17,8], there is room for f32[1,16,8]");
  REQUIRE_ERROR(b.shrink_state(0, std::vector<int64_t>{1, 5, 8}), "state 'past.key' is f32[1,4,8]");
}

TEST_CASE("states of fixed shape: what is written at a place that data say", "[plugin][state]") {
  const auto at = GENERATE(as<std::string>{}, "%y: f32[6,4] = scatter_nd(%past, %at, %x)",
                           "%y: f32[6,4] = scatter_elements(%past, %rows, %x) {axis = 0}");
  CAPTURE(at);
  const std::string text = R"(graph @fixed {
  in    %past: f32[6,4]
  in    %at: s64[2,1]
  in    %rows: s64[2,4]
  in    %x: f32[2,4]
  )" + at + R"(
  %z: f32[6] = reduce_sum(%y) {axes = [1], keepdims = 0}
  out   %z "z"
  out   %y "present"
}
)";
  Models models;
  const CompiledModel stateful = models.compile(parsed(text, {"past=present"})),
                      plain = models.compile(parsed(text, {}));
  CHECK(stateful.partitions[0].own_program.find("keeping past") != std::string::npos);
  for (const std::string device : {"cpu:?threads=1", "cpu:?threads=2", "interp:"}) {
    CAPTURE(device);
    Session session = models.open(stateful, device);
    ByHand hand{plain, models.open(plain, device), {numbers(kF32, {6, 4}, {})}};
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<Tensor> others{
          numbers(kS64, {2, 1}, {step, 5 - step}),
          numbers(kS64, {2, 4}, {step, step, step, step, 5 - step, 5 - step, 5 - step, 5 - step}),
          random_tensor(plain.inputs[3], {}, static_cast<uint64_t>(step))};
      REQUIRE_OK(const auto made, session.step(others));
      CHECK(same_bits(made[0], hand.step(stateful.states, others)[0]));
      REQUIRE_OK(const Tensor state, session.state(0));
      CHECK(same_bits(state, hand.states[0]));
    }
  }
}

TEST_CASE("caches of several sequences, each written from its own place on", "[plugin][state]") {
  const auto ring = GENERATE(0, 1);
  const std::string text = R"(graph @ring (N in 1..4, T in 1..3) {
  in    %past: f32[N,2,6,4]
  in    %x: f32[N,2,T,4]
  in    %at: s64[N]
  %y: f32[N,2,6,4] = cache_update(%past, %x, %at) {axis = 2, ring = )" +
                           std::to_string(ring) +
                           R"(}
  out   %y "present"
}
)";
  Models models;
  const CompiledModel stateful = models.compile(parsed(text, {"past=present"})),
                      plain = models.compile(parsed(text, {}));
  CHECK(stateful.partitions[0].own_program.find("keeping past") != std::string::npos);
  for (const std::string device : {"cpu:?threads=1", "cpu:?threads=2", "interp:"}) {
    Session session = models.open(stateful, device);
    ByHand hand{plain, models.open(plain, device), {numbers(kF32, {2, 2, 6, 4}, {})}};
    for (int64_t step = 0; step < 3; ++step) {
      const std::vector<Tensor> others{random_tensor(plain.inputs[1], {{"N", 2}, {"T", 1 + step}}, 5),
                                       numbers(kS64, {2}, {step, ring != 0 ? 5 : 3 - step})};
      REQUIRE(session.step(others).has_value());
      hand.step(stateful.states, others);
      REQUIRE_OK(const Tensor state, session.state(0));
      CHECK(same_bits(state, hand.states[0]));
    }
  }
}

TEST_CASE("a state that must be read after it was written over is handed on", "[plugin][state]") {
  const std::string text = R"(graph @swap {
  in    %past: f32[4]
  in    %x: f32[4]
  const @last: s64[4] = [3, 2, 1, 0]
  %y: f32[4] = softmax(%x) {axis = 0}
  %m: f32[1] = reduce_max(%y) {axes = [0], keepdims = 1}
  %r: f32[4] = gather(%past, @last) {axis = 0}
  %z: f32[4] = add(%r, %m)
  %n: f32[4] = add(%r, %y)
  out   %z "z"
  out   %n "present"
}
)";
  Models models;
  const CompiledModel stateful = models.compile(parsed(text, {"past=present"})),
                      plain = models.compile(parsed(text, {}));
  for (const std::string device : {"cpu:", "interp:"}) {
    Session session = models.open(stateful, device);
    ByHand hand{plain, models.open(plain, device), {numbers(kF32, {4}, {})}};
    for (uint64_t step = 0; step < 3; ++step) {
      const std::vector<Tensor> others{random_tensor(plain.inputs[1], {}, step)};
      REQUIRE_OK(const auto made, session.step(others));
      CHECK(same_bits(made[0], hand.step(stateful.states, others)[0]));
      REQUIRE_OK(const Tensor state, session.state(0));
      CHECK(same_bits(state, hand.states[0]));
    }
  }
}

TEST_CASE("a program's copy over what was written before is done", "[plugin][state]") {
  const std::string text = R"(dlc.program 1
program @p {
  input past "past": f32[4]
  input x "x": f32[4]
  output y "present": f32[4]
  state past -> y
  arena 0
  call @w(past, x, y)
}
dlc.kernel 1
kernel @w {
  in    X: f32[4]
  in    Z: f32[4]
  out   Y: f32[4]
  for i < 4:
    Y[i] = Z[i]
  for i < 2:
    Y[i] = X[i]
}
)";
  REQUIRE_OK(Program p, parse_program(text));
  REQUIRE_OK(const int placed, states_in_place(p));
  CHECK(placed == 0);
  const Tensor past = numbers(kF32, {4}, {10, 11, 12, 13}), x = numbers(kF32, {4}, {1, 2, 3, 4});
  REQUIRE_OK(const auto y, run_program(p, std::vector{past, x}));
  CHECK(same_bits(y[0], numbers(kF32, {4}, {10, 11, 3, 4})));
}

TEST_CASE("states of one length are given together, or not at all", "[plugin][state]") {
  Models models;
  const CompiledModel stateful = models.compile(parsed(kDecoder, {"past.*=present.*"}));
  for (const std::string device : {"cpu:", "interp:"}) {
    Session session = models.open(stateful, device);
    std::vector<Tensor> others;
    for (size_t i = 0; i < 4; ++i) others.push_back(random_tensor(session.step_inputs()[i], {{"N", 1}, {"S", 2}}, i));
    REQUIRE(session.set_state(0, numbers(kF32, {1, 3, 8}, {})).has_value());
    REQUIRE_ERROR(session.step(others),
                  "state 'past.value' has no value, but 'past.key' has one with P = 3, and both have the length P");
    REQUIRE_ERROR(session.state(1), "state 'past.value' has no value yet");
    REQUIRE(session.set_state(1, numbers(kF32, {1, 3, 8}, {})).has_value());
    CHECK(session.step(others).has_value());
    // None of one length: the other may begin without elements, too.
    session.clear_states();
    REQUIRE(session.set_state(0, numbers(kF32, {1, 0, 8}, {})).has_value());
    CHECK(session.step(others).has_value());
  }
}

TEST_CASE("a first step that is refused leaves no state", "[plugin][state]") {
  Models models;
  const CompiledModel stateful = models.compile(parsed(kDecoder, {"past.*=present.*"}));
  Session session = models.open(stateful, "cpu:");
  std::vector<Tensor> large, wrong;
  for (size_t i = 0; i < 4; ++i) large.push_back(random_tensor(session.step_inputs()[i], {{"N", 1}, {"S", 17}}, i));
  REQUIRE_ERROR(session.step(large), "state 'past.key' is full: with 0 of 16 there is no room for 17 more");
  CHECK(session.state_bytes() == 0);
  for (size_t i = 0; i < 2; ++i) REQUIRE_ERROR(session.state(i), "has no value yet");
  // One was given for another batch: the other has no value after it.
  REQUIRE(session.set_state(1, numbers(kF32, {3, 0, 8}, {})).has_value());
  for (size_t i = 0; i < 4; ++i) wrong.push_back(random_tensor(session.step_inputs()[i], {{"N", 1}, {"S", 2}}, i));
  REQUIRE_ERROR(session.step(wrong), "state 'past.value' is f32[3,0,8], this step takes f32[N,P,8] with N = 1");
  REQUIRE_ERROR(session.state(0), "state 'past.key' has no value yet");
}

TEST_CASE("a model that says other sizes of a state than its program is refused", "[plugin][state]") {
  Models models;
  const CompiledModel good = models.compile(parsed(kDecoder, {"past.*=present.*"}));
  const auto forged = [&](auto change) {
    CompiledModel m = good;
    change(m);
    return Session::open(m, models.plugins, {.device = "cpu:"});
  };
  const Expr p = Expr::symbol("P"), s = Expr::symbol("S");
  for (const Expr& length : {p + 2 * s, p, p + s + 1, Expr(700)})
    REQUIRE_ERROR(forged([&](CompiledModel& m) { m.outputs[1].type.shape[1] = length; }), "keeps 'present.key' as");
  REQUIRE_ERROR(forged([&](CompiledModel& m) { m.inputs[1].type.shape[2] = Expr(5); }), "keeps 'past.key' as");
  REQUIRE_ERROR(forged([&](CompiledModel& m) { m.inputs[1].type.dtype = kF64; }), "keeps 'past.key' as");
  // Memory is never read beyond its end, whoever asks.
  std::vector<std::byte> bytes(64);
  REQUIRE_ERROR(take_value({bytes.data(), kF32, {2, 2}, {2, 3}}), "a value of f32[2,3] does not lie in memory of");
}

TEST_CASE("two caches of different lengths grow together", "[plugin][state]") {
  const std::string text = R"(graph @two (P in 0..7, Q in 0..12, S) {
  in    %a: f32[2,P]
  in    %b: f32[2,Q]
  in    %x: f32[2,S]
  %y: f32[2,P + S] = concat(%a, %x) {axis = 1}
  %z: f32[2,Q + 2*S] = concat(%b, %x, %x) {axis = 1}
  out   %y "an"
  out   %z "bn"
}
)";
  Models models;
  const CompiledModel stateful = models.compile(parsed(text, {"a=an", "b=bn"})),
                      plain = models.compile(parsed(text, {}));
  CHECK(stateful.partitions[0].own_program.find("keeping a") != std::string::npos);
  CHECK(stateful.partitions[0].own_program.find("keeping b") != std::string::npos);
  for (const std::string device : {"cpu:", "interp:"}) {
    CAPTURE(device);
    Session session = models.open(stateful, device);
    ByHand hand{plain, models.open(plain, device), {numbers(kF32, {2, 1}, {8, 9}), numbers(kF32, {2, 0}, {})}};
    REQUIRE(session.set_state(0, hand.states[0]).has_value());
    for (const int64_t s : {3, 1, 2}) {
      const std::vector<Tensor> others{random_tensor(plain.inputs[2], {{"S", s}}, static_cast<uint64_t>(s))};
      REQUIRE(session.step(others).has_value());
      hand.step(stateful.states, others);
      for (size_t i = 0; i < 2; ++i) {
        REQUIRE_OK(const Tensor state, session.state(i));
        CHECK(same_bits(state, hand.states[i]));
      }
    }
    const std::vector<Tensor> more{random_tensor(plain.inputs[2], {{"S", 1}}, 1)};
    REQUIRE_ERROR(session.step(more), "state 'a' is full: with 7 of 7 there is no room for 1 more");
  }
}

TEST_CASE("a state that is longer than memory is named", "[plugin][state]") {
  Models models;
  const std::string text = R"(graph @long (N in 1..1048576, P in 0..1000000, S in 1..4) {
  in    %past: f32[N,P,256]
  in    %x: f32[N,S,256]
  %y: f32[N,P + S,256] = concat(%past, %x) {axis = 1}
  out   %y "present"
}
)";
  const CompiledModel model = models.compile(parsed(text, {"past=present"}));
  Session session = models.open(model, "cpu:");
  const Tensor many = numbers(kF32, {100, 1, 256}, {}), one = numbers(kF32, {1, 1, 256}, {});
  REQUIRE_ERROR(session.step({&many, 1}),
                "state 'past' has no memory: tensor f32[100,1000000,256] needs 102400000000 bytes");
  // One sequence has its gigabyte, of which a row is touched.
  CHECK(session.step({&one, 1}).has_value());
}

TEST_CASE("a backend that knows no states is given none", "[plugin][state]") {
  struct Old : Backend {
    std::string text;
    std::string name() const override { return "old"; }
    Result<> emit(const EmitRequest& request, EmitResult& result) override {
      text = print(request.program);
      result.put("executable", "x");
      return {};
    }
    std::vector<DeviceListing> list() override { return {}; }
    Result<std::unique_ptr<Device>> open(const std::string&) override { return fail({}, "none"); }
  } old;
  REQUIRE_OK(Program program, lower_to_program(parsed(kDecoder, {"past.*=present.*"})));
  REQUIRE_OK(const Hardware native, load_hardware("native"));
  REQUIRE_OK(const CompiledPartition part, compile_partition("old", &old, std::move(program), native, "{}"));
  CHECK(old.text.find("state ") == std::string::npos);
  CHECK(part.program.find("state past.key -> ") != std::string::npos);
}

TEST_CASE("a header says what the caller hands on", "[plugin][state]") {
  const std::string text = R"(graph @both {
  in    %kept: f32[4]
  in    %past: f32[4]
  in    %x: f32[4]
  const @last: s64[4] = [3, 2, 1, 0]
  %k: f32[4] = add(%kept, %x)
  %m: f32[4] = softmax(%past) {axis = 0}
  %r: f32[4] = gather(%past, @last) {axis = 0}
  %n: f32[4] = add(%r, %m)
  out   %k "new"
  out   %n "present"
}
)";
  Models models;
  REQUIRE_OK(Program program, lower_to_program(parsed(text, {"kept=new", "past=present"})));
  REQUIRE_OK(Backend * cpu, models.plugins.find("cpu"));
  REQUIRE_OK(const Hardware native, load_hardware("native"));
  EmitResult files;
  REQUIRE_OK(const CompiledPartition part,
             compile_partition("cpu", cpu, std::move(program), native, R"({"format": "so", "name": "both"})", &files));
  const auto* header = files.find("header");
  REQUIRE(header != nullptr);
  const std::string said(reinterpret_cast<const char*>(header->data()), header->size());
  CHECK_THAT(said, Catch::Matchers::Contains("inputs[0] kept: f32[4]; then new: f32[4]"));
  CHECK_THAT(said, Catch::Matchers::Contains("outputs[1] present is the next inputs[1] past"));
}

TEST_CASE("a library updates a state where the caller has it", "[plugin][state]") {
  const std::string text = R"(graph @grow (P in 0..8, S in 1..8) {
  in    %x: f32[2,S]
  in    %past: f32[2,P]
  %k: f32[2,S] = exp(%x)
  %y: f32[2,P + S] = concat(%past, %k) {axis = 1}
  %z: f32[2] = reduce_sum(%y) {axes = [1], keepdims = 0}
  out   %y "present"
  out   %z "z"
}
)";
  Models models;
  const Graph g = parsed(text, {"past=present"});
  REQUIRE_OK(Program program, lower_to_program(g));
  REQUIRE_OK(Backend * cpu, models.plugins.find("cpu"));
  REQUIRE_OK(const Hardware native, load_hardware("native"));
  EmitResult files;
  REQUIRE_OK(const CompiledPartition part,
             compile_partition("cpu", cpu, std::move(program), native, R"({"format": "so", "name": "grow"})", &files));
  const auto *header = files.find("header"), *bytes = files.find("library");
  REQUIRE(header != nullptr);
  REQUIRE(bytes != nullptr);
  const std::string said(reinterpret_cast<const char*>(header->data()), header->size());
  CHECK_THAT(said,
             Catch::Matchers::Contains("outputs[0] present: f32[2,P + S] (a state, see below; not used, may be NULL)"));
  CHECK_THAT(said,
             Catch::Matchers::Contains("inputs[1] past: f32[2,P], in memory of f32[2,8]; then present: f32[2,P + S]"));
  const dlc_test::LoadedLibrary library(*bytes, "grow");
  const CompiledModel model = models.compile(g);
  Session session = models.open(model, "cpu:");
  alignas(64) float memory[2][8] = {}, z[2] = {};
  alignas(64) std::byte workspace[4096];
  int64_t past = 0;
  for (const int64_t s : {3, 1, 2}) {
    const Tensor x = random_tensor(model.inputs[0], {{"S", s}}, static_cast<uint64_t>(s));
    const void* in[] = {x.bytes(), memory};
    void* out[] = {nullptr, z};
    const int64_t dims[] = {past, s};
    REQUIRE(library.workspace_bytes(dims) >= 0);
    REQUIRE(library.workspace_bytes(dims) <= static_cast<int64_t>(sizeof(workspace)));
    REQUIRE(library.run(in, out, workspace, dims, nullptr) == 0);
    REQUIRE_OK(const auto made, session.step({&x, 1}));
    CHECK(std::memcmp(z, made[0].bytes(), sizeof(z)) == 0);
    past += s;
    REQUIRE_OK(const Tensor state, session.state(0));
    for (int64_t row : {0, 1})
      CHECK(std::memcmp(memory[row], state.as<float>().data() + row * past, static_cast<size_t>(past) * 4) == 0);
  }
  const int64_t full[] = {6, 3};
  CHECK(library.run(nullptr, nullptr, workspace, full, nullptr) == -2);
}
