#include "dlc/ops/generate.h"

#include <algorithm>
#include <set>

#include "dlc/interp/interp.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

std::string describe(const Instance& use) {
  std::string s;
  for (const Operand& o : use.operands) {
    s += "(";
    for (const TensorType& t : o.types) s += to_string(t) + " ";
    s += ")";
  }
  for (const auto& [name, v] : use.attrs) {
    s += " " + name + "=";
    if (const auto* e = std::get_if<Expr>(&v)) s += to_string(*e);
    if (const auto* l = std::get_if<std::vector<Expr>>(&v))
      for (const Expr& e : *l) s += to_string(e) + ",";
    if (const auto* t = std::get_if<std::string>(&v)) s += *t;
    if (const auto* d = std::get_if<double>(&v)) s += std::to_string(*d);
    if (const auto* t = std::get_if<DType>(&v)) s += to_string(*t);
  }
  return s;
}

// Whether a value has f32 on the way to it; positions and conditions may.
bool narrows(const Val& v) {
  if (v->type == kF32 && v->kind != ValKind::real) return true;
  if (!v->type.is_float() || v->kind == ValKind::read) return false;
  return std::ranges::any_of(v->args, narrows);
}

}  // namespace

TEST_CASE("every builtin record instantiates, verifies and runs on generated operands") {
  const RecordSet& set = RecordSet::builtin();
  for (const std::string& name : set.names()) {
    const Record& r = *set.find(name);
    for (uint64_t seed = 0; seed < 12; ++seed) {
      INFO(name << " seed " << seed);
      REQUIRE_OK(const Instance use, generate(set, r, seed));
      INFO(describe(use));
      REQUIRE_OK(const Kernel k, set.instantiate(r, use.operands, use.attrs));
      if (r.is_extern()) continue;
      INFO(print(k));
      if (auto ok = verify(k); !ok) FAIL(to_string(ok.error()));
      REQUIRE_OK(const auto in, random_operands(use, seed));
      const auto out_r = run_kernel(k, in, {.tree_walk = true});
      if (!out_r) {
        FAIL_CHECK(to_string(out_r.error()));
        break;
      }
      const auto& out = *out_r;
      const auto types = result_types(k);
      REQUIRE(out.size() == types.size());
      for (size_t i = 0; i < out.size(); ++i) {
        CHECK(out[i].dtype() == types[i].dtype);
        for (size_t d = 0; d < types[i].shape.size(); ++d) CHECK(types[i].shape[d].is(out[i].shape()[d]));
      }
    }
  }
}

TEST_CASE("the generator is deterministic and varied") {
  const RecordSet& set = RecordSet::builtin();
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    REQUIRE_OK(const Instance a, generate(set, *set.find("conv"), seed));
    REQUIRE_OK(const Instance b, generate(set, *set.find("conv"), seed));
    CHECK(describe(a) == describe(b));
    seen.insert(describe(a));
  }
  CHECK(seen.size() >= 15);
}

// f32 on the way to an f64 result would leave it with f32's digits.
TEST_CASE("what takes f64 computes in f64") {
  const RecordSet& set = RecordSet::builtin();
  for (const std::string& name : set.names()) {
    const Record& r = *set.find(name);
    if (r.is_extern()) continue;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      REQUIRE_OK(const Instance use, generate(set, r, seed));
      bool doubles = false, others = false;
      for (const Operand& o : use.operands)
        for (const TensorType& t : o.types) {
          doubles |= t.dtype == kF64;
          others |= t.dtype.is_float() && t.dtype != kF64;
        }
      for (const auto& [attr, v] : use.attrs)
        if (const auto* t = std::get_if<DType>(&v)) others |= t->is_float() && *t != kF64;
      if (!doubles || others) continue;
      REQUIRE_OK(const Kernel k, set.instantiate(r, use.operands, use.attrs));
      bool narrow = false;
      walk(k.body, [&](const Stmt& s) { narrow |= s.value && narrows(s.value); });
      INFO(name << " seed " << seed << " " << describe(use) << "\n" << print(k));
      if (narrow) {
        FAIL_CHECK("f32 in an f64 op");
        break;
      }
    }
  }
}
