// Wrong uses of every record: an error or a kernel that verifies, never a crash.
#include <limits>

#include "dlc/ops/generate.h"
#include "helpers.h"

using namespace dlc;

namespace {

struct Random {
  uint64_t state;
  int64_t below(int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(n));
  }
};

Expr odd_extent(Random& r) {
  const std::vector<Expr> all = {0,
                                 1,
                                 2,
                                 7,
                                 -1,
                                 Expr::symbol("N"),
                                 Expr::symbol("i0"),
                                 Expr::symbol("M") * 2 - 3,
                                 int64_t{1} << 62,
                                 std::numeric_limits<int64_t>::max(),
                                 Expr::invalid()};
  return all[static_cast<size_t>(r.below(static_cast<int64_t>(all.size())))];
}

AttrValue odd_value(Random& r) {
  switch (r.below(8)) {
    case 0:
      return odd_extent(r);
    case 1:
      return 0.0;
    case 2:
      return std::string("none");
    case 3:
      return std::vector<Expr>{odd_extent(r)};
    case 4:
      return std::vector<Expr>{};
    case 5:
      return std::vector<double>{1.5, -1};
    case 6:
      return kBool;
    default:
      return std::vector<Expr>{odd_extent(r), odd_extent(r)};
  }
}

void damage(Instance& use, const Record& record, Random& r) {
  const auto pick = [&](size_t n) { return static_cast<size_t>(r.below(static_cast<int64_t>(n))); };
  switch (r.below(6)) {
    case 0:
      if (!use.operands.empty()) use.operands[pick(use.operands.size())] = Operand::absent();
      return;
    case 1:
      use.operands.resize(pick(use.operands.size() + 2), Operand::of({kF32, {1}}));
      return;
    case 2:
    case 3: {
      if (use.operands.empty()) return;
      Operand& o = use.operands[pick(use.operands.size())];
      if (o.types.empty()) return;
      auto& shape = o.types[pick(o.types.size())].shape;
      if (shape.empty() || r.below(3) == 0) {
        shape.push_back(odd_extent(r));
      } else if (r.below(3) == 0) {
        shape.pop_back();
      } else {
        shape[pick(shape.size())] = odd_extent(r);
      }
      return;
    }
    case 4: {
      if (use.operands.empty()) return;
      Operand& o = use.operands[pick(use.operands.size())];
      if (!o.types.empty()) o.types[0].dtype = r.below(2) ? kU64 : kBool;
      return;
    }
    default: {
      const auto& attributes = record.attributes();
      if (attributes.empty()) return;
      const std::string& name = attributes[pick(attributes.size())].name;
      if (r.below(4) == 0) {
        use.attrs.erase(name);
      } else {
        use.attrs.insert_or_assign(name, odd_value(r));
      }
    }
  }
}

}  // namespace

TEST_CASE("damaged uses of every record are errors or valid kernels") {
  const RecordSet& set = RecordSet::builtin();
  Random r{42};
  int errors = 0, kernels = 0;
  for (const std::string& name : set.names()) {
    const Record& record = *set.find(name);
    for (uint64_t seed = 0; seed < 40; ++seed) {
      REQUIRE_OK(Instance use, generate(set, record, seed % 5));
      for (int64_t i = 0; i <= r.below(3); ++i) damage(use, record, r);
      INFO(name << " seed " << seed);
      const auto k = set.instantiate(record, use.operands, use.attrs);
      if (!k) {
        ++errors;
        CHECK_FALSE(k.error().message().empty());
        continue;
      }
      ++kernels;
      if (record.is_extern()) continue;
      if (auto ok = verify(*k); !ok) FAIL(to_string(ok.error()) + "\n" + print(*k));
    }
  }
  CHECK(errors > 1000);
  CHECK(kernels > 500);
}
