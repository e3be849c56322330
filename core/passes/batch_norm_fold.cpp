// An affine map per channel after a convolution or a product with constant weights joins the weights:
//
//   %1 = conv(%x, @w)                                       ->  %2 = conv(%x, @w', @b')
//   %2 = batch_norm(%1, @scale, @bias, @mean, @variance)        w'[o] = w[o]*a[o],  b'[o] = b[o]*a[o] + s[o]
//
// with a = scale/sqrt(variance + epsilon) and s = bias - mean*a. mul and add by constants per channel are such maps,
// too. Computed in doubles and rounded once.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/passes/passes.h"
#include "dlc/ops/attributes.h"

namespace dlc {

namespace {

// y[c] = x[c]*scale[c] + shift[c] along dim 1.
struct ChannelAffine {
  ValueId x = kNoValue;
  std::vector<double> scale, shift;
};

const Tensor* constant(const Graph& g, ValueId v) {
  return v != kNoValue && g.value(v).constant ? &*g.value(v).constant : nullptr;
}

std::vector<double> doubles(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.elements(); ++i) v.push_back(t.get_double(i));
  return v;
}

Attributes attributes(const Graph& g, const Node& n) { return {*g.record_set().find(n.op), n.attrs}; }

std::optional<ChannelAffine> batch_norm(const Graph& g, const Node& n) {
  if (n.op != "batch_norm" || n.inputs.size() != 5 || n.outputs.size() != 1) return std::nullopt;
  const Tensor *scale = constant(g, n.inputs[1]), *bias = constant(g, n.inputs[2]);
  const Tensor *mean = constant(g, n.inputs[3]), *variance = constant(g, n.inputs[4]);
  const auto epsilon = attributes(g, n).real("epsilon");
  if (!scale || !bias || !mean || !variance || !epsilon) return std::nullopt;
  ChannelAffine a{.x = n.inputs[0], .scale = {}, .shift = {}};
  for (int64_t c = 0; c < scale->elements(); ++c) {
    const double s = scale->get_double(c) / std::sqrt(variance->get_double(c) + *epsilon);
    a.scale.push_back(s);
    a.shift.push_back(bias->get_double(c) - mean->get_double(c) * s);
  }
  return a;
}

// One number per channel out of a constant that broadcasts along every dim but dim 1; empty if it is none.
std::vector<double> per_channel(const Tensor& t, size_t rank, int64_t channels) {
  const auto& shape = t.shape();
  if (!t.dtype().is_float() || shape.size() > rank) return {};
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool channel = d + rank - shape.size() == 1;
    if (shape[d] != 1 && !(channel && shape[d] == channels)) return {};
  }
  auto v = doubles(t);
  if (v.size() == 1) v.assign(static_cast<size_t>(channels), v[0]);
  return v;
}

std::optional<ChannelAffine> mul_or_add(const Graph& g, const Node& n) {
  if ((n.op != "mul" && n.op != "add") || n.inputs.size() != 2) return std::nullopt;
  const auto& shape = g.value(n.outputs[0]).type.shape;
  const auto channels = shape.size() < 2 ? std::nullopt : shape[1].constant();
  for (size_t i = 0; i < 2; ++i) {
    const Tensor* t = constant(g, n.inputs[1 - i]);
    if (!t || !channels || g.value(n.inputs[i]).type != g.value(n.outputs[0]).type) continue;
    auto v = per_channel(*t, shape.size(), *channels);
    if (v.empty()) continue;
    const std::vector<double> ones(v.size(), 1), zeros(v.size(), 0);
    if (n.op == "mul") return ChannelAffine{n.inputs[i], v, zeros};
    return ChannelAffine{n.inputs[i], ones, v};
  }
  return std::nullopt;
}

// t with every slice along `axis` multiplied by its factor.
Result<Tensor> scaled(const Tensor& t, size_t axis, const std::vector<double>& factors) {
  DLC_TRY(Tensor out, Tensor::make(t.dtype(), t.shape()));
  int64_t inner = 1;
  for (size_t d = axis + 1; d < t.shape().size(); ++d) inner *= t.shape()[d];
  const int64_t channels = t.shape()[axis];
  const auto factor = [&](int64_t i) { return factors[static_cast<size_t>(i / inner % channels)]; };
  if (t.dtype() == kF32) {              // weights are large: no conversion through get and set
    const std::byte* from = t.bytes();  // a mapped file aligns nothing
    auto to = out.as_mutable<float>();
    for (int64_t block = 0; block < t.elements(); block += inner) {
      const double f = factor(block);
      for (auto i = static_cast<size_t>(block); i < static_cast<size_t>(block + inner); ++i) {
        float v = 0;
        std::memcpy(&v, from + i * sizeof(v), sizeof(v));
        to[i] = static_cast<float>(v * f);
      }
    }
    return out;
  }
  for (int64_t i = 0; i < t.elements(); ++i) out.set_double(i, t.get_double(i) * factor(i));
  return out;
}

