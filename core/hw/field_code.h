// Exprs over the fields of one instruction, made ready for fast evaluation: names are field indices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dlc/expr/expr.h"
#include "dlc/hw/isa.h"

namespace dlc {

class FieldCode {
 public:
  // nullopt: e mentions a name that is no field.
  static std::optional<FieldCode> make(const Expr& e, const HwInsn& insn);
  // nullopt: overflow or division by zero.
  std::optional<int64_t> run(std::span<const int64_t> fields) const;
  FieldCode() = default;  // 0

 private:
  struct Factor {
    AtomKind kind = AtomKind::symbol;
    int field = -1;
    std::vector<FieldCode> args;
  };
  struct Product {
    int64_t coefficient = 0;
    std::vector<Factor> factors;
  };
  static std::optional<int64_t> run(const Factor& f, std::span<const int64_t> fields);
  std::vector<Product> terms_;
};

}  // namespace dlc
