#include "core/map/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/kernel/fit.h"
#include "core/map/indices.h"
#include "core/map/value.h"
#include "core/passes/copy.h"
#include "core/program/pieces.h"
#include "dlc/base/checked.h"
#include "dlc/kernel/access.h"

namespace dlc::map {

int root_buffer(const Program& p, int buffer) {
  while (p.buffers[static_cast<size_t>(buffer)].alias) buffer = p.buffers[static_cast<size_t>(buffer)].alias->base;
  return buffer;
}

namespace {

using Values = std::map<std::string, Expr, std::less<>>;

class TargetMaker {
 public:
  // Of a kernel that stores once into its result.
  TargetMaker(const Program& p, const Call& call, Kernel kernel, int64_t lanes) : p_(p), call_(call), lanes_(lanes) {
    out_.kernel = std::move(kernel);
  }

  // More than one where a division of its loops has a remainder.
  Result<> run(std::vector<Target>& targets) {
    where_.node = call_.locations.empty() ? out_.kernel.name : call_.locations.front();
    DLC_CHECK(tensors());
    DLC_CHECK(inline_all());
    fit_indices();
    fold_constants();
    DLC_CHECK(take_fills());
    DLC_CHECK(resolve_views());
    return finish(targets);
  }

 private:
  Result<> finish(std::vector<Target>& targets) {
    std::vector<TargetMaker> rest;
    DLC_CHECK(split_divisions(rest));
    DLC_CHECK(split_lanes());
    DLC_CHECK(fill_sums());
    out_.value = shared(canonical(out_.value, out_.kernel, out_.ranges));
    out_.kernel.body.clear();
    targets.push_back(std::move(out_));
    for (TargetMaker& r : rest) DLC_CHECK(r.finish(targets));
    return {};
  }

  [[nodiscard]] std::unexpected<Error> refuse(const std::string& why) const { return fail(where_, why); }
  bool is_data(int tensor) const { return !out_.constants.contains(tensor); }

  Result<> tensors() {
    size_t next = 0;
    for (size_t t = 0; t < out_.kernel.tensors.size(); ++t) {
      const KernelTensor& tensor = out_.kernel.tensors[t];
      std::vector<int64_t> shape;
      for (const Expr& e : tensor.shape) {
        const auto n = e.constant();
        if (!n)
          return fail(where_,
                      fmt::format("its sizes depend on {}, and a program has fixed ones", fmt::join(e.symbols(), ", ")),
                      fmt::format("--dim {}=...", fmt::join(e.symbols(), "=... --dim ")));
        shape.push_back(*n);
      }
      int buffer = -1;
      if (tensor.role != Role::temp && !tensor.view) buffer = call_.buffers[next++];
      if (buffer >= 0 && p_.buffers[static_cast<size_t>(buffer)].kind == BufferKind::constant) {
        const Tensor* w = p_.weight(p_.buffers[static_cast<size_t>(root_buffer(p_, buffer))].name);
        if (w == nullptr) return refuse("the value of the constant " + tensor.name + " is missing");
        DLC_TRY(Tensor value, w->reshaped(shape));
        out_.constants.emplace(static_cast<int>(t), std::move(value));
      }
      out_.buffers.push_back(buffer);
      out_.shapes.push_back(std::move(shape));
    }
    if (out_.kernel.outputs.size() != 1) return refuse("the kernel has several results");
    out_.output = out_.kernel.outputs[0];
    return {};
  }

  // ---- one value

  struct Definition {
    std::vector<std::string> loops;
    Val value;
  };

