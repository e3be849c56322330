// What the names of one record mean for one set of operands and attributes: filled by bind.cpp from a record's
// signature and by fragment.cpp from declared memories, read by the evaluator.
#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/ops/ast.h"
#include "dlc/ops/record.h"

namespace dlc::detail {

struct DefTable {
  std::map<std::string, DefAst, std::less<>> defs;
  const DefAst* find(std::string_view name) const {
    const auto it = defs.find(name);
    return it == defs.end() ? nullptr : &it->second;
  }
};

// An expression's value: a number (of the kernel level), a string or a type.
using Value = std::variant<Val, std::string, DType>;

// An attribute: its values as given; when absent, the default is evaluated where it is used.
struct Attribute {
  const AttrDecl* decl = nullptr;
  bool given = false;
  std::vector<Value> values;  // one, or the elements of a list
  std::vector<int> axes;      // at: the position; axes and new axes: the positions, not negative
  bool selects() const { return decl->kind == AttrDecl::Kind::axes || decl->kind == AttrDecl::Kind::new_axes; }
};

// A tensor name. Broadcast dims of an operand are read at 0; the first `absent` ones are not there at all.
struct TensorName {
  int index = -1;  // in the kernel; -1: an absent operand
  bool typed = true;
  size_t absent = 0;
  std::vector<bool> unit;
  DType type = kF32;
};

// One position of an index reference after packs are gone. `unit`: a dim of extent 1 that keepdims left.
struct Element {
  bool unit = false;
  std::string name;
};

inline std::string flat_name(const std::string& pack, int position) { return pack + std::to_string(position); }

struct Symbols {
  std::string owner;  // the record's name
  std::string file;   // where its text is
  Loc where;          // the model's node, or a fragment's place
  bool fragment = false;
  const DefTable* defs = nullptr;
  Ranges ranges;

  std::map<std::string, int, std::less<>> packs;                          // lengths
  std::map<std::string, Expr, std::less<>> extents;                       // by flat name
  std::map<std::string, std::vector<Expr>, std::less<>> operand_extents;  // of a variadic operand's own index
  std::map<std::string, int, std::less<>> variadic;                       // operand -> count
  std::map<std::string, DType, std::less<>> types;
  std::map<std::string, Attribute, std::less<>> attributes;
  std::map<std::string, const Statement*, std::less<>> lets;
  std::map<std::string, Value, std::less<>> values;  // a fragment's fields and lets
  std::map<std::string, TensorName, std::less<>> tensors;
  std::set<std::string, std::less<>> reserved;  // symbols of shapes: loop variables must not be called so

  bool is_pack(std::string_view n) const { return packs.contains(n); }
  std::vector<std::string> known_names() const;
  std::vector<std::string> known_tensors() const;

  // An error the user caused (operands, attributes), and one in the text at `pos`.
  std::unexpected<Error> fail_use(std::string message, std::string hint = {}) const;
  std::unexpected<Error> fail_text(Pos pos, std::string message, std::string hint = {}) const;

  Result<DType> type(const TypeRef& t) const;
  // The positions of a reference: i, i..., i[axes]..., i[!axes, keepdims]...
  Result<std::vector<Element>> elements(const IndexRef& ref) const;
  // An attribute that must be a constant integer (keepdims).
  Result<int64_t> constant_attribute(std::string_view name, Pos pos) const;
};

// Which packs an expression zips, and whether it runs over the operands of a variadic one.
struct PackUse {
  std::map<std::string, int> packs;  // source -> length
  int variadic = -1;
};
void collect_packs(const Symbols& s, const Node& n, PackUse& use);

}  // namespace dlc::detail
