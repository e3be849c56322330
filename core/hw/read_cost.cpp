// Section `cost`: what the model of time needs besides `cycles` of the instructions, and budgets.
#include "core/hw/quantity.h"
#include "core/hw/reader.h"

namespace dlc {

namespace {

constexpr int64_t kMost = 1 << 20;

// Params, and `latency`: cycles from a read's address to its first beat, of the external memory.
HwNames bus_names(const ReadContext& cx) {
  HwNames names = cx.param_names();
  std::optional<int64_t> latency;
  for (const HwState& s : cx.hw.state)
    if (s.kind == HwState::Kind::external && s.timing.read_latency && s.timing.read_latency->in_cycles)
      latency = static_cast<int64_t>(s.timing.read_latency->value);
  names.value = [latency, base = names.value](std::string_view name) -> std::optional<Expr> {
    return name == "latency" && latency ? std::optional<Expr>(Expr(*latency)) : base(name);
  };
  names.suggest = [base = names.suggest](std::string_view name) {
    const std::string near = nearest(name, {"latency"});
    return near.empty() ? base(name) : near;
  };
  return names;
}

int64_t cycles(ReadContext& cx, MapReader& m, std::string_view key, int64_t fallback) {
  const auto* n = m.find(key);
  if (!n) return fallback;
  const auto e = parse_hw_expr(cx.text(*n), bus_names(cx), n->text_loc());
  if (!e) {
    cx.error(e.error());
    return fallback;
  }
  const int64_t value = e->constant().value_or(-1);
  if (value < 0 || value > kMost)
    cx.error(n->loc(), "'" + std::string(key) + "' is " + std::to_string(value) + " cycles, which is outside 0 .. " +
                           std::to_string(kMost));
  return value;
}

void read_issue(ReadContext& cx, const yaml::Node& n) {
  HwIssueCost& c = cx.hw.cost.issue;
  MapReader m(cx, n, "'issue' of 'cost'");
  c.fetch = cycles(cx, m, "fetch", c.fetch);
  c.beats = m.integer("beats", 0, kMost, c.beats);
  c.ahead = m.integer("ahead", 1, kMost, c.ahead);
  c.look = m.integer("look", 0, kMost, c.look);
  c.in_flight = m.integer("in_flight", 1, kMost, c.in_flight);
  m.done();
}

void read_transfer(ReadContext& cx, const yaml::Entry& entry) {
  HwTransferCost t;
  t.insn = cx.hw.isa.find(entry.key);
  if (t.insn < 0) {
    cx.unknown(entry.loc(), "instruction", entry.key, names_of(cx.hw.isa.insns), "for 'transfers' of 'cost'");
    return;
  }
  MapReader m(cx, *entry.value, "'" + entry.key + "' of 'transfers'");
  const HwNames names = field_names(cx, cx.hw.isa.insns[static_cast<size_t>(t.insn)]);
  for (const auto& [key, to] : {std::pair("bursts", &t.bursts), std::pair("words", &t.words)})
    if (const auto* n = m.need(key)) *to = cx.take(parse_hw_expr(cx.text(*n), names, n->text_loc()));
  t.gap = m.integer("gap", 1, kMost, t.gap);
  t.open = m.integer("open", 1, kMost, t.open);
  t.first = cycles(cx, m, "first", 0);
  t.answer = cycles(cx, m, "answer", 0);
  m.done();
  cx.hw.cost.transfers.push_back(std::move(t));
}

}  // namespace

void read_cost(ReadContext& cx, const yaml::Node& n) {
  HwCost& c = cx.hw.cost;
  MapReader m(cx, n, "'cost'");
  if (const auto* b = m.find("error_budget")) {
    MapReader bm(cx, *b, "'error_budget'");
    for (const std::string_view k : {"median", "p95"})
      if (const auto* v = bm.find(k)) {
        const double budget = c.error_budget[std::string(k)] = cx.take(parse_fraction(cx.text(*v), v->loc()));
        if (budget < 0) cx.error(v->loc(), "'" + std::string(k) + "' is below 0, so that no prediction is within it");
      }
    bm.done();
  }
  if (const auto* i = m.find("issue")) read_issue(cx, *i);
  if (const auto* t = m.find("transfers")) {
    MapReader tm(cx, *t, "'transfers' of 'cost'");
    for (const auto& e : tm.entries()) {
      tm.find(e.key);
      read_transfer(cx, e);
    }
  }
  m.done();
}

}  // namespace dlc