  Result<> inline_all() {
    std::map<int, Definition> temps;
    for (const Stmt& s : out_.kernel.body) {
      if (s.kind != Stmt::Kind::assign) return refuse("a loop that runs in order");
      Definition d;
      for (const Val& i : s.indices) {
        const auto e = val::as_expr(i);
        const auto var = e ? e->as_symbol() : std::nullopt;
        const bool whole = var || (e && e->is(0));
        if (!whole && (s.tensor != out_.output || !is_step(i, s.loops))) return refuse("a store at computed places");
        d.loops.emplace_back(var.value_or(""));
      }
      d.value = with_temps(renamed(s.value), temps);
      if (s.tensor == out_.output) {
        if (out_.value) return refuse("a result that is written twice");
        if (s.loops.size() > s.indices.size()) return refuse("a store that forgets a loop");
        out_.value = d.value;
        for (const Val& i : s.indices) out_.output_index.push_back(*val::as_expr(i));
        for (const Loop& l : s.loops) add_loop(l, false);
      } else if (!temps.emplace(s.tensor, std::move(d)).second) {
        return refuse("a temporary that is written twice");
      }
    }
    if (!out_.value) return refuse("no result");
    Result<> ok;
    walk(out_.value, [&](const ValNode& n) {
      if (n.kind == ValKind::read && out_.kernel.tensors[static_cast<size_t>(n.tensor)].role == Role::temp)
        ok = refuse("a temporary that is read before it is written");
      if (n.kind == ValKind::reduce)
        for (const Loop& l : n.loops) add_loop(l, true);
    });
    return ok;
  }

  // One of the loops, or none, and a number.
  static bool is_step(const Val& index, const std::vector<Loop>& loops) {
    const auto e = val::as_expr(index);
    if (!e) return false;
    for (const Loop& l : loops)
      if ((*e - Expr::symbol(l.var)).constant()) return true;
    return e->constant().has_value();
  }

  void add_loop(const Loop& l, bool reduction) {
    if (std::ranges::any_of(out_.loops, [&](const TargetLoop& o) { return o.var == l.var; })) return;
    const int64_t extent = l.extent.constant().value_or(1);
    out_.loops.push_back({l.var, extent, reduction, false});
    // a loop over one point stays visible until vectors are found: it may be the channel of a one-channel image
    out_.ranges[l.var] = Range(0, std::max<int64_t>(extent - 1, 1));
  }

  // Loops of reductions get names of their own, so that they stay apart from the loops of later statements.
  Val renamed(const Val& v) {
    return rewrite(v, [&](const Val& n) -> Val {
      if (n->kind != ValKind::reduce) return nullptr;
      Values names;
      std::vector<Loop> loops;
      for (const Loop& l : n->loops) {
        loops.push_back({fmt::format("{}.r{}", l.var, reductions_), l.extent});
        names.emplace(l.var, Expr::symbol(loops.back().var));
      }
      ++reductions_;
      return val::reduce(n->reduce_op(), n->to, loops, substitute(n->args[0], names));
    });
  }

  Val with_temps(const Val& v, const std::map<int, Definition>& temps) const {
    return rewrite(v, [&](const Val& n) -> Val {
      const auto it = n->kind == ValKind::read ? temps.find(n->tensor) : temps.end();
      if (it == temps.end()) return nullptr;
      Values at;
      for (size_t d = 0; d < it->second.loops.size(); ++d) {
        const auto e = val::as_expr(n->args[d]);
        if (!e) return nullptr;
        if (!it->second.loops[d].empty()) at.emplace(it->second.loops[d], *e);
      }
      return val::cast(out_.kernel.tensors[static_cast<size_t>(n->tensor)].dtype, substitute(it->second.value, at));
    });
  }

  // ---- literals and fills

  // An index that is computed from constants in floats (a nearest neighbour) is the Expr that says the same.
  void fit_indices() {
    out_.value = rewrite(out_.value, [&](const Val& n) -> Val {
      if (n->kind != ValKind::read) return nullptr;
      const auto constant = out_.constants.find(n->tensor);
      if (constant != out_.constants.end() && constant->second.dtype().is_float()) {
        return known_element(constant->second, n->args);
      }
      std::vector<Val> args;
      for (const Val& a : n->args) {
        const auto e = fit_index(a, out_.ranges);
        args.push_back(e ? val::index(*e) : a);
      }
      return val::read(n->tensor, out_.kernel.tensors[static_cast<size_t>(n->tensor)].dtype, std::move(args));
    });
  }

  // Scalars become literals, inside a reduction also tensors of one element (a zero point that broadcasts). Per-channel
  // constants stay tensors even when all their elements are equal: an instruction reads them from a memory.
  void fold_constants() {
    std::set<const ValNode*> inside;
    walk(out_.value, [&](const ValNode& n) {
      if (n.kind == ValKind::reduce) walk(n.args[0], [&](const ValNode& m) { inside.insert(&m); });
    });
    out_.value = rewrite(out_.value, [&](const Val& n) -> Val {
      const auto it = n->kind == ValKind::read ? out_.constants.find(n->tensor) : out_.constants.end();
      if (it == out_.constants.end() || !it->second.dtype().is_int() || it->second.elements() != 1) return nullptr;
      if (it->second.rank() > 0 && !inside.contains(n.get())) return nullptr;
      return val::integer(it->second.get_int(0), compute_type(it->second.dtype()));
    });
    out_.value = canonical(out_.value, out_.kernel, out_.ranges);
  }

