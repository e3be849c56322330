// FieldSolver: the fields of one instruction as unknowns, equations between them and numbers.
//
//   FieldSolver s(insn);
//   s.equal(Expr of "sy*16", 224);            // sy = 14
//   s.equal(Expr of "y1 - 1 - y0", 13);       // waits until y0 is known
//
// An equation that is linear in its only unknown field gives the field; the others are checked as soon as they are
// known. Copies are cheap enough for backtracking.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/hw/encode.h"
#include "dlc/kernel/kernel.h"

namespace dlc::map {

class FieldSolver {
 public:
  explicit FieldSolver(const HwInsn& insn) : insn_(&insn) {}

  // False: contradicts what is known; why() says how.
  bool set(int field, int64_t value);
  // `what` it is, for why(); it must live as long as the solver.
  bool equal(const Expr& e, int64_t value, std::string_view what = {});
  // A value over fields alone that must be this number, tested once its fields are known.
  bool equal(const Val& v, int64_t value, std::string_view what = {});
  // Fields that are still open become 0, or the nearest value they can have; everything must hold then.
  bool finish(const HwDescription& hw, Instruction& out);

  // e with the known fields put in.
  Expr known(const Expr& e) const { return substitute(e, exprs_); }
  bool is_known(int field) const;
  const HwInsn& insn() const { return *insn_; }
  const std::string& why() const { return why_; }

 private:
  bool propagate();
  bool fail(std::string why);

  const HwInsn* insn_;
  std::map<std::string, Expr, std::less<>> exprs_;
  struct Equation {
    Expr given, rest;  // rest: what was known is put in
    int64_t value = 0;
    std::string_view what;
  };
  std::vector<Equation> equations_;
  std::vector<std::pair<Val, int64_t>> checks_;
  std::string why_;
};

}  // namespace dlc::map
