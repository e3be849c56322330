#include "tests/fuzz/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/passes/rebuild.h"
#include "dlc/ops/generate.h"
#include "dlc/program/program.h"
#include "tests/fuzz/oracle.h"

namespace dlc::fuzz {

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

namespace {

// Of one operand: seven dims of up to 20 are a thousand million elements, which no fault needs.
constexpr int64_t kMostElements = 1'000'000;

bool is_small(const TensorType& t) {
  int64_t n = 1;
  for (const Expr& e : t.shape)
    if (const auto d = e.constant(); !d || __builtin_mul_overflow(n, *d, &n)) return false;
  return n <= kMostElements;
}

bool constant_shape(const TensorType& t) {
  return std::ranges::all_of(t.shape, [](const Expr& e) { return e.constant().has_value(); });
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), oracle_(graph()) {}

  Sample run() {
    const auto nodes = random_.between(1, 12);
    special_ = random_.chance(10);
    empty_ = random_.chance(25);
    for (int tries = 0; tries < 60 && kept_ < nodes; ++tries) add();
    outputs();
    return with_symbols(std::move(sample_));
  }

 private:
  Graph& graph() { return sample_.graph; }

  // A record, an operand of it that an existing value may be, and a use of the record where it is.
  void add() {
    static const std::vector<std::string> kNames = RecordSet::builtin().names();
    const Record& record = *RecordSet::builtin().find(random_.pick(kNames));
    if (record.is_extern()) return;  // no kernel states them, so no backend compiles them
    GenerateOptions o;
    o.max_extent = random_.chance(10) ? 20 : 5;
    o.zero_percent = empty_ ? 8 : 0;
    if (!values_.empty() && !record.operands().empty()) {
      o.given_operand = static_cast<size_t>(random_.between(0, static_cast<int64_t>(record.operands().size()) - 1));
      const std::string& type = record.operands()[o.given_operand].type;
      const TensorType& t = graph().value(recent()).type;
      if (const auto fixed = parse_dtype(type); !fixed || *fixed == t.dtype) {
        o.given = t;
        o.tries = 12;
      }
    }
    const uint64_t seed = random_.next() >> 16;
    auto use = generate(RecordSet::builtin(), record, seed, o);
    if (!use) return;
    for (const auto& each : use->operands)
      if (!std::ranges::all_of(each.types, is_small)) return;
    const auto tensors = random_operands(*use, seed);
    if (!tensors) return;
    std::vector<ValueId> inputs;
    size_t at = 0;
    for (size_t i = 0; i < use->operands.size(); ++i) {
      if (!use->operands[i].present) {
        inputs.push_back(kNoValue);
        ++at;
      }
      for (const TensorType& t : use->operands[i].types) {
        const bool ranged = i < use->values.size() && use->values[i];
        inputs.push_back(operand(t, (*tensors)[at++], ranged));
      }
    }
    auto n = graph().add_node(record.name(), inputs, use->attrs, {fmt::format("{}_{}", record.name(), kept_)});
    if (!n) return;
    if (!keep(*n)) return graph().erase(*n);
    ++kept_;
    for (const ValueId v : graph().node(*n).outputs) values_.push_back(v);
  }

  ValueId recent() {
    const auto n = static_cast<int64_t>(values_.size());
    return values_[static_cast<size_t>(n - 1 - random_.between(0, std::min<int64_t>(n, 4) - 1))];
  }

  // An existing value of this type, or a new input or constant. Those whose elements have a range are always new.
  ValueId operand(const TensorType& t, const Tensor& tensor, bool ranged) {
    if (!ranged) {
      std::vector<ValueId> same;
      for (const ValueId v : values_)
        if (graph().value(v).type == t) same.push_back(v);
      if (!same.empty() && random_.chance(90)) return random_.pick(same);
    }
    Tensor x = tensor;
    if (t.dtype.is_float() && !ranged)  // numbers that every type holds
      for (int64_t i = 0; i < x.elements(); ++i) x.set_double(i, std::round(x.get_double(i) * 8) / 8);
    if (!ranged && random_.chance(10))  // what folding and canonicalising look for
      for (int64_t i = 0, one = random_.between(0, 1); i < x.elements(); ++i) x.set_int(i, one);
    ValueId v = kNoValue;
    if (random_.chance(40)) {
      v = graph().add_constant(fmt::format("c{}", named_++), x);
    } else {
      v = graph().add_input(fmt::format("x{}", named_++), t);
      sample_.inputs.push_back(x);
    }
    oracle_.set(v, x);
    if (!ranged) values_.push_back(v);
    return v;
  }

