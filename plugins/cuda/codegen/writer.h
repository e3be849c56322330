// The body of a CUDA function: one point of one statement, as C++ text.
//
//   for n < 8, c < 10:  Y[n, c] = max((sum[k < 64] X[n, k] * W[c, k]) + B[c], 0)
//
//   float sum = 0.0f;
//   for (int k = 0; k < 64; ++k) {
//     const float x = X[n * 64 + k];
//     const float w = W[c * 64 + k];
//     sum = dlc::fma(x, w, sum);
//   }
//   const float b = B[c];
//   Y[n * 10 + c] = dlc::max(sum + b, 0.0f);
//
// What may be undefined has a bool beside it that says whether it is defined. Values are written in the outermost open
// loop that has their variables; what is read, reduced or long becomes a variable, the rest stands where it is used.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/cuda/codegen/names.h"
#include "plugins/cuda/codegen/text.h"

namespace dlc::cuda {

class Writer {
 public:
  // `target`: the tensor that is stored to; `tensors`: the parameter of each tensor of the kernel that is no view.
  Writer(const lower::Lowered& lowered, int target, ExprText& exprs, Names& names,
         const std::vector<std::string>& tensors, int indent)
      : l_(lowered), target_(target), e_(exprs), names_(names), tensors_(tensors), indent_(indent) {
    scopes_.emplace_back();
  }

  // Loops whose iterations are shared among the threads of a block (those of a point that a block computes together).
  void share(const ValNode* reduction) { shared_ = reduction; }

  // Computes the point and stores it; `number` is reported where it is undefined. `only`: a condition of the store.
  void store(int number, const std::string& only);

  const std::string& text() const { return text_; }
  const std::string& error() const { return error_; }
  bool reports() const { return reports_; }

 private:
  struct Cell {
    Text v;
    Type type = Type::f32;
    std::string ok;  // a name or an expression in parentheses; empty: always
  };
  struct Scope {
    std::unordered_map<const ValNode*, Cell> cells, raw;
    std::map<std::string, std::string> declared;  // "const float = X[i]": the variable
    lower::VarSet vars = 0;                       // the loops that it opened
  };

  // --- text
  void line(const std::string& s);
  void open(const std::string& head);
  void close();
  // The variable that has this value, a new one where no open loop has it.
  std::string declare(std::string_view type, const std::string& value, std::string_view wanted);
  Cell named(Cell c, std::string_view wanted);  // as a variable of its own
  std::string all(std::string_view a, std::string_view b) const;
  static std::string as(const Cell& c, Type t);        // an operand of that type
  static std::string argument(const Cell& c, Type t);  // the same between commas
  void fail_with(std::string message);

  // --- values (writer.cpp)
  const Cell& eval(const Val& v, bool raw = false);
  Cell compute(const Val& v, bool raw);
  Cell read(const ValNode& n, bool raw, const Val& otherwise);
  std::string element(int tensor, const lower::Access& a, const std::vector<Val>& indices);
  std::string check(const lower::Access& a, const std::vector<Val>& indices);
  void count_uses(const Val& v);
  void hoist(const Val& v);
  lower::VarSet bound() const;
  Type type_of_node(const ValNode& n) const { return type_of(n.type, l_.rep(&n)); }

  // --- operators (operators.cpp)
  Cell unary(const ValNode& n, const Cell& a);
  Cell binary(const ValNode& n, Cell a, Cell b);
  Cell integer_binary(const ValNode& n, Cell a, Cell b);
  Cell call(const ValNode& n, const std::vector<Cell>& args);
  Cell cast(const ValNode& n, const Cell& a);
  std::string saturated(const Cell& a, DType from, DType to, Type result);
  std::string wrapped(const std::string& v, DType to);  // v is a long long
  std::string to_integer(const Cell& a, bool to_u64);
  Cell decoded(DType t, const std::string& stored, Type type);
  std::string encoded(DType t, const Cell& v);

  // --- reductions (reductions.cpp)
  Cell reduce(const Val& v);
  Cell reduce_position(const Val& v);
  void reduce_nest(const ValNode& r, size_t depth, const std::string& acc, Type type, const std::string& ok,
                   bool shared);
  void accumulate(const ValNode& r, const std::string& acc, Type type, const std::string& ok);
  Type accumulator(const ValNode& r) const;
  std::string identity(const ValNode& r, Type t) const;
  std::string combined(const ValNode& r, const std::string& a, const std::string& b, Type t) const;
  Cell finished(const ValNode& r, const std::string& acc, Type type, const std::string& ok);
  std::string open_loop(const Loop& loop, bool shared);

  const lower::Lowered& l_;
  int target_;
  ExprText& e_;
  Names& names_;
  const std::vector<std::string>& tensors_;
  const ValNode* shared_ = nullptr;
  std::string text_, error_;
  int indent_ = 0;
  bool reports_ = false;
  std::vector<Scope> scopes_;
  std::unordered_map<const ValNode*, int> uses_;
};

}  // namespace dlc::cuda
