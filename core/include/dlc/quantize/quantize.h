// Post-training quantisation: a float graph and samples of its inputs become a graph of 8 bits in QDQ form.
//
//   DLC_TRY(Quantization q, quantize(g, samples, {.method = RangeMethod::mse}));
//   // q.graph:  %2 = dequantize_linear(quantize_linear(%x, sx, zx), sx, zx)
//   //           %5 = conv(%2, dequantize_linear(@w8, sw), dequantize_linear(@b32, sx * sw))
//   //           %6 = dequantize_linear(quantize_linear(relu(%5), sy, zy), sy, zy)
//
// Weights are symmetric s8 with a scale for each output channel, biases s32 in units of sx * sw, activations s8 with
// one scale and zero point, which is the padding of a convolution, so that 0 is exact. What only moves or selects
// elements (reshape, max pool, slice) keeps the scale of what it moves; the operands of a concat share that of its
// result where their ranges are alike, and are rescaled otherwise; those of a sum have each its own. Which nodes are
// layers is read off their kernels where it can be, as in commit_numerics (docs/numerics.md), which takes the result.
//
// The range of an activation, from a histogram of what the samples make of it:
//   min_max     all of it (Jacob et al., Quantization and training for integer-arithmetic-only inference, 2018)
//   percentile  all but the outermost elements (Wu et al., Integer quantization for deep learning inference, 2020)
//   mse         the one whose rounding and clipping errors together are least (Sung et al., Resiliency of deep
//               neural networks under quantization, 2015; Banner et al., Post-training 4-bit quantization, 2019)
// mse chooses the scales of weights in the same way.
//
// Bias correction (Nagel et al., Data-free quantization through weight equalization and bias correction, 2019):
// rounding weights and inputs shifts the mean of each output channel; the shift seen on the samples goes into the bias.
//
// Every layer is then measured twice: alone, on the float graph's own values, and where it stands, with the errors of
// all layers before it. A layer that alone is worse than `min_sqnr` stays in float, and the report says so.
//
// What is quantised must be finite: a NaN or an infinity in a weight or bias, in an input, or in what a node makes of a
// sample is an error that names it.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "dlc/graph/graph.h"

namespace dlc {

enum class RangeMethod : uint8_t { min_max, percentile, mse };

struct QuantizeOptions {
  RangeMethod method = RangeMethod::mse;
  double percentile = 99.99;  // of the elements, for RangeMethod::percentile
  bool symmetric = false;     // activations too: every zero point is 0
  bool correct_bias = true;
  double min_sqnr = 10;                                   // dB
  std::map<std::string, std::string> keep;                // the model's nodes that stay in float, and why
  size_t measured = 32;                                   // so many samples are measured
  std::string samples_from;                               // the samples' file, for messages,
  std::vector<size_t> sample_numbers;                     // and which of its samples they are, if not all
  std::function<void(const std::string& step)> progress;  // told before each step
};

// Signal to quantisation noise, in dB: 10 log10(sum of squares / sum of squared errors). kExact without an error, less
// with any; -kExact where a result is not finite that should be, or where nothing finite was compared.
inline constexpr double kExact = 200;

struct LayerQuality {
  std::string name, op;  // the model's node
  bool quantised = true;
  std::string why;   // it stays in float
  double scale = 1;  // of its result
  int64_t zero = 0;
  double sqnr = kExact;        // alone
  double cumulative = kExact;  // where it stands
  double saturated = 0;        // share of the float result's elements that the range cuts off
  int64_t worst_channel = -1;  // along dim 1, alone
  double worst_channel_sqnr = kExact;
};

struct OutputQuality {
  std::string name;
  double sqnr = kExact;
  double same_top1 = 1;  // share of rows whose largest element is at the same place
};

struct QuantizeReport {
  std::vector<LayerQuality> layers;  // in order of execution
  std::vector<OutputQuality> outputs;
  size_t samples = 0, measured = 0;
};

struct Quantization {
  Graph graph;
  QuantizeReport report;
};

// `samples`: the graph's inputs, so many times. Batch norms are best folded before (passes batch_norm_fold, fold).
Result<Quantization> quantize(const Graph& g, std::span<const std::vector<Tensor>> samples,
                              const QuantizeOptions& options = {});

}  // namespace dlc
