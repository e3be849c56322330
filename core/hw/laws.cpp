// Laws of defs, tried on corners and seeded random arguments.
#include <random>

#include "core/hw/def_eval.h"
#include "dlc/hw/load.h"

namespace dlc {

namespace {

using Samples = std::vector<std::vector<int64_t>>;  // by argument

int64_t random_value(DType t, std::mt19937_64& rng) {
  // Widths are drawn evenly, so that small values come as often as large ones.
  const int bits = 1 + static_cast<int>(rng() % t.bits);
  return wrap_to(t, wrap_to({t.kind, static_cast<uint8_t>(bits)}, static_cast<int64_t>(rng())));
}

// All corners of the first few arguments' types, then random rows.
Samples make_samples(const HwDef& d, uint64_t seed, int count) {
  std::mt19937_64 rng(seed);
  Samples s(d.args.size());
  for (int i = 0; i < count; ++i) {
    for (size_t a = 0; a < d.args.size(); ++a) {
      const DType t = d.args[a].dtype;
      const int64_t corners[] = {t.min_value(), -1, 0, 1, t.max_value()};
      const bool corner = rng() % 4 == 0;
      s[a].push_back(corner ? wrap_to(t, corners[rng() % 5]) : random_value(t, rng));
    }
  }
  return s;
}

std::string at_sample(const HwDef& d, const Samples& s, size_t i) {
  std::string out;
  for (size_t a = 0; a < d.args.size(); ++a) out += (a ? ", " : "") + d.args[a].name + " = " + std::to_string(s[a][i]);
  return out;
}

Result<> check_monotone(const HwDescription& hw, const HwDef& d, const std::string& arg, Samples s) {
  size_t which = 0;
  for (size_t a = 0; a < d.args.size(); ++a)
    if (d.args[a].name == arg) which = a;
  Samples above = s;
  for (size_t i = 0; i < s[which].size(); ++i)
    if (above[which][i] < d.args[which].dtype.max_value()) ++above[which][i];
  DLC_TRY(const auto low, evaluate_text(hw, call_text(d), d.args, s, d.loc));
  DLC_TRY(const auto high, evaluate_text(hw, call_text(d), d.args, above, d.loc));
  for (size_t i = 0; i < low.size(); ++i)
    if (low[i] > high[i])
      return fail(d.loc, "def '" + d.name + "' is not monotone in " + arg + " at " + at_sample(d, s, i));
  return {};
}

Result<> check_law(const HwDescription& hw, const HwDef& d, const std::string& law, const Samples& s) {
  static constexpr std::string_view kMonotone = "monotone in ";
  if (law.starts_with(kMonotone)) return check_monotone(hw, d, law.substr(kMonotone.size()), s);
  DLC_TRY(const auto ok, evaluate_text(hw, "if " + law + " then 1 else 0", d.args, s, d.loc));
  for (size_t i = 0; i < ok.size(); ++i)
    if (ok[i] == 0) return fail(d.loc, "def '" + d.name + "' breaks its law '" + law + "' at " + at_sample(d, s, i));
  return {};
}

}  // namespace

Result<> check_laws(const HwDescription& hw, uint64_t seed, int samples) {
  Error errors;
  for (const HwDef& d : hw.defs) {
    const Samples s = make_samples(d, seed, samples);
    for (const std::string& law : d.laws)
      if (auto r = check_law(hw, d, law, s); !r) errors.add(std::move(r).error());
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return {};
}

}  // namespace dlc
