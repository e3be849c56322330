// The kernel level: a flat loop nest over named statements. Nothing here knows packs, attributes, optionals or op
// names.
//
// A Kernel is what an op record becomes once shapes and attributes are known, what fused groups are made of, and what
// the `does` of a hardware instruction parses to (its encoding fields are then free symbols in the Exprs).
//
//   dlc.kernel 1
//   kernel @conv1 {
//     in   X: s8[1,64,58,58]
//     const W: s8[64,64,3,3]
//     temp acc: s32[1,64,56,56]
//     out  Y: s8[1,64,56,56]
//     for n < 1, o < 64, y < 56, x < 56:
//       acc[n, o, y, x] = sum:s32[c < 64, kh < 3, kw < 3] X[n, c, y + kh, x + kw] * W[o, c, kh, kw]
//     ...
//   }
//
// Meaning. A statement `for loops: T[idx] = value` evaluates value at every point of the loops and stores it, wrapped
// or rounded to T's dtype. Statements run in order; the points of one statement's own loops are independent. `seq t < n
// by 1 { ... }` runs its body for t in order (backwards for step -1). Every value has one of five compute types (see
// compute_type in dtype.h): integers are exact in 64 bits, f16 and bf16 compute in f32.
//
// Undefined. A read whose index is out of the tensor's bounds is undefined, and so is the literal `undef`. Operators,
// calls, casts and reductions are strict in it; `if` is lazy; `a ?: b` is b where a is undefined. An undefined value
// that reaches a store or a condition is an error. In-bounds elements must have been written before they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/dtype.h"
#include "dlc/expr/expr.h"

namespace dlc {

struct Loop {
  std::string var;  // unique within the kernel unless two statements use the same name for their own loops
  Expr extent;      // runs 0 .. extent-1; may use dims, and for instructions the fields
};

enum class ValKind : uint8_t {
  integer,  // ValNode::integer, type s64, u64 or bool
  real,     // ValNode::real, type f32 or f64
  index,    // ValNode::index: an Expr over loop variables, dims and fields; type s64
  read,     // tensor[args...], each arg an s64 value; affine args are `index` nodes
  unary,    // UnaryOp(args[0])
  binary,   // BinaryOp(args[0], args[1])
  select,   // if args[0] then args[1] else args[2]
  orelse,   // args[0] ?: args[1]
  call,     // Fn(args...)
  cast,     // args[0] converted to `to` (wraps, or saturates when `saturate`), then widened to compute_type(to)
  reduce,   // reduce_op over `loops` of args[0], accumulated in `to`
  undef,
};

enum class UnaryOp : uint8_t { neg, logical_not, bit_not };

enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,  // real division; two integers give f32
  floor_div,
  mod,  // integers, toward minus infinity; also on floats (mod has the divisor's sign). By 0: undefined
  shl,
  shr,  // integers; shr is arithmetic on s64; a count outside 0..63 is undefined
  bit_and,
  bit_or,
  bit_xor,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,  // lazy in the second operand
};

enum class Fn : uint8_t {
  exp,
  log,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  sqrt,
  rsqrt,
  pow,
  abs,
  sign,
  floor,
  ceil,
  round,
  trunc,  // float to the same float; round is half to even
  min,
  max,  // any number of arguments >= 1; NaN if any argument is NaN
  fmod,
  tdiv,  // C remainder; integer division toward zero
  is_nan,
  is_inf,  // to bool
};

enum class ReduceOp : uint8_t { sum, prod, max, min, any, all, argmax, argmin };  // arg*: first position wins, one loop

struct ValNode;
using Val = std::shared_ptr<const ValNode>;

struct ValNode {
  ValKind kind = ValKind::undef;
  DType type = kF32;  // a compute type: bool, s64, u64, f32, f64
  uint8_t op = 0;     // UnaryOp, BinaryOp, Fn or ReduceOp
  bool saturate = false;
  int tensor = -1;
  int64_t integer = 0;
  double real = 0;
  DType to = kF32;
  Expr index;
  std::vector<Loop> loops;
  std::vector<Val> args;

