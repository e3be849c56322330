// FieldSolver: the fields of one instruction as unknowns, equations between them and numbers.
//
//   FieldSolver s(insn);
//   s.equal(Expr of "sy*16", 224);            // sy = 14
//   s.equal(Expr of "y1 - 1 - y0", 13);       // waits until y0 is known
//
// An equation that is linear in its only unknown field gives the field; the others are checked as soon as they are
// known. Copies are cheap enough for backtracking: what a failure says is put into words only when it is asked for.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dlc/hw/encode.h"
#include "dlc/kernel/kernel.h"

namespace dlc::map {

class FieldSolver {
 public:
  explicit FieldSolver(const HwInsn& insn);

  // False: contradicts what is known; why() says how.
  bool set(int field, int64_t value);
  // `what` it is, for why(); it must live as long as the solver.
  bool equal(const Expr& e, int64_t value, std::string_view what = {});
  // A value over fields alone that must be this number, tested once its fields are known.
  bool equal(const Val& v, int64_t value, std::string_view what = {});
  // Fields that are still open become 0, or the nearest value they can have; everything must hold then.
  bool finish(const HwDescription& hw, Instruction& out);

  // e, once its fields are known.
  std::optional<int64_t> value(const Expr& e) const;
  // The known fields, by name.
  std::map<std::string, Expr, std::less<>> known() const;
  bool is_known(int field) const { return values_[static_cast<size_t>(field)].has_value(); }
  const HwInsn& insn() const { return *insn_; }
  std::string why() const;

 private:
  struct Line;
  struct Equation {
    Expr e;
    int64_t value = 0;
    std::string_view what;
  };
  struct Failure {
    enum class Kind : uint8_t { none, field_clash, field_range, field_code, unequal, fraction, number, open, illegal };
    Kind kind = Kind::none;
    int field = -1;
    int64_t is = 0;
    Equation equation;    // or the value of the field
    std::string illegal;  // what the instruction as a whole breaks
  };
  enum class Step : uint8_t { open, done, failed };

  Line line_of(const Expr& e) const;
  Line line_of(const Atom& a) const;
  Step decide(const Equation& q);
  bool propagate();
  bool fail(Failure f);

  const HwInsn* insn_;
  std::shared_ptr<const std::map<const detail::AtomNode*, int>> fields_;  // by symbol
  std::vector<std::optional<int64_t>> values_;                            // per field
  std::vector<Equation> equations_;                                       // not decided yet
  bool changed_ = false;                                                  // a field is known since they were looked at
  std::vector<std::pair<Val, int64_t>> checks_;
  Failure failure_;
};

}  // namespace dlc::map
