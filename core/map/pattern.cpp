#include "core/map/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/map/value.h"

namespace dlc::map {

Address Pattern::address(int tensor, const std::vector<Val>& indices) const {
  const KernelTensor& t = kernel.tensors[static_cast<size_t>(tensor)];
  std::vector<Expr> strides(indices.size(), t.dtype.bytes());
  Address a;
  a.width = t.dtype.bytes();
  Expr total = 0;
  if (t.view) {
    strides = t.view->byte_strides;
    total = t.view->byte_offset;
  } else {
    for (size_t d = indices.size(); d-- > 1;) strides[d - 1] = strides[d] * t.shape[d];
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    if (const auto e = val::as_expr(indices[d])) {
      total += *e * strides[d];
    } else {
      a.data = indices[d];
      a.data_stride = strides[d].constant().value_or(1);
      a.data_extent = t.shape[d].constant().value_or(1);
    }
  }
  std::vector<std::string> vars;
  for (const Loop& l : loops) vars.push_back(l.var);
  const auto form = affine(total, vars);
  a.base = form ? form->base : Expr::invalid();
  a.coefficients = form ? form->coefficients : std::vector<Expr>(loops.size(), Expr::invalid());
  return a;
}

const Mover* Machine::mover(int space, bool load) const {
  for (const Mover& m : movers)
    if (m.load == load && std::ranges::find(m.spaces, space) != m.spaces.end()) return &m;
  return nullptr;
}

namespace {

constexpr int64_t kSmall = 30, kLargest = 50000;  // nodes of a part that is compared as a whole

class PartFinder {
 public:
  explicit PartFinder(Pattern& p) : p_(p), ranges_(p.kernel, p.ranges) {}

  void find(const Val& v) { look(v); }

 private:
  struct Seen {
    int64_t nodes = 1;  // above `gate`
    Val gate;           // the smallest part that this one is a function of, itself perhaps; null: a number
    bool scalar = false;
  };

  const Seen& look(const Val& v) {
    if (const auto it = seen_.find(v.get()); it != seen_.end()) return it->second;
    Seen here;
    const bool leaf = v->kind == ValKind::read || v->kind == ValKind::reduce;
    here.scalar = !leaf;
    bool own = leaf || v->kind == ValKind::index;
    for (const Val& a : v->args) {
      const Seen& part = look(a);
      here.scalar &= part.scalar;
      here.nodes = std::min(here.nodes + (part.gate == a ? 1 : part.nodes), kLargest + 1);
      own |= here.gate && part.gate && here.gate != part.gate;
      if (part.gate) here.gate = part.gate;
    }
    if (own) here = {1, v, here.scalar};
    const bool large = here.gate != v && here.nodes > kSmall && here.nodes <= kLargest;
    p_.parts.emplace(v.get(), Pattern::Part{here.scalar, ranges_.of(v), large ? here.gate : nullptr});
    return seen_.emplace(v.get(), std::move(here)).first->second;
  }

  Pattern& p_;
  ValueRanges ranges_;
  std::unordered_map<const ValNode*, Seen> seen_;
};

class MachineReader {
 public:
  explicit MachineReader(const HwDescription& hw) : hw_(hw) { out_.hw = &hw; }

  Result<Machine> run() {
    for (size_t i = 0; i < hw_.isa.insns.size(); ++i)
      for (const HwForm& f : hw_.isa.insns[i].forms) form(static_cast<int>(i), f);
    if (out_.movers.empty()) return fail(hw_.place("isa"), hw_.name + ": no instruction copies from or to memory");
    for (const Mover& m : out_.movers) DLC_CHECK(whole_words(m));
    out_.lanes = out_.movers.front().lanes;
    out_.code = segment(".code");
    out_.weights = segment(".weights");
    out_.arena = segment(".arena");
    if (out_.code < 0 || out_.weights < 0 || out_.arena < 0)
      return fail(hw_.place("state"), hw_.name + " has no external memory with segments code, weights and arena");
    return std::move(out_);
  }

 private:
  // Words that follow each other on one side of a copy must do so on the other.
  Result<> whole_words(const Mover& m) const {
    if (m.order.empty()) return {};
    for (const Address* side : {&m.external, &m.on_chip}) {
      const Expr& step = side->coefficients[m.order.front()];
      if (!step.constant() || step.is(m.lanes)) continue;
      return fail({hw_.file, m.pattern.line, 0, {}},
                  fmt::format("{} of {}: the loop {} steps {} bytes {}, and must step {}, the bytes of a word",
                              m.pattern.name, hw_.name, m.pattern.loops[m.order.front()].var, to_string(step),
                              side == &m.external ? "in external memory" : "on chip", m.lanes),
                  "make the two equal: words that lie side by side on chip must do so in external memory");
    }
    return {};
  }

