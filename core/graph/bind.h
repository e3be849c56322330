// Symbols get their values from the shapes of real tensors.
#pragma once

#include <string>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/interp/interp.h"
#include "dlc/ops/record.h"

namespace dlc {

// Compares the shape of a tensor with a type and binds the symbols that are still free: from dims that are one symbol
// first, then from dims that are affine in one, e.g. 2*H + 1. A contradiction is an error that begins with `what`.
Result<> bind_shape(const std::string& what, const TensorType& type, std::span<const int64_t> shape,
                    const Ranges& ranges, Bindings& bindings);

// Binds the dims that are one symbol alone. Of several tensors all are to show theirs before any is compared: a dim of
// the first may be a sum of what the others show.
Result<> bind_shown(const std::string& what, const TensorType& type, std::span<const int64_t> shape,
                    const Ranges& ranges, Bindings& bindings);

// The attributes with every symbol replaced by its value.
Result<Attrs> concrete_attrs(const Attrs& attrs, const Bindings& bindings, const Loc& where);

// The same without those that have no value yet: the sizes an extern op finds out itself.
Attrs known_attrs(const Attrs& attrs, const Bindings& bindings);

}  // namespace dlc
