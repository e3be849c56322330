// `params` and `state`.
#include <xxhash.h>

#include <algorithm>

#include "core/hw/quantity.h"
#include "core/hw/rational.h"
#include "core/hw/reader.h"
#include "dlc/base/checked.h"

namespace dlc {

namespace {

constexpr int64_t kMaxOnChip = int64_t{1} << 30;  // bytes; simulators allocate it
constexpr int64_t kMaxWords = int64_t{1} << 32;
constexpr int kMaxIndexBits = 16;  // of tables and ROMs

// "s32[C] @+4 step 9"
HwView read_view(ReadContext& cx, const std::string& name, const yaml::Node& n) {
  HwView v;
  v.name = name;
  cx.valid_name(name, n.loc());
  const std::string t = cx.text(n);
  const size_t at = t.find('@');
  if (at == std::string::npos) {
    cx.error(n.loc(), "view '" + name + "' does not say where it lies", "\"s32[C] @+4\": 4 words into the memory");
    return v;
  }
  std::string elem = t.substr(0, at);
  while (elem.ends_with(' ')) elem.pop_back();
  v.elem = cx.elem(elem, n.loc());
  std::string rest = t.substr(at + 1);
  const size_t step = rest.find(" step ");
  const auto number = [&](std::string s) {
    while (!s.empty() && (s[0] == ' ' || s[0] == '+')) s.erase(0, 1);
    const auto e = parse_hw_expr(s, cx.param_names(), n.loc());
    if (!e) cx.error(e.error());
    return e ? e->constant().value_or(-1) : 0;
  };
  if (step != std::string::npos) v.step = number(rest.substr(step + 6));
  v.offset = number(rest.substr(0, step));
  if (v.offset < 0 || v.step < 1 || v.offset > kMaxWords || v.step > kMaxWords)
    cx.error(n.loc(), "view '" + name + "' has a negative offset or a step below 1");
  return v;
}

int64_t whole_words(ReadContext& cx, const yaml::Node& size, const HwElem& elem) {
  const size_t errors_before = cx.errors.diagnostics.size();
  const int64_t bytes = cx.take(parse_bytes(cx.text(size), size.loc()));
  if (cx.errors.diagnostics.size() == errors_before && (bytes == 0 || bytes % elem.bytes() != 0))
    cx.error(size.loc(), "a memory of " + std::to_string(bytes) + " bytes, and an element has " +
                             std::to_string(elem.bytes()) + ": at least one, and no part of one");
  return std::max<int64_t>(bytes / elem.bytes(), 1);
}

void check_conflict(ReadContext& cx, const MapReader& m, const yaml::Node& n, const std::string& conflict) {
  static constexpr std::string_view kStall = "stall ";
  if (!conflict.starts_with(kStall)) {
    if (!conflict.empty() && conflict != "error")
      cx.error(n.loc(), "'conflict' of " + m.what() + " is neither \"stall QUEUE\" nor error",
               did_you_mean(conflict.substr(0, conflict.find(' ')), {"stall", "error"}));
    return;
  }
  const std::string queue = conflict.substr(kStall.size());
  Loc loc = n.text_loc();
  loc.column += static_cast<int>(kStall.size());
  if (cx.hw.find_queue(queue) < 0)
    cx.unknown(loc, "queue", queue, names_of(cx.hw.queues), "for 'conflict' of " + m.what());
}

void read_memory(ReadContext& cx, MapReader& m, HwState& s) {
  const size_t errors_before = cx.errors.diagnostics.size();
  if (const auto* n = m.need("elem")) s.elem = cx.elem(cx.text(*n), n->loc());
  const auto* words = m.find("words");
  const auto* size = m.find("size");
  if ((words != nullptr) == (size != nullptr))
    cx.error(s.loc, m.what() + " needs one of 'words' and 'size'");
  else if (words)
    s.words = cx.integer(*words, 1, kMaxWords);
  else
    s.words = whole_words(cx, *size, s.elem);
  if (const auto* segments = m.find("segments")) {
    s.kind = HwState::Kind::external;
    MapReader sm(cx, *segments, "segments of " + m.what());
    for (const auto& e : sm.entries()) {
      cx.valid_name(e.key, e.loc());
      s.segments.push_back({e.key, sm.word(e.key, {"ro", "rw"}) == "rw"});
    }
    if (s.segments.empty()) cx.error(segments->loc(), "'segments' is empty");
  }
  if (const auto* views = m.find("views")) {
    MapReader vm(cx, *views, "views of " + m.what());
    for (const auto& e : vm.entries()) s.views.push_back(read_view(cx, e.key, *e.value));
  }
  if (const auto* ports = m.find("ports")) {
    MapReader pm(cx, *ports, "ports of " + m.what());
    for (const auto& e : pm.entries()) {
      cx.valid_name(e.key, e.loc());
      if (e.key[0] != 'r' && e.key[0] != 'w')
        cx.error(e.loc(), "port '" + e.key + "' begins with neither r (read) nor w (write)");
      s.ports.push_back({e.key, e.key[0] == 'w', cx.texts(*e.value)});
      const bool list = e.value->kind == yaml::Kind::sequence;
      for (size_t i = 0; i < s.ports.back().clients.size(); ++i) {
        const std::string& client = s.ports.back().clients[i];
        const Loc loc = (list ? *e.value->items[i] : *e.value).loc();
        if (cx.hw.find_queue(client) < 0)
          cx.unknown(loc, "queue", client, names_of(cx.hw.queues), "for port '" + e.key + "' of " + m.what());
      }
    }
  }
  s.conflict = m.text("conflict");
  if (const auto* n = m.find("conflict")) check_conflict(cx, m, *n, s.conflict);
  if (const auto* n = m.find("base")) {
    s.base = cx.text(*n);
    const bool is_register = s.base.starts_with("csr.");
    if (!is_register) cx.error(n->loc(), "'base' is not of the form csr.REGISTER");
    if (is_register) s.base.erase(0, 4);
    Loc loc = n->text_loc();
    loc.column += 4;
    if (is_register && cx.hw.find_csr(s.base) < 0)
      cx.unknown(loc, "register", s.base, names_of(cx.hw.csr), "in 'csr' for 'base' of " + m.what());
  }
  s.banks = m.integer("banks", 1, 1024, 1);
  if (s.words % s.banks != 0)
    cx.error(m.find("banks")->loc(), std::to_string(s.words) + " words of " + m.what() + " are no " +
                                         std::to_string(s.banks) + " banks of one size");
  s.ports_per_bank = m.word("per", {"bank", "memory"}) == "bank";
  if (const auto* n = m.find("bank_of")) {
    HwNames names = cx.param_names();
    names.value = [base = names.value](std::string_view name) {
      return name == "a" ? std::optional<Expr>(Expr::symbol("a")) : base(name);
    };
    const Expr bank_of = cx.take(parse_hw_expr(cx.text(*n), names, n->text_loc()));
    const auto at = [&](int64_t a) { return evaluate(bank_of, {{"a", a}}).value_or(-1); };
    const int64_t size = s.words / s.banks;
    for (int64_t b = 0; b < s.banks; ++b)
      if (at(b * size) != b || at((b + 1) * size - 1) != b) {
        cx.error(n->loc(), "'bank_of' does not give each of the " + std::to_string(s.banks) +
                               " banks a part of its own: a // (words // banks) does");
        break;
      }
  }
  if (const auto* n = m.find("align")) s.align = cx.take(parse_bytes(cx.text(*n), n->loc()));
  if (s.align < 1 || s.align > 65536) cx.error(s.loc, "'align' of " + m.what() + " is outside 1 .. 65536");
  if (const auto* n = m.find("reset"); n && cx.text(*n) != "undef")
    s.reset = cx.integer(*n, s.elem.dtype.min_value(), s.elem.dtype.max_value());
  m.word("oob", {"error"});
  if (const auto* n = m.find("timing")) s.timing = cx.timing(*n, m.what());
  if (cx.errors.diagnostics.size() > errors_before) return;
  for (const HwView& v : s.views) {
    const auto end = checked_mul(v.offset, s.elem.bytes());
    if (!end || *end + v.elem.bytes() > s.words * s.elem.bytes())
      cx.error(s.loc, "view '" + v.name + "' lies beyond the " + std::to_string(s.words) + " words of " + m.what());
  }
}

// "u8 -> s8": the index type, which must be unsigned and small, and the entry's.
void read_mapping(ReadContext& cx, MapReader& m, HwState& s, std::string_view key) {
  const auto* n = m.need(key);
  const std::string t = cx.text(*n);
  const size_t arrow = t.find("->");
  const auto trim = [](std::string x) {
    while (x.ends_with(' ')) x.pop_back();
    while (x.starts_with(' ')) x.erase(0, 1);
    return x;
  };
  if (arrow == std::string::npos) return cx.error(n->loc(), "'" + t + "' is not of the form \"u8 -> s8\"");
  const auto index = cx.dtype(trim(t.substr(0, arrow)), n->loc());
  const auto entry = cx.dtype(trim(t.substr(arrow + 2)), n->loc());
  if (!index || !entry) return;
  if (index->kind != DType::Kind::unsigned_int || index->bits > kMaxIndexBits)
    return cx.error(n->loc(), "the index type must be u1 .. u" + std::to_string(kMaxIndexBits));
  s.elem = {*entry, 0};
  s.entries = int64_t{1} << index->bits;
}

void read_rom(ReadContext& cx, MapReader& m, HwState& s) {
  read_mapping(cx, m, s, "rom");
  s.words = s.entries;
  const auto* formula = m.need("formula");
  const auto* digest = m.find("digest");
  if (!formula) return;
  const auto f = Formula::parse(cx.text(*formula), formula->text_loc());
  if (!f) return cx.error(f.error());
  for (int64_t i = 0; i < s.words; ++i) {
    const auto v = f->at(i);
    if (!v) return cx.error(v.error());
    if (*v < s.elem.dtype.min_value() || *v > s.elem.dtype.max_value())
      return cx.error(formula->loc(), "entry " + std::to_string(i) + " of rom '" + s.name + "' is " +
                                          std::to_string(*v) + ", which " + to_string(s.elem.dtype) + " does not hold");
    s.rom.push_back(*v);
  }
  if (!digest) return;
  const std::string have = hash_text(XXH3_64bits(s.rom.data(), s.rom.size() * sizeof(int64_t)));
  const std::string want = cx.text(*digest);
  if (want != have)
    cx.error(digest->loc(), "the contents of rom '" + s.name + "' have the digest " + have + ", not " + want);
}

void read_counter(ReadContext& cx, MapReader& m, HwState& s) {
  s.counter_bits = static_cast<int>(m.integer("counter", 1, 32, 8));
  s.elem = {kU32, 0};
  if (m.need("count")) s.words = m.integer("count", 1, 64, 1);
  s.reset = m.integer("reset", 0, (int64_t{1} << s.counter_bits) - 1, 0);
  m.word("overflow", {"error"});
  m.word("underflow", {"error"});
  s.one_waiting_queue = m.word("waiters", {"one_queue", "any"}, "any") == "one_queue";
  (void)cx;
}

}  // namespace

void read_params(ReadContext& cx, const yaml::Node& n, const std::map<std::string, int64_t, std::less<>>& overrides) {
  MapReader m(cx, n, "'params'");
  for (const auto& e : m.entries()) {
    cx.valid_name(e.key, e.loc());
    const auto over = overrides.find(e.key);
    const size_t errors_before = cx.errors.diagnostics.size();
    if (over == overrides.end() && e.value->kind == yaml::Kind::null)
      cx.error(e.loc(), "param '" + e.key + "' has no value", e.key + ": NUMBER");
    int64_t value = over != overrides.end() ? over->second : m.integer(e.key, -(int64_t{1} << 40), int64_t{1} << 40, 0);
    if (cx.errors.diagnostics.size() > errors_before) value = 1;  // something that fits, so that only this is reported
    cx.hw.params.push_back({e.key, value, e.loc()});
  }
  for (const auto& [name, value] : overrides)
    if (!cx.hw.param(name)) cx.unknown(n.loc(), "param", name, names_of(cx.hw.params), "to override");
}

void read_state(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'state'");
  for (const auto& e : m.entries()) {
    HwState s;
    s.name = e.key;
    s.loc = e.loc();
    cx.valid_name(e.key, e.loc());
    MapReader sm(cx, *e.value, "state '" + e.key + "'");
    s.doc = sm.text("doc");
    if (sm.has("table")) {
      s.kind = HwState::Kind::table;
      read_mapping(cx, sm, s, "table");
      s.words = sm.integer("slots", 1, 65536, 1);
      if (const auto* r = sm.find("reset"); r && cx.text(*r) != "undef")
        s.reset = cx.integer(*r, s.elem.dtype.min_value(), s.elem.dtype.max_value());
    } else if (sm.has("rom")) {
      s.kind = HwState::Kind::rom;
      read_rom(cx, sm, s);
    } else if (sm.has("counter")) {
      s.kind = HwState::Kind::counter;
      read_counter(cx, sm, s);
    } else {
      read_memory(cx, sm, s);
    }
    sm.done();
    if (s.kind != HwState::Kind::external && s.words > kMaxOnChip / std::max<int64_t>(s.word_bytes(), 1)) {
      cx.error(s.loc, "state '" + s.name + "' is larger than 1 GiB, which only external memory may be");
      continue;
    }
    const int index = static_cast<int>(cx.hw.state.size());
    if (s.kind == HwState::Kind::external) {
      for (size_t i = 0; i < s.segments.size(); ++i)
        cx.hw.spaces.push_back({s.name + "." + s.segments[i].name, index, static_cast<int>(i), s.segments[i].writable});
    } else if (s.kind != HwState::Kind::counter) {
      cx.hw.spaces.push_back({s.name, index, -1, s.kind != HwState::Kind::rom});
    }
    cx.hw.state.push_back(std::move(s));
  }
}

}  // namespace dlc