  // `f(X[...]) ?: c` is f(X[...]) where X has, outside its bounds, a value that f takes to c.
  Result<> take_fills() {
    Result<> ok;
    out_.value = rewrite(out_.value, [&](const Val& n) -> Val {
      if (n->kind != ValKind::orelse || !ok) return nullptr;
      int tensor = -1;
      bool one = n->args[1]->kind == ValKind::integer;
      walk(n->args[0], [&](const ValNode& r) {
        if (r.kind != ValKind::read) return;
        one &= tensor < 0 || tensor == r.tensor;
        tensor = r.tensor;
      });
      if (!one || tensor < 0) {
        ok = refuse("a choice between operands by where they are defined");
        return nullptr;
      }
      const auto fill = solve_fill(n->args[0], n->args[1]->integer, tensor);
      if (!fill) {
        ok = refuse(fmt::format("no value of the padding of {} gives what the kernel wants there",
                                out_.kernel.tensors[static_cast<size_t>(tensor)].name));
        return nullptr;
      }
      if (const auto [it, fresh] = out_.fill.emplace(tensor, *fill); !fresh && it->second != *fill)
        ok = refuse("an operand that is padded with two values");
      return n->args[0];
    });
    return ok;
  }

  std::optional<int64_t> solve_fill(const Val& v, int64_t wanted, int tensor) const {
    const DType t = out_.kernel.tensors[static_cast<size_t>(tensor)].dtype;
    if (!t.is_int() || t.bits > 8) return std::nullopt;
    for (int64_t x = t.min_value(); x <= t.max_value(); ++x) {
      const Val at = rewrite(v, [&](const Val& n) -> Val {
        return n->kind == ValKind::read ? val::integer(x, compute_type(t)) : nullptr;
      });
      if (at->kind == ValKind::integer && at->integer == wanted) return x;
    }
    return std::nullopt;
  }

  // ---- indices

  // Reads and the store are rewritten to the dims of the buffer that holds the elements.
  Result<> resolve_views() {
    for (size_t t = 0; t < out_.buffers.size(); ++t) {
      if (out_.buffers[t] < 0 || !is_data(static_cast<int>(t))) continue;
      const int root = root_buffer(p_, out_.buffers[t]);
      if (root == out_.buffers[t]) continue;
      const TensorType& whole = p_.buffers[static_cast<size_t>(root)].type;
      int64_t bytes = 0;  // from where that one begins
      for (int b = out_.buffers[t]; p_.buffers[static_cast<size_t>(b)].alias;
           b = p_.buffers[static_cast<size_t>(b)].alias->base) {
        const ProgramBuffer& part = p_.buffers[static_cast<size_t>(b)];
        const auto offset = part.alias->byte_offset.constant();
        if (!offset || part.type.dtype != whole.dtype) return refuse("a view of another type");
        bytes += *offset;
        if (part.alias->replaces && (*offset != 0 || elements(part.type.shape) != elements(whole.shape)))
          return refuse("a value in the place of another that has not its size");
      }
      const int64_t first = bytes / whole.dtype.bytes();
      const std::vector<int64_t> from = out_.shapes[t];
      std::vector<int64_t> to;
      for (const Expr& e : p_.buffers[static_cast<size_t>(root)].type.shape) to.push_back(e.constant().value_or(1));
      Ranges ranges;
      for (const TargetLoop& l : out_.loops) ranges[l.var] = Range(0, std::max<int64_t>(l.extent - 1, 0));
      bool ok = true;
      out_.value = rewrite(out_.value, [&](const Val& n) -> Val {
        if (n->kind != ValKind::read || n->tensor != static_cast<int>(t)) return nullptr;
        std::vector<Expr> index;
        for (const Val& a : n->args) {
          const auto e = val::as_expr(a);
          if (!e) return nullptr;
          index.push_back(*e);
        }
        const auto in_root = unviewed(index, from, to, first, ranges);
        ok &= in_root.has_value();
        if (!in_root) return nullptr;
        std::vector<Val> args;
        for (const Expr& e : *in_root) args.push_back(val::index(e));
        return val::read(n->tensor, out_.kernel.tensors[t].dtype, args);
      });
      if (static_cast<int>(t) == out_.output) {
        const auto in_root = unviewed(out_.output_index, from, to, first, ranges);
        ok &= in_root.has_value();
        if (in_root) out_.output_index = *in_root;
      }
      if (!ok) return refuse("an operand that is padded where the tensor it is a view of has no dim of its own");
      out_.shapes[t] = to;
      out_.buffers[t] = root;
    }
    return {};
  }

