#include "core/hw/quantity.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "dlc/base/checked.h"

namespace dlc {

namespace {

struct Unit {
  std::string_view name;
  double scale;
};

constexpr Unit kBytes[] = {{"", 1},      {"B", 1},      {"KB", 1e3},       {"MB", 1e6},     {"GB", 1e9},
                           {"TB", 1e12}, {"KiB", 1024}, {"MiB", 1048576.}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr Unit kFrequency[] = {{"Hz", 1}, {"kHz", 1e3}, {"MHz", 1e6}, {"GHz", 1e9}};
constexpr Unit kSeconds[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kCycles[] = {{"", 1}, {"cycles", 1}, {"cycle", 1}, {"cy", 1}};
constexpr Unit kPerCycle[] = {{"B/cy", 1}, {"KiB/cy", 1024}};
constexpr Unit kPerSecond[] = {{"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr Unit kShare[] = {{"%", 0.01}};

struct Split {
  double value = 0;
  std::string_view unit;
};

Result<Split> split(std::string_view text, const Loc& where, std::string_view what) {
  Split s;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), s.value);
  if (ec != std::errc() || !std::isfinite(s.value))
    return fail(where, "'" + std::string(text) + "' is not " + std::string(what));
  s.unit = text.substr(static_cast<size_t>(end - text.data()));
  while (!s.unit.empty() && s.unit.front() == ' ') s.unit.remove_prefix(1);
  return s;
}

std::optional<double> scaled(const Split& s, std::span<const Unit> units) {
  for (const Unit& u : units)
    if (u.name == s.unit) return s.value * u.scale;
  return std::nullopt;
}

std::unexpected<Error> wrong_unit(std::string_view text, const Split& s, const Loc& where, std::string_view what,
                                  std::string_view units) {
  const std::string unit = s.unit.empty() ? "it has no unit" : "its unit is '" + std::string(s.unit) + "'";
  return fail(where, "'" + std::string(text) + "' is not " + std::string(what) + ": " + unit,
              "use one of " + std::string(units));
}

}  // namespace

Result<int64_t> parse_integer(std::string_view text, const Loc& where) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  uint64_t v = 0;
  const auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), v, hex ? 16 : 10);
  const bool is_number = ec != std::errc::invalid_argument && end == digits.data() + digits.size();
  if (digits.empty() || !is_number) return fail(where, "'" + std::string(text) + "' is not an integer");
  if (ec == std::errc::result_out_of_range || v > uint64_t{1} << 62)
    return fail(where, "'" + std::string(text) + "' is too large: integers go up to 2^62");
  return negative ? -static_cast<int64_t>(v) : static_cast<int64_t>(v);
}

Result<int64_t> parse_bytes(std::string_view text, const Loc& where) {
  DLC_TRY(const Split s, split(text, where, "a size in bytes"));
  const auto v = scaled(s, kBytes);
  if (!v) return wrong_unit(text, s, where, "a size", "B KB MB GB TB KiB MiB GiB TiB");
  if (*v < 0 || *v > 0x1p50 || *v != std::floor(*v))
    return fail(where, "'" + std::string(text) + "' is not a whole number of bytes below 1024 TiB");
  return static_cast<int64_t>(*v);
}

Result<double> parse_frequency(std::string_view text, const Loc& where) {
  DLC_TRY(const Split s, split(text, where, "a frequency"));
  const auto v = scaled(s, kFrequency);
  if (!v) return wrong_unit(text, s, where, "a frequency", "Hz kHz MHz GHz");
  if (*v <= 0) return fail(where, "a frequency must be above 0");
  return *v;
}

Result<HwTime> parse_time(std::string_view text, const Loc& where) {
  DLC_TRY(const Split s, split(text, where, "a time"));
  if (s.value < 0) return fail(where, "a time must not be negative");
  if (const auto v = scaled(s, kCycles)) return HwTime{*v, true};
  if (const auto v = scaled(s, kSeconds)) return HwTime{*v, false};
  return wrong_unit(text, s, where, "a time", "cycles ns us ms s");
}

Result<HwRate> parse_rate(std::string_view text, const Loc& where) {
  DLC_TRY(const Split s, split(text, where, "a rate"));
  if (s.value <= 0) return fail(where, "a rate must be above 0");
  if (const auto v = scaled(s, kPerCycle)) return HwRate{*v, true};
  if (const auto v = scaled(s, kPerSecond)) return HwRate{*v, false};
  return wrong_unit(text, s, where, "a rate", "B/cy KiB/cy B/s KB/s MB/s GB/s TB/s");
}

Result<double> parse_fraction(std::string_view text, const Loc& where) {
  DLC_TRY(const Split s, split(text, where, "a share"));
  const auto v = scaled(s, kShare);
  if (!v) return wrong_unit(text, s, where, "a share", "%");
  return *v;
}

}  // namespace dlc
