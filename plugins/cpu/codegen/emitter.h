// One kernel to one LLVM function.
//
// A statement runs as the loops of its schedule. The innermost ones form the register tile: each of its values is
// computed for all points of the tile at once, as one Cell per point the value depends on, where a cell is a scalar or,
// if it depends on the vector loop, a vector of `lanes` elements. X[m,k] in a tile of 8 m by 3 vectors of n is 8
// scalars, W[k,n] is 3 vectors, and their sum of products keeps 24 vector accumulators: the GEMM micro-kernel is no
// special case.
//
// Scopes follow the open loops. Exprs and addresses are emitted in the outermost scope that has their variables, by
// inserting before the branch into the next loop, so nothing invariant is computed inside.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen.h"
#include "lowering.h"

namespace dlc::cpu {

// A value at one point (or one vector of points). ok: whether it is defined, i1 or a vector of i1; null means always.
struct Cell {
  llvm::Value* v = nullptr;
  llvm::Value* ok = nullptr;
};
using Cells = std::vector<Cell>;

// `count` points of `var`, `step` apart, computed together.
struct TileDim {
  std::string var;
  int count = 1;
  int64_t step = 1;
};

class Emitter {
 public:
  Emitter(const Kernel& k, const Target& target, llvm::Module& module);

  // Adds `int64_t name(ptr buffers, ptr dims)` to the module, and the steps it calls.
  Result<> emit(const std::string& name, const std::vector<Schedule>& schedules);
  const std::vector<std::string>& symbols() const { return symbols_; }
  const std::vector<Step>& steps() const { return steps_; }

 private:
  using Value = llvm::Value;

  struct Scope {
    std::string var;                      // the loop that opened it; empty for the function
    Value* var_value = nullptr;           // its induction variable
    llvm::Instruction* anchor = nullptr;  // values of this scope go before it while an inner loop is open
    std::unordered_map<const detail::ExprNode*, Value*> exprs;
    std::map<std::pair<int, const detail::ExprNode*>, Value*> pointers;
    std::unordered_map<const ValNode*, Cells> cells, raw_cells;
  };
  struct OpenLoop {
    llvm::BasicBlock *before = nullptr, *body = nullptr, *after = nullptr;
    llvm::PHINode* phi = nullptr;
    Value* counter = nullptr;  // phi, or a constant
    Value* end = nullptr;
    int64_t step = 1;
    bool may_be_empty = false;
    bool is_straight = false;  // one iteration, no blocks
    size_t anchored = 0;       // scopes whose values now go before the loop
    std::vector<Value*> initial;
    std::vector<llvm::PHINode*> carried;
  };
  struct Tile {
    std::vector<TileDim> dims;
    std::string vector_var;
    int lanes = 1;
    Value* active = nullptr;  // lanes inside the loop's range; null: all
  };
  using Point = std::vector<int64_t>;  // offset of each dim's variable

  // --- loops and scopes (emit_loops.cpp)
  // Runs var from start to end (exclusive). `carried` goes in as initial values and comes back as the loop's phis.
  OpenLoop open_loop(const std::string& var, Value* start, Value* end, int64_t step, bool reverse,
                     std::vector<Value*>& carried);
  // `carried` goes in as the next iteration's values and comes back as the values after the loop.
  void close_loop(OpenLoop& loop, std::vector<Value*>& carried);
  size_t scope_of(const Expr& e);
  void insert_in(size_t scope);  // continue at the end of an outer scope; guard the insertion point

  // --- Exprs and addresses (emit_expr.cpp)
  Value* expr(const Expr& e);  // i64
  Value* build_expr(const Expr& e, size_t level);
  Value* atom(const Atom& a);
  Value* lanes_of(const Expr& e, llvm::Type* element);  // <lanes x element> when it depends on the vector loop
  Value* lane_atom(const Atom& a, llvm::Type* element);
  Value* divide(Value* a, Value* b, const Expr& dividend, const Expr& divisor, bool remainder);
  Value* pointer(int tensor, const Expr& byte_offset);
  Value* pointer_part(int tensor, const Expr& byte_offset);
  Expr at(const Expr& e, const Point& p) const;
  bool depends_on_lane(const Expr& e) const;
  const Ranges& ranges() const;

  // --- points of the tile
  VarSet dims_of(const ValNode* v) const;  // bit i: depends on tile dim i
  VarSet dims_of(VarSet vars) const;
  size_t points(VarSet dims) const;
  Point point(VarSet dims, size_t index) const;
  size_t project(VarSet from, size_t index, VarSet to) const;

  // --- values (emit_value.cpp, emit_ops.cpp, emit_math.cpp, emit_reduce.cpp)
  // raw: as the element's storage, for statements that only move elements.
  const Cells& eval(const Val& v, bool raw = false);
  Cells compute(const Val& v, bool raw);
  Cell apply(const ValNode& n, const std::vector<Cell>& args, bool raw);
  // fallback: what the read gives out of bounds, as stored; null: it is undefined there.
  Cell read_at(const ValNode& n, const Access& a, VarSet dims, size_t index, bool raw, llvm::Constant* fallback);
  llvm::Constant* stored_literal(DType t, const Val& literal);  // null when it is none, or t cannot hold it
  Value* filled_memory(llvm::Constant* element);                // a vector's worth of it, to read from
  Value* check_at(const std::vector<Check>& checks, const std::vector<Val>& indices, VarSet dims, size_t index);
  Value* dynamic_offset(const Access& a, const std::vector<Val>& indices, VarSet dims, size_t index);
  const Cell& cell_at(const Val& v, VarSet dims, size_t index);

