// The syntax trees of the op language: what the parser makes, the printer writes and the instantiator reads.
//
// Trees are plain values. Positions take no part in equality, so parse(print(r)) == r compares meaning alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/kernel/kernel.h"

namespace dlc::detail {

struct Pos {
  int line = 0;
  int column = 0;
  friend bool operator==(Pos, Pos) { return true; }
};

// f32, T, compute(T); empty when none was written.
struct TypeRef {
  std::string name;
  bool compute = false;
  Pos pos;
  bool empty() const { return name.empty(); }
  friend bool operator==(const TypeRef&, const TypeRef&) = default;
};

// An index or a selection of a pack: i, i[axes], i[!axes], i[!axes, keepdims]; where axes are new axes of i, i[axes] is
// i with dims of extent 1 put in. In dims and reductions `...` follows a pack.
struct IndexRef {
  std::string name;
  bool pack = false;
  std::string select;       // attribute that selects positions of the pack
  bool complement = false;  // the positions it does not name
  std::string keep;         // attribute: when true, the dropped positions stay with extent 1
  Pos pos;
  friend bool operator==(const IndexRef&, const IndexRef&) = default;
};

enum class NodeKind : uint8_t {
  integer,
  real,
  string,
  name,
  size,         // |args[0]|, |args[0]...| when pack
  read,         // text[args...]: a tensor, a selection of a pack, or an element of a list attribute
  call,         // text(args...)
  pack,         // args[0]...
  fold,         // (args[0] op ...)
  branch,       // if args[0] then args[1] else args[2]
  orelse,       // args[0] ?: args[1]
  neg,          // -args[0]
  logical_not,  // not args[0]
  bit_not,      // ~args[0]
  complement,   // !args[0], inside the brackets of a pack selection
  binary,       // args[0] op args[1]
  reduce,       // op:type[vars] args[0]
};

struct RangeVar;

struct Node {
  NodeKind kind = NodeKind::integer;
  Pos pos;
  int64_t integer = 0;
  double real = 0;
  std::string text;  // name or string
  uint8_t op = 0;    // BinaryOp of binary and fold (kFoldOrelse for ?:), ReduceOp of reduce
  bool pack = false;
  TypeRef type;  // accumulator of a reduction
  std::vector<Node> args;
  std::vector<RangeVar> vars;
  int height = 1;  // of the tree; bounded, so that recursion over it is safe

  BinaryOp binary_op() const { return static_cast<BinaryOp>(op); }
  ReduceOp reduce_op() const { return static_cast<ReduceOp>(op); }
  friend bool operator==(const Node&, const Node&);
};

inline constexpr uint8_t kFoldOrelse = 255;
inline constexpr int kMaxNesting = 256;

// A loop of a reduction or a seq: k, k..., k < 4, i[axes]...
struct RangeVar {
  IndexRef ref;
  std::vector<Node> extent;  // one, or none when the index is declared elsewhere
  friend bool operator==(const RangeVar&, const RangeVar&);
};

// in [lo, hi] or in {a, b}; of an operand also from [lo, hi]
struct Domain {
  enum class Kind : uint8_t { none, range, set };
  Kind kind = Kind::none;
  bool open = false;   // range: without its ends
  bool drawn = false;  // from: random elements come from there, others are as valid
  std::vector<Node> values;
  friend bool operator==(const Domain&, const Domain&) = default;
};

struct Dim {
  IndexRef ref;              // name empty: a literal extent, in extent[0]
  bool broadcast = false;    // ~i
  std::vector<Node> extent;  // result dims: i = expr
  friend bool operator==(const Dim&, const Dim&) = default;
};

struct OperandDecl {
  std::string name;
  bool variadic = false;
  std::vector<Dim> dims;
  TypeRef type;
  bool optional = false;
  Domain domain;
  Pos pos;
  friend bool operator==(const OperandDecl&, const OperandDecl&) = default;
};

struct AttrDecl {
  enum class Kind : uint8_t { integer, real, string, type, at, axes, new_axes };
  std::string name;
  std::string along;  // the pack a list attribute has one element for each of
  bool list = false;
  Kind kind = Kind::integer;
  bool kind_written = false;  // `: real`; otherwise the default and the domain tell
  std::string index;          // at, axes, new axes: the index or pack
  bool index_pack = false;    // at j...
  Domain domain;
  std::vector<Node> initial;  // the default: one, or none when the attribute is required
  Pos pos;
  friend bool operator==(const AttrDecl&, const AttrDecl&) = default;
};

struct Statement {
  enum class Kind : uint8_t { require, let, assign, seq };
  Kind kind = Kind::assign;
  Pos pos;
  std::string name;  // let
  bool pack = false;
  Node target;   // assign: a read node
  TypeRef type;  // assign
  Node value;    // require, let, assign; the step of a seq
  std::vector<RangeVar> vars;
  std::vector<Statement> body;
  friend bool operator==(const Statement&, const Statement&);
};

struct RecordAst {
  std::string name;
  std::vector<OperandDecl> operands;
  std::vector<AttrDecl> attributes;
  std::vector<OperandDecl> results;
  std::vector<Statement> body;
  bool is_extern = false;
  std::string file;
  Pos pos;
  friend bool operator==(const RecordAst& a, const RecordAst& b) {
    return a.name == b.name && a.operands == b.operands && a.attributes == b.attributes && a.results == b.results &&
           a.body == b.body && a.is_extern == b.is_extern;
  }
};

struct Param {
  std::string name;
  TypeRef type;
  Pos pos;
};

// def f(a, b) = expr; with types `def f(a: s32, b: u6) -> s64 = expr`; a constant `def R = 16`.
struct DefAst {
  std::string name;
  bool constant = false;
  std::vector<Param> params;
  TypeRef result;
  Node body;
  std::string file;
  Pos pos;
};

inline Loc loc_of(const std::string& file, Pos pos) { return {file, pos.line, pos.column, {}}; }

std::string print(const Node& n);
std::string print(const RecordAst& r);
std::string print(const AttrDecl& a);
std::string print(const OperandDecl& o);

// The index reference a name or read node is, for names that are indices or packs.
IndexRef index_ref(const Node& n);

}  // namespace dlc::detail
