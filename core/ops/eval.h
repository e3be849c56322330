// Expressions of the op language to values: packs, lets, defs and attributes are expanded, static conditions decided,
// absent operands become `undef`.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ops/symbols.h"

namespace dlc::detail {

// The loops in force, innermost first: flat index name -> the loop variable.
struct Scope {
  const Scope* outer = nullptr;
  std::map<std::string, Expr, std::less<>> loops;
  const Expr* find(std::string_view name) const {
    for (const Scope* s = this; s; s = s->outer)
      if (const auto it = s->loops.find(name); it != s->loops.end()) return &it->second;
    return nullptr;
  }
};

struct Env {
  const Scope* scope = nullptr;  // none: shape context, where a bare index name is its extent
  int pack = -1;                 // position in the pack being expanded
  int operand = -1;              // position in the variadic operand being expanded
  const std::map<std::string, Value, std::less<>>* params = nullptr;  // inside a def: its parameters and nothing else
  bool exact = false;                                                 // integers are sizes: overflow is an error
  int calls = 0;                                                      // depth of defs
};

class Evaluator {
 public:
  explicit Evaluator(Symbols& symbols) : s_(symbols) {}

  Result<Value> value(const Node& n, const Env& env);
  Result<Val> number(const Node& n, const Env& env);
  // An integer over dims, simplified.
  Result<Expr> extent(const Node& n, const Env& env);
  // Every argument, with `...` expanded.
  Result<std::vector<Val>> arguments(const std::vector<Node>& args, const Env& env);
  Result<std::vector<Value>> expand(const Node& inner, const Env& env);
  Result<Value> attribute(const std::string& name, const Env& env, Pos pos);

  // The loops of a reduction or seq; binds them in `scope` and records the extents of local ones.
  Result<std::vector<Loop>> loops(const std::vector<RangeVar>& vars, const Env& env, Scope& scope);
  // A loop variable named after `name` that no symbol and no other loop of the statement has.
  std::string fresh(const std::string& name);
  std::set<std::string, std::less<>> used;  // loop variables of the statement
  // Lets and defs can make a short text mean a huge expression: an error, before anything walks over it.
  Result<> check_tree(const Val& v, Pos pos) const;

 private:
  Result<Value> evaluate(const Node& n, const Env& env);
  Result<Value> name(const Node& n, const Env& env);
  Result<Value> index(const std::string& name, const Element& e, const Env& env, Pos pos);
  Result<Value> size(const Node& n, const Env& env);
  Result<Value> read(const Node& n, const Env& env);
  Result<Value> read_tensor(const Node& n, const TensorName& t, const Env& env);
  Result<Value> call(const Node& n, const Env& env);
  Result<std::optional<Value>> builtin(const Node& n, const Env& env);
  Result<Value> type_function(const Node& n, const Env& env);
  Result<Val> flat(const Node& n, const Env& env);
  Result<Val> unflat(const Node& n, const Env& env);
  Result<Value> call_def(const DefAst& d, const Node& n, const Env& env);
  Result<Value> branch(const Node& n, const Env& env);
  Result<Value> fold(const Node& n, const Env& env);
  Result<Value> binary(const Node& n, const Env& env);
  Result<Value> reduce(const Node& n, const Env& env);
  Result<Value> checked(Val v, Pos pos) const;
  Result<> check_size(BinaryOp op, const Val& a, const Val& b, const Node& n, const Env& env) const;
  Val compare(BinaryOp op, const Val& a, const Val& b) const;
  Result<std::string> argument_name(const Node& n, size_t i) const;

  Symbols& s_;
  int depth_ = 0;  // of the evaluation
  int steps_ = 0;  // nodes evaluated
};

}  // namespace dlc::detail