  // Reductions: one accumulator per point of `dims` (the tile dims the result depends on, and the reduction's own when
  // it is vectorised), followed by one `defined` flag each when the body may be undefined. See emit_reduce.cpp.
  Cells reduce(const Val& v);
  Cells reduce_in_place(const Val& v);              // the lanes of the statement's own vector loop
  Cells reduce_as_vectors(const Val& v, int loop);  // the reduction's loop becomes the vector loop
  Cells reduce_position(const Val& v);              // argmax, argmin
  void reduce_nest(const ValNode& r, size_t depth, VarSet dims, std::vector<Value*>& carried);
  void reduce_vector_nest(const ValNode& r, size_t depth, int loop, VarSet dims, std::vector<Value*>& carried);
  void accumulate(const ValNode& r, VarSet dims, std::vector<Value*>& carried);
  int64_t unroll_of(const Loop& loop) const;
  Value* horizontal(const ValNode& r, Value* v);
  Value* identity(const ValNode& r, int lanes);
  Value* combine(const ValNode& r, Value* a, Value* b);
  Value* narrow(const ValNode& r, Value* v);
  Rep accumulator_rep(const ValNode& r) const;
  Cell finish(const ValNode& r, Value* acc, Value* ok);
  Value* first_lanes(Value* count);  // mask of the lanes below count
  void hoist_bound(const Val& v);
  void hoist(const Val& v);
  VarSet bound_vars() const;

  Cell binary(const ValNode& n, Cell a, Cell b);
  Value* arithmetic(const ValNode& n, Value* a, Value* b);
  Value* compare(BinaryOp op, DType type, Value* a, Value* b);
  Cell call(const ValNode& n, const std::vector<Cell>& args);
  Value* float_call(const ValNode& n, const std::vector<Value*>& args);
  Value* integer_power(Value* base, Value* exponent, bool is_unsigned);
  Value* cast(const ValNode& n, Value* v);
  Value* convert(Value* v, DType from, Rep rep, DType to);  // between compute types
  Value* float_to_int(Value* v, bool to_u64);
  Value* saturate(Value* v, DType from, DType to);
  Value* wrap(Value* v, DType to);  // to the width of an integer type, in v's own type
  Value* integer_divide(Value* a, Value* b, bool is_unsigned, bool floor, bool remainder);
  Value* float_min_max(Value* a, Value* b, bool is_max);
  Value* round_to(Value* v, Fn fn);
  Value* is_nan(Value* v) { return b_.CreateFCmpUNO(v, v); }
  Value* fma(Value* a, Value* b, Value* c);
  Value* polynomial(Value* x, std::initializer_list<double> highest_first);
  Value* scale_by_power(Value* v, Value* n);
  Value* exp_f32(Value* x);
  Value* log_f32(Value* x);
  Value* tanh_f32(Value* x);
  Value* erf_f32(Value* x);
  Value* libm(Fn fn, const std::vector<Value*>& args);
  Value* intrinsic(llvm::Intrinsic::ID id, Value* v) { return b_.CreateUnaryIntrinsic(id, v); }

  llvm::Type* storage_type(DType t);
  Value* decode(DType t, Value* stored, Rep rep);
  Value* encode(DType t, Value* v, DType from);
  Value* resize(Value* v, Rep rep, bool zero_extend = false);  // between integer widths
  Value* broadcast(Value* v);
  void unify(Value*& a, Value*& b);
  Value* both(Value* a, Value* b);  // `and` of two ok values, null being true
  bool is_vector(Value* v) const { return v->getType()->isVectorTy(); }
  llvm::Type* type_of(Rep r);
  llvm::Type* like(llvm::Type* element, Value* shape) const;  // element, or a vector of it when shape is one
  Value* real(double v, Value* shape);
  Value* integer(int64_t v, Value* shape);

  // --- functions (emit_function.cpp)
  void collect_symbols();
  void begin_function(const std::string& name, bool is_step);
  void step(const Stmt& s, const std::string& name);
  // The loop that is split between threads: the outermost with enough parts, or the one with the most. Gives the number
  // of parts, and sets parallel_loop_ and grain_.
  Expr choose_parallel_loop();

  // --- statements (emit_stmt.cpp)
  void statements(const std::vector<Stmt>& body, std::vector<Loop>& around);
  void seq(const Stmt& s, size_t depth, std::vector<Loop>& around);
  void assign(const Stmt& s, const std::vector<Loop>& around);
  void loops(size_t depth);
  void tile_loop(size_t depth, const ScheduleLoop& loop, Value* lo, Value* hi);
  std::optional<int64_t> block_rest(const ScheduleLoop& s) const;
  void store_tile();
  void prefetch();
  void return_unless(Value* ok);
  void error(std::string message);

  const Kernel& k_;
  const Target& target_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  std::map<llvm::Constant*, llvm::GlobalVariable*> filled_;
  std::vector<llvm::Value*> buffers_;
  std::map<std::string, Value*, std::less<>> dims_;
  std::vector<std::string> symbols_;
  std::vector<Scope> scopes_;
  Tile tile_;
  std::map<std::string, int64_t> fixed_;                     // unrolled reduction variables: their offset in this copy
  std::map<std::string, std::pair<Value*, Value*>> blocks_;  // ranges set by block loops
  const Lowered* l_ = nullptr;
  const Schedule* schedule_ = nullptr;
  Value* reduce_mask_ = nullptr;  // lanes that take part in a vectorised reduction's last iteration
  std::vector<Schedule> schedules_;
  int statement_ = 0;
  std::vector<Step> steps_;
  int parallel_loop_ = -1;  // index into the schedule's loops
  int64_t grain_ = 1;       // points of it in one part
  std::string error_;
};

}  // namespace dlc::cpu
