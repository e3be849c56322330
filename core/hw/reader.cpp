#include "core/hw/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/hw/quantity.h"

namespace dlc {

namespace {
constexpr size_t kMaxErrors = 20;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : "did you mean '" + near + "'?";
}

void ReadContext::error(const Loc& loc, std::string message, std::string hint) {
  if (errors.diagnostics.size() < kMaxErrors) errors.add(Error(loc, std::move(message), std::move(hint)));
}

void ReadContext::unknown(const Loc& loc, std::string_view kind, std::string_view name,
                          const std::vector<std::string>& known, std::string_view where) {
  constexpr size_t kShown = 16;
  std::string hint = did_you_mean(name, known);
  if (hint.empty() && !known.empty() && known.size() <= kShown) {
    for (const std::string& k : known) hint += (hint.empty() ? "one of " : ", ") + k;
  }
  error(loc, fmt::format("there is no {} '{}'{}{}", kind, name, where.empty() ? "" : " ", where), std::move(hint));
}

HwNames ReadContext::param_names() const {
  HwNames names;
  names.value = [this](std::string_view name) -> std::optional<Expr> {
    const auto v = hw.param(name);
    return v ? std::optional<Expr>(Expr(*v)) : std::nullopt;
  };
  names.suggest = [this](std::string_view name) { return nearest(name, names_of(hw.params)); };
  return names;
}

std::string ReadContext::text(const yaml::Node& n) {
  if (n.kind != yaml::Kind::scalar) {
    error(n.loc(), "a value is wanted here, not " + std::string(yaml::describe(n.kind)));
    return "";
  }
  std::string out;
  size_t i = 0;
  while (true) {
    const size_t open = n.text.find("${", i);
    out += n.text.substr(i, open - i);
    if (open == std::string::npos) return out;
    const size_t close = n.text.find('}', open);
    Loc loc = n.text_loc();
    loc.column += static_cast<int>(open);
    if (close == std::string::npos) {
      error(loc, "'${' without '}'");
      return out;
    }
    loc.column += 2;
    const auto e = parse_hw_expr(std::string_view(n.text).substr(open + 2, close - open - 2), param_names(), loc);
    if (!e) {
      error(e.error());
      out += "?";
    } else {
      out += std::to_string(e->constant().value_or(0));  // params only: always a constant
    }
    i = close + 1;
  }
}

bool ReadContext::valid_name(std::string_view s, const Loc& loc) {
  bool ok = !s.empty() && s.size() <= 64 && std::isalpha(static_cast<unsigned char>(s[0]));
  for (const char c : s) ok = ok && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!ok) error(loc, "'" + std::string(s) + "' is not a name", "use letters, digits and _, a letter first");
  return ok;
}

std::string ReadContext::name(const yaml::Node& n) {
  const std::string s = text(n);
  valid_name(s, n.loc());
  return s;
}

int64_t ReadContext::integer(const yaml::Node& n, int64_t lo, int64_t hi) {
  if (n.kind != yaml::Kind::scalar) {
    error(n.loc(), "an integer is wanted here, not " + std::string(yaml::describe(n.kind)));
    return lo;
  }
  const size_t before = errors.diagnostics.size();
  const auto v = parse_integer(text(n), n.loc());
  if (!v) {
    if (errors.diagnostics.size() == before) error(v.error());
    return lo;
  }
  if (*v < lo || *v > hi) {
    error(n.loc(), std::to_string(*v) + " is outside " + std::to_string(lo) + " .. " + std::to_string(hi));
    return lo;
  }
  return *v;
}

bool ReadContext::boolean(const yaml::Node& n) {
  const std::string s = text(n);
  if (s != "true" && s != "false") error(n.loc(), "'" + s + "' is not true or false");
  return s == "true";
}

std::vector<std::string> ReadContext::texts(const yaml::Node& n) {
  if (n.kind != yaml::Kind::sequence) return {text(n)};
  std::vector<std::string> out;
  for (const auto& item : n.items) out.push_back(text(*item));
  return out;
}

std::optional<DType> ReadContext::dtype(std::string_view s, const Loc& loc) {
  const auto t = parse_dtype(s);
  if (!t) error(loc, "'" + std::string(s) + "' is not an element type", "s8, u31, f32, bf16 ... or bool");
  return t;
}

HwElem ReadContext::elem(const std::string& s, const Loc& loc) {
  HwElem e;
  const size_t open = s.find('[');
  if (const auto t = dtype(std::string_view(s).substr(0, open), loc)) e.dtype = *t;
  if (open == std::string::npos) return e;
  if (!s.ends_with(']')) {
    error(loc, "']' is missing in '" + s + "'");
    return e;
  }
  const auto lanes = parse_hw_expr(std::string_view(s).substr(open + 1, s.size() - open - 2), param_names(), loc);
  if (!lanes) {
    error(lanes.error());
    return e;
  }
  e.lanes = lanes->constant().value_or(0);
  if (e.lanes < 1 || e.lanes > 65536) {
    error(loc, "'" + s + "' has " + std::to_string(e.lanes) + " lanes, which is outside 1 .. 65536");
    e.lanes = 1;
  }
  return e;
}

