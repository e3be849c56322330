// Functions and launches of a kernel's statements.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "plugins/cuda/codegen/codegen.h"
#include "plugins/cuda/codegen/writer.h"

namespace dlc::cuda {

namespace {

using lower::Lowered;

constexpr int kWarp = 32, kBlock = 256;
constexpr int64_t kLongReduction = 256;  // iterations that are worth a block
constexpr int64_t kFewPoints = 1 << 14;  // points below which there are not enough threads otherwise

// The symbols of a kernel that are bound from outside: every name in its shapes and extents that is no loop.
std::vector<std::string> symbols_of(const Kernel& k) {
  std::set<std::string> used;
  std::vector<std::string> loops;
  const auto use = [&](const Expr& e) {
    for (const std::string& s : e.symbols())
      if (std::ranges::find(loops, s) == loops.end()) used.insert(s);
  };
  for (const KernelTensor& t : k.tensors) {
    for (const Expr& e : t.shape) use(e);
    if (!t.view) continue;
    use(t.view->byte_offset);
    for (const Expr& e : t.view->byte_strides) use(e);
  }
  const auto enter = [&](const std::vector<Loop>& all) {
    for (const Loop& l : all) use(l.extent);
    for (const Loop& l : all) loops.push_back(l.var);
  };
  const std::function<void(const Val&)> value = [&](const Val& v) {
    const size_t depth = loops.size();
    if (v->kind == ValKind::reduce) enter(v->loops);
    if (v->kind == ValKind::index) use(v->index);
    for (const Val& a : v->args) value(a);
    loops.resize(depth);
  };
  const std::function<void(const std::vector<Stmt>&)> statements = [&](const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      const size_t depth = loops.size();
      enter(s.loops);
      if (s.value) value(s.value);
      for (const Val& i : s.indices) value(i);
      statements(s.body);
      loops.resize(depth);
    }
  };
  statements(k.body);
  return {used.begin(), used.end()};
}

class KernelText {
 public:
  KernelText(const Kernel& k, Names& functions, std::string& text)
      : k_(k), functions_(functions), text_(text), symbols_(symbols_of(k)) {}

  Result<KernelCode> run() {
    walk(k_.body, [&](const Stmt& s) { statements_ += s.kind == Stmt::Kind::assign; });
    text_ += fmt::format("\n// ---- kernel {}", comment_text(k_.name));
    if (!k_.locations.empty()) {
      std::vector<std::string> nodes;
      for (size_t i = 0; i < std::min<size_t>(k_.locations.size(), 8); ++i)
        nodes.push_back(comment_text(k_.locations[i], 60));
      text_ += fmt::format(": {}{}", fmt::join(nodes, ", "), k_.locations.size() > 8 ? ", ..." : "");
    }
    text_ += "\n";
    KernelCode code;
    std::vector<Loop> around;
    DLC_TRY(code.steps, steps(k_.body, around));
    return code;
  }

