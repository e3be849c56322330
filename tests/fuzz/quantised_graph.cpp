// Networks as a quantising exporter writes them.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>

#include "tests/fuzz/random_graph.h"

namespace dlc::fuzz {

namespace {

std::vector<Expr> list(std::initializer_list<int64_t> values) { return {values.begin(), values.end()}; }

// What the nodes compute on the sample's input, for the ranges that scales are made from.
class Values {
 public:
  explicit Values(const Graph& g) : g_(g) {}

  void set(ValueId v, const Tensor& t) { known_[v] = t; }
  const Tensor& at(ValueId v) const { return known_.at(v); }

  Result<> run(NodeId id) {
    const Node& n = g_.node(id);
    const Record& record = *g_.record_set().find(n.op);
    std::vector<std::optional<TensorType>> types;
    std::vector<Tensor> inputs;
    for (const ValueId v : n.inputs) {
      types.push_back(v == kNoValue ? std::nullopt : std::optional(g_.value(v).type));
      inputs.push_back(v == kNoValue ? Tensor() : at(v));
    }
    DLC_TRY(const auto operands, group_operands(record, types, {}));
    DLC_TRY(const Kernel kernel, g_.record_set().instantiate(record, operands, n.attrs));
    inputs.resize(kernel.inputs.size());
    DLC_TRY(auto results, run_kernel(kernel, inputs));
    for (size_t r = 0; r < results.size(); ++r) known_[n.outputs[r]] = std::move(results[r]);
    return {};
  }

 private:
  const Graph& g_;
  std::map<ValueId, Tensor> known_;
};

class Quantised {
 public:
  explicit Quantised(uint64_t seed) : random_(seed ^ 0x71647131), known_(s_.graph) {}

  Sample run() {
    input();
    for (int64_t n = random_.between(1, 8), tries = 40; n > 0 && tries > 0; --tries) n -= add() ? 1 : 0;
    for (size_t i = 1; i < values_.size(); ++i)
      if (i + 1 == values_.size() || random_.chance(15)) output(values_[i]);
    if (s_.graph.outputs.empty()) output(values_.back());
    return std::move(s_);
  }

 private:
  ValueId node(const std::string& op, std::vector<ValueId> in, Attrs attrs = {}) {
    auto n = s_.graph.add_node(op, std::move(in), std::move(attrs), {fmt::format("{}_{}", op, named_++)});
    if (!n) return kNoValue;
    if (!known_.run(*n)) {
      s_.graph.erase(*n);
      return kNoValue;
    }
    return s_.graph.node(*n).outputs[0];
  }
  ValueId constant(DType t, std::vector<int64_t> shape, const std::function<double()>& element) {
    Tensor x = Tensor::make(t, std::move(shape)).value();
    for (int64_t i = 0; i < x.elements(); ++i) x.set_double(i, element());
    const ValueId v = s_.graph.add_constant(fmt::format("c{}", named_++), x);
    known_.set(v, x);
    return v;
  }
  ValueId scalar(double x) {
    return constant(kF32, {}, [&] { return x; });
  }

  void input() {
    const std::vector<int64_t> shape =
        random_.chance(75)
            ? std::vector<int64_t>{1, random_.between(1, 20), random_.between(1, 9), random_.between(1, 9)}
            : std::vector<int64_t>{random_.between(1, 3), random_.between(1, 40)};
    Tensor x = Tensor::make(kF32, shape).value();
    for (int64_t i = 0; i < x.elements(); ++i) x.set_double(i, static_cast<double>(random_.between(-16, 16)) / 8);
    TensorType type = type_of(x);
    const ValueId v = s_.graph.add_input("x", type);
    s_.inputs.push_back(x);
    known_.set(v, x);
    values_.push_back(rounded(v));
  }

  // quantize_linear and dequantize_linear with a scale that the values fit.
  ValueId rounded(ValueId v) {
    double lo = 0, hi = 0;
    const Tensor& t = known_.at(v);
    for (int64_t i = 0; i < t.elements(); ++i) {
      lo = std::min(lo, t.get_double(i));
      hi = std::max(hi, t.get_double(i));
    }
    const bool u8 = random_.chance(30);
    const bool symmetric = random_.chance(30);
    const double scale = std::max(symmetric ? std::max(-lo, hi) / 127 : (hi - lo) / 255, 1e-3);
    const double zero = symmetric ? (u8 ? 128 : 0) : std::round(-lo / scale) - (u8 ? 0 : 128);
    const DType type = u8 ? kU8 : kS8;
    const ValueId s = scalar(scale), z = constant(type, {}, [&] { return zero; });
    const ValueId q = node("quantize_linear", {v, s, z}, {{"to", type}, {"axis", Expr(0)}});
    return q == kNoValue ? q : node("dequantize_linear", {q, s, z}, {{"axis", Expr(0)}});
  }

  ValueId weights(std::vector<int64_t> shape, int64_t axis) {
    const int64_t channels = shape[static_cast<size_t>(axis)];
    const bool per_channel = random_.chance(60);
    const ValueId w = constant(kS8, std::move(shape), [&] { return static_cast<double>(random_.between(-127, 127)); });
    const ValueId s = constant(kF32, per_channel ? std::vector<int64_t>{channels} : std::vector<int64_t>{},
                               [&] { return 0.002 + 0.0001 * static_cast<double>(random_.between(0, 100)); });
    const ValueId z =
        constant(kS8, per_channel ? std::vector<int64_t>{channels} : std::vector<int64_t>{}, [] { return 0.0; });
    return node("dequantize_linear", {w, s, z}, {{"axis", Expr(per_channel ? axis : 0)}});
  }
  ValueId bias(int64_t channels) {
    return constant(kF32, {channels}, [&] { return static_cast<double>(random_.between(-16, 16)) / 16; });
  }

