// A record's signature met with operands and attributes: types, pack lengths, extents, requires and result shapes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ops/eval.h"

namespace dlc::detail {

// Fills `symbols` and the operand and result tensors of `kernel`.
Result<> bind_signature(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs,
                        Symbols& symbols, Kernel& kernel);

// ---- the parts, in the order they run

// Kinds of the given attributes; at and axes only after pack lengths.
Result<> bind_attributes(const RecordAst& record, const Attrs& attrs, Symbols& symbols);
Result<> bind_types(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs, Symbols& symbols);
// Lengths of packs from ranks, positions (`at`), `require len(..) == ..` and attribute lists; then at and axes.
Result<> bind_packs(const RecordAst& record, std::span<const Operand> operands, const Attrs& attrs, Symbols& symbols);

// A dim of an operand or result after packs are gone.
struct Slot {
  const Dim* dim = nullptr;
  Element element;  // name empty and not unit: a literal extent
};
Result<std::vector<Slot>> slots(const OperandDecl& o, const Symbols& symbols);

const TypeRef& type_or_default(const TypeRef& t);  // an operand without a type has type T

}  // namespace dlc::detail
