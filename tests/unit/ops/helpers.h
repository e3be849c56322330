// Short forms for tests of records.
#pragma once

#include <string>
#include <vector>

#include "dlc/ops/record.h"
#include "dlc_test/catch.h"

namespace dlc {

inline Operand op(std::vector<Expr> shape, DType dtype = kF32) { return Operand::of({dtype, std::move(shape)}); }
inline Operand absent() { return Operand::absent(); }
inline Operand many(std::vector<TensorType> types) { return {std::move(types), true}; }
inline AttrValue ints(std::vector<int64_t> v) { return std::vector<Expr>(v.begin(), v.end()); }
inline AttrValue exprs(std::vector<Expr> v) { return v; }
inline AttrValue text(std::string s) { return s; }

inline Result<Kernel> instantiate(const RecordSet& set, const std::string& name, const std::vector<Operand>& operands,
                                  const Attrs& attrs = {}, const Ranges& ranges = {}) {
  const Record* r = set.find(name);
  if (!r) return fail({}, "no record " + name);
  return set.instantiate(*r, operands, attrs, ranges, {"", 0, 0, "node1"});
}

// "f32[N,8] s64[N]"
inline std::string shapes(const std::string& name, const std::vector<Operand>& operands, const Attrs& attrs = {},
                          const Ranges& ranges = {}) {
  const auto k = instantiate(RecordSet::builtin(), name, operands, attrs, ranges);
  if (!k) return to_string(k.error());
  const bool is_extern = RecordSet::builtin().find(name)->is_extern();  // its kernel has no statements
  if (auto ok = verify(*k); !is_extern && !ok) return to_string(ok.error()) + "\n" + print(*k);
  std::string s;
  for (const TensorType& t : result_types(*k)) s += (s.empty() ? "" : " ") + to_string(t);
  return s;
}

}  // namespace dlc