  bool keep(NodeId n) {
    for (const ValueId v : graph().node(n).outputs)
      if (!constant_shape(graph().value(v).type)) return false;
    if (!oracle_.run(n)) return false;
    for (const ValueId v : graph().node(n).outputs) {
      const DType dtype = graph().value(v).type.dtype;
      const BoundTensor& t = oracle_.at(v);
      if (t.elements.size() > 5000) return false;
      for (size_t d = 0; d < t.shape.size(); ++d)
        if (!graph().value(v).type.shape[d].is(t.shape[d])) return false;
      if (!is_meaningful(t)) return false;
      for (const Number& x : t.elements) {
        if (dtype.is_float() && (std::isfinite(x.v) ? std::abs(x.v) > 2000 : !special_)) return false;
      }
    }
    return true;
  }

  void outputs() {
    Graph& g = graph();
    const auto users = g.all_users();
    for (const NodeId n : g.order())
      for (const ValueId v : g.node(n).outputs) {
        const bool dead = users[static_cast<size_t>(v)].empty() && random_.chance(20);
        if (dead || (!users[static_cast<size_t>(v)].empty() && !random_.chance(15))) continue;
        g.outputs.push_back(v);
        g.output_names.push_back("y" + std::to_string(g.outputs.size()));
      }
    if (g.outputs.empty() && !values_.empty()) {
      g.outputs.push_back(values_.back());
      g.output_names.emplace_back("y");
    }
  }

  // Whether a program takes the sample's own sizes: 1 where N == 2 is assumed is refused, as it should be.
  static bool fits_guards(const Sample& s, int64_t extent) {
    const auto program = lower_to_program(s.graph, {.fuse = false});
    return !program || check_entry(*program, {{"N", extent}}).has_value();
  }

  static bool gives(const Graph& g, const Expr& symbol) {
    return std::ranges::any_of(g.inputs, [&](ValueId v) {
      return std::ranges::any_of(g.value(v).type.shape, [&](const Expr& e) { return e == symbol; });
    });
  }

  // Whether rounding decides nothing when sizes are known to a run alone: a coordinate then has an error, of which a
  // resize takes the floor.
  static bool is_decided(const Sample& s) {
    const auto outputs = expectations(s);
    return outputs && std::ranges::all_of(*outputs, [](const BoundTensor& t) { return is_meaningful(t); });
  }

  // Equal extents of inputs become a symbol, where the records take it.
  Sample with_symbols(Sample s) {
    if (!random_.chance(33) || s.inputs.empty()) return s;
    const auto& shape =
        s.inputs[static_cast<size_t>(random_.between(0, static_cast<int64_t>(s.inputs.size()) - 1))].shape();
    if (shape.empty()) return s;
    const int64_t extent = random_.pick(shape);
    const Expr n = Expr::symbol("N");
    for (const bool lists : {true, false}) {
      Sample t = s;
      t.graph.symbols.emplace("N", Range(0, 64));
      for (const ValueId v : t.graph.inputs)
        for (Expr& e : t.graph.value(v).type.shape)
          if (e.is(extent)) e = n;
      for (const NodeId id : t.graph.order())
        for (auto& [name, a] : t.graph.node(id).attrs)
          if (auto* list = std::get_if<std::vector<Expr>>(&a); list && lists && (name == "shape" || name == "size"))
            for (Expr& e : *list)
              if (e.is(extent)) e = n;
      auto made = rebuild(t, no_edits(t.graph));  // without the inputs that nobody reads
      if (made && gives(made->graph, n) && with_constant_shapes(*made) && fits_guards(*made, extent) &&
          is_decided(*made))
        return *std::move(made);
    }
    return s;
  }

  Random random_;
  Sample sample_;
  Oracle oracle_;
  std::vector<ValueId> values_;
  int64_t kept_ = 0;
  int named_ = 0;
  bool special_ = false, empty_ = false;
};

}  // namespace

Sample random_sample(uint64_t seed) { return Generator(seed).run(); }

}  // namespace dlc::fuzz
