// Values at the points of the register tile, and reads.
#include "emitter.h"

namespace dlc::cpu {

// ---- points

VarSet Emitter::dims_of(VarSet vars) const {
  VarSet r = 0;
  for (size_t d = 0; d < tile_.dims.size(); ++d)
    if (vars & l_->bit(tile_.dims[d].var)) r |= VarSet{1} << d;
  return r;
}

VarSet Emitter::dims_of(const ValNode* v) const { return dims_of(l_->vars(v)); }

size_t Emitter::points(VarSet dims) const {
  size_t n = 1;
  for (size_t d = 0; d < tile_.dims.size(); ++d)
    if (dims >> d & 1) n *= static_cast<size_t>(tile_.dims[d].count);
  return n;
}

// The last dim varies fastest.
Emitter::Point Emitter::point(VarSet dims, size_t index) const {
  Point p(tile_.dims.size(), 0);
  for (size_t d = tile_.dims.size(); d-- > 0;) {
    if (!(dims >> d & 1)) continue;
    const auto count = static_cast<size_t>(tile_.dims[d].count);
    p[d] = static_cast<int64_t>(index % count) * tile_.dims[d].step;
    index /= count;
  }
  return p;
}

size_t Emitter::project(VarSet from, size_t index, VarSet to) const {
  size_t result = 0, scale = 1;
  for (size_t d = tile_.dims.size(); d-- > 0;) {
    if (!(from >> d & 1)) continue;
    const auto count = static_cast<size_t>(tile_.dims[d].count);
    if (to >> d & 1) {
      result += index % count * scale;
      scale *= count;
    }
    index /= count;
  }
  return result;
}

// ---- values

const Cells& Emitter::eval(const Val& v, bool raw) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    auto& known = raw ? scopes_[i].raw_cells : scopes_[i].cells;
    if (const auto it = known.find(v.get()); it != known.end()) return it->second;
  }
  Cells cells = compute(v, raw);
  auto& known = raw ? scopes_.back().raw_cells : scopes_.back().cells;
  return known[v.get()] = std::move(cells);
}

const Cell& Emitter::cell_at(const Val& v, VarSet dims, size_t index) {
  const Cells& cells = eval(v);
  return cells[project(dims, index, dims_of(v.get()))];
}

Cells Emitter::compute(const Val& v, bool raw) {
  if (v->kind == ValKind::reduce) return reduce(v);
  const VarSet dims = dims_of(v.get());
  const size_t n = points(dims);
  Cells out;
  out.reserve(n);
  if (v->kind == ValKind::read) {
    for (size_t i = 0; i < n; ++i) out.push_back(read_at(*v, l_->access(v.get()), dims, i, raw, nullptr));
    return out;
  }
  if (v->kind == ValKind::orelse && v->args[0]->kind == ValKind::read) {
    const ValNode& read = *v->args[0];
    if (llvm::Constant* fallback = stored_literal(k_.tensors[static_cast<size_t>(read.tensor)].dtype, v->args[1])) {
      for (size_t i = 0; i < n; ++i) {
        Value* value = read_at(read, l_->access(&read), dims, i, raw, fallback).v;
        out.push_back({raw || !v->type.is_int() ? value : resize(value, l_->rep(v.get()))});
      }
      return out;
    }
  }
  if (v->kind == ValKind::index) {
    llvm::Type* type = type_of(l_->rep(v.get()));
    for (size_t i = 0; i < n; ++i) {
      const Expr e = at(v->index, point(dims, i));
      out.push_back({depends_on_lane(e) ? lanes_of(e, type) : b_.CreateSExtOrTrunc(expr(e), type)});
    }
    return out;
  }
  // Reductions first: what is loaded beside them (a bias, a residual) would only occupy registers in their loops.
  const auto raw_arg = [&](size_t a) { return raw && !(v->kind == ValKind::select && a == 0); };
  for (size_t a = 0; a < v->args.size(); ++a)
    if (l_->reduces(v->args[a].get())) eval(v->args[a], raw_arg(a));
  std::vector<const Cells*> args;
  for (size_t a = 0; a < v->args.size(); ++a) args.push_back(&eval(v->args[a], raw_arg(a)));
  std::vector<Cell> cells(args.size());
  for (size_t i = 0; i < n; ++i) {
    for (size_t a = 0; a < args.size(); ++a) cells[a] = (*args[a])[project(dims, i, dims_of(v->args[a].get()))];
    out.push_back(apply(*v, cells, raw));
  }
  return out;
}

