// Pattern: one meaning of an instruction, made ready for matching: its enumerated fields have values, so that what is
// left of its text is arithmetic, loops and memories, with the other fields as unknowns.
//
//   vec with a=acc, scl=lane, red=sum, lut=none, dst=out:
//     dst[d_base + ...] = min(max(requant(sum[kh, kw] (acc[...] - za) + par.bias[...], ...) + zp, lo), hi)
//
// Addresses are in bytes from the start of the memory, so that words, lanes and typed views are all one affine form.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/map/fields.h"
#include "dlc/hw/description.h"

namespace dlc::map {

// Where an access goes: base + sum coefficients[l] * loop l, in bytes, over fields. An index that depends on data (a
// table look-up) is apart: it counts elements of `data_stride` bytes below `data_extent`.
struct Address {
  Expr base;
  std::vector<Expr> coefficients;  // per Pattern::loops
  Val data;                        // null: none
  int64_t data_stride = 0, data_extent = 1;
  int64_t width = 1;  // bytes of an element
};

struct Pattern {
  int insn = -1;
  const HwInsn* what = nullptr;
  int line = 0;  // of the description
  FieldSolver fields;
  Kernel kernel;            // tensors and the one statement
  std::vector<int> spaces;  // per tensor of the kernel
  std::vector<Loop> loops;  // of the statement, then of its reductions
  size_t outer = 0;         // how many are the statement's
  Ranges ranges;            // of fields and loops
  std::string name;         // "mac.row"
  std::set<int> reads;      // tensors that the statement's value reads
  // Of every part of the statement's value.
  struct Part {
    bool scalar = false;  // reads nothing
    Interval range;
    Val only_part;  // a large part that is a function of this part alone, without fields: nothing in it is open
  };
  std::unordered_map<const ValNode*, Part> parts;

  const Stmt& stmt() const { return kernel.body[0]; }
  const Part& part(const Val& v) const { return parts.at(v.get()); }
  Address address(int tensor, const std::vector<Val>& indices) const;
  Address store() const { return address(stmt().tensor, stmt().indices); }
};

// A copy between external memory and one on-chip memory, as the machine's text says it.
struct Mover {
  Pattern pattern;                                    // its selectors are still open
  int on_chip_selector = -1, external_selector = -1;  // fields, or -1
  std::vector<int> spaces;                            // on chip, that this form of the instruction reaches
  bool load = true;
  Address on_chip, external;
  Val fill;                   // what is written where the guards do not hold; null: no guards
  std::vector<Expr> guards;   // each >= 0 where memory is read
  std::vector<size_t> order;  // loops that are no lanes, the innermost on chip first
  int64_t lanes = 1;          // bytes of a word: the product of the loops that are lanes
};

struct Machine {
  const HwDescription* hw = nullptr;
  std::vector<Pattern> compute;  // no external memory
  std::vector<Mover> movers;
  int64_t lanes = 1;                        // elements of a vector, from the movers: activations are blocked by it
  int code = -1, weights = -1, arena = -1;  // segments of external memory, as spaces

  // The mover between a memory and external memory; null: there is none.
  const Mover* mover(int on_chip_space, bool load) const;
};

// What the machine can do. Fails when it cannot load or store vectors at all, or has no place for weights and
// activations.
Result<Machine> read_machine(const HwDescription& hw);

}  // namespace dlc::map
