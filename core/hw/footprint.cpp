#include "dlc/hw/footprint.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/hw/field_code.h"
#include "dlc/base/checked.h"
#include "dlc/kernel/condition.h"

namespace dlc {

namespace {

// base + sum coefficients[l] * loop l, all over fields.
struct AffineCode {
  FieldCode base;
  std::vector<FieldCode> coefficients;
};

struct Guard {
  AffineCode affine;  // holds where >= 0
  bool known = true;  // false: depends on loops in another way, or on data
};

struct IndexCode {
  bool known = true;  // false: data-dependent or not affine; then [0, extent) is meant
  AffineCode affine;
};

struct AccessCode {
  int tensor = -1;
  int statement = -1;
  size_t outer_loops = 0;  // those of the statement come first
  bool write = false;
  bool may_be_out = false;  // the read stands before `?:`
  std::vector<FieldCode> extents;
  std::vector<Guard> guards;
  std::vector<IndexCode> indices;
};

struct TensorCode {
  HwOperand operand;
  bool external = false;         // the first extent is the space's size
  std::vector<int64_t> extents;  // of external memory: the first is unused
  std::vector<int64_t> strides;  // bytes
  int64_t offset = 0;
  int64_t width = 1;
};

struct FormCode {
  std::vector<TensorCode> tensors;
  std::vector<AccessCode> accesses;
};

// Takes one form's kernel apart.
class Extractor {
 public:
  Extractor(const HwDescription& hw, const HwInsn& insn, const HwForm& form) : hw_(hw), insn_(insn), form_(form) {}

  Result<FormCode> run() {
    for (size_t t = 0; t < form_.kernel.tensors.size(); ++t) DLC_CHECK(tensor(t));
    for (const Stmt& s : form_.kernel.body) DLC_CHECK(statement(s));
    return std::move(out_);
  }

 private:
  Result<int64_t> constant(const Expr& e) const {
    const auto c = e.constant();
    if (!c) return fail(insn_.loc, fmt::format("insn '{}': '{}' is not a constant", insn_.name, to_string(e)));
    return *c;
  }

  Result<> tensor(size_t index) {
    const KernelTensor& t = form_.kernel.tensors[index];
    TensorCode c;
    c.operand = form_.operands[index];
    c.width = t.dtype.bytes();
    for (size_t d = 0; d < t.shape.size(); ++d) {
      const auto e = t.shape[d].constant();
      if (!e && d == 0 && !t.view) c.external = true;
      if (!e && !c.external)
        return fail(insn_.loc, fmt::format("insn '{}': the shape of '{}' is not constant", insn_.name, t.name));
      c.extents.push_back(e.value_or(0));
    }
    c.strides.assign(t.shape.size(), 0);
    if (t.view) {
      DLC_TRY(c.offset, constant(t.view->byte_offset));
      for (size_t d = 0; d < t.shape.size(); ++d) {
        DLC_TRY(c.strides[d], constant(t.view->byte_strides[d]));
      }
    } else {
      int64_t stride = c.width;
      for (size_t d = t.shape.size(); d-- > 0; stride *= std::max<int64_t>(c.extents[d], 1)) c.strides[d] = stride;
    }
    out_.tensors.push_back(std::move(c));
    return {};
  }

  Result<FieldCode> code(const Expr& e) const {
    auto c = FieldCode::make(e, insn_);
    if (!c)
      return fail(insn_.loc, fmt::format("insn '{}': '{}' uses a name that is no field", insn_.name, to_string(e)));
    return std::move(*c);
  }

  // nullopt: not affine in the loops.
  Result<std::optional<AffineCode>> affine_code(const Expr& e) const {
    std::vector<std::string> vars;
    for (const Loop& l : loops_) vars.push_back(l.var);
    const auto a = affine(e, vars);
    if (!a) return std::optional<AffineCode>();
    AffineCode out;
    DLC_TRY(out.base, code(a->base));
    for (const Expr& c : a->coefficients) {
      DLC_TRY(FieldCode f, code(c));
      out.coefficients.push_back(std::move(f));
    }
    return std::optional<AffineCode>(std::move(out));
  }

