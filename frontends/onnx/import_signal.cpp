// Signals and n-grams.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontends/onnx/importer.h"
#include "frontends/onnx/tables.h"
#include "frontends/onnx/tensor_proto.h"

namespace dlc::onnx_frontend {

namespace {

using Values = std::vector<ValueId>;

Result<DType> output_type(const NodeView& n) {
  DLC_TRY(const int64_t type, n.attr_int("output_datatype", 1));
  return element_type(static_cast<int>(std::clamp<int64_t>(type, 0, 1000)), n.loc());
}

// 1 where an input that must be a number is absent.
Result<Expr> size_or(const NodeView& n, size_t input, std::string_view what, const Expr& otherwise) {
  return n.has(input) ? known_scalar(n, input, what) : Result<Expr>(otherwise);
}

template <int A1000, int B1000, int C1000>
Result<Values> window(const NodeView& n) {
  DLC_TRY(const Expr count, known_scalar(n, 0, "size"));
  DLC_TRY(const int64_t periodic, n.attr_int("periodic", 1));
  DLC_TRY(const DType to, output_type(n));
  const bool hamming = C1000 == 0 && A1000 != 500;  // its coefficients are 25/46 and 21/46
  const double a = hamming ? 25.0 / 46 : A1000 / 1000.0, b = hamming ? 21.0 / 46 : B1000 / 1000.0;
  return n.emit_all(
      "cosine_window", {},
      {{"count", count}, {"periodic", Expr(periodic != 0)}, {"a", a}, {"b", b}, {"c", C1000 / 1000.0}, {"to", to}});
}

Result<Values> dft(const NodeView& n) {
  if (!n.has(0) || n.rank(0) < 2) return n.error("the signal needs rank 2 or more");
  int64_t attr = 1;
  if (n.opset() >= 20) {
    DLC_TRY(const Expr given, size_or(n, 2, "axis", Expr(-2)));
    if (!given.constant()) return n.error("the axis must be known when compiling");
    attr = *given.constant();
  } else {
    DLC_TRY(attr, n.attr_int("axis", 1));
  }
  DLC_TRY(const int64_t axis, checked_axis(n, attr, n.rank(0)));
  if (axis == n.rank(0) - 1) return n.error("the last axis holds the parts of a number");
  DLC_TRY(const int64_t inverse, n.attr_int("inverse", 0));
  DLC_TRY(const int64_t onesided, n.attr_int("onesided", 0));
  const Expr given = n.type(0).shape[static_cast<size_t>(axis)];
  if (inverse != 0 && onesided != 0) {  // half a spectrum becomes a real signal
    DLC_TRY(const Expr length, size_or(n, 1, "dft_length", 2 * (given - 1)));
    return n.emit_all("irdft", {n.in(0)}, {{"axis", Expr(axis)}, {"length", length}});
  }
  DLC_TRY(const Expr length, size_or(n, 1, "dft_length", given));
  return n.emit_all("dft", {n.in(0)},
                    {{"axis", Expr(axis)},
                     {"length", length},
                     {"parts", n.type(0).shape.back()},
                     {"backward", Expr(inverse != 0)},
                     {"onesided", Expr(onesided != 0)}});
}

Result<Values> stft(const NodeView& n) {
  if (!n.has(0) || (n.rank(0) != 2 && n.rank(0) != 3)) return n.error("the signal needs rank 3");
  DLC_TRY(const Expr step, known_scalar(n, 1, "frame_step"));
  if (!n.has(2) && !n.has(3)) return n.error("a window or a frame length is needed");
  if (n.has(2) && n.rank(2) != 1)
    return n.error(fmt::format("the window is {}, a list is needed", to_string(n.type(2))));
  DLC_TRY(const Expr length, size_or(n, 3, "frame_length", n.has(2) ? n.type(2).shape[0] : Expr(0)));
  DLC_TRY(const int64_t onesided, n.attr_int("onesided", 1));
  ValueId signal = n.in(0);
  if (n.rank(0) == 2) {
    DLC_TRY(signal, n.emit("unsqueeze", {signal}, {{"axes", std::vector<Expr>{Expr(2)}}}));
  }
  ValueId window = n.in(2);
  if (window == kNoValue) {
    DLC_TRY(const ValueId one, n.scalar(n.type(0).dtype, 1));
    DLC_TRY(window, n.emit("expand", {one}, {{"shape", std::vector<Expr>{length}}}));
  }
  return n.emit_all("stft", {signal, window},
                    {{"step", step},
                     {"length", length},
                     {"parts", n.graph().value(signal).type.shape.back()},
                     {"onesided", Expr(onesided != 0)}});
}

Result<Values> mel_weights(const NodeView& n) {
  DLC_TRY(const Expr bins, known_scalar(n, 0, "num_mel_bins"));
  DLC_TRY(const Expr length, known_scalar(n, 1, "dft_length"));
  DLC_TRY(const Expr rate, known_scalar(n, 2, "sample_rate"));
  DLC_TRY(const Tensor low, n.constant(3, "lower_edge_hertz"));
  DLC_TRY(const Tensor high, n.constant(4, "upper_edge_hertz"));
  if (low.elements() != 1 || high.elements() != 1) return n.error("an edge must be one number");
  DLC_TRY(const DType to, output_type(n));
  return n.emit_all("mel_weights", {},
                    {{"bins", bins},
                     {"length", length},
                     {"rate", rate},
                     {"low", low.get_double(0)},
                     {"high", high.get_double(0)},
                     {"to", to}});
}

// The pool lists all 1-grams, then all 2-grams, ...; an n-gram's place in the result is its entry in ngram_indexes.
Result<Values> tf_idf(const NodeView& n) {
  if (!n.has(0) || !n.type(0).dtype.is_int() || n.has_attr("pool_strings"))
    return n.error("strings are not supported, only integers");
  DLC_TRY(const auto pool, n.attr_ints("pool_int64s", {}));
  DLC_TRY(const auto counts, n.attr_ints("ngram_counts", {}));
  DLC_TRY(const auto indexes, n.attr_ints("ngram_indexes", {}));
  DLC_TRY(const int64_t shortest, n.attr_int("min_gram_length", {}));
  DLC_TRY(const int64_t longest, n.attr_int("max_gram_length", {}));
  DLC_TRY(const int64_t skips, n.attr_int("max_skip_count", {}));
  DLC_TRY(const std::string mode, n.attr_string("mode", {}));
  if (shortest < 1 || longest < shortest || longest > 64 || indexes.empty() || skips < 0)
    return n.error("the lengths of n-grams are wrong");
  int64_t places = 0;
  constexpr int64_t kMostTokens = 1 << 24;
  for (const int64_t i : indexes) {
    if (i < 0 || i >= kMostTokens / longest) return n.error(fmt::format("'ngram_indexes' holds {}", i));
    places = std::max(places, i + 1);
  }
  // No n-gram of 0 tokens matches; one of more tokens than the pool's widest neither.
  DLC_TRY(Tensor tokens, Tensor::make(kS64, {places, longest}));
  DLC_TRY(Tensor lengths, Tensor::make(kS64, {places}));
  for (int64_t i = 0; i < places; ++i) lengths.set_int(i, longest + 1);
  size_t gram = 0;
  for (size_t size = 1; size <= counts.size(); ++size) {
    const int64_t from = counts[size - 1];
    const int64_t to = size < counts.size() ? counts[size] : static_cast<int64_t>(pool.size());
    if (from < 0 || to < from || to > static_cast<int64_t>(pool.size())) return n.error("'ngram_counts' is wrong");
    const auto length = static_cast<int64_t>(size);
    for (int64_t at = from; at + length <= to; at += length, ++gram) {
      if (gram >= indexes.size()) return n.error("'ngram_indexes' does not fit the pool");
      if (length < shortest || length > longest) continue;
      lengths.set_int(indexes[gram], length);
      for (int64_t j = 0; j < length; ++j)
        tokens.set_int(indexes[gram] * longest + j, pool[static_cast<size_t>(at + j)]);
    }
  }
  DLC_TRY(ValueId y,
          n.emit("count_ngrams", {n.in(0), n.add_constant(std::move(tokens)), n.add_constant(std::move(lengths))},
                 {{"skips", Expr(skips)}}));
  if (mode == "TF") return Values{y};
  if (mode != "IDF" && mode != "TFIDF") return n.error(fmt::format("attribute 'mode' is '{}'", mode));
  std::vector<double> given(indexes.size(), 1.0);
  DLC_TRY(given, n.attr_floats("weights", given));
  if (given.size() != indexes.size()) return n.error("'weights' does not fit 'ngram_indexes'");
  DLC_TRY(Tensor weights, Tensor::make(kF32, {places}));
  for (size_t i = 0; i < given.size(); ++i) weights.set_double(indexes[i], given[i]);
  if (mode == "IDF") {
    DLC_TRY(const ValueId one, n.scalar(kF32, 1));
    DLC_TRY(y, n.emit("min_n", {y, one}));
  }
  return n.emit_all("mul", {y, n.add_constant(std::move(weights))});
}

constexpr OpEntry kTable[] = {
    {"", "HannWindow", window<500, 500, 0>, "t"},
    {"", "HammingWindow", window<543, 457, 0>, "t"},
    {"", "BlackmanWindow", window<420, 500, 80>, "t"},
    {"", "DFT", dft, "tT", "", 19},
    {"", "DFT", dft, "tTT"},
    {"", "STFT", stft, "ttTT"},
    {"", "MelWeightMatrix", mel_weights, "ttttt"},
    {"", "TfIdfVectorizer", tf_idf, "t", "weights"},
    {.op = "Det", .record = "det"},
};

}  // namespace

std::span<const OpEntry> signal_ops() { return kTable; }

}  // namespace dlc::onnx_frontend
