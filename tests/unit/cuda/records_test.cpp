// Every op record, on random operands: generated CUDA text against what exact arithmetic gives (tests/fuzz/bounded.h).
#include "dlc/ops/generate.h"
#include "tests/fuzz/bound_walk.h"
#include "tests/unit/cuda/serial.h"

using namespace dlc;
using namespace dlc::test;

namespace {

struct Sample {
  std::string name;
  Kernel kernel;
  std::vector<Tensor> inputs;
  std::vector<fuzz::BoundTensor> expected;
  bool stores_undefined = false;
};

std::vector<Sample> samples(uint64_t seed, int64_t max_extent) {
  const RecordSet& set = RecordSet::builtin();
  std::vector<Sample> all;
  for (const std::string& name : set.names()) {
    const Record& record = *set.find(name);
    if (record.is_extern()) continue;
    GenerateOptions options;
    options.max_extent = max_extent;
    const auto use = generate(set, record, seed, options);
    if (!use) continue;
    REQUIRE_OK(Kernel k, set.instantiate(record, use->operands, use->attrs));
    REQUIRE_OK(const auto inputs, random_operands(*use, seed));
    std::vector<fuzz::BoundTensor> exact;
    for (const Tensor& t : inputs) exact.push_back(t.is_valid() ? fuzz::bound_tensor(t) : fuzz::BoundTensor{});
    std::vector<const fuzz::BoundTensor*> operands;
    for (size_t i = 0; i < inputs.size(); ++i) operands.push_back(inputs[i].is_valid() ? &exact[i] : nullptr);
    auto results = fuzz::walk(k, operands, 10 * fuzz::kMostWork);
    Sample s{name, std::move(k), inputs, {}, false};
    if (results) {
      s.expected = std::move(*results);
    } else {
      const std::string why = to_string(results.error());
      if (why.contains("too much work") || why.contains("too large")) continue;
      s.stores_undefined = true;
    }
    all.push_back(std::move(s));
  }
  return all;
}

std::vector<Tensor> memory(const Sample& s) {
  std::vector<Tensor> m;
  for (const KernelTensor& t : s.kernel.tensors) {
    if (t.view) {
      m.emplace_back();
      continue;
    }
    std::vector<int64_t> shape;
    for (const Expr& e : t.shape) shape.push_back(evaluate(e, {}).value());
    REQUIRE_OK(Tensor made, Tensor::make(t.dtype, shape));
    m.push_back(std::move(made));
  }
  for (size_t i = 0; i < s.kernel.inputs.size(); ++i)
    if (s.kernel.inputs[i] >= 0 && s.inputs[i].is_valid()) m[static_cast<size_t>(s.kernel.inputs[i])] = s.inputs[i];
  return m;
}

}  // namespace

TEST_CASE("every record becomes CUDA text that computes what it states") {
  for (const uint64_t seed : {0, 1, 2}) {
    const std::vector<Sample> all = samples(seed, seed == 2 ? 9 : 5);
    CHECK(all.size() > 150);
    std::vector<const Kernel*> kernels;
    for (const Sample& s : all) kernels.push_back(&s.kernel);
    REQUIRE_OK(const cuda::Module m, cuda::generate(kernels));
    Serial machine(m);
    for (size_t i = 0; i < all.size(); ++i) {
      const Sample& s = all[i];
      INFO("record " << s.name << ", seed " << seed << "\n" << print(s.kernel));
      std::vector<Tensor> tensors = memory(s);
      std::vector<void*> pointers;
      for (Tensor& t : tensors) pointers.push_back(t.is_valid() ? t.mutable_bytes() : nullptr);
      const unsigned failed = machine.run(i, pointers);
      CHECK((failed != 0) == s.stores_undefined);
      for (size_t r = 0; failed == 0 && r < s.expected.size(); ++r) {
        const auto t = static_cast<size_t>(s.kernel.outputs[r]);
        if (const auto wrong = fuzz::difference(s.expected[r], tensors[t]))
          FAIL_CHECK("tensor " << s.kernel.tensors[t].name << ", " << *wrong);
      }
    }
  }
}
