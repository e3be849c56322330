// Copies between external memory and on-chip memories as load and store instructions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/map/pattern.h"

namespace dlc::map {

// One dim of a copy, in words. Words outside [0, size) are filled; size < 0: all lie inside.
struct CopyDim {
  int64_t count = 1;
  int64_t stride = 0;  // bytes, in external memory
  int64_t low = 0;     // of the first word, where size >= 0
  int64_t size = -1;
};

struct Copy {
  bool load = true;
  int space = -1;       // on chip; words lie densely there, the first dim innermost
  int64_t address = 0;  // bytes
  int segment = -1;     // space of external memory
  int64_t offset = 0;   // bytes, of the word where every guarded dim is 0 and every other is at its first
  std::vector<CopyDim> dims;
  int64_t fill = 0;
};

// As few instructions as the fields allow.
Result<> emit_copy(const Machine& machine, Copy copy, std::vector<Instruction>& out);

// The field that an address counts with, and what a step of it is worth: sp of "sp*16", off of "off + y0*sy*16".
// nullopt: it is a number, or there are several.
struct AddressField {
  std::string name;
  int64_t scale = 1;
};
std::optional<AddressField> address_field(const Expr& base);

// emit_copy() for many copies: those that differ in where they begin are found once.
class Copier {
 public:
  explicit Copier(const Machine& machine) : machine_(machine) {}
  Result<> emit(const Copy& copy, std::vector<Instruction>& out);

 private:
  struct Known {
    Copy copy;
    std::vector<Instruction> instructions;
  };
  bool again(const Known& known, const Copy& copy, std::vector<Instruction>& out) const;

  const Machine& machine_;
  std::map<std::string, Known> known_;  // by everything but addresses
};

}  // namespace dlc::map