  int segment(std::string_view suffix) const {
    for (size_t s = 0; s < hw_.spaces.size(); ++s)
      if (hw_.spaces[s].segment >= 0 && hw_.spaces[s].name.ends_with(suffix)) return static_cast<int>(s);
    return -1;
  }
  bool external(int space) const { return hw_.state_of(space).kind == HwState::Kind::external; }

  void form(int insn, const HwForm& f) {
    if (f.kernel.body.size() != 1 || f.kernel.body[0].kind != Stmt::Kind::assign) return;
    const HwInsn& what = hw_.isa.insns[static_cast<size_t>(insn)];
    bool moves = false;
    for (const HwOperand& o : f.operands) {
      if (o.space >= 0) moves |= external(o.space);
      if (o.selector < 0) continue;
      for (const HwEnumerator& e : what.fields[static_cast<size_t>(o.selector)].enumerators)
        moves |= e.space >= 0 && external(e.space);
    }
    Pattern p{insn, &what, what.loc.line, FieldSolver(what), f.kernel, {}, {}, 0, {}, f.kernel.name, {}, {}};
    for (const HwVariant& v : what.variants)
      if (v.name == f.variant && v.loc.line > 0) p.line = v.loc.line;
    if (moves) {
      for (const auto& [field, values] : f.when)
        if (values.size() == 1 && !p.fields.set(field, values[0])) return;
      complete(p, f);
      if (auto m = mover(p, f)) out_.movers.push_back(std::move(*m));
      return;
    }
    Stmt& s = p.kernel.body[0];
    s.value = val::cast(p.kernel.tensors[static_cast<size_t>(s.tensor)].dtype, s.value);  // what is stored wraps
    // One pattern for every choice of the enumerated fields that this form allows.
    std::vector<std::pair<int, std::vector<int64_t>>> choices = f.when;
    for (size_t i = 0; i < what.fields.size(); ++i) {
      const auto given = [&](const auto& w) { return w.first == static_cast<int>(i); };
      if (what.fields[i].enumerators.empty() || std::ranges::any_of(f.when, given)) continue;
      choices.push_back({static_cast<int>(i), {}});
      for (const HwEnumerator& e : what.fields[i].enumerators) choices.back().second.push_back(e.value);
    }
    enumerate(p, f, choices, 0);
  }

  void enumerate(const Pattern& p, const HwForm& f, const std::vector<std::pair<int, std::vector<int64_t>>>& choices,
                 size_t at) {
    if (at == choices.size()) {
      Pattern done = p;
      complete(done, f);
      const auto same = [&](const Pattern& o) {
        return o.insn == done.insn && o.spaces == done.spaces && o.kernel.name == done.kernel.name &&
               val::structurally_equal(o.stmt().value, done.stmt().value);
      };
      if (std::ranges::none_of(out_.compute, same)) out_.compute.push_back(std::move(done));
      return;
    }
    for (const int64_t value : choices[at].second) {
      Pattern next = p;
      if (next.fields.set(choices[at].first, value)) enumerate(next, f, choices, at + 1);
    }
  }

  // Puts the known fields in, finds loops, ranges and memories.
  void complete(Pattern& p, const HwForm& f) const {
    for (const HwField& field : p.what->fields) p.ranges[field.name] = Range(field.min(), field.max());
    Stmt& s = p.kernel.body[0];
    const auto values = p.fields.known();
    const auto known = [&](const Val& v) {
      return rewrite(v, [&](const Val& n) -> Val {
        if (n->kind != ValKind::index) return nullptr;
        return val::index(substitute(n->index, values));
      });
    };
    s.value = shared(canonical(known(s.value), p.kernel, p.ranges));
    for (Val& i : s.indices) i = canonical(known(i), p.kernel, p.ranges);
    PartFinder(p).find(s.value);
    p.loops = s.loops;
    p.outer = p.loops.size();
    walk(s.value, [&](const ValNode& n) {
      if (n.kind == ValKind::read) p.reads.insert(n.tensor);
      if (n.kind != ValKind::reduce) return;
      for (const Loop& l : n.loops)
        if (std::ranges::none_of(p.loops, [&](const Loop& o) { return o.var == l.var; })) p.loops.push_back(l);
    });
    for (const HwOperand& o : f.operands) {
      int space = o.space;
      if (o.selector >= 0) {
        const HwField& selector = p.what->fields[static_cast<size_t>(o.selector)];
        const auto value = p.fields.value(Expr::symbol(selector.name));
        const HwEnumerator* chosen = value ? selector.find(*value) : nullptr;
        space = chosen ? chosen->space : -1;
      }
      p.spaces.push_back(space);
    }
  }