  bool add() {
    const size_t first = s_.graph.node_count();
    const ValueId x = values_[values_.size() - 1 -
                              static_cast<size_t>(random_.between(0, std::min<int64_t>(3, std::ssize(values_)) - 1))];
    ValueId y = layer(x);
    if (y != kNoValue && random_.chance(40)) y = node("relu", {y});
    if (y != kNoValue) y = rounded(y);
    if (y == kNoValue || known_.at(y).elements() == 0 || known_.at(y).elements() > 8000) {
      for (size_t n = s_.graph.node_count(); n-- > first;)
        if (!s_.graph.node(static_cast<NodeId>(n)).erased) s_.graph.erase(static_cast<NodeId>(n));
      return false;
    }
    values_.push_back(y);
    return true;
  }

  ValueId layer(ValueId x) {
    const std::vector<int64_t> shape = known_.at(x).shape();
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t channels = rank > 1 ? shape[1] : shape[0];
    switch (random_.between(0, 9)) {
      case 0:
      case 1:
      case 2: {
        if (rank != 4) return product(x, shape);
        const bool depthwise = random_.chance(30);
        const int64_t out =
            depthwise ? channels * random_.between(1, random_.chance(20) ? 2 : 1) : random_.between(1, 20);
        const int64_t group = depthwise ? channels : random_.chance(10) && out % channels == 0 ? channels : 1;
        std::vector<Expr> pad_lo, pad_hi, stride, dilation;
        const int64_t kh = random_.between(1, 4), kw = random_.between(1, 4), step = random_.between(1, 2);
        for (int d = 0; d < 2; ++d) {
          pad_lo.emplace_back(random_.between(0, 2));
          pad_hi.emplace_back(random_.between(0, 2));
          stride.emplace_back(step);
          dilation.emplace_back(random_.chance(10) ? 2 : 1);
        }
        std::vector<ValueId> in{x, weights({out, channels / group, kh, kw}, 0)};
        if (random_.chance(70)) in.push_back(bias(out));
        return node("conv", in,
                    {{"pad_lo", pad_lo},
                     {"pad_hi", pad_hi},
                     {"stride", stride},
                     {"dilation", dilation},
                     {"group", Expr(group)}});
      }
      case 3:
      case 4: {  // a residual
        std::vector<ValueId> same;
        for (const ValueId v : values_)
          if (s_.graph.value(v).type == s_.graph.value(x).type) same.push_back(v);
        return node(random_.chance(85) ? "add" : "mul", {x, random_.pick(same)});
      }
      case 5: {
        if (rank != 4) return kNoValue;
        const int64_t k = random_.between(1, 3), stride = random_.between(1, 2), pad = random_.between(0, k / 2);
        Attrs attrs{{"kernel", list({k, k})},
                    {"stride", list({stride, stride})},
                    {"pad_lo", list({pad, pad})},
                    {"pad_hi", list({pad, pad})}};
        return node(random_.chance(50) ? "max_pool" : "avg_pool", {x}, std::move(attrs));
      }
      case 6:
        return rank == 4 ? node("reduce_mean", {x}, {{"axes", list({2, 3})}, {"keepdims", Expr(random_.between(0, 1))}})
                         : kNoValue;
      case 7: {
        if (random_.chance(50)) return node("concat", {x, random_.pick(values_)}, {{"axis", Expr(1)}});
        std::vector<Expr> perm;
        for (int64_t d = 0; d < rank; ++d) perm.emplace_back(rank == 4 && d > 1 ? 5 - d : d);
        return node("transpose", {x}, {{"perm", perm}});
      }
      case 8: {
        if (rank != 4) return node(random_.chance(50) ? "sigmoid" : "tanh", {x});
        return node("reshape", {x}, {{"shape", list({shape[0], shape[1] * shape[2] * shape[3]})}});
      }
      default:
        return rank == 4 ? node("clip", {x, scalar(0), scalar(static_cast<double>(random_.between(1, 6)))})
                         : product(x, shape);
    }
  }

  ValueId product(ValueId x, const std::vector<int64_t>& shape) {
    if (shape.size() != 2) return kNoValue;
    const int64_t out = random_.between(1, 40);
    if (random_.chance(50)) {
      const ValueId y = node("matmul", {x, weights({shape[1], out}, 1)});
      return random_.chance(50) || y == kNoValue ? y : node("add", {y, bias(out)});
    }
    return node("gemm", {x, weights({out, shape[1]}, 0), bias(out)}, {{"trans_b", Expr(1)}});
  }

  void output(ValueId v) {
    s_.graph.outputs.push_back(v);
    s_.graph.output_names.push_back("y" + std::to_string(s_.graph.outputs.size()));
  }

  Random random_;
  Sample s_;
  Values known_;
  std::vector<ValueId> values_;
  int named_ = 0;
};

}  // namespace

Sample random_quantised_sample(uint64_t seed) { return Quantised(seed).run(); }

}  // namespace dlc::fuzz
