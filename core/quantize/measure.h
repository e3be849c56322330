// How far quantised values are from the float ones, and what of that a bias can take back.
#pragma once

#include <span>
#include <vector>

#include "core/quantize/rewrite.h"

namespace dlc::quantization {

using Samples = std::span<const std::vector<Tensor>>;

// Signal and noise, by channel along dim 1.
class Noise {
 public:
  void add(const Tensor& want, const Tensor& got);
  double sqnr() const;
  std::pair<int64_t, double> worst_channel() const;  // -1: no channels

 private:
  std::vector<double> signal_, noise_;
  int64_t finite_ = 0;  // elements that were compared
};

// The mean of float minus quantised result of each layer's root, by output channel, every layer alone: the bias that
// makes the mean right. Of layers with a weight and an operand for a bias.
Result<std::map<NodeId, std::vector<double>>> bias_shifts(const Graph& g, const Plan& plan, const Parameters& p,
                                                          Samples samples);

// Every layer alone; name, op, scale and zero are not filled in.
Result<std::vector<LayerQuality>> measure_apart(const Graph& g, const Plan& plan, const Parameters& p, Samples samples);

// The whole: fills in `cumulative` of the layers.
Result<std::vector<OutputQuality>> measure_whole(const Graph& g, const Plan& plan, const Rewritten& whole,
                                                 Samples samples, std::span<LayerQuality> layers);

}  // namespace dlc::quantization