Cell Emitter::apply(const ValNode& n, const std::vector<Cell>& args, bool raw) {
  llvm::Type* type = raw ? storage_type(l_->store_type()) : type_of(l_->rep(&n));
  switch (n.kind) {
    case ValKind::integer:
      return {llvm::ConstantInt::get(type, static_cast<uint64_t>(n.integer), true)};
    case ValKind::real:
      return {llvm::ConstantFP::get(type, n.type == kF32 ? static_cast<float>(n.real) : n.real)};
    case ValKind::undef:
      return {llvm::Constant::getNullValue(type), b_.getFalse()};
    case ValKind::unary: {
      Value* v = args[0].v;
      if (n.unary_op() == UnaryOp::logical_not) return {b_.CreateNot(v), args[0].ok};
      if (n.type.is_float()) return {b_.CreateFNeg(v), args[0].ok};
      v = resize(v, l_->rep(&n));
      return {n.unary_op() == UnaryOp::neg ? b_.CreateNeg(v) : b_.CreateNot(v), args[0].ok};
    }
    case ValKind::binary:
      return binary(n, args[0], args[1]);
    case ValKind::select: {
      Value *a = args[1].v, *b = args[2].v;
      if (!raw && n.type.is_int()) {
        a = resize(a, l_->rep(&n));
        b = resize(b, l_->rep(&n));
      }
      unify(a, b);
      if (is_vector(args[0].v)) a = broadcast(a), b = broadcast(b);
      Value* ok = args[0].ok;
      if (args[1].ok || args[2].ok) {
        Value *x = args[1].ok ? args[1].ok : b_.getTrue(), *y = args[2].ok ? args[2].ok : b_.getTrue();
        unify(x, y);
        if (is_vector(args[0].v)) x = broadcast(x), y = broadcast(y);
        ok = both(ok, b_.CreateSelect(args[0].v, x, y));
      }
      return {b_.CreateSelect(args[0].v, a, b), ok};
    }
    case ValKind::orelse: {
      Value *a = args[0].v, *b = args[1].v, *ok = args[0].ok;
      if (!raw && n.type.is_int()) {
        a = resize(a, l_->rep(&n));
        b = resize(b, l_->rep(&n));
      }
      if (!ok) return {a};
      unify(a, b);
      if (is_vector(ok)) a = broadcast(a), b = broadcast(b);
      Value* v = b_.CreateSelect(ok, a, b);
      if (!args[1].ok) return {v};
      Value* other = args[1].ok;
      unify(ok, other);
      return {v, b_.CreateOr(ok, other)};
    }
    case ValKind::call:
      return call(n, args);
    case ValKind::cast:
      return {cast(n, args[0].v), args[0].ok};
    default:
      error("a value of unknown kind");
      return {llvm::Constant::getNullValue(type)};
  }
}

// ---- reads

Emitter::Value* Emitter::dynamic_offset(const Access& a, const std::vector<Val>& indices, VarSet dims, size_t index) {
  Value* sum = nullptr;
  for (size_t i = 0; i < a.dynamic.size(); ++i) {
    const Cell& c = cell_at(indices[static_cast<size_t>(a.dynamic[i])], dims, index);
    Value *v = resize(c.v, Rep::i64), *stride = expr(a.dynamic_strides[i]);
    unify(v, stride);
    v = b_.CreateMul(v, stride);
    if (sum) unify(sum, v);
    sum = sum ? b_.CreateAdd(sum, v) : v;
  }
  return sum;
}

Emitter::Value* Emitter::check_at(const std::vector<Check>& checks, const std::vector<Val>& indices, VarSet dims,
                                  size_t index) {
  Value* ok = nullptr;
  const Point p = point(dims, index);
  for (const Check& c : checks) {
    if (c.dynamic) {
      const Cell& cell = cell_at(indices[static_cast<size_t>(c.dim)], dims, index);
      Value *v = resize(cell.v, Rep::i64), *extent = expr(c.extent);
      unify(v, extent);
      ok = both(both(ok, cell.ok), b_.CreateICmpULT(v, extent));
      continue;
    }
    const Expr e = at(c.index, p);
    if (!depends_on_lane(e)) {
      ok = both(ok, b_.CreateICmpULT(expr(e), expr(c.extent)));
      continue;
    }
    const Interval range = bounds(c.index, l_->ranges()), extent = bounds(c.extent, l_->ranges());
    const bool narrow = range.lo >= INT32_MIN && range.hi <= INT32_MAX && extent.hi <= INT32_MAX &&
                        affine(e, std::span(&tile_.vector_var, 1));
    llvm::Type* type = narrow ? b_.getInt32Ty() : b_.getInt64Ty();
    ok = both(ok, b_.CreateICmpULT(lanes_of(e, type), lanes_of(c.extent, type)));
  }
  return ok;
}