  template <class F>
  void for_each_index(const F& f) const {
    for (const Expr& e : out_.output_index) f(out_.output, e);
    walk(out_.value, [&](const ValNode& n) {
      if (n.kind != ValKind::read) return;
      for (const Val& a : n.args)
        if (const auto e = val::as_expr(a)) f(n.tensor, *e);
    });
  }

  // v -> high * by + low everywhere; `low` runs over `by`.
  void split(const std::string& var, int64_t by, bool lane = false) {
    const auto it = std::ranges::find_if(out_.loops, [&](const TargetLoop& l) { return l.var == var; });
    const TargetLoop old = *it;
    const TargetLoop high{var + ".1", ceil_div(old.extent, by), old.reduction, false};
    const TargetLoop low{var + ".0", by, old.reduction, lane};
    const Expr sum = Expr::symbol(high.var) * by + Expr::symbol(low.var);
    if (high.extent * by != old.extent) out_.valid.emplace_back(sum, old.extent);
    const auto at = out_.loops.erase(it);
    out_.loops.insert(out_.loops.insert(at, low), high);
    out_.ranges.erase(var);
    out_.ranges[high.var] = Range(0, high.extent - 1);
    out_.ranges[low.var] = Range(0, by - 1);
    put({{var, sum}});
  }

  // Substitutes and simplifies every index and every list of loops.
  void put(const Values& values) {
    const auto simpler = [&](const Expr& e) { return simplify(dlc::substitute(e, values), out_.ranges); };
    for (Expr& e : out_.output_index) e = simpler(e);
    for (auto& [e, bound] : out_.valid) e = simpler(e);
    out_.value = rewrite(out_.value, [&](const Val& n) -> Val {
      if (n->kind == ValKind::index) return val::index(simpler(n->index));
      if (n->kind != ValKind::reduce) return nullptr;
      std::vector<Loop> loops;
      for (const Loop& l : n->loops) {
        const auto it = values.find(l.var);
        if (it == values.end()) {
          loops.push_back(l);
          continue;
        }
        for (const TargetLoop& t : out_.loops)
          if (it->second.mentions(t.var)) loops.push_back({t.var, t.extent});
      }
      if (loops.empty()) loops.push_back({n->loops[0].var, 1});
      return val::reduce(n->reduce_op(), n->to, loops, n->args[0]);
    });
  }

  // A loop inside `// c` or `% c` becomes two, so that every index is affine.
  // What is left of a loop behind whole steps is stored by a target of its own.
  Result<> split_divisions(std::vector<TargetMaker>& rest) {
    put({});
    for (int round = 0; round < 16; ++round) {
      std::string var;
      int64_t by = 0;
      for_each_index([&](int, const Expr& e) { find_division(e, out_.ranges, var, by); });
      if (var.empty()) return {};
      const int64_t n = std::ranges::find(out_.loops, var, &TargetLoop::var)->extent, whole = n / by * by;
      if (whole > 0 && whole < n && is_row(var)) {
        rest.push_back(*this);
        rest.back().keep(var, whole, n);
        keep(var, 0, whole);
      }
      split(var, by);
    }
    return refuse("an index that is not affine");
  }

  // Whether the result is stored row by row along the loop: what pads a vector may be written, other rows may not.
  bool is_row(const std::string& var) const {
    for (size_t d = 0; d < out_.output_index.size(); ++d)
      if (static_cast<int>(d) != blocked_dim(out_.output_index.size()) && out_.output_index[d].mentions(var))
        return true;
    return false;
  }

