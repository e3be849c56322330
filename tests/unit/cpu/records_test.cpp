// Every op record, on random operands: compiled code against the interpreter.
#include "dlc/kernel/normal_form.h"
#include "dlc/ops/generate.h"
#include "plugins/cpu/codegen/contraction.h"
#include "support.h"

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

void check_record(const Kernel& k, const std::vector<Tensor>& inputs, const cpu::Target& target) {
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
  if (failed == 0) check_same(k, want, got, 2e-5);
}

// Each level has the seeds of its own: every fourth.
int check_records(const Level& level, uint64_t first_seed, uint64_t seeds) {
  const RecordSet& set = RecordSet::builtin();
  int kernels = 0;
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
      check_record(k, inputs, level.target);
      if (seed % 4 >= 2) {
        REQUIRE_OK(const Kernel normal, normalise(k));
        REQUIRE_OK(const cpu::Plan plan, cpu::plan_contractions(normal, level.target));
        INFO(print(plan.kernel));
        if (plan.packed.empty()) check_record(plan.kernel, inputs, level.target);
      }
      ++kernels;
    }
  }
  return kernels;
}

}  // namespace

TEST_CASE("every record compiles to what the interpreter computes", "[.levels]") {
  for (const Level& level : levels()) {
    INFO("target " << level.name);
    CHECK(check_records(level, 0, 4) > 50);
  }
}

TEST_CASE("many more seeds of every record", "[.long]") {
  for (const Level& level : levels()) CHECK(check_records(level, 4, 40) > 500);
}
