#include "core/interp/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace dlc::interp {

namespace {

class Lowering {
 public:
  explicit Lowering(Lowered& out) : out_(out) {}

  Result<> run() {
    find_viewed();
    for (size_t i = 0; i < out_.kernel.tensors.size(); ++i) tensor(static_cast<int>(i));
    stmts(out_.kernel.body, out_.body);
    if (!valid_) return fail({}, "kernel " + out_.kernel.name + ": an index or extent overflows 64 bits");
    std::set<std::string> free;
    for (int s = 0; s < out_.slots.size(); ++s)
      if (!bound_.contains(s)) free.insert(out_.slots.name(s));
    for (const auto& name : free) out_.parameters.push_back(out_.slots.of(name));
    return {};
  }

 private:
  Ty type(DType t) const {
    if (t.is_bool()) return Ty::b;
    if (t.is_int()) return t == kU64 ? Ty::u64 : Ty::s64;
    return t == kF64 || out_.options.floats_as_double ? Ty::f64 : Ty::f32;
  }

  ExprCode code(const Expr& e) {
    valid_ &= e.valid();
    return e.valid() ? ExprCode(e, out_.slots) : ExprCode();
  }

  std::vector<LoopCode> loops(const std::vector<Loop>& ls) {
    std::vector<LoopCode> r;
    for (const Loop& l : ls) {
      const int slot = out_.slots.of(l.var);
      bound_.insert(slot);
      r.push_back({slot, l.extent, code(l.extent)});
    }
    return r;
  }

  // Nothing in such loops is ever evaluated; a remainder by a dim of 0 has no meaning there, and needs none.
  static bool are_empty(const std::vector<Loop>& ls) {
    return std::ranges::any_of(ls, [](const Loop& l) { return l.extent.is(0); });
  }

  void find_viewed() {
    viewed_.resize(out_.kernel.tensors.size());
    for (const auto& t : out_.kernel.tensors)
      if (t.view) viewed_[static_cast<size_t>(t.view->base)] = true;
  }

  void tensor(int index) {
    const KernelTensor& t = out_.kernel.tensors[static_cast<size_t>(index)];
    TensorCode c;
    c.dtype = t.dtype;
    for (const Expr& d : t.shape) c.shape.push_back(code(d));
    if (t.view) {
      c.base = t.view->base;
      c.byte_offset = code(t.view->byte_offset);
      for (const Expr& s : t.view->byte_strides) c.byte_strides.push_back(code(s));
    } else if (out_.options.floats_as_double && t.role == Role::temp && t.dtype.is_float() &&
               !viewed_[static_cast<size_t>(index)]) {
      c.dtype = kF64;
      c.internal = t.dtype != kF64;
    }
    c.elem = elem_of(c.dtype);
    out_.tensors.push_back(std::move(c));
  }

  Node constant(const ValNode& v) {
    Node n;
    n.kind = NodeKind::constant;
    n.ty = type(v.type);
    if (v.kind == ValKind::integer)
      with_type(n.ty, [&](auto tag) { n.constant.set(convert<typename decltype(tag)::type>(v.integer)); });
    else
      with_type(n.ty, [&](auto tag) { n.constant.set(convert<typename decltype(tag)::type>(v.real)); });
    return n;
  }

  Node value(const ValNode& v) {
    if (v.kind == ValKind::integer || v.kind == ValKind::real) return constant(v);
    Node n;
    n.ty = type(v.type);
    n.op = v.op;
    n.saturate = v.saturate;
    n.tensor = v.tensor;
    n.to = v.to;
    switch (v.kind) {
      case ValKind::index:
        n.kind = NodeKind::index;
        n.expr = v.index;
        n.code = code(v.index);
        break;
      case ValKind::read:
        n.kind = NodeKind::read;
        break;
      case ValKind::unary:
        n.kind = NodeKind::unary;
        break;
      case ValKind::binary:
        n.kind = NodeKind::binary;
        break;
      case ValKind::select:
        n.kind = NodeKind::select;
        break;
      case ValKind::orelse:
        n.kind = NodeKind::orelse;
        break;
      case ValKind::call:
        n.kind = NodeKind::call;
        break;
      case ValKind::cast:
        n.kind = NodeKind::cast;
        if (out_.options.floats_as_double && v.to.is_float()) n.to = kF64;
        break;
      case ValKind::reduce:
        n.kind = NodeKind::reduce;
        if (out_.options.floats_as_double && v.to.is_float()) n.to = kF64;
        n.loops = loops(v.loops);
        break;
      default:
        n.kind = NodeKind::undef;
        break;
    }
    const bool is_empty = v.kind == ValKind::reduce && are_empty(v.loops);
    for (const Val& a : v.args) n.args.push_back(is_empty ? zero(*a) : value(*a));
    return n;
  }

  Node zero(const ValNode& v) {
    Node n;
    n.kind = NodeKind::constant;
    n.ty = type(v.type);
    with_type(n.ty, [&](auto tag) { n.constant.set(convert<typename decltype(tag)::type>(int64_t{0})); });
    return n;
  }

  void stmts(const std::vector<Stmt>& from, std::vector<StmtCode>& to) {
    for (const Stmt& s : from)
      if (!are_empty(s.loops)) to.push_back(stmt(s));
  }

  StmtCode stmt(const Stmt& s) {
    StmtCode c;
    c.source = &s;
    c.loops = loops(s.loops);
    c.step = s.step;
    if (s.kind == Stmt::Kind::seq) {
      stmts(s.body, c.body);
      return c;
    }
    c.id = next_id_++;
    c.tensor = s.tensor;
    for (const Val& i : s.indices) c.indices.push_back(value(*i));
    c.value = value(*s.value);
    return c;
  }

  Lowered& out_;
  std::set<int> bound_;
  std::vector<bool> viewed_;
  bool valid_ = true;
  int next_id_ = 0;
};

}  // namespace

Result<std::unique_ptr<Lowered>> lower(Kernel kernel, const InterpOptions& options) {
  auto out = std::make_unique<Lowered>();
  out->kernel = std::move(kernel);
  out->options = options;
  DLC_CHECK(Lowering(*out).run());
  return out;
}

}  // namespace dlc::interp