  // The loop's points [first, end) only.
  void keep(const std::string& var, int64_t first, int64_t end) {
    std::ranges::find(out_.loops, var, &TargetLoop::var)->extent = end - first;
    out_.ranges[var] = Range(0, std::max<int64_t>(end - first - 1, 1));
    if (first > 0) put({{var, Expr::symbol(var) + first}});
  }

  // A tensor of one channel has no loop over channels; the vector it lies in is walked all the same. Lanes beyond the
  // first are padding: constants are 0 there.
  std::string add_lane(const std::string& name, bool reduction) {
    const std::string var = name + ".0";
    const auto outer_end = std::ranges::find_if(out_.loops, [](const TargetLoop& l) { return l.reduction; });
    out_.loops.insert(reduction ? out_.loops.end() : outer_end, TargetLoop{var, lanes_, reduction, true});
    out_.ranges[var] = Range(0, lanes_ - 1);
    out_.valid.emplace_back(Expr::symbol(var), 1);
    return var;
  }

  static bool single_channel(const Val& read) {
    if (read->args.empty()) return false;
    const auto e = val::as_expr(read->args[read->args.size() == 1 ? 0 : 1]);
    return e && e->is(0);
  }

  // Reads of one-channel data in `v` walk `var`.
  Val with_lane(const Val& v, const std::string& var) const {
    return rewrite(v, [&](const Val& n) -> Val {
      if (n->kind != ValKind::read || !is_data(n->tensor) || !single_channel(n)) return nullptr;
      std::vector<Val> args = n->args;
      args[args.size() == 1 ? 0 : 1] = val::index(Expr::symbol(var));
      return val::read(n->tensor, out_.kernel.tensors[static_cast<size_t>(n->tensor)].dtype, std::move(args));
    });
  }

  void single_channels(std::set<std::string>& lanes) {
    if (out_.output_index.empty()) return;
    Expr& channel = out_.output_index[out_.output_index.size() == 1 ? 0 : 1];
    if (channel.is(0)) {
      const std::string var = add_lane("lane", false);
      channel = Expr::symbol(var);
      lanes.insert(var);
      out_.value = with_lane(out_.value, var);
      return;
    }
    out_.value = rewrite(out_.value, [&](const Val& n) -> Val {
      if (n->kind != ValKind::reduce) return nullptr;
      bool single = false;
      walk(n->args[0], [&](const ValNode& r) {
        single |= r.kind == ValKind::read && is_data(r.tensor) && single_channel(std::make_shared<ValNode>(r));
      });
      if (!single) return nullptr;
      // The same sum may stand in several places of the value.
      const std::string name = n->loops[0].var + ".lane";
      std::string var = name + ".0";
      if (std::ranges::none_of(out_.loops, [&](const TargetLoop& l) { return l.var == var; })) add_lane(name, true);
      lanes.insert(var);
      std::vector<Loop> loops = n->loops;
      loops.push_back({var, lanes_});
      return val::reduce(n->reduce_op(), n->to, loops, with_lane(n->args[0], var));
    });
  }

  // The blocked dim of every data operand: block * lanes + lane.
  Result<> split_lanes() {
    std::set<std::string> lanes;
    single_channels(lanes);
    for (int round = 0; round < 16; ++round) {
      std::string var;
      Result<> ok;
      const auto operand = [&](int tensor, const std::vector<Expr>& index) {
        if (!is_data(tensor) || !ok || !var.empty() || index.empty()) return;
        const Expr& e = index[index.size() == 1 ? 0 : 1];
        std::string unit;
        int64_t longest = -1;
        for (const Term& t : e.terms()) {
          if (t.factors.size() != 1 || t.factors[0].kind() != AtomKind::symbol || t.coefficient != 1) continue;
          const std::string name(t.factors[0].name());
          if (lanes.contains(name)) return;  // done
          if (const int64_t n = out_.ranges[name].bounds.hi; n > longest) {
            longest = n;
            unit = name;
          }
        }
        var = unit;
        if (unit.empty() && !e.is(0))
          ok = refuse(fmt::format("the channels of {} are walked by {}, and a vector is {} channels in a row",
                                  tensor == out_.output ? "its result" : "an operand", to_string(e), lanes_));
      };
      operand(out_.output, out_.output_index);
      walk(out_.value, [&](const ValNode& n) {
        if (n.kind != ValKind::read || !is_data(n.tensor)) return;
        std::vector<Expr> index;
        for (const Val& a : n.args) {
          const auto e = val::as_expr(a);
          if (!e) return;
          index.push_back(*e);
        }
        operand(n.tensor, index);
      });
      DLC_CHECK(ok);
      if (var.empty()) return drop_single(lanes);
      split(var, lanes_, true);
      lanes.insert(var + ".0");
    }
    return refuse("too many loops walk channels");
  }