  static void split_and(const Val& v, std::vector<Val>& out) {
    if (v->kind == ValKind::binary && v->binary_op() == BinaryOp::logical_and) {
      split_and(v->args[0], out);
      split_and(v->args[1], out);
    } else {
      out.push_back(v);
    }
  }

  std::optional<Mover> mover(const Pattern& p, const HwForm& f) const {
    Mover m{.pattern = p};
    Val read = p.stmt().value;
    if (read->kind == ValKind::select) {
      std::vector<Val> conditions;
      split_and(read->args[0], conditions);
      for (const Val& c : conditions) {
        const auto a = val::as_expr(c->args[0]), b = val::as_expr(c->args[1]);
        if (c->kind != ValKind::binary || !a || !b) return std::nullopt;
        if (c->binary_op() == BinaryOp::ge) m.guards.push_back(*a - *b);
        if (c->binary_op() == BinaryOp::gt) m.guards.push_back(*a - *b - 1);
        if (c->binary_op() == BinaryOp::le) m.guards.push_back(*b - *a);
        if (c->binary_op() == BinaryOp::lt) m.guards.push_back(*b - *a - 1);
      }
      if (m.guards.size() != conditions.size()) return std::nullopt;
      m.fill = read->args[2];
      read = read->args[1];
      if (!is_scalar(m.fill)) return std::nullopt;
    }
    while (read->kind == ValKind::cast) read = read->args[0];  // bytes are bytes
    if (read->kind != ValKind::read) return std::nullopt;
    const auto is_external = [&](int tensor) {
      const HwOperand& o = f.operands[static_cast<size_t>(tensor)];
      if (o.space >= 0) return external(o.space);
      const auto& e = p.what->fields[static_cast<size_t>(o.selector)].enumerators;
      return !e.empty() && e.front().space >= 0 && external(e.front().space);
    };
    m.load = is_external(read->tensor);
    if (m.load == is_external(p.stmt().tensor)) return std::nullopt;
    const Address from = p.address(read->tensor, read->args), to = p.store();
    m.on_chip = m.load ? to : from;
    m.external = m.load ? from : to;
    const int on_chip = m.load ? p.stmt().tensor : read->tensor, ext = m.load ? read->tensor : p.stmt().tensor;
    m.on_chip_selector = f.operands[static_cast<size_t>(on_chip)].selector;
    m.external_selector = f.operands[static_cast<size_t>(ext)].selector;
    if (m.on_chip_selector < 0) {
      m.spaces.push_back(f.operands[static_cast<size_t>(on_chip)].space);
    } else {
      const auto when = std::ranges::find(f.when, m.on_chip_selector, &std::pair<int, std::vector<int64_t>>::first);
      for (const HwEnumerator& e : p.what->fields[static_cast<size_t>(m.on_chip_selector)].enumerators)
        if (when == f.when.end() || std::ranges::find(when->second, e.value) != when->second.end())
          m.spaces.push_back(e.space);
    }
    if (!m.on_chip.base.valid() || !m.external.base.valid() || from.data || to.data) return std::nullopt;
    for (size_t l = 0; l < p.loops.size(); ++l) {
      if (const auto n = p.loops[l].extent.constant())
        m.lanes *= *n;
      else
        m.order.push_back(l);
    }
    // The more trip counts a loop's step has, the further out it is.
    const auto depth = [&](size_t l) { return m.on_chip.coefficients[l].symbols().size(); };
    std::ranges::stable_sort(m.order, [&](size_t a, size_t b) { return depth(a) < depth(b); });
    return m;
  }

  const HwDescription& hw_;
  Machine out_;
};

}  // namespace

Result<Machine> read_machine(const HwDescription& hw) { return MachineReader(hw).run(); }

}  // namespace dlc::map
