// A machine's recipes against the contract: their signatures, then what they compute on seeded uses. A use comes out of
// the contract's record (dlc/ops/generate.h); multipliers and shifts are chosen for a scale as commit_numerics does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "core/numerics/contract.h"
#include "core/ops/ast.h"
#include "dlc/interp/interp.h"
#include "dlc/ops/generate.h"

namespace dlc::numerics {

namespace {

constexpr int kUses = 24;          // of a record
constexpr int64_t kMostSteps = 1;  // a scaled result may be rounded to either side
constexpr int64_t kMostShown = 8;  // elements of an operand, in a counterexample

Loc loc_of(const Record& r) { return detail::loc_of(r.ast().file, r.ast().pos); }

std::vector<std::string> names_of(const auto& list) {
  std::vector<std::string> out;
  for (const auto& x : list) out.push_back(x.name);
  return out;
}

// ---- signatures

Result<> check_signature(const Record& own, const Record& meaning) {
  const auto wrong = [&](detail::Pos pos, std::string message, std::string hint) {
    return fail(detail::loc_of(own.ast().file, pos), fmt::format("recipe '{}': {}", own.name(), message),
                std::move(hint));
  };
  const std::string says = fmt::format("docs/numerics.md has the contract: its operands are {}",
                                       fmt::join(names_of(meaning.operands()), ", "));
  for (size_t i = 0; i < std::max(own.operands().size(), meaning.operands().size()); ++i) {
    if (i >= own.operands().size())
      return wrong(own.ast().pos, fmt::format("operand {} is missing", meaning.operands()[i].name), says);
    const OperandInfo& o = own.operands()[i];
    const detail::Pos pos = own.ast().operands[i].pos;
    if (i >= meaning.operands().size() || o.name != meaning.operands()[i].name ||
        o.optional != meaning.operands()[i].optional || o.variadic)
      return wrong(pos, fmt::format("operand {} is not what the contract has there", o.name), says);
    const auto type = parse_dtype(o.type), wanted = parse_dtype(meaning.operands()[i].type);
    if (wanted ? type != wanted : !type || !type->is_int())
      return wrong(
          pos,
          fmt::format("operand {} is {}, and must be {}", o.name, o.type.empty() ? "of no stated type" : o.type,
                      wanted ? to_string(*wanted) : "an integer type"),
          wanted ? "" : "as wide as the machine's multiplier or shift");
  }
  const auto known = names_of(meaning.attributes()), given = names_of(own.attributes());
  for (const std::string& a : known)
    if (std::ranges::count(given, a) == 0)
      return wrong(own.ast().pos, fmt::format("attribute {} is missing", a),
                   fmt::format("the contract has {}", fmt::join(known, ", ")));
  for (const detail::AttrDecl& a : own.ast().attributes)
    if (std::ranges::count(known, a.name) == 0)
      return wrong(a.pos, fmt::format("attribute {} is not in the contract, so nobody gives it", a.name),
                   fmt::format("the contract has {}", fmt::join(known, ", ")));
  return {};
}

// ---- meaning

// Widths are drawn evenly, so that small values come as often as large ones.
int64_t draw(DType t, std::mt19937_64& rng) {
  const int bits = 1 + static_cast<int>(rng() % t.bits);
  return wrap_to(t, wrap_to({t.kind, static_cast<uint8_t>(bits)}, static_cast<int64_t>(rng())));
}

double draw_ratio(std::mt19937_64& rng, int most) {
  const double mantissa = 1 + static_cast<double>(rng() >> 11) * 0x1p-53;
  return std::ldexp(mantissa, -static_cast<int>(rng() % static_cast<uint64_t>(most)));
}

std::string text_of(const AttrValue& v) {
  const auto one = [](const Expr& e) { return std::to_string(e.constant().value_or(0)); };
  if (const auto* e = std::get_if<Expr>(&v)) return one(*e);
  std::string out;
  if (const auto* list = std::get_if<std::vector<Expr>>(&v))
    for (const Expr& e : *list) out += (out.empty() ? "" : ", ") + one(e);
  return "[" + out + "]";
}

// A use of a record, with tensors.
struct Use {
  Attrs attrs;
  std::vector<Tensor> operands;
  int64_t elements() const {
    int64_t n = 0;
    for (const Tensor& t : operands) n += t.is_valid() ? t.elements() : 0;
    return n;
  }
  std::string text(const Record& r) const {
    std::string out;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].is_valid()) continue;
      std::vector<int64_t> some;
      for (int64_t e = 0; e < std::min(operands[i].elements(), kMostShown); ++e) some.push_back(operands[i].get_int(e));
      const bool cut = operands[i].elements() > kMostShown;
      out += fmt::format("{}{} = {}{}{}", out.empty() ? "" : ", ", r.operands()[i].name,
                         fmt::join(operands[i].shape(), "x"), operands[i].rank() > 0 ? ":" : "",
                         fmt::format("{}{}", fmt::join(some, " "), cut ? " ..." : ""));
    }
    for (const auto& [name, value] : attrs) out += fmt::format(", {} = {}", name, text_of(value));
    return out;
  }
};

