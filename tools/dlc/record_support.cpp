#include "tools/dlc/record_support.h"

#include <algorithm>
#include <utility>

#include "dlc/numerics/commit.h"
#include "dlc/ops/generate.h"
#include "dlc/passes/pass.h"

namespace dlc::cli {

namespace {

constexpr DType kTypes[] = {kBool, kS8,  kU8,   kS16, kU16, kS32,      kU32,   kS64,
                            kU64,  kF16, kBF16, kF32, kF64, kF8E4M3FN, kF8E5M2};
constexpr int kSeeds = 4, kMoreSeeds = 6;  // for each shape
constexpr const char* kUse = "use";        // the node's name
constexpr int kTries = 25;

TensorType typed(DType t, std::initializer_list<int64_t> shape) {
  TensorType type{t, {}};
  for (const int64_t d : shape) type.shape.emplace_back(d);
  return type;
}

// How the inputs of a use are quantised, and which of its operands are constants.
struct Scheme {
  double scale = 0.0625;
  int64_t zero = 0;
  bool with_constants = true;
};
// What is defined for some values alone is tabulated where the integers stand for no others: not negative ones (sqrt),
// or those from -1 to 1 (asin).
constexpr Scheme kOtherSchemes[] = {{0.0625, -128}, {0.0078125, 0}};

// A graph with one use of the record on values that are quantised; nothing where it has no place in one.
class Quantised {
 public:
  Quantised(const Record& record, const Instance& use, uint64_t seed, const Scheme& scheme)
      : record_(record), use_(use), seed_(seed), scheme_(scheme) {}

  Result<Graph> run() {
    DLC_TRY(const auto tensors, random_operands(use_, seed_));
    std::vector<ValueId> inputs;
    size_t next = 0;
    for (const Operand& operand : use_.operands) {
      if (!operand.present) inputs.push_back(kNoValue);
      for (const TensorType& type : operand.types) {
        DLC_TRY(const ValueId v, value(type, tensors[next++], inputs.empty()));
        inputs.push_back(v);
      }
    }
    while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
    DLC_TRY(const NodeId n, g_.add_node(record_.name(), inputs, use_.attrs, {kUse}));
    for (const ValueId v : g_.node(n).outputs) {
      ValueId out = v;
      if (g_.value(v).type.dtype == kF32) {
        DLC_TRY(out, step("quantize_linear", v, {{"to", kS8}, {"axis", Expr(0)}}, {}));
      }
      g_.outputs.push_back(out);
      g_.output_names.push_back("y" + std::to_string(g_.outputs.size()));
    }
    return std::move(g_);
  }

 private:
  Result<ValueId> step(const std::string& op, ValueId v, Attrs attrs, const Scheme& scheme) {
    DLC_TRY(Tensor scale, Tensor::make(kF32, {}));
    scale.set_double(0, scheme.scale);
    DLC_TRY(Tensor zero, Tensor::make(kS8, {}));
    zero.set_int(0, scheme.zero);
    const ValueId s = g_.add_constant(g_.unique_name("scale"), std::move(scale));
    const ValueId z = g_.add_constant(g_.unique_name("zero"), std::move(zero));
    DLC_TRY(const NodeId n,
            g_.add_node(op, {v, s, z}, std::move(attrs), {}));  // without a name: what merges with it keeps the use's
    return g_.node(n).outputs[0];
  }

  Result<ValueId> value(const TensorType& type, const Tensor& t, bool first) {
    const bool is_constant = !first && scheme_.with_constants;
    if (type.dtype != kF32 || (is_constant && type.shape.size() < 2)) return g_.add_constant(g_.unique_name("c"), t);
    ValueId q = kNoValue;
    if (!is_constant) {
      q = g_.add_input(g_.unique_name("x"), {kS8, type.shape});
    } else {
      DLC_TRY(Tensor weights, Tensor::make(kS8, t.shape()));
      for (int64_t i = 0; i < weights.elements(); ++i) weights.set_double(i, static_cast<double>(i % 15 - 7));
      q = g_.add_constant(g_.unique_name("w"), std::move(weights));
    }
    return step("dequantize_linear", q, {{"axis", Expr(0)}}, is_constant ? Scheme() : scheme_);
  }

  const Record& record_;
  const Instance& use_;
  uint64_t seed_;
  Scheme scheme_;
  Graph g_;
};

// Most attributes are at their defaults in most models, and what may be absent is.
Instance plainest(const Record& record, Instance use) {
  for (const AttrInfo& a : record.attributes())
    if (!a.required) use.attrs.erase(a.name);
  for (size_t i = 0; i < use.operands.size(); ++i)
    if (record.operands()[i].optional) use.operands[i] = Operand::absent();
  return use;
}

bool is_placed(Graph g, const HwDescription& hw, const Recipes& recipes, const std::string& device,
               const AskDevice& ask) {
  const auto report = commit_numerics(g, recipes);
  if (!report || !run_passes(g, default_graph_pipeline())) return false;
  const auto parts = partition(g, hw, device, ask, {{}, report->ops});
  return parts && std::ranges::any_of(parts->nodes,
                                      [&](const NodePlacement& p) { return p.name == kUse && p.device == device; });
}

}  // namespace

std::vector<std::string> types_of(const RecordSet& set, const Record& record) {
  std::vector<std::string> out;
  const auto works = [&](DType t) {
    for (const auto& shape : {typed(t, {2, 3}), typed(t, {1, 4, 5, 5}), typed(t, {4}), typed(t, {2, 3, 4})})
      for (uint64_t seed = 0; seed < kSeeds; ++seed)
        if (generate(set, record, seed, {.tries = kTries, .given = shape})) return true;
    return false;
  };
  for (const DType t : kTypes)
    if (works(t)) out.push_back(to_string(t));
  return out;
}

bool runs_quantised(const Record& record, const HwDescription& hw, const Recipes& recipes, const std::string& device,
                    const AskDevice& ask) {
  if (record.is_extern() || record.name() == "quantize_linear" || record.name() == "dequantize_linear") return false;
  const auto runs = [&](const Instance& use, uint64_t seed, const Scheme& scheme) {
    auto g = Quantised(record, use, seed, scheme).run();
    return g && is_placed(*std::move(g), hw, recipes, device, ask);
  };
  for (const auto& shape : {typed(kF32, {1, 16, 8, 8}), typed(kF32, {1, 4, 6, 6}), typed(kF32, {1, 16})})
    for (uint64_t seed = 0; seed < kMoreSeeds; ++seed) {
      const auto use = generate(RecordSet::builtin(), record, seed, {.tries = kTries, .given = shape});
      if (!use) continue;
      const Instance plain = plainest(record, *use);
      for (const Instance* one : {&plain, &*use})
        for (const bool constants : {true, false})
          if ((constants || use->operands.size() > 1) && runs(*one, seed, {.with_constants = constants})) return true;
      if (use->operands.size() > 1 || seed > 0) continue;
      for (const Scheme& scheme : kOtherSchemes)
        if (runs(plain, seed, scheme)) return true;
    }
  return false;
}

}  // namespace dlc::cli