// Where an op keeps its weights: input 1, output channels along `axis`, an optional bias as input 2.
struct Weighted {
  size_t axis = 0;
  std::string op;  // what takes the bias
};

std::optional<Weighted> weighted(const Graph& g, const Node& n) {
  if (n.op == "conv") return Weighted{0, n.op};
  if (n.op == "conv_transpose" && attributes(g, n).integer("group") == 1) return Weighted{1, n.op};
  if (n.op == "gemm" && attributes(g, n).real("beta") == 1 && attributes(g, n).real("alpha") == 1)
    return Weighted{attributes(g, n).integer("trans_b") == 0 ? size_t{1} : size_t{0}, n.op};
  if (n.op == "matmul" && g.value(n.inputs[0]).type.shape.size() == 2 && g.value(n.inputs[1]).type.shape.size() == 2)
    return Weighted{1, "gemm"};
  return std::nullopt;
}

class Folder {
 public:
  Folder(Graph& g, PassContext& context) : g_(g), context_(context), users_(g.all_users()) {}

  Result<> run() {
    for (NodeId n : g_.order()) {
      auto affine = batch_norm(g_, g_.node(n));
      if (!affine) affine = mul_or_add(g_, g_.node(n));
      if (affine) DLC_CHECK(fold(n, *affine));
    }
    return {};
  }

 private:
  size_t uses(ValueId v) const {
    const size_t as_result = static_cast<size_t>(std::ranges::count(g_.outputs, v));
    return as_result + (static_cast<size_t>(v) < users_.size() ? users_[static_cast<size_t>(v)].size() : 1);
  }

  Result<> fold(NodeId n, const ChannelAffine& a) {
    const NodeId p = g_.value(a.x).producer;
    if (p == kNoNode || uses(a.x) != 1) return {};
    const Node& product = g_.node(p);
    const auto where = weighted(g_, product);
    if (!where) return {};
    const Tensor* weights = constant(g_, product.inputs[1]);
    const auto channels = a.scale.size();
    if (!weights || !weights->dtype().is_float() || weights->shape()[where->axis] != static_cast<int64_t>(channels))
      return {};
    std::vector<double> bias(channels, 0);
    const bool has_bias = product.inputs.size() > 2 && product.inputs[2] != kNoValue;
    if (has_bias) {
      const Tensor* b = constant(g_, product.inputs[2]);
      // A row of the channels; with one channel a scalar is that, too.
      const bool row = b && (b->shape().empty() || b->shape().back() == b->elements());
      if (!row || b->elements() != static_cast<int64_t>(channels)) return {};
      bias = doubles(*b);
    }
    DLC_TRY(Tensor new_weights, scaled(*weights, where->axis, a.scale));
    DLC_TRY(Tensor new_bias, Tensor::make(weights->dtype(), {static_cast<int64_t>(channels)}));
    for (size_t c = 0; c < channels; ++c)
      new_bias.set_double(static_cast<int64_t>(c), bias[c] * a.scale[c] + a.shift[c]);

    const Node old = product, map = g_.node(n);
    const std::string weight_name = g_.value(old.inputs[1]).name;
    const std::string bias_name = has_bias ? g_.value(old.inputs[2]).name : weight_name + ".bias";
    std::vector<std::string> locations = old.locations;
    locations.insert(locations.end(), map.locations.begin(), map.locations.end());
    const ValueId w = g_.add_constant(weight_name, std::move(new_weights));
    const ValueId b = g_.add_constant(bias_name, std::move(new_bias));
    DLC_TRY(NodeId made, g_.add_node(where->op, {old.inputs[0], w, b}, old.attrs, std::move(locations)));
    const ValueId result = g_.node(made).outputs[0];
    const ValueId replaced = map.outputs[0];
    const std::string name = g_.value(replaced).name;
    g_.replace_uses(replaced, result);
    users_.resize(g_.value_count());
    users_[static_cast<size_t>(result)] = std::move(users_[static_cast<size_t>(replaced)]);
    g_.erase(n);
    g_.erase(p);
    g_.rename(result, name);
    take_place(old.inputs[1], w);
    if (has_bias) take_place(old.inputs[2], b);
    ++context_.counts["folded"];
    return {};
  }

  // The new constant has the old one's name, unless somebody else still uses the old one.
  void take_place(ValueId old, ValueId made) {
    const std::string name = g_.value(old).name;
    if (!g_.users(old).empty() || std::ranges::find(g_.outputs, old) != g_.outputs.end()) return;
    g_.release(old);
    g_.rename(made, name);
  }

  Graph& g_;
  PassContext& context_;
  std::vector<std::vector<NodeId>> users_;
};

}  // namespace

Result<> batch_norm_fold(Graph& g, PassContext& context) {
  DLC_CHECK(Folder(g, context).run());
  return dce(g, context);
}

}  // namespace dlc
