// A kernel made ready for evaluation: symbols are slots, Exprs are code, types are compute types. The tree walk runs on
// this form and the fast interpreter is planned from it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/interp/expr_code.h"
#include "core/interp/scalar.h"
#include "dlc/interp/interp.h"
#include "dlc/kernel/kernel.h"

namespace dlc::interp {

// A value at one point.
struct Scalar {
  union {
    uint8_t b;
    int64_t s64;
    uint64_t u64;
    float f32;
    double f64;
  };
  bool undefined = false;

  Scalar() : s64(0) {}
  static Scalar undef() {
    Scalar s;
    s.undefined = true;
    return s;
  }
  template <class T>
  static Scalar of(T v) {
    Scalar s;
    s.set(v);
    return s;
  }
  template <class T>
  T get() const {
    if constexpr (std::is_same_v<T, uint8_t>)
      return b;
    else if constexpr (std::is_same_v<T, uint64_t>)
      return u64;
    else if constexpr (std::is_same_v<T, float>)
      return f32;
    else if constexpr (std::is_same_v<T, double>)
      return f64;
    else
      return static_cast<T>(s64);
  }
  template <class T>
  void set(T v) {
    if constexpr (std::is_same_v<T, uint8_t>)
      b = v;
    else if constexpr (std::is_same_v<T, uint64_t>)
      u64 = v;
    else if constexpr (std::is_same_v<T, float>)
      f32 = v;
    else if constexpr (std::is_same_v<T, double>)
      f64 = v;
    else
      s64 = v;
  }
};

struct LoopCode {
  int slot = 0;
  Expr extent_expr;
  ExprCode extent;
};

enum class NodeKind : uint8_t { constant, index, read, unary, binary, select, orelse, call, cast, reduce, undef };

struct Node {
  NodeKind kind = NodeKind::undef;
  Ty ty = Ty::f32;
  uint8_t op = 0;  // UnaryOp, BinaryOp, Fn or ReduceOp
  bool saturate = false;
  int tensor = -1;
  DType to = kF32;  // cast, reduce
  Scalar constant;
  Expr expr;  // index
  ExprCode code;
  std::vector<LoopCode> loops;  // reduce
  std::vector<Node> args;

  UnaryOp unary_op() const { return static_cast<UnaryOp>(op); }
  BinaryOp binary_op() const { return static_cast<BinaryOp>(op); }
  Fn fn() const { return static_cast<Fn>(op); }
  ReduceOp reduce_op() const { return static_cast<ReduceOp>(op); }
};

struct StmtCode {
  const Stmt* source = nullptr;  // for messages
  int id = -1;                   // assigns, in order
  std::vector<LoopCode> loops;
  int tensor = -1;
  std::vector<Node> indices;
  Node value;
  int step = 1;
  std::vector<StmtCode> body;  // seq
  bool is_seq() const { return source->kind == Stmt::Kind::seq; }
};

struct TensorCode {
  DType dtype = kF32;  // as it lies in memory; f64 for a float temporary under floats_as_double
  Elem elem = Elem::f32;
  std::vector<ExprCode> shape;
  int base = -1;  // a view's base
  ExprCode byte_offset;
  std::vector<ExprCode> byte_strides;
  bool internal = false;  // storage is the interpreter's own, whatever buffer is given
};

struct Lowered {
  Kernel kernel;
  InterpOptions options;
  Slots slots;
  std::vector<TensorCode> tensors;
  std::vector<StmtCode> body;
  std::vector<int> parameters;  // slots of the free symbols, in order of name
};

Result<std::unique_ptr<Lowered>> lower(Kernel kernel, const InterpOptions& options);

}  // namespace dlc::interp
