// Attributes of an instance of a record: what is given, otherwise the default that the record declares.
//
//   const Attributes a(record, node.attrs);
//   a.integer("group")      // 1 where the node of a conv says nothing
//   a.list("stride", 2)     // [1, 1]
#pragma once

#include <optional>
#include <string_view>

#include "dlc/ops/record.h"

namespace dlc {

class Attributes {
 public:
  // Both must outlive it.
  Attributes(const Record& record, const Attrs& given) : record_(record), given_(given) {}

  // nullopt: not given and required, or its default is more than a literal.
  std::optional<AttrValue> find(std::string_view name) const;
  // nullopt also where it is of another kind, or an integer that is not a number.
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<double> real(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  // Of an attribute with one element for each of `size` dims: a default is repeated.
  std::optional<std::vector<Expr>> list(std::string_view name, size_t size) const;

 private:
  const Record& record_;
  const Attrs& given_;
};

}  // namespace dlc
