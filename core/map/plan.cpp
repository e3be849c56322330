#include "core/map/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dlc/base/checked.h"

namespace dlc::map {

void Operand::set_index(const Target& t, std::vector<Expr> at) {
  index = std::move(at);
  lines.clear();
  walks.clear();
  for (const TargetLoop& l : t.loops)
    walks.push_back(std::ranges::any_of(index, [&](const Expr& e) { return e.mentions(l.var); }));
  std::vector<std::string> vars;
  for (const TargetLoop& l : t.loops) vars.push_back(l.var);
  for (const Expr& e : index) {
    const auto a = affine(e, vars);
    const auto base = a ? a->base.constant() : std::nullopt;
    Line line{base.value_or(0), {}};
    if (base)
      for (const Expr& c : a->coefficients)
        if (const auto n = c.constant()) line.coefficients.push_back(*n);
    if (line.coefficients.size() != t.loops.size() || !base) return lines.clear();
    lines.push_back(std::move(line));
  }
}

std::vector<Layout> layouts_of(const Target& t, int64_t lanes) {
  std::vector<Layout> out;
  for (size_t i = 0; i < t.buffers.size(); ++i) {
    TensorType type{t.kernel.tensors[i].dtype, {}};
    for (const int64_t n : t.shapes[i]) type.shape.emplace_back(n);
    out.push_back(Layout::of(type, lanes));
  }
  return out;
}

namespace {

// What is between the rows that a strided walk reads is left out, where a walk of the whole dim stays inside. The words
// of a row lie side by side on chip as they do in memory, so the last dim has them all.
int64_t step_of(const Target& t, const Line& line, int64_t words) {
  int64_t step = 0, last = line.base;
  for (size_t l = 0; l < t.loops.size(); ++l) {
    step = std::gcd(step, line.coefficients[l]);
    last += line.coefficients[l] * (t.loops[l].extent - 1);
  }
  return step > 1 && line.base >= 0 && last < words ? step : 1;
}

}  // namespace

namespace {

// Of what a box stores in a dim: what lies between is not written. 0: the box leaves some of it out.
int64_t step_of_store(const Line& line, const Box& box) {
  int64_t step = 0, reach = 0, points = 1;
  for (size_t l = 0; l < box.extent.size(); ++l) {
    if (box.extent[l] == 1 || line.coefficients[l] == 0) continue;
    step = std::gcd(step, line.coefficients[l]);
    reach += line.coefficients[l] * (box.extent[l] - 1);
    points *= box.extent[l];
  }
  if (step == 0) return 1;
  return reach / step + 1 == points ? step : 0;
}

}  // namespace

std::optional<Region> region_of(const Target& t, const Operand& o, const Layout& layout, const Box& box) {
  if (o.lines.size() != o.index.size()) return std::nullopt;
  const bool stores = o.tensor == t.output;
  Region r;
  const auto words = layout.words();
  for (size_t d = 0; d < o.lines.size(); ++d) {
    const bool blocked = static_cast<int>(d) == layout.blocked;  // in words: the lane is the loop that steps by one
    int64_t low = o.lines[d].base, reach = 0;
    if (blocked && low % layout.lanes != 0) return std::nullopt;
    if (blocked) low /= layout.lanes;
    for (size_t l = 0; l < t.loops.size(); ++l) {
      int64_t c = o.lines[d].coefficients[l];
      if (blocked && c % layout.lanes != 0 && c != 1) return std::nullopt;
      if (blocked) c = c == 1 ? 0 : c / layout.lanes;
      if (c < 0) return std::nullopt;
      low += c * box.offset[l];
      reach += c * (box.extent[l] - 1);
    }
    int64_t step = 1;
    if (!blocked && stores) step = step_of_store(o.lines[d], box);
    if (!blocked && !stores && d + 1 < o.lines.size()) step = step_of(t, o.lines[d], words[d]);
    if (step == 0) return std::nullopt;
    r.base.push_back(low);
    r.extent.push_back(reach / step + 1);
    r.may_leave.push_back(low < 0 || low + reach >= words[d]);
    r.step.push_back(step);
    r.words *= r.extent.back();
  }
  return r;
}

std::optional<Placement> placement_of(const Target& t, const Operand& o, const Layout& layout, const Box& box) {
  const auto region = region_of(t, o, layout, box);
  if (!region) return std::nullopt;
  const int64_t word = layout.lanes * layout.element_bytes;
  Placement p{std::vector<int64_t>(t.loops.size(), 0), region->words * word};
  int64_t stride = word;
  for (size_t d = o.index.size(); d-- > 0; stride *= region->extent[d]) {
    for (size_t l = 0; l < t.loops.size(); ++l) {
      const int64_t c = o.lines[d].coefficients[l];
      if (static_cast<int>(d) == layout.blocked)
        p.strides[l] += c == 1 ? layout.element_bytes : c / layout.lanes * stride;
      else
        p.strides[l] += c / region->step[d] * stride;
    }
  }
  return p;
}

int in_place(const Chain& chain, size_t p, const std::vector<Placement>& stores, const Placement& store) {
  const Plan& plan = chain.plans[p];
  for (size_t i = 0; i < plan.reads.size(); ++i) {
    const int temp = plan.reads[i].temp;
    if (plan.reads[i].kind != OperandKind::temp || temp < 0 || plan.reads[i].space != plan.store.space) continue;
    const Placement& from = stores[static_cast<size_t>(temp)];
    // A loop that takes one step here may have no stride.
    const bool same = std::ranges::equal(from.strides, store.strides,
                                         [](int64_t a, int64_t b) { return a == b || a == 0 || b == 0; });
    if (!same || from.bytes != store.bytes) continue;
    int64_t readers = 0;
    for (const Plan& other : chain.plans)
      readers += std::ranges::count_if(other.reads, [&](const Operand& o) { return o.temp == temp; });
    if (readers == 1) return static_cast<int>(i);
  }
  return -1;
}

namespace {

// Strides that the instruction itself dictates, once its trip counts are known; nullopt: a field is open, or the
// operand depends on a loop that the instruction does not step by.
std::optional<Placement> dictated(const Plan& plan, const Operand& o, const FieldSolver& s, const Target& t,
                                  const Box& box) {
  Placement p{std::vector<int64_t>(t.loops.size(), 0), o.address.width};
  for (size_t u = 0; u < plan.assign.size(); ++u) {
    if (plan.assign[u] < 0) continue;
    const auto v = static_cast<size_t>(plan.assign[u]);
    if (box.extent[v] == 1) continue;
    const auto c = s.value(o.address.coefficients[u]);
    if (!c || *c < 0) return std::nullopt;
    p.strides[v] = *c;
    p.bytes += *c * (box.extent[v] - 1);
  }
  if (o.address.data) p.bytes += o.address.data_stride * (o.address.data_extent - 1);
  return p;
}

// Dense, the lanes innermost: what an instruction that can step as it likes is told.
Placement dense(const Plan& plan, const Operand& o, const Target& t, const Box& box) {
  Placement p{std::vector<int64_t>(t.loops.size(), 0), o.address.width};
  for (const bool lanes : {true, false})
    for (size_t l = t.loops.size(); l-- > 0;) {
      const auto u = std::ranges::find(plan.assign, static_cast<int>(l)) - plan.assign.begin();
      if (t.loops[l].reduction || u == std::ssize(plan.assign) || box.extent[l] == 1) continue;
      if (plan.pattern->loops[static_cast<size_t>(u)].extent.constant().has_value() != lanes) continue;
      p.strides[l] = p.bytes;
      p.bytes *= box.extent[l];
    }
  return p;
}

// `all`: also of loops that take one step here. What is the same for all of a loop may be read at one place of it.
bool match_strides(const Plan& plan, const Operand& o, const Placement& p, const Box& box, FieldSolver& s,
                   bool all = false) {
  for (size_t u = 0; u < plan.assign.size(); ++u) {
    if (plan.assign[u] < 0 || (!all && box.extent[static_cast<size_t>(plan.assign[u])] == 1)) continue;
    const auto v = static_cast<size_t>(plan.assign[u]);
    if (o.kind == OperandKind::temp && o.temp >= 0 && !o.walks[v] && o.address.coefficients[u].is(0)) continue;
    if (!s.equal(o.address.coefficients[u], p.strides[v])) return false;
  }
  return true;
}

// A guard `loops < fields` of the instruction ends where the kernel's elements do.
bool match_guard(const Plan& plan, const Val& guard, const Target& t, const Box& box, FieldSolver& s) {
  const auto left = val::as_expr(guard->args[0]), right = val::as_expr(guard->args[1]);
  if (guard->kind != ValKind::binary || guard->binary_op() != BinaryOp::lt || !left || !right) return false;
  std::map<std::string, Expr, std::less<>> at;
  for (size_t u = 0; u < plan.assign.size(); ++u) {
    const int v = plan.assign[u];
    at.emplace(plan.pattern->loops[u].var, v < 0 ? Expr(0) : Expr::symbol(t.loops[static_cast<size_t>(v)].var));
    if (v >= 0 && left->mentions(plan.pattern->loops[u].var) &&
        box.extent[static_cast<size_t>(v)] != t.loops[static_cast<size_t>(v)].extent)
      return false;
  }
  const Expr element = substitute(*left, at);
  int64_t count = bounds(element, t.ranges).hi + 1;
  for (const auto& [e, bound] : t.valid)
    if (simplify(e - element, t.ranges).is(0)) count = bound;
  return s.equal(*right, count, "how many elements it looks at");
}

// *finished: every equation holds; what is left open may still break a condition of the instruction.
std::optional<Solved> solve(const Machine& machine, const Chain& chain, const Plan& plan, const Box& box,
                            std::span<const int64_t> base, const std::vector<Placement>& temps, bool accumulate,
                            bool all_strides, bool* finished, std::string* why) {
  const Target& t = *chain.target;
  FieldSolver s = accumulate ? *plan.accumulate : plan.fields;
  const auto refuse = [&](const std::string& reason) {
    if (why) *why = reason.empty() ? s.why() : reason;
    return std::nullopt;
  };
  for (size_t u = 0; u < plan.assign.size(); ++u) {
    const int64_t n = plan.assign[u] < 0 ? 1 : box.extent[static_cast<size_t>(plan.assign[u])];
    if (!s.equal(plan.pattern->loops[u].extent, n)) return refuse({});
  }
  for (const Val& guard : plan.guards)
    if (!match_guard(plan, guard, t, box, s)) return refuse(s.why().empty() ? "it would take a part of a row" : "");
  Solved out;
  out.reads.resize(plan.reads.size());
  std::string apart;  // what lies in no region
  const auto place = [&](const Operand& o, Placement& p, int64_t address) {
    if (o.kind == OperandKind::data) {
      const Layout& layout = chain.layouts[static_cast<size_t>(o.tensor)];
      auto at = placement_of(t, o, layout, box);
      if (!at) {
        apart = fmt::format("{} begins inside a vector of {} channels, which it walks whole",
                            &o == &plan.store ? "its result" : "an operand", layout.lanes);
        return false;
      }
      p = std::move(*at);
      return match_strides(plan, o, p, box, s, all_strides) && s.equal(o.address.base, address);
    }
    if (o.kind == OperandKind::temp && o.temp >= 0) {
      p = temps[static_cast<size_t>(o.temp)];
      return match_strides(plan, o, p, box, s) && s.equal(o.address.base, address);
    }
    return true;
  };
  for (size_t i = 0; i < plan.reads.size(); ++i)
    if (!place(plan.reads[i], out.reads[i], base[i])) return refuse(apart);
  if (!place(plan.store, out.store, base.back())) return refuse(apart);
  // Constants lie as the instruction reads them, a result for other instructions as it writes it.
  const auto follow = [&](const Operand& o, Placement& p, int64_t address, bool store) {
    auto given = dictated(plan, o, s, t, box);
    if (!given && store) given = dense(plan, o, t, box);
    if (!given) return false;
    p = std::move(*given);
    for (size_t l = 0; l < t.loops.size(); ++l) {
      const bool needed = store ? !t.loops[l].reduction && plan.uses[l] : o.walks[l];
      if (needed && box.extent[l] > 1 && p.strides[l] == 0) return false;
    }
    return match_strides(plan, o, p, box, s) && s.equal(o.address.base, address);
  };
  for (size_t i = 0; i < plan.reads.size(); ++i)
    if (plan.reads[i].kind == OperandKind::constant && !follow(plan.reads[i], out.reads[i], base[i], false))
      return refuse(s.why().empty() ? plan.pattern->name + " steps through a constant in another way" : "");
  if (plan.store.kind == OperandKind::temp && !follow(plan.store, out.store, base.back(), true))
    return refuse(s.why().empty() ? plan.pattern->name + " steps through its result in another way" : "");
  *finished = true;
  if (!s.finish(*machine.hw, out.instruction)) return refuse({});
  return out;
}

}  // namespace

// A step that is never taken is free, unless a condition of the instruction asks for it (`s_ow == s_kw`): then it is
// what it would be if it were taken.
std::optional<Solved> solve(const Machine& machine, const Chain& chain, const Plan& plan, const Box& box,
                            std::span<const int64_t> base, const std::vector<Placement>& temps, bool accumulate,
                            std::string* why) {
  bool finished = false;
  auto solved = solve(machine, chain, plan, box, base, temps, accumulate, false, &finished, why);
  if (solved || !finished) return solved;
  return solve(machine, chain, plan, box, base, temps, accumulate, true, &finished, why);
}

}  // namespace dlc::map