  Result<> access(int tensor, std::span<const Val> indices, bool write) {
    const HwOperand& o = form_.operands[static_cast<size_t>(tensor)];
    if (o.space < 0 && o.selector < 0) return {};  // a temporary
    if (!write && covered(tensor, indices)) return {};
    AccessCode a;
    a.tensor = tensor;
    a.statement = statement_;
    a.outer_loops = outer_loops_;
    a.write = write;
    a.may_be_out = optional_ > 0;
    for (const Loop& l : loops_) {
      DLC_TRY(FieldCode f, code(l.extent));
      a.extents.push_back(std::move(f));
    }
    for (const auto& g : guards_) {
      Guard guard;
      std::optional<AffineCode> c;
      if (g) {
        DLC_TRY(c, affine_code(*g));
      }
      guard.known = c.has_value();
      if (c) guard.affine = std::move(*c);
      a.guards.push_back(std::move(guard));
    }
    for (const Val& v : indices) {
      IndexCode i;
      const auto e = val::as_expr(v);
      std::optional<AffineCode> c;
      if (e) {
        DLC_TRY(c, affine_code(*e));
      }
      i.known = c.has_value();
      if (c) i.affine = std::move(*c);
      a.indices.push_back(std::move(i));
    }
    out_.accesses.push_back(std::move(a));
    return {};
  }

  // Whether the same element was read before, under the same conditions or some of them: a function of it may read it
  // in hundreds of places.
  bool covered(int tensor, std::span<const Val> indices) {
    for (const Seen& s : seen_)
      if (s.tensor == tensor && s.statement == statement_ && s.may_be_out == (optional_ > 0) &&
          s.loops == loops_.size() && s.guards.size() <= guards_.size() &&
          std::equal(s.guards.begin(), s.guards.end(), guards_.begin()) &&
          std::ranges::equal(s.indices, indices, val::structurally_equal))
        return true;
    seen_.push_back({tensor, statement_, optional_ > 0, loops_.size(), guards_, {indices.begin(), indices.end()}});
    return false;
  }

  // `v` is evaluated where the conditions hold; conjunctions are split so that each part may narrow a loop.
  void push_condition(const Val& v, bool holds) {
    if (holds && v->kind == ValKind::binary && v->binary_op() == BinaryOp::logical_and) {
      push_condition(v->args[0], true);
      push_condition(v->args[1], true);
      return;
    }
    const auto c = nonnegative_form(v);
    guards_.push_back(!c ? c : holds ? c : std::optional<Expr>(-*c - 1));
  }

  // Whether v is evaluated wherever `whole` is.
  static bool part_of(const Val& v, const Val& whole) {
    if (val::structurally_equal(v, whole)) return true;
    if (whole->kind != ValKind::binary && whole->kind != ValKind::unary && whole->kind != ValKind::cast) return false;
    const bool shortcut = whole->kind == ValKind::binary &&
                          (whole->binary_op() == BinaryOp::logical_and || whole->binary_op() == BinaryOp::logical_or);
    for (size_t i = 0; i < (shortcut ? 1 : whole->args.size()); ++i)
      if (part_of(v, whole->args[i])) return true;
    return false;
  }

  Result<> under(const Val& condition, bool holds, const Val& v) {
    const size_t before = guards_.size();
    push_condition(condition, holds);
    DLC_CHECK(value(v));
    guards_.resize(before);
    return {};
  }

  Result<> value(const Val& v) {
    switch (v->kind) {
      case ValKind::read:
        DLC_CHECK(access(v->tensor, v->args, false));
        break;
      case ValKind::select:
        DLC_CHECK(value(v->args[0]));
        // `if s == 0 then x else f(x)`: x is evaluated whatever the condition.
        for (const size_t branch : {1, 2})
          if (part_of(v->args[branch], v->args[3 - branch])) {
            DLC_CHECK(value(v->args[branch]));
            break;
          }
        DLC_CHECK(under(v->args[0], true, v->args[1]));
        return under(v->args[0], false, v->args[2]);
      case ValKind::orelse:
        ++optional_;
        DLC_CHECK(value(v->args[0]));
        --optional_;
        return value(v->args[1]);
      case ValKind::binary:
        if (v->binary_op() != BinaryOp::logical_and && v->binary_op() != BinaryOp::logical_or) break;
        DLC_CHECK(value(v->args[0]));
        return under(v->args[0], v->binary_op() == BinaryOp::logical_and, v->args[1]);
      case ValKind::reduce: {
        const size_t before = loops_.size();
        loops_.insert(loops_.end(), v->loops.begin(), v->loops.end());
        DLC_CHECK(value(v->args[0]));
        loops_.resize(before);
        return {};
      }
      default:
        break;
    }
    for (const Val& a : v->args) DLC_CHECK(value(a));
    return {};
  }

  Result<> statement(const Stmt& s) {
    const size_t before = loops_.size();
    loops_.insert(loops_.end(), s.loops.begin(), s.loops.end());
    if (s.kind == Stmt::Kind::seq) {
      for (const Stmt& b : s.body) DLC_CHECK(statement(b));
    } else {
      ++statement_;
      outer_loops_ = loops_.size();
      for (const Val& i : s.indices) DLC_CHECK(value(i));
      DLC_CHECK(value(s.value));
      DLC_CHECK(access(s.tensor, s.indices, true));
    }
    loops_.resize(before);
    return {};
  }

