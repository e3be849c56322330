#include "dlc/passes/reduce.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/passes/rebuild.h"

namespace dlc {

namespace {

class Reducer {
 public:
  Reducer(Sample start, const StillFails& fails, const ReduceOptions& options)
      : now_(std::move(start)), fails_(fails), options_(options), left_(options.attempts) {}

  Sample run() {
    for (bool progress = true; progress && left_ > 0;) {
      progress = false;
      for (const auto step :
           {&Reducer::outputs, &Reducer::passes, &Reducer::cuts, &Reducer::bypasses, &Reducer::symbols,
            &Reducer::constants, &Reducer::attributes, &Reducer::extents, &Reducer::numbers})
        while (left_ > 0 && (this->*step)()) progress = true;
    }
    return std::move(now_);
  }

 private:
  bool accept(const Edits& edits) { return !is_over() && accept(rebuild(now_, edits)); }
  bool accept(Result<Sample> candidate) {
    if (is_over() || !candidate) return false;
    --left_;
    if (!fails_(*candidate)) return false;
    now_ = *std::move(candidate);
    return true;
  }
  bool is_over() {
    if (left_ > 0 && options_.stop && options_.stop()) left_ = 0;
    return left_ <= 0;
  }
  Edits same() const { return no_edits(now_.graph); }

  // What every node computes; zeros where the interpreter cannot run the graph.
  std::map<ValueId, Tensor> values() const {
    std::map<ValueId, Tensor> all;
    for (const NodeId n : now_.graph.order())
      for (const ValueId v : now_.graph.node(n).outputs)
        if (auto zeros = zeros_of(now_.graph.value(v).type)) all[v] = *std::move(zeros);
    if (!options_.interpret) return all;
    [[maybe_unused]] const auto as_far_as_it_goes =
        run_graph(now_.graph, now_.inputs, {}, [&](NodeId n, std::span<const Tensor> results) {
          for (size_t r = 0; r < results.size(); ++r) all[now_.graph.node(n).outputs[r]] = results[r];
        });
    return all;
  }

  // With symbols at what the inputs give them.
  std::optional<Tensor> zeros_of(const TensorType& type) const {
    Bindings known;
    for (size_t i = 0; i < now_.inputs.size(); ++i) {
      const auto& shape = now_.graph.value(now_.graph.inputs[i]).type.shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (const auto s = shape[d].as_symbol()) known.emplace(std::string(*s), now_.inputs[i].shape()[d]);
    }
    std::vector<int64_t> extents;
    for (const Expr& e : type.shape) {
      const auto extent = evaluate(e, known);
      if (!extent) return std::nullopt;
      extents.push_back(*extent);
    }
    auto t = Tensor::make(type.dtype, std::move(extents));
    return t ? std::optional(*std::move(t)) : std::nullopt;
  }

  // What a pass leaves, when it is less.
  bool passes() {
    for (const auto& simplify : options_.simplify) {
      auto graph = simplify(now_.graph);
      if (!graph || graph->order().size() >= now_.graph.order().size()) continue;
      if (graph->inputs.size() != now_.inputs.size()) continue;
      const Sample made{*std::move(graph), now_.inputs};
      if (accept(rebuild(made, no_edits(made.graph)))) return true;
    }
    return false;
  }

  // One output alone: an earlier value, or one of several.
  bool outputs() {
    const Graph& g = now_.graph;
    const bool is_one = g.outputs.size() == 1;
    const NodeId last = is_one ? g.value(g.outputs[0]).producer : kNoNode;
    for (const NodeId n : g.order()) {
      if (is_one && (last == kNoNode || n == last)) break;  // what comes now is no smaller
      for (const ValueId v : g.node(n).outputs) {
        Edits e;
        e.outputs = {{v, "y"}};
        if (accept(e)) return true;
      }
    }
    for (size_t i = 0; i < g.outputs.size() && g.outputs.size() > 1; ++i) {
      Edits e = same();
      e.outputs.erase(e.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      if (accept(e)) return true;
    }
    return false;
  }

  // A node's results become inputs, the last node first.
  bool cuts() {
    const auto known = values();
    std::vector<NodeId> order = now_.graph.order();
    std::ranges::reverse(order);
    for (const NodeId n : order) {
      Edits e = same();
      for (const ValueId v : now_.graph.node(n).outputs)
        if (const auto t = known.find(v); t != known.end()) e.given[v] = t->second;
      if (!e.given.empty() && accept(e)) return true;
    }
    return false;
  }

  // An operand of the same type stands for the result.
  bool bypasses() {
    const Graph& g = now_.graph;
    for (const NodeId n : g.order())
      for (const ValueId in : g.node(n).inputs) {
        const ValueId out = g.node(n).outputs[0];
        if (in == kNoValue || g.value(in).type != g.value(out).type) continue;
        Edits e = same();
        e.instead[out] = in;
        if (accept(e)) return true;
      }
    return false;
  }

  bool symbols() {
    const Graph& g = now_.graph;
    for (size_t i = 0; i < g.inputs.size(); ++i) {
      const auto& shape = g.value(g.inputs[i]).type.shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        const auto symbol = shape[d].as_symbol();
        if (!symbol) continue;
        Edits e = same();
        e.symbols[std::string(*symbol)] = Expr(now_.inputs[i].shape()[d]);
        if (accept(e)) return true;
      }
    }
    return false;
  }