class Meaning {
 public:
  Meaning(const RecordSet& recipes, const Record& own, const Record& meaning)
      : recipes_(recipes), own_(own), meaning_(meaning) {}

  Result<> check() {
    if (scales()) {
      DLC_TRY(scaling_, scaling_of(recipes_, own_.name()));
    }
    int tried = 0;
    for (int seed = 0; seed < kUses; ++seed) {
      DLC_TRY(const std::optional<Use> use, make(static_cast<uint64_t>(seed)));
      if (!use) continue;
      ++tried;
      DLC_CHECK(compare(*use));
    }
    if (tried == 0)
      return fail(loc_of(own_),
                  fmt::format("recipe '{}': no scale between 2^-{} and 2 is a multiplier of {} and a shift of {}",
                              own_.name(), most(), to_string(scaling_.m[0]), to_string(scaling_.s)),
                  "wider operands M and S");
    if (bad_) return std::unexpected(*bad_);
    return {};
  }

 private:
  bool scales() const { return std::ranges::count(names_of(meaning_.operands()), "S") > 0; }
  // Of what a product of 16 bits or an accumulator is scaled down by.
  int most() const { return meaning_.operands()[0].type == "s8" ? 12 : 20; }

  // nullopt: the scale drawn is none that this machine has.
  Result<std::optional<Use>> make(uint64_t seed) const {
    std::mt19937_64 rng(seed);
    DLC_TRY(Instance drawn, generate(contract(), meaning_, seed, {.max_pack = static_cast<int>(seed % 3)}));
    Use use;
    use.attrs = std::move(drawn.attrs);
    eight_bits(use.attrs, rng);
    std::optional<Scale> scale;
    if (scales()) {
      std::vector<Ratio> ratios;
      for (size_t i = 0; i < scaling_.m.size(); ++i)
        ratios.push_back({own_.name() == "quotient" ? 256 * draw_ratio(rng, 4) : draw_ratio(rng, most()), 0x1p31});
      scale = choose_scale(scaling_, ratios);
      if (!scale || !std::isfinite(scale->off)) return std::nullopt;
    }
    size_t multiplier = 0;
    for (size_t i = 0; i < drawn.operands.size(); ++i) {
      if (!drawn.operands[i].present) {
        use.operands.emplace_back();
        continue;
      }
      std::vector<int64_t> shape;
      for (const Expr& e : drawn.operands[i].types[0].shape) shape.push_back(e.constant().value_or(1));
      const std::string& name = own_.operands()[i].name;
      const DType type = *parse_dtype(own_.operands()[i].type);
      DLC_TRY(Tensor t, Tensor::make(type, shape));
      const bool is_m = scale && name.starts_with('M'), is_s = scale && name == "S";
      for (int64_t e = 0; e < t.elements(); ++e)
        t.set_int(e, is_m ? scale->m[multiplier] : is_s ? scale->s : draw(type, rng));
      multiplier += is_m ? 1 : 0;
      use.operands.push_back(std::move(t));
    }
    return use;
  }