  const HwDescription& hw_;
  const HwInsn& insn_;
  const HwForm& form_;
  struct Seen {
    int tensor = -1, statement = -1;
    bool may_be_out = false;
    size_t loops = 0;
    std::vector<std::optional<Expr>> guards;
    std::vector<Val> indices;
  };
  FormCode out_;
  std::vector<Seen> seen_;
  std::vector<Loop> loops_;
  std::vector<std::optional<Expr>> guards_;
  int optional_ = 0;
  int statement_ = -1;
  size_t outer_loops_ = 0;
};

// Where an access goes, point by point: to compare two accesses of one statement.
struct PointMap {
  const AccessCode* code = nullptr;
  bool known = true;   // false: an index depends on data
  int64_t origin = 0;  // byte offset at loops = 0
  std::vector<int64_t> strides, counts;

  bool same_points(const PointMap& write) const {
    if (code->statement != write.code->statement || origin != write.origin) return false;
    for (size_t l = 0; l < strides.size(); ++l) {
      const int64_t theirs = l < write.code->outer_loops ? write.strides[l] : 0;
      if (counts[l] > 1 && strides[l] != theirs) return false;
    }
    return true;
  }
};

struct LoopRange {
  int64_t lo = 0, hi = -1;
};

struct AffineValue {
  int64_t base = 0;
  std::vector<int64_t> coefficients;
};

std::optional<AffineValue> evaluate_affine(const AffineCode& c, std::span<const int64_t> fields) {
  AffineValue v;
  const auto base = c.base.run(fields);
  if (!base) return std::nullopt;
  v.base = *base;
  for (const FieldCode& f : c.coefficients) {
    const auto k = f.run(fields);
    if (!k) return std::nullopt;
    v.coefficients.push_back(*k);
  }
  return v;
}

// Narrows the loops to where the guard holds. False: nowhere. *exact becomes false when it holds on no box.
bool narrow(const Guard& g, std::span<const int64_t> fields, std::vector<LoopRange>& loops, bool* exact) {
  const auto v = g.known ? evaluate_affine(g.affine, fields) : std::nullopt;
  if (!v) {
    *exact = false;
    return true;
  }
  int which = -1, used = 0;
  for (size_t l = 0; l < v->coefficients.size(); ++l)
    if (v->coefficients[l] != 0) {
      which = static_cast<int>(l);
      ++used;
    }
  if (used == 0) return v->base >= 0;
  if (used > 1) {
    *exact = false;
    return true;
  }
  LoopRange& r = loops[static_cast<size_t>(which)];
  const int64_t k = v->coefficients[static_cast<size_t>(which)];
  if (k > 0)
    r.lo = std::max(r.lo, ceil_div(-v->base, k));
  else
    r.hi = std::min(r.hi, floor_div(v->base, -k));
  return r.lo <= r.hi;
}

constexpr int64_t kFar = int64_t{1} << 45;  // addresses beyond are out of any memory; products below stay in 64 bits

}  // namespace

struct Footprints::Impl {
  const HwDescription* hw = nullptr;
  std::vector<std::vector<FormCode>> insns;