HwTime ReadContext::latency(HwTime t, const Loc& loc) {
  constexpr double kMost = 1 << 20;
  if (!t.in_cycles) {
    const auto clock = hw.clocks.find("base");
    if (clock == hw.clocks.end()) {
      error(loc, "a time in seconds, and there is no clock to count it by",
            "say it in cycles, or give the description a 'clock'");
      return {};
    }
    t = {t.value * clock->second, true};
  }
  t.value = std::ceil(t.value - 1e-6);  // what is said in ns is not exact in binary
  if (t.value > kMost) error(loc, "a latency of more than " + std::to_string(static_cast<int64_t>(kMost)) + " cycles");
  return t;
}

HwTiming ReadContext::timing(const yaml::Node& n, const std::string& what) {
  HwTiming t;
  MapReader m(*this, n, "timing of " + what);
  if (const auto* v = m.find("read_latency")) t.read_latency = latency(take(parse_time(text(*v), v->loc())), v->loc());
  if (const auto* v = m.find("boundary")) t.boundary = take(parse_bytes(text(*v), v->loc()));
  if (const auto* v = m.find("peak")) t.peak = take(parse_rate(text(*v), v->loc()));
  t.burst_max = m.maybe_integer("burst_max", 1, 65536);
  t.split_by = m.word("split_by", {"compiler", "hardware"});
  m.done();
  return t;
}

MapReader::MapReader(ReadContext& cx, const yaml::Node& node, std::string what)
    : cx_(cx), node_(node), what_(std::move(what)), is_map_(node.kind == yaml::Kind::map) {
  if (!is_map_) cx_.error(node.loc(), what_ + " must be a map, not " + std::string(yaml::describe(node.kind)));
}

const yaml::Node* MapReader::find(std::string_view key) {
  known_.emplace(key);
  const yaml::Entry* e = node_.find(key);
  return e && e->value->kind != yaml::Kind::null ? e->value.get() : nullptr;
}

const yaml::Node* MapReader::need(std::string_view key) {
  const yaml::Node* n = find(key);
  if (!n && is_map_) cx_.error(node_.loc(), what_ + " needs the key '" + std::string(key) + "'");
  return n;
}

bool MapReader::has(std::string_view key) { return find(key) != nullptr; }

std::string MapReader::text(std::string_view key, std::string fallback) {
  const yaml::Node* n = find(key);
  return n ? cx_.text(*n) : std::move(fallback);
}

int64_t MapReader::integer(std::string_view key, int64_t lo, int64_t hi, int64_t fallback) {
  const yaml::Node* n = find(key);
  return n ? cx_.integer(*n, lo, hi) : fallback;
}

std::optional<int64_t> MapReader::maybe_integer(std::string_view key, int64_t lo, int64_t hi) {
  const yaml::Node* n = find(key);
  return n ? std::optional<int64_t>(cx_.integer(*n, lo, hi)) : std::nullopt;
}

bool MapReader::boolean(std::string_view key, bool fallback) {
  const yaml::Node* n = find(key);
  return n ? cx_.boolean(*n) : fallback;
}

std::vector<std::string> MapReader::texts(std::string_view key) {
  const yaml::Node* n = find(key);
  return n ? cx_.texts(*n) : std::vector<std::string>{};
}

std::map<std::string, std::string> MapReader::text_map(std::string_view key) {
  std::map<std::string, std::string> out;
  const yaml::Node* n = find(key);
  if (!n) return out;
  MapReader m(cx_, *n, std::string(key) + " of " + what_);
  for (const auto& e : m.entries()) {
    std::string joined;
    for (const auto& t : cx_.texts(*e.value)) joined += (joined.empty() ? "" : ", ") + t;
    out[e.key] = joined;
  }
  return out;
}

std::string MapReader::word(std::string_view key, const std::vector<std::string>& words, std::string fallback) {
  const yaml::Node* n = find(key);
  if (!n) return fallback;
  const std::string s = cx_.text(*n);
  if (std::find(words.begin(), words.end(), s) == words.end()) {
    std::string list = did_you_mean(s, words);
    if (list.empty())
      for (const auto& w : words) list += (list.empty() ? "one of " : ", ") + w;
    cx_.error(n->loc(), "'" + s + "' is not a value of '" + std::string(key) + "' in " + what_, list);
  }
  return s;
}

void MapReader::done() {
  if (!is_map_) return;
  for (const auto& e : node_.entries) {
    if (known_.contains(e.key)) continue;
    if (cx_.unknown_keys.diagnostics.size() < kMaxErrors)
      cx_.unknown_keys.add(Error(e.loc(), "unknown key '" + e.key + "' in " + what_,
                                 did_you_mean(e.key, {known_.begin(), known_.end()})));
  }
}

}  // namespace dlc