  // Loops over one point are gone.
  Result<> drop_single(const std::set<std::string>& lanes) {
    Values zero;
    for (const TargetLoop& l : out_.loops)
      if (l.extent == 1 && !lanes.contains(l.var)) zero.emplace(l.var, Expr(0));
    std::erase_if(out_.loops, [&](const TargetLoop& l) { return zero.contains(l.var); });
    put(zero);
    return {};
  }

  // ---- sums of products of data

  static void factors(const Val& v, std::vector<Val>& out) {
    if (v->kind != ValKind::binary || v->binary_op() != BinaryOp::mul) return out.push_back(v);
    factors(v->args[0], out);
    factors(v->args[1], out);
  }

  // The tensor of a factor, whether `e` moves along it, and whether by whole vectors.
  struct Moved {
    int tensor = -1;
    bool moves = false, in_lanes = false;
  };
  Moved moved(const Val& factor, const Expr& e) const {
    Moved m;
    walk(factor, [&](const ValNode& n) {
      if (n.kind != ValKind::read) return;
      m.tensor = n.tensor;
      for (size_t d = 0; d < n.args.size(); ++d) {
        const auto index = val::as_expr(n.args[d]);
        if (!index || std::ranges::none_of(e.symbols(), [&](const auto& s) { return index->mentions(s); })) continue;
        m.moves = true;
        m.in_lanes |= d == (n.args.size() == 1 ? 0u : 1u);
      }
    });
    return m;
  }

  // A sum over the lanes of vectors also walks what pads the last one, and a factor must be 0 there. Constants are; of
  // two operands that are data, one must be loaded row by row there, and its rows outside are filled.
  Result<> fill_sums() {
    std::vector<Val> sums;
    walk(out_.value, [&](const ValNode& n) {
      if (n.kind == ValKind::reduce && n.reduce_op() == ReduceOp::sum) sums.push_back(n.args[0]);
    });
    for (const Val& body : sums) {
      std::vector<Val> all;
      factors(body, all);
      for (const auto& [e, bound] : out_.valid) {
        std::vector<std::pair<Val, int>> rows;
        bool constant = false;
        int walkers = 0;
        for (const Val& f : all) {
          const Moved m = moved(f, e);
          if (!m.moves) continue;
          ++walkers;
          constant |= !is_data(m.tensor);
          if (is_data(m.tensor) && !m.in_lanes) rows.emplace_back(f, m.tensor);
        }
        if (constant || walkers < 2) continue;
        const auto fill = rows.empty() ? std::nullopt : solve_fill(rows.front().first, 0, rows.front().second);
        if (!fill)
          return refuse("a sum over vectors of two operands that are no constants, and that both end inside one");
        const auto [it, fresh] = out_.fill.emplace(rows.front().second, *fill);
        if (!fresh && it->second != *fill) return refuse("an operand that is padded with two values");
      }
    }
    return {};
  }

  const Program& p_;
  const Call& call_;
  int64_t lanes_;
  Loc where_;
  Target out_;
  int reductions_ = 0;
};

}  // namespace

Result<std::vector<Target>> make_targets(const Program& p, const Call& call, int64_t lanes) {
  Kernel k = p.kernels[static_cast<size_t>(call.kernel)];
  detail::split_choices(k, p.symbols);
  const auto stores = [&](const Stmt& s) {
    return s.kind == Stmt::Kind::assign && std::ranges::find(k.outputs, s.tensor) != k.outputs.end();
  };
  const auto count = std::ranges::count_if(k.body, stores);
  std::vector<Target> out;
  for (std::ptrdiff_t i = 0; i < std::max<std::ptrdiff_t>(count, 1); ++i) {
    Kernel one = k;
    std::ptrdiff_t at = 0;
    if (count > 1) std::erase_if(one.body, [&](const Stmt& s) { return stores(s) && at++ != i; });
    DLC_CHECK(TargetMaker(p, call, std::move(one), lanes).run(out));
  }
  return out;
}

}  // namespace dlc::map
