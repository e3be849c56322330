// Statements to the loop tree of a kernel: loops from the target's indices, stages declared on the way.
#pragma once

#include <vector>

#include "core/ops/eval.h"

namespace dlc::detail {

class StatementBuilder {
 public:
  StatementBuilder(Symbols& symbols, Kernel& kernel) : s_(symbols), k_(kernel), eval_(symbols) {}
  // Appends `body` to the kernel.
  Result<> build(const std::vector<Statement>& body);

 private:
  // What a target's brackets mean: its own loops (those no seq binds) and one value for every dim.
  struct Target {
    std::vector<Loop> loops;
    std::vector<Val> indices;
    std::vector<Expr> extents;  // of the dims that are plain indices
    Scope scope;
  };
  Result<Target> target(const Statement& st, const Scope& outer);
  Result<std::optional<std::vector<Element>>> declared(const Node& n);
  // First pass: extents and stages, so that a seq may read its own later stages.
  Result<> declare(const std::vector<Statement>& body, const Scope& outer);
  Result<std::vector<Stmt>> emit(const std::vector<Statement>& body, const Scope& outer);
  Result<Stmt> emit_assign(const Statement& st, const Scope& outer);
  bool never_runs(const Stmt& s, const Scope& outer) const;
  void simplify_statement(Stmt& s, const Scope& outer) const;
  Result<int> seq_step(const Statement& st);

  Symbols& s_;
  Kernel& k_;
  Evaluator eval_;
};

// `value` as it is stored in a tensor of type t: bool, integers and floats convert; a float needs a cast to become an
// integer.
Result<Val> stored(Val value, DType t, const std::string& tensor, const Symbols& s, Pos pos);

}  // namespace dlc::detail
