// Folding: a node whose results are known before anything runs becomes a constant.
//
//   %1 = add(@two, @three)     ->
//   %2 = mul(%x, %1)               %2 = mul(%x, @five)
//
// Known are the results of nodes with constant inputs only (the interpreter computes them) and small integer tensors
// whose elements follow from shapes (value inference). The budget of the context keeps a model from asking for more
// than a compilation should cost. dequantize_linear stays: it is how a model states its integers, and commit-numerics
// reads them.
#include <algorithm>

#include "core/graph/value_inference.h"
#include "core/passes/passes.h"
#include "dlc/base/checked.h"

namespace dlc {

namespace {

// Element operations a kernel takes: its loops with those of its reductions. nullopt if not constant or enormous.
class Work {
 public:
  static std::optional<int64_t> of(const Kernel& k) {
    Work w;
    w.body(k.body, 1);
    return w.total_;
  }

 private:
  std::optional<int64_t> times(std::optional<int64_t> n, const std::vector<Loop>& loops) {
    for (const Loop& l : loops) {
      const auto extent = l.extent.constant();
      n = n && extent ? checked_mul(*n, *extent) : std::nullopt;
    }
    return n;
  }
  void add(std::optional<int64_t> n) { total_ = total_ && n ? checked_add(*total_, *n) : std::nullopt; }
  void value(const Val& v, std::optional<int64_t> n) {
    if (v->kind == ValKind::reduce) {
      n = times(n, v->loops);
      add(n);
    }
    for (const Val& a : v->args) value(a, n);
  }
  void body(const std::vector<Stmt>& statements, std::optional<int64_t> n) {
    for (const Stmt& s : statements) {
      const auto points = times(n, s.loops);
      add(points);
      if (s.kind == Stmt::Kind::seq)
        body(s.body, points);
      else
        value(s.value, points);
    }
  }

  std::optional<int64_t> total_ = 0;
};

class Folder {
 public:
  Folder(Graph& g, PassContext& context)
      : g_(g), context_(context), values_(g), operations_left_(context.fold_operations) {}

  Result<> run(bool keep_quantized) {
    for (NodeId n : g_.order()) {
      if (!g_.node(n).bodies.empty()) continue;  // nobody knows how long a loop runs
      if (keep_quantized && g_.node(n).op == "dequantize_linear") continue;
      if (fold_by_inference(n)) continue;
      DLC_CHECK(fold_by_running(n));
    }
    return {};
  }

 private:
  void replace(NodeId n, std::vector<Tensor> results) {
    const std::vector<ValueId> outputs = g_.node(n).outputs;
    g_.erase(n);  // gives its results' names to the constants
    for (size_t r = 0; r < outputs.size(); ++r)
      g_.replace_uses(outputs[r], g_.add_constant(g_.value(outputs[r]).name, std::move(results[r])));
    ++context_.counts["folded"];
  }

  bool fold_by_inference(NodeId n) {
    const Node& node = g_.node(n);
    std::vector<Tensor> results;
    for (ValueId v : node.outputs) {
      const TensorType& type = g_.value(v).type;
      auto known = values_.known(v);
      if (!known || std::ranges::any_of(*known, [](const Expr& e) { return !e.constant(); })) return false;
      std::vector<int64_t> shape;
      for (const Expr& d : type.shape) shape.push_back(*d.constant());
      auto t = Tensor::make(type.dtype, shape);
      if (!t) return false;
      for (size_t i = 0; i < known->size(); ++i) t->set_int(static_cast<int64_t>(i), *(*known)[i].constant());
      results.push_back(*std::move(t));
    }
    replace(n, std::move(results));
    return true;
  }

  bool affordable(NodeId n) {
    for (ValueId v : g_.node(n).outputs) {
      int64_t elements = 1;
      for (const Expr& d : g_.value(v).type.shape) {
        const auto extent = d.constant();
        const auto more = extent ? checked_mul(elements, *extent) : std::nullopt;
        if (!more || *more > context_.fold_elements) return false;
        elements = *more;
      }
    }
    auto kernel = g_.kernel(n);
    const auto work = kernel ? Work::of(*kernel) : std::nullopt;
    if (!work || *work > operations_left_) return false;
    operations_left_ -= *work;
    return true;
  }

  Result<> fold_by_running(NodeId n) {
    const Node& node = g_.node(n);
    for (ValueId v : node.inputs)
      if (v != kNoValue && !g_.value(v).constant) return {};
    if (!affordable(n)) {
      ++context_.counts["too expensive"];
      return {};
    }
    Graph one;
    one.records = g_.records;
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs)
      inputs.push_back(v == kNoValue ? kNoValue : one.add_constant(g_.value(v).name, *g_.value(v).constant));
    DLC_TRY(NodeId copy, one.add_node(node.op, std::move(inputs), node.attrs, node.locations));
    one.outputs = one.node(copy).outputs;
    auto results = run_graph(one, {});
    if (!results) {  // an error at run time (an index out of range, say) is for the run to report, if it gets there
      ++context_.counts["failing"];
      return {};
    }
    replace(n, *std::move(results));
    return {};
  }

  Graph& g_;
  PassContext& context_;
  ValueInference values_;
  int64_t operations_left_;
};

}  // namespace

Result<> fold(Graph& g, PassContext& context) { return Folder(g, context).run(true); }
Result<> fold_quantized(Graph& g, PassContext& context) { return Folder(g, context).run(false); }

}  // namespace dlc
