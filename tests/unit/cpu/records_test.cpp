// Every op record, on random operands: compiled code against the interpreter.
#include "dlc/kernel/normal_form.h"
#include "dlc/ops/generate.h"
#include "plugins/cpu/codegen/contraction.h"
#include "support.h"
#include "tests/fuzz/bound_walk.h"

using namespace dlc;
using namespace dlc::test;

namespace {

// Storage of k's tensors, the inputs set to these.
Memory with_inputs(const Kernel& k, const std::vector<Tensor>& inputs) {
  Memory m = memory(k, {});
  for (size_t i = 0; i < k.inputs.size(); ++i)
    if (k.inputs[i] >= 0 && inputs[i].is_valid()) m.tensors[static_cast<size_t>(k.inputs[i])] = inputs[i];
  return m;
}

// Results of the interpreter and of compiled code are compared with what exact arithmetic gives, not with each other:
// how far each may be off follows from the record, step by step where it is recurrent (tests/fuzz/bounded.h).
struct Expected {
  std::vector<fuzz::BoundTensor> results;
  std::string why_none;  // an undefined value is stored, or there are more points than bounds are worth
  bool is_too_large = false;
  int64_t elements = 0, known = 0;  // known: rounding decides nothing about it
};

Expected expected(const Kernel& k, const std::vector<Tensor>& inputs) {
  std::vector<fuzz::BoundTensor> exact;
  for (const Tensor& t : inputs) exact.push_back(t.is_valid() ? fuzz::bound_tensor(t) : fuzz::BoundTensor{});
  std::vector<const fuzz::BoundTensor*> operands;
  for (size_t i = 0; i < inputs.size(); ++i) operands.push_back(inputs[i].is_valid() ? &exact[i] : nullptr);
  Expected e;
  auto results = fuzz::walk(k, operands, 10 * fuzz::kMostWork);
  if (!results) {
    e.why_none = to_string(results.error());
    e.is_too_large = e.why_none.contains("too much work") || e.why_none.contains("too large");
    return e;
  }
  e.results = std::move(*results);
  for (const fuzz::BoundTensor& r : e.results) {
    e.elements += std::ssize(r.elements);
    e.known += std::ranges::count_if(r.elements, &fuzz::Number::is_usable);
  }
  return e;
}

void check_results(const std::string& by, const Kernel& k, const Expected& e, const Memory& got) {
  for (size_t r = 0; r < e.results.size(); ++r) {
    const auto t = static_cast<size_t>(k.outputs[r]);
    if (const auto wrong = fuzz::difference(e.results[r], got.tensors[t]))
      FAIL_CHECK(by << ": kernel " << k.name << ", tensor " << k.tensors[t].name << ", " << *wrong);
  }
}

void check_record(const Kernel& k, const std::vector<Tensor>& inputs, const Expected& e, const cpu::Target& target) {
  Memory want = with_inputs(k, inputs);
  REQUIRE_OK(const auto prepared, PreparedKernel::prepare(k, {}, {.tree_walk = true}));
  const auto buffers = want.buffers();
  const auto interpreted = prepared.run(buffers);
  const cpu::Unit unit{&k, {}};
  REQUIRE_OK(const auto code, cpu::compile(std::span(&unit, 1), target, {.opt_level = 1}));
  Memory got = with_inputs(k, inputs);
  const auto pointers = got.pointers();
  const int64_t failed = code.kernels()[0].entry(pointers.data(), nullptr);
  INFO((interpreted ? std::string("the interpreter ran") : to_string(interpreted.error())));
  REQUIRE((failed == 0) == interpreted.has_value());
  if (failed != 0) return;
  INFO(e.why_none);
  REQUIRE(e.results.size() == k.outputs.size());
  check_results("interpreter", k, e, want);
  check_results("compiled", k, e, got);
}

// Each level has the seeds of its own: every fourth.
struct Done {
  int kernels = 0, too_large = 0;
  int64_t elements = 0, known = 0;
};

Done check_records(const Level& level, uint64_t first_seed, uint64_t seeds) {
  const RecordSet& set = RecordSet::builtin();
  Done done;
  for (const std::string& name : set.names()) {
    const Record& record = *set.find(name);
    if (record.is_extern()) continue;
    for (uint64_t seed = first_seed + static_cast<uint64_t>(level.opt_level); seed < first_seed + seeds; seed += 4) {
      GenerateOptions options;
      if (seed % 4 >= 2) options.max_extent = 10;
      const auto use = generate(set, record, seed, options);
      if (!use) continue;
      REQUIRE_OK(const auto k, set.instantiate(record, use->operands, use->attrs));
      REQUIRE_OK(const auto inputs, random_operands(*use, seed));
      INFO("record " << name << ", seed " << seed << "\n" << print(k));
      const Expected e = expected(k, inputs);
      if (e.is_too_large) {
        ++done.too_large;
        continue;
      }
      done.elements += e.elements;
      done.known += e.known;
      check_record(k, inputs, e, level.target);
      if (seed % 4 >= 2) {
        REQUIRE_OK(const Kernel normal, normalise(k));
        REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(normal, level.target));
        INFO(print(plan.kernel));
        if (plan.packed.empty()) check_record(plan.kernel, inputs, e, level.target);
      }
      ++done.kernels;
    }
  }
  return done;
}

// Nearly all elements are decided by what they are computed from, so what is compared is nearly all.
void check_done(const Done& done, int least_kernels) {
  CHECK(done.kernels > least_kernels);
  CHECK(done.too_large <= done.kernels / 50);
  CHECK(done.known > done.elements / 100 * 98);
}

}  // namespace

TEST_CASE("every record compiles to what it states", "[.levels]") {
  for (const Level& level : levels()) {
    INFO("target " << level.name);
    check_done(check_records(level, 0, 4), 50);
  }
}

TEST_CASE("many more seeds of every record", "[.long]") {
  for (const Level& level : levels()) {
    INFO("target " << level.name);
    check_done(check_records(level, 4, 40), 500);
  }
}