// The element a literal is stored as; null when v is no literal, or t does not hold it exactly.
llvm::Constant* Emitter::stored_literal(DType t, const Val& v) {
  llvm::Type* type = storage_type(t);
  if (v->kind == ValKind::real && t.is_float()) {
    if (!t.is_narrow_float())
      return llvm::ConstantFP::get(type, v->type == kF32 ? static_cast<float>(v->real) : v->real);
    const auto f = static_cast<float>(v->real);
    return rounded_to(t, f) == f ? llvm::ConstantInt::get(type, to_bits(t, f)) : nullptr;
  }
  if (v->kind != ValKind::integer || t.is_float() || t == kU64) return nullptr;
  if (v->integer < t.min_value() || v->integer > t.max_value()) return nullptr;
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(v->integer), true);
}

Emitter::Value* Emitter::filled_memory(llvm::Constant* element) {
  llvm::GlobalVariable*& memory = filled_[element];
  if (!memory) {
    const std::vector<llvm::Constant*> elements(static_cast<size_t>(target_.vector_bytes), element);
    auto* type = llvm::ArrayType::get(element->getType(), elements.size());
    memory = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                      llvm::ConstantArray::get(type, elements), "dlc.outside");
    memory->setAlignment(llvm::Align(64));
  }
  return memory;
}

// Where the check is the same for all lanes, a read that fails goes to memory that holds what it then gives: no branch
// and no mask.
Cell Emitter::read_at(const ValNode& n, const Access& a, VarSet dims, size_t index, bool raw,
                      llvm::Constant* fallback) {
  const DType t = k_.tensors[static_cast<size_t>(n.tensor)].dtype;
  llvm::Type* element = storage_type(t);
  llvm::Constant* outside = fallback ? fallback : llvm::Constant::getNullValue(element);
  Value* ok = check_at(a.checks, n.args, dims, index);
  for (int d : a.dynamic) ok = both(ok, cell_at(n.args[static_cast<size_t>(d)], dims, index).ok);
  Value* dynamic = dynamic_offset(a, n.args, dims, index);
  const Expr offset = at(a.offset, point(dims, index));
  const llvm::Align align(static_cast<uint64_t>(t.bytes()));
  const auto result = [&](Value* stored) {
    return Cell{raw ? stored : decode(t, stored, l_->rep(&n)), fallback ? nullptr : ok};
  };

  if (!depends_on_lane(offset) && !(dynamic && is_vector(dynamic)) && !(ok && is_vector(ok))) {
    Value* p = pointer(a.root, offset);
    if (dynamic) p = b_.CreateGEP(b_.getInt8Ty(), p, dynamic);
    if (ok) p = b_.CreateSelect(ok, p, filled_memory(outside));
    return result(b_.CreateAlignedLoad(element, p, align));
  }

  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(tile_.lanes));
  Value* passed = b_.CreateVectorSplat(static_cast<unsigned>(tile_.lanes), outside);
  Value* mask = ok && is_vector(ok) ? both(ok, tile_.active) : tile_.active;
  const auto form = affine(offset, std::span(&tile_.vector_var, 1));
  const bool contiguous = form && form->coefficients[0].is(t.bytes()) && !(dynamic && is_vector(dynamic));
  if (contiguous) {
    Value* p = pointer(a.root, offset);
    if (dynamic) p = b_.CreateGEP(b_.getInt8Ty(), p, dynamic);
    if (ok && !is_vector(ok)) p = b_.CreateSelect(ok, p, filled_memory(outside));
    if (!mask) return result(b_.CreateAlignedLoad(type, p, align));
    return result(b_.CreateMaskedLoad(type, p, align, mask, passed));
  }

  // Lane by lane: pointers of the elements.
  Value *p = nullptr, *lane_offsets = nullptr;
  if (form) {
    p = pointer(a.root, offset);
    lane_offsets = lanes_of(form->coefficients[0] * Expr::symbol(tile_.vector_var), b_.getInt64Ty());
    Value* first = broadcast(expr(form->coefficients[0] * Expr::symbol(tile_.vector_var)));
    lane_offsets = b_.CreateSub(lane_offsets, first);
  } else {
    p = buffers_[static_cast<size_t>(a.root)];
    lane_offsets = lanes_of(offset, b_.getInt64Ty());
  }
  if (dynamic) lane_offsets = b_.CreateAdd(lane_offsets, broadcast(dynamic));
  Value* pointers = b_.CreateGEP(b_.getInt8Ty(), p, lane_offsets);
  if (ok && !is_vector(ok)) mask = both(broadcast(ok), tile_.active);
  if (!mask)
    mask = llvm::ConstantInt::getAllOnesValue(
        llvm::FixedVectorType::get(b_.getInt1Ty(), static_cast<unsigned>(tile_.lanes)));
  return result(b_.CreateMaskedGather(type, pointers, align, mask, passed));
}

}  // namespace dlc::cpu