  // Attributes whose domain is that of an 8-bit value are drawn out of all of it; lo is not above hi.
  void eight_bits(Attrs& attrs, std::mt19937_64& rng) const {
    for (const detail::AttrDecl& a : meaning_.ast().attributes)
      if (attrs.contains(a.name) && a.domain.kind == detail::Domain::Kind::range &&
          a.domain.values[1].kind == detail::NodeKind::integer && a.domain.values[1].integer == kS8.max_value())
        attrs[a.name] = Expr(draw(kS8, rng));
    const auto lo = attrs.find("lo"), hi = attrs.find("hi");
    const auto at = [](const AttrValue& v) { return *std::get<Expr>(v).constant(); };
    if (lo != attrs.end() && hi != attrs.end() && at(lo->second) > at(hi->second)) std::swap(lo->second, hi->second);
  }

  Result<> compare(const Use& use) {
    std::vector<Operand> operands;
    for (const Tensor& t : use.operands)
      operands.push_back(!t.is_valid()
                             ? Operand::absent()
                             : Operand::of({t.dtype(), std::vector<Expr>(t.shape().begin(), t.shape().end())}));
    DLC_TRY(const Kernel wanted, contract().instantiate(meaning_, operands, use.attrs));
    DLC_TRY(const Kernel got, recipes_.instantiate(own_, operands, use.attrs, {}, loc_of(own_)));
    if (result_types(got) != result_types(wanted))
      return fail(loc_of(own_), fmt::format("recipe '{}' gives {}, and must give {} (with {})", own_.name(),
                                            types_text(got), types_text(wanted), use.text(own_)));
    std::vector<Tensor> real = use.operands;
    if (scaling_.unit != 0)
      for (size_t i = 0; i < real.size(); ++i)
        if (own_.operands()[i].name == "S") real[i].set_int(0, real[i].get_int(0) - scaling_.unit);
    DLC_TRY(const std::vector<Tensor> right, run_kernel(wanted, real));
    const auto mine = run_kernel(got, use.operands);
    if (!mine) {
      keep(use, fmt::format("recipe '{}' has no value: {}", own_.name(), mine.error().message()));
      return {};
    }
    for (int64_t e = 0; e < right[0].elements(); ++e) {
      const int64_t a = (*mine)[0].get_int(e), b = right[0].get_int(e);
      if (std::abs(a - b) <= (scales() ? kMostSteps : 0)) continue;
      keep(use, fmt::format("recipe '{}' is not what its name says: element {} of its result is {}, and should be {}",
                            own_.name(), e, a, b));
      return {};
    }
    return {};
  }

  static std::string types_text(const Kernel& k) {
    std::string out;
    for (const TensorType& t : result_types(k)) out += (out.empty() ? "" : ", ") + to_string(t);
    return out;
  }

  // The smallest counterexample.
  void keep(const Use& use, std::string message) {
    if (bad_ && use.elements() >= smallest_) return;
    smallest_ = use.elements();
    bad_ = Error(loc_of(own_), fmt::format("{}, with {}", message, use.text(own_)),
                 "docs/numerics.md says what each recipe stands for");
  }

  const RecordSet& recipes_;
  const Record &own_, &meaning_;
  Scaling scaling_;
  std::optional<Error> bad_;
  int64_t smallest_ = 0;
};

}  // namespace

Result<> check_recipes(const RecordSet& recipes, const std::string& file) {
  if (!contract_errors().empty()) return std::unexpected(contract_errors());
  Error errors;
  bool any = false;
  for (const std::string& name : recipes.names()) {
    const Record& own = *recipes.find(name);
    if (own.ast().file != file) continue;
    any = true;
    const Record* meaning = contract().find(name);
    if (meaning == nullptr) {
      const std::string near = nearest(name, contract().names());
      errors.add(Error(loc_of(own), fmt::format("no recipe is called '{}'", name),
                       near.empty() ? fmt::format("the recipes are {}", fmt::join(contract().names(), ", "))
                                    : fmt::format("did you mean '{}'?", near)));
      continue;
    }
    auto ok = check_signature(own, *meaning);
    if (ok && !meaning->is_extern()) ok = Meaning(recipes, own, *meaning).check();
    if (!ok) errors.add(std::move(ok).error());
  }
  if (!any)
    return fail({file, 0, 0, {}}, "there is no recipe in it, so nothing would become integers",
                fmt::format("the recipes are {}", fmt::join(contract().names(), ", ")));
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return {};
}

}  // namespace dlc::numerics