  bool constants() {
    for (const ValueId v : now_.graph.inputs) {
      Edits e = same();
      e.constants.insert(v);
      if (accept(e)) return true;
    }
    return false;
  }

  bool attributes() {
    const Graph& g = now_.graph;
    for (const NodeId n : g.order())
      for (const auto& [name, value] : g.node(n).attrs) {
        Edits e = same();
        e.defaults.insert({n, name});
        if (accept(e)) return true;
      }
    return false;
  }

  // Everywhere an extent occurs in inputs and constants, it becomes a smaller one; so do equal numbers in lists.
  bool extents() {
    std::map<ValueId, Tensor> leaves = leaf_tensors();
    std::set<int64_t, std::greater<>> present;
    for (const auto& [v, t] : leaves) present.insert(t.shape().begin(), t.shape().end());
    for (const int64_t from : present)
      for (const int64_t to : {int64_t{1}, from / 2, from - 1}) {
        if (to < 1 || to >= from) continue;
        Edits e = same();
        for (const auto& [v, t] : leaves)
          if (std::ranges::find(t.shape(), from) != t.shape().end()) e.given[v] = shrunk(t, from, to);
        if (accept(e)) return true;
        e.extents[from] = to;
        if (accept(e)) return true;
      }
    for (const auto& [v, t] : leaves)  // one dim of one leaf
      for (size_t d = 0; d < t.shape().size(); ++d)
        for (const int64_t to : {int64_t{1}, t.shape()[d] / 2, t.shape()[d] - 1}) {
          if (to < 1 || to >= t.shape()[d]) continue;
          Edits e = same();
          e.given[v] = cropped(t, d, to);
          if (accept(e)) return true;
        }
    return false;
  }

  // Tensors of one number, then of whole numbers.
  bool numbers() {
    for (const auto& [v, t] : leaf_tensors()) {
      for (const double fill : {0.0, 1.0}) {
        if (is_filled(t, 0) || is_filled(t, 1)) break;
        Tensor simple = t;
        for (int64_t i = 0; i < t.elements(); ++i) simple.set_double(i, fill);
        if (accept_tensor(v, std::move(simple))) return true;
      }
      Tensor whole = t;
      bool changed = false;
      for (int64_t i = 0; t.dtype().is_float() && i < t.elements(); ++i) {
        const double x = t.get_double(i), r = std::round(x);
        if (std::isfinite(x) && r != x) {
          whole.set_double(i, r);
          changed = true;
        }
      }
      if (changed && accept_tensor(v, std::move(whole))) return true;
    }
    return false;
  }

  bool accept_tensor(ValueId v, Tensor t) {
    Edits e = same();
    e.given[v] = std::move(t);
    return accept(e);
  }

  static bool is_filled(const Tensor& t, double with) {
    for (int64_t i = 0; i < t.elements(); ++i)
      if (t.get_double(i) != with) return false;
    return true;
  }

  std::map<ValueId, Tensor> leaf_tensors() const {
    std::map<ValueId, Tensor> leaves;
    const Graph& g = now_.graph;
    for (size_t i = 0; i < g.inputs.size(); ++i) leaves[g.inputs[i]] = now_.inputs[i];
    for (size_t v = 0; v < g.value_count(); ++v)
      if (const auto& c = g.value(static_cast<ValueId>(v)).constant) leaves[static_cast<ValueId>(v)] = *c;
    return leaves;
  }

  static Tensor shrunk(Tensor t, int64_t from, int64_t to) {
    for (size_t d = 0; d < t.shape().size(); ++d)
      if (t.shape()[d] == from) t = cropped(t, d, to);
    return t;
  }

  // The first elements along dim d.
  static Tensor cropped(const Tensor& t, size_t d, int64_t extent) {
    std::vector<int64_t> shape = t.shape();
    shape[d] = extent;
    auto out = Tensor::make(t.dtype(), shape);
    int64_t inner = t.dtype().bytes(), outer = 1;
    for (size_t i = d + 1; i < shape.size(); ++i) inner *= shape[i];
    for (size_t i = 0; i < d; ++i) outer *= shape[i];
    for (int64_t o = 0; o < outer; ++o)
      std::copy_n(t.bytes() + o * t.shape()[d] * inner, extent * inner, out->mutable_bytes() + o * extent * inner);
    return *std::move(out);
  }

  Sample now_;
  const StillFails& fails_;
  const ReduceOptions& options_;
  int left_;
};

}  // namespace

Sample reduce(Sample start, const StillFails& still_fails, const ReduceOptions& options) {
  return Reducer(std::move(start), still_fails, options).run();
}

}  // namespace dlc