  UnaryOp unary_op() const { return static_cast<UnaryOp>(op); }
  BinaryOp binary_op() const { return static_cast<BinaryOp>(op); }
  Fn fn() const { return static_cast<Fn>(op); }
  ReduceOp reduce_op() const { return static_cast<ReduceOp>(op); }
};

// Constructors. They fold constants, collapse integer arithmetic over indices to one `index` Expr, insert the
// conversions of the typing rules (see docs/language.md) and drop what undefined operands make undefined.
namespace val {
Val integer(int64_t v, DType type = kS64);
Val boolean(bool v);
Val real(double v, DType type = kF32);
Val index(const Expr& e);
Val undef(DType type);
Val read(int tensor, DType element, std::vector<Val> indices);
Val unary(UnaryOp op, Val a);
Val binary(BinaryOp op, Val a, Val b);
Val select(Val condition, Val then, Val otherwise);
Val orelse(Val a, Val b);
Val call(Fn fn, std::vector<Val> args);
Val cast(DType to, Val a, bool saturate = false);
// `acc`: the type the sum is kept in; its compute type is the node's type.
Val reduce(ReduceOp op, DType acc, std::vector<Loop> loops, Val body);
// a converted to compute type t (no narrowing); the value itself when it has it.
Val convert(DType t, Val a);
// The Expr of an integer value that is one, or nullopt (data-dependent or not an integer).
std::optional<Expr> as_expr(const Val& v);
bool structurally_equal(const Val& a, const Val& b);
}  // namespace val

enum class Role : uint8_t { input, constant, output, temp, state };

// Where a tensor's elements lie when it is not a dense buffer of its own: inside another tensor's bytes. Views (slices,
// concat operands, in-place results) and the typed windows of a hardware memory (par.bias) are all this.
struct View {
  int base = -1;  // tensor index
  Expr byte_offset;
  std::vector<Expr> byte_strides;  // one per dim
};

struct KernelTensor {
  std::string name;
  DType dtype = kF32;
  std::vector<Expr> shape;
  Role role = Role::temp;
  std::optional<View> view;
};

struct Stmt {
  enum class Kind : uint8_t { assign, seq };
  Kind kind = Kind::assign;
  // assign: for loops: tensor[indices] = value
  // seq:    for each point of loops in order (reverse when step < 0): body
  std::vector<Loop> loops;
  int tensor = -1;
  std::vector<Val> indices;
  Val value;
  int step = 1;  // +1 or -1
  std::vector<Stmt> body;
};

struct Kernel {
  std::string name;
  std::vector<KernelTensor> tensors;
  std::vector<int> inputs;   // tensor indices in operand order; -1 for an absent optional operand
  std::vector<int> outputs;  // tensor indices in result order
  std::vector<Stmt> body;
  // Equalities and inequalities over dims that were assumed; each Expr must be >= 0 (an equality gives two).
  std::vector<Expr> assumptions;
  std::vector<std::string> locations;  // the model's node names this kernel came from

  int find(std::string_view tensor_name) const;  // -1 when absent
};

// Text that round-trips: print(parse(print(k))) == print(k), with the `dlc.kernel 1` header line.
std::string print(const Kernel& k);
std::string print(const Val& v, const Kernel& k);
Result<Kernel> parse_kernel(std::string_view text, const std::string& file = {});

// Structural rules: types, ranks, bound loop names, indices of the right type, every output written, roles respected.
Result<> verify(const Kernel& k);

// Ranges of every loop variable in scope: var -> [0, extent - 1].
void add_loop_ranges(const std::vector<Loop>& loops, Ranges& ranges);

// Rewriting helpers used by every pass. f may return nullptr for "unchanged"; children are rewritten first.
Val rewrite(const Val& v, const std::function<Val(const Val&)>& f);
void walk(const Val& v, const std::function<void(const ValNode&)>& f);  // pre-order
void walk(const std::vector<Stmt>& body, const std::function<void(const Stmt&)>& f);
// Replaces symbols (loop variables, dims, fields) in every Expr of v, and in extents.
Val substitute(const Val& v, const std::map<std::string, Expr, std::less<>>& values);
Kernel substitute(const Kernel& k, const std::map<std::string, Expr, std::less<>>& values);

}  // namespace dlc