 private:
  Result<std::vector<Step>> steps(const std::vector<Stmt>& body, std::vector<Loop>& around) {
    std::vector<Step> out;
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::assign) {
        Step step;
        DLC_TRY(step.launch, assign(s, around));
        out.push_back(std::move(step));
        continue;
      }
      DLC_TRY(Step step, seq(s, 0, around));
      out.push_back(std::move(step));
    }
    return out;
  }

  Result<Step> seq(const Stmt& s, size_t depth, std::vector<Loop>& around) {
    const Loop& loop = s.loops[depth];
    Step step{.launch = {}, .variable = loop.var, .extent = loop.extent, .backwards = s.step < 0, .body = {}};
    around.push_back(loop);
    if (depth + 1 < s.loops.size()) {
      DLC_TRY(Step inner, seq(s, depth + 1, around));
      step.body.push_back(std::move(inner));
    } else {
      DLC_TRY(step.body, steps(s.body, around));
    }
    around.pop_back();
    return step;
  }

  // The reduction that a block shares: one that runs once for each point, is long and keeps no rounded accumulator.
  static const ValNode* shared_reduction(const Lowered& l, const Expr& points) {
    const auto count = points.constant();
    if (!count || *count > kFewPoints) return nullptr;
    const ValNode* found = nullptr;
    const std::function<void(const Val&)> look = [&](const Val& v) {
      if (v->kind != ValKind::reduce) {
        for (const Val& a : v->args) look(a);
        return;
      }
      const bool is_position = v->reduce_op() == ReduceOp::argmax || v->reduce_op() == ReduceOp::argmin;
      const auto n = v->loops.empty() ? std::nullopt : v->loops.front().extent.constant();
      Expr all = 1;
      for (const Loop& loop : v->loops) all = all * loop.extent;
      const bool is_long = all.constant() && *all.constant() >= kLongReduction && n && *n >= kWarp;
      if (found == nullptr && is_long && !is_position && !v->to.is_narrow_float()) found = v.get();
    };
    look(l.value());
    return found;
  }

  Result<Launch> assign(const Stmt& s, const std::vector<Loop>& around) {
    DLC_TRY(Lowered l, Lowered::make(k_, s, around));
    l.collapse_loops();
    Launch launch;
    launch.statement = ++statement_;
    launch.function =
        functions_.fresh("dlc_" + k_.name + (statements_ > 1 ? fmt::format("_s{}", launch.statement) : ""));

    Names names;
    names.fresh(launch.function);
    ExprText exprs(l.ranges());
    std::vector<std::string> parameters;
    const std::vector<std::string> tensors = tensor_parameters(s, l, names, launch, parameters);
    launch.symbols = symbols_;
    for (const Loop& loop : around) launch.symbols.push_back(loop.var);
    for (const std::string& symbol : launch.symbols) {
      const std::string name = names.fresh(symbol);
      exprs.bind(symbol, {name, true});
      parameters.push_back("long long " + name);
    }

    // Loops whose extents depend on other loops of the statement run inside a thread.
    std::vector<Loop> grid, inner;
    for (const Loop& loop : l.loops()) {
      const bool depends = std::ranges::any_of(l.loops(), [&](const Loop& o) { return loop.extent.mentions(o.var); });
      (depends ? inner : grid).push_back(loop);
    }
    launch.points = 1;
    for (const Loop& loop : grid) launch.points = launch.points * loop.extent;
    if (!launch.points.valid()) return fail({}, "kernel " + k_.name + ": the number of points overflows");
    const ValNode* shared = inner.empty() ? shared_reduction(l, launch.points) : nullptr;
    launch.block_per_point = shared != nullptr;
    if (const auto n = launch.points.constant(); n && shared == nullptr)
      launch.threads = static_cast<int>(std::clamp<int64_t>((*n + kWarp - 1) / kWarp * kWarp, kWarp, kBlock));

    std::string body;
    const Interval count = bounds(launch.points, l.ranges());
    const bool is_long = count.hi == Interval::kPosInf || count.hi >= INT32_MAX;
    grid_loop(launch, grid, exprs, names, is_long, body);
    int indent = 2;
    for (const Loop& loop : inner) {
      const std::string name = names.fresh(loop.var);
      const std::string extent = exprs(loop.extent).text.operand();
      const bool wide = bounds(loop.extent, l.ranges()).hi >= INT32_MAX;
      exprs.bind(loop.var, {name, wide});
      body += fmt::format("{0:{1}}for ({2} {3} = 0; {3} < {4}; ++{3}) {{\n", "", 2 * indent++,
                          wide ? "long long" : "int", name, extent);
    }
    Writer writer(l, s.tensor, exprs, names, tensors, indent);
    writer.share(shared);
    writer.store(launch.statement, shared != nullptr ? "threadIdx.x == 0" : "");
    body += writer.text();
    while (indent > 1) body += fmt::format("{:{}}}}\n", "", 2 * --indent);
    if (const std::string& e = writer.error().empty() ? exprs.error() : writer.error(); !e.empty())
      return fail({}, "kernel " + k_.name + ": " + e);
    launch.has_status = writer.reports();
    if (launch.has_status) parameters.emplace_back("unsigned* status");
    text_ += fmt::format("\n// {}\nextern \"C\" __global__ void __launch_bounds__({}) {}(",
                         comment_text(statement_text(s)), launch.threads, launch.function);
    wrap_list(parameters);
    text_ += ") {\n" + body + "}\n";
    text_ += fmt::format("DLC_KERNEL_EXPORT({})\n", launch.function);
    return launch;
  }

  // Two parameters to a line or so.
  void wrap_list(const std::vector<std::string>& parameters) {
    size_t column = 100;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (column + parameters[i].size() > 100) {
        text_ += "\n    ";
        column = 4;
      } else {
        text_ += " ";
      }
      text_ += parameters[i] + (i + 1 < parameters.size() ? "," : "");
      column += parameters[i].size() + 2;
    }
  }

  // Pointers of the tensors that the statement uses; returns the name of each tensor of the kernel that is one.
  std::vector<std::string> tensor_parameters(const Stmt& s, const Lowered& l, Names& names, Launch& launch,
                                             std::vector<std::string>& parameters) const {
    std::vector<bool> used(k_.tensors.size(), false);
    const auto use = [&](const Val& v) {
      walk(v, [&](const ValNode& n) {
        if (n.kind == ValKind::read) used[static_cast<size_t>(l.access(&n).root)] = true;
      });
    };
    use(l.value());
    for (const Val& i : s.indices) use(i);
    const auto target = static_cast<size_t>(l.store().root);
    const bool reads_target = used[target];
    used[target] = true;
    std::vector<std::string> result(k_.tensors.size());
    for (size_t t = 0; t < k_.tensors.size(); ++t) {
      if (!used[t]) continue;
      result[t] = names.fresh(k_.tensors[t].name);
      launch.tensors.push_back(static_cast<int>(t));
      const std::string type = fmt::format("{}{}*", t == target ? "" : "const ", storage_name(k_.tensors[t].dtype));
      parameters.push_back(fmt::format("{}{} {}", type, t == target && reads_target ? "" : " __restrict__", result[t]));
    }
    return result;
  }

  // The loop over the points of this thread or block, and the loop variables of one.
  static void grid_loop(const Launch& launch, const std::vector<Loop>& grid, ExprText& exprs, Names& names,
                        bool is_long, std::string& body) {
    const char* type = is_long ? "long long" : "unsigned";
    const char* wide = is_long ? "(long long)" : "";
    const std::string points = exprs(launch.points).text.operand();
    const std::string bound = is_long ? points : launch.points.constant() ? points + "u" : "(unsigned)" + points;
    if (launch.block_per_point)
      body += fmt::format("  for ({0} p = blockIdx.x; p < {1}; p += gridDim.x) {{\n", type, bound);
    else
      body += fmt::format(
          "  for ({0} p = {2}blockIdx.x * blockDim.x + threadIdx.x; p < {1}; p += {2}gridDim.x * blockDim.x) {{\n",
          type, bound, wide);
    Expr inner = 1;
    std::vector<std::string> lines;
    for (size_t i = grid.size(); i-- > 0;) {
      const std::string name = names.fresh(grid[i].var);
      const std::string divisor = literal_or_text(inner, exprs, is_long);
      const std::string extent = literal_or_text(grid[i].extent, exprs, is_long);
      std::string value = "p";
      if (!inner.is(1)) value += " / " + divisor;
      if (i > 0) value += " % " + extent;
      if (grid[i].extent.is(1)) value = "0";
      const char* var_type = is_long ? "long long" : "int";
      lines.push_back(
          fmt::format("    const {} {} = {};\n", var_type, name,
                      is_long || value == "p" || value == "0" ? value : fmt::format("({})({})", var_type, value)));
      exprs.bind(grid[i].var, {name, is_long});
      inner = inner * grid[i].extent;
    }
    for (size_t i = lines.size(); i-- > 0;) body += lines[i];
  }

  static std::string literal_or_text(const Expr& e, ExprText& exprs, bool is_long) {
    const std::string s = exprs(e).text.operand();
    return is_long ? s : e.constant() ? s + "u" : "(unsigned)" + s;
  }

  std::string statement_text(const Stmt& s) const {
    std::string loops, indices;
    for (const Loop& l : s.loops)
      loops += fmt::format("{}{} < {}", loops.empty() ? "" : ", ", l.var, to_string(l.extent));
    for (const Val& i : s.indices) indices += (indices.empty() ? "" : ", ") + print(i, k_);
    return fmt::format("{}{}[{}] = {}", loops.empty() ? "" : "for " + loops + ": ",
                       k_.tensors[static_cast<size_t>(s.tensor)].name, indices, print(s.value, k_));
  }

  const Kernel& k_;
  Names& functions_;
  std::string& text_;
  std::vector<std::string> symbols_;
  int statements_ = 0, statement_ = 0;
};

}  // namespace

Result<Module> generate(std::span<const Kernel* const> kernels) {
  Module m;
  m.text = "#include \"dlc_dev.h\"\n";
  Names functions;
  for (const Kernel* k : kernels) {
    DLC_TRY(KernelCode code, KernelText(*k, functions, m.text).run());
    m.kernels.push_back(std::move(code));
  }
  return m;
}

}  // namespace dlc::cuda
