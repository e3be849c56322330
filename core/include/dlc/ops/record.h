// Op records: one text says what an op means; shapes, verification, interpreter, classes and code follow from it.
//
// The language is described in docs/language.md; the records are in core/ops/*.ops. A record is instantiated for
// concrete operand types and attributes into a flat Kernel, in which packs, attributes, optionals, defs and static
// conditions are gone. Instantiation is also shape inference: the result types are the shapes of the kernel's outputs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/expr/expr.h"
#include "dlc/kernel/kernel.h"

namespace dlc {

struct TensorType {
  DType dtype = kF32;
  std::vector<Expr> shape;
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string to_string(const TensorType& t);  // "f32[N,3,224,224]"

// An attribute's value. Integers are Exprs, since a slice bound or a reshape target may be symbolic.
using AttrValue = std::variant<Expr, double, std::string, std::vector<Expr>, std::vector<double>,
                               std::vector<std::string>, DType, Tensor>;
using Attrs = std::map<std::string, AttrValue, std::less<>>;

// One operand of an instantiation: absent, one tensor, or the list of a variadic operand.
struct Operand {
  std::vector<TensorType> types;  // empty: absent. One entry unless the record's operand is variadic
  bool present = false;
  static Operand absent() { return {}; }
  static Operand of(TensorType t) { return {{std::move(t)}, true}; }
};

namespace detail {
struct RecordAst;
struct DefTable;
struct RecordSetBuilder;
}  // namespace detail

// What a caller needs to know of a record without instantiating it.
struct OperandInfo {
  std::string name;
  std::string type;  // as declared: "s8", a type variable, or empty
  bool optional = false;
  bool variadic = false;
};
struct AttrInfo {
  std::string name;
  bool required = false;
  bool list = false;
  std::string doc;  // the declaration as printed: type, domain, default
};

class Record {
 public:
  const std::string& name() const;
  const std::vector<OperandInfo>& operands() const;
  const std::vector<OperandInfo>& results() const;
  const std::vector<AttrInfo>& attributes() const;
  bool is_extern() const;     // meaning is a C++ reference, not an index expression
  std::string print() const;  // round-trips through RecordSet::parse
  const detail::RecordAst& ast() const { return *ast_; }
  explicit Record(std::shared_ptr<const detail::RecordAst> ast);

 private:
  std::shared_ptr<const detail::RecordAst> ast_;
  std::vector<OperandInfo> operands_, results_;
  std::vector<AttrInfo> attributes_;
};

class RecordSet {
 public:
  // The records compiled into the library from core/ops/*.ops. Parsed once.
  static const RecordSet& builtin();
  static const Error& builtin_errors();  // empty, or the unit tests fail
  // Parses records and defs. `base` provides defs the text may use.
  static Result<RecordSet> parse(std::string_view text, const std::string& file, const RecordSet* base = nullptr);

  const Record* find(std::string_view name) const;
  std::vector<std::string> names() const;  // sorted
  const detail::DefTable& defs() const;    // for the library's own parts

  // The kernel of `record` for these operands. `ranges` are the ranges of symbolic dims. Errors name the record, the
  // operand and the rule; `where` (the model's node) is put on every diagnostic.
  Result<Kernel> instantiate(const Record& record, std::span<const Operand> operands, const Attrs& attrs,
                             const Ranges& ranges = {}, const Loc& where = {}) const;

 private:
  std::map<std::string, Record, std::less<>> records_;
  std::shared_ptr<const detail::DefTable> defs_;
  friend struct detail::RecordSetBuilder;
};

// Result types of an instantiated kernel, in order.
std::vector<TensorType> result_types(const Kernel& k);

// Statements in the same language over declared memories: the `does` of a hardware instruction, the body of a `def`.
struct FragmentContext {
  std::vector<KernelTensor> tensors;  // memories that may be read and written
  std::vector<Loop> loops;            // declared loops (an instruction's `loops`)
  std::vector<std::string> symbols;   // fields and params: free integer symbols
  std::string defs;                   // text of `def` functions with explicit types, may be empty
};
// Parses "T[i, j] = expr" statements (separated by newline or ';') to a kernel whose loops are those of the context.
Result<Kernel> parse_fragment(std::string_view text, const FragmentContext& context, const Loc& where);

}  // namespace dlc
