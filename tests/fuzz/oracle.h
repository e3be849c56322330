// What a graph computes, in doubles, and how far from it a right implementation may be.
//
// Every node is interpreted several times in f64: once as it is, and several times with noise of the size of its types'
// rounding on what it reads and what it gives. The spread of these runs is what rounding does to the result; elements
// that jump (a comparison, a step, a sum that cancels) are not compared. Numbers that every float type here holds
// exactly, as small multiples of 1/64 are, get no noise: ties and steps at such numbers are compared. What rounding
// inside an op may do to a result that is not such a number is found by shaking all that the op reads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dlc/passes/reduce.h"

namespace dlc::fuzz {

inline constexpr int kMembers = 4;     // runs: the plain one, and those with noise
inline constexpr double kFactor = 24;  // of the spread, that a right result may differ by

// The same value in every run; floats are f64 whatever their type says.
using Ensemble = std::vector<Tensor>;

class Oracle {
 public:
  // `seed` is of the noise.
  Oracle(const Graph& g, uint64_t seed) : g_(g), seed_(seed) {}

  void set(ValueId v, const Tensor& t);
  Result<> run(NodeId n);
  const Ensemble& at(ValueId v) const { return values_.at(v); }

 private:
  Ensemble noisy(ValueId v, uint64_t salt, const std::vector<double>& error) const;
  Tensor shaken(const Tensor& t, DType type, uint64_t salt) const;
  Result<std::vector<Tensor>> evaluate(const Node& n, const std::vector<Tensor>& inputs, double attr_noise) const;
  const Ensemble& leaf_or_value(ValueId v);

  const Graph& g_;
  uint64_t seed_;
  std::map<ValueId, Ensemble> values_;
};

struct Expectation {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<double> value;      // of floats
  std::vector<int64_t> integer;   // of the others
  std::vector<double> tolerance;  // negative: not compared
};
Expectation expectation(DType dtype, const Ensemble& e);

// Of every output. The graph must have constant shapes.
Result<std::vector<Expectation>> expectations(const Sample& s, uint64_t seed);

// The first difference beyond the tolerance, as text.
std::optional<std::string> difference(const Expectation& want, const Tensor& got);

// The same graph, its symbols replaced by what the inputs say.
Result<Sample> with_constant_shapes(const Sample& s);

}  // namespace dlc::fuzz