  Result<> add(const AccessCode& a, const FormCode& form, std::span<const int64_t> fields, const HwInsn& insn,
               std::span<const int64_t> words, FootprintResult& out, std::vector<PointMap>& maps) const;
};

Footprints::Footprints(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Footprints::Footprints(Footprints&&) noexcept = default;
Footprints& Footprints::operator=(Footprints&&) noexcept = default;
Footprints::~Footprints() = default;

Result<Footprints> Footprints::make(const HwDescription& hw) {
  auto impl = std::make_unique<Impl>();
  impl->hw = &hw;
  for (const HwInsn& insn : hw.isa.insns) {
    std::vector<FormCode> forms;
    for (const HwForm& f : insn.forms) {
      DLC_TRY(FormCode c, Extractor(hw, insn, f).run());
      forms.push_back(std::move(c));
    }
    impl->insns.push_back(std::move(forms));
  }
  return Footprints(std::move(impl));
}

Result<> Footprints::Impl::add(const AccessCode& a, const FormCode& form, std::span<const int64_t> fields,
                               const HwInsn& insn, std::span<const int64_t> words, FootprintResult& out,
                               std::vector<PointMap>& maps) const {
  const auto overflow = [&] { return fail(insn.loc, fmt::format("insn '{}': an address overflows", insn.name)); };
  const TensorCode& t = form.tensors[static_cast<size_t>(a.tensor)];
  Footprint fp;
  fp.write = a.write;
  fp.space = t.operand.space_for(insn, fields);
  if (fp.space < 0) return {};
  std::vector<LoopRange> loops;
  for (const FieldCode& e : a.extents) {
    const auto n = e.run(fields);
    if (!n || *n > kFar) return overflow();
    if (*n <= 0) return {};
    loops.push_back({0, *n - 1});
  }
  for (const Guard& g : a.guards)
    if (!narrow(g, fields, loops, &fp.exact)) return {};

  int64_t base = t.offset;
  PointMap map{&a, true, t.offset, std::vector<int64_t>(loops.size(), 0), {}};
  std::vector<StridedDim> dims;
  for (const LoopRange& r : loops) dims.push_back({0, r.hi - r.lo + 1});
  for (size_t d = 0; d < a.indices.size(); ++d) {
    const int64_t extent = d == 0 && t.external
                               ? (words.empty() ? hw->state_of(fp.space).words : words[static_cast<size_t>(fp.space)])
                               : t.extents[d];
    if (!a.indices[d].known) {
      fp.exact = false;
      map.known = false;
      dims.push_back({t.strides[d], extent});
      continue;
    }
    const auto v = evaluate_affine(a.indices[d].affine, fields);
    if (!v) return overflow();
    int64_t lo = v->base;
    for (size_t l = 0; l < loops.size(); ++l) {
      const auto k = checked_mul(v->coefficients[l], loops[l].lo);
      const auto s = k ? checked_add(lo, *k) : std::nullopt;
      if (!s) return overflow();
      lo = *s;
    }
    const int64_t at_low = lo;  // of the loops, not of the index
    int64_t hi = lo;
    for (size_t l = 0; l < loops.size(); ++l) {
      const auto k = checked_mul(v->coefficients[l], dims[l].count - 1);
      if (!k || std::abs(*k) > kFar || std::abs(lo) > kFar || std::abs(hi) > kFar) return overflow();
      (*k < 0 ? lo : hi) += *k;
      dims[l].stride += v->coefficients[l] * t.strides[d];
    }
    if ((lo < 0 || hi >= extent) && !a.may_be_out) {
      if (!fp.exact) continue;  // a condition may exclude those points: the interpreter decides
      if (!out.out) out.out = OutOfBounds{fp.space, a.write, lo, hi, extent};
      return {};
    }
    base += at_low * t.strides[d];
    map.origin += v->base * t.strides[d];
  }
  for (size_t l = 0; l < loops.size(); ++l) {
    map.strides[l] = dims[l].stride;
    map.counts.push_back(dims[l].count);
  }
  fp.bytes = strided_set(base, std::move(dims), t.width, &fp.exact);
  if (a.may_be_out || !fp.exact) {
    const HwState& s = hw->state_of(fp.space);
    const int64_t size = (words.empty() ? s.words : words[static_cast<size_t>(fp.space)]) * s.word_bytes();
    for (ByteRange& r : fp.bytes) r = {std::clamp<int64_t>(r.begin, 0, size), std::clamp<int64_t>(r.end, 0, size)};
    std::erase_if(fp.bytes, [](const ByteRange& r) { return r.begin >= r.end; });
  }
  out.accesses.push_back(std::move(fp));
  maps.push_back(std::move(map));
  return {};
}

namespace {

std::optional<SelfOverlap> self_overlap(const std::vector<Footprint>& accesses, const std::vector<PointMap>& maps) {
  for (size_t r = 0; r < accesses.size(); ++r)
    for (size_t w = 0; w < accesses.size(); ++w) {
      const bool pair = !accesses[r].write && accesses[w].write && accesses[r].space == accesses[w].space;
      if (!pair || (maps[r].known && maps[w].known && maps[r].same_points(maps[w]))) continue;
      if (const auto common = first_overlap(accesses[r].bytes, accesses[w].bytes))
        return SelfOverlap{accesses[r].space, *common};
    }
  return std::nullopt;
}

}  // namespace

Result<FootprintResult> Footprints::of(const Instruction& i, std::span<const int64_t> words) const {
  const HwInsn& insn = impl_->hw->isa.insns[static_cast<size_t>(i.insn)];
  FootprintResult out;
  if (insn.forms.empty()) return out;
  const int form = find_form(insn, i.fields);
  if (form < 0) return fail(insn.loc, fmt::format("insn '{}' does nothing for these fields", insn.name));
  const FormCode& code = impl_->insns[static_cast<size_t>(i.insn)][static_cast<size_t>(form)];
  std::vector<PointMap> maps;
  for (const AccessCode& a : code.accesses) DLC_CHECK(impl_->add(a, code, i.fields, insn, words, out, maps));
  out.self = self_overlap(out.accesses, maps);
  std::stable_sort(out.accesses.begin(), out.accesses.end(),
                   [](const Footprint& a, const Footprint& b) { return a.write < b.write; });
  return out;
}

}  // namespace dlc
