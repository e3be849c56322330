// The instruction set of a hardware description: fields, loops, and what each instruction does, as kernels.
//
// A field's *value* is what `does`, `loops`, `require` and the assembler mean; the word holds (value - plus) / unit.
// Kernels have fields as free symbols; params are already numbers in them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/expr/expr.h"
#include "dlc/kernel/kernel.h"

namespace dlc {

struct HwEnumerator {
  std::string name;
  int64_t value = 0;
  int space = -1;  // index into HwDescription::spaces when the enumerator names a memory
};

struct HwField {
  std::string name;
  bool is_signed = false;
  int at = 0;  // lowest bit
  int width = 0;
  int64_t unit = 1;
  int64_t plus = 0;
  std::vector<HwEnumerator> enumerators;  // empty: a number
  bool reloc = false;
  std::string doc;
  Loc loc;

  int64_t raw_min() const { return is_signed ? -raw_max() - 1 : 0; }
  int64_t raw_max() const {
    const int value_bits = is_signed ? width - 1 : width;
    return value_bits >= 63 ? INT64_MAX : (int64_t{1} << value_bits) - 1;
  }
  int64_t min() const { return raw_min() * unit + plus; }
  int64_t max() const { return raw_max() * unit + plus; }
  const HwEnumerator* find(std::string_view enumerator) const;
  const HwEnumerator* find(int64_t value) const;
};

// A condition over fields: it holds where value >= 0.
struct HwCondition {
  std::string text;
  Expr value;
  Loc loc;
};

struct HwInsn;

// The memory behind a kernel's tensor: one space, or the one that a selector field names.
struct HwOperand {
  int space = -1;
  int selector = -1;  // field index; the enumerator's space is meant
  std::string view;   // name of the typed view, or ""

  // The space while the instruction's fields have these values; -1: none.
  int space_for(const HwInsn& insn, std::span<const int64_t> fields) const;
};

// One meaning of an instruction: the kernel that holds while each field of `when` has one of its values.
struct HwForm {
  std::string variant;                                     // name in `variants`, or ""
  std::vector<std::pair<int, std::vector<int64_t>>> when;  // field index, allowed values
  Kernel kernel;
  std::vector<HwOperand> operands;  // one per kernel tensor; views of a memory name the same space as their base
};

struct HwVariant {
  std::string name;
  std::vector<std::pair<int, int64_t>> fix;  // field index, value
  std::vector<std::string> texts;            // `does` as one text, or the stages in order
  bool staged = false;
  Loc loc;
};

struct HwInsn {
  std::string name;
  std::string doc;
  int64_t opcode = 0;
  int queue = -1;
  std::vector<HwField> fields;  // the common ones first, in file order
  std::vector<Loop> loops;      // extents over fields
  std::vector<HwVariant> variants;
  std::vector<HwForm> forms;  // empty: it only synchronises
  std::vector<HwCondition> require;
  std::optional<Expr> cycles;
  Loc loc;

  int field(std::string_view name) const;  // -1 when absent
};

struct HwIsa {
  int word_bits = 0;  // 0: the machine has no instruction words
  std::string opcode_field = "op";
  std::vector<HwField> common;
  std::vector<HwInsn> insns;  // in file order
  std::string transport;      // how a program comes to the machine: fetch

  int words32() const { return word_bits / 32; }
  int find(std::string_view name) const;  // -1 when absent
  int find_opcode(int64_t opcode) const;
};

}  // namespace dlc
