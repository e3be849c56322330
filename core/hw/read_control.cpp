// `queues`, `sync`, `faults`, `csr`, and what must agree between the sections.
#include <fmt/format.h>

#include <algorithm>

#include "core/hw/quantity.h"
#include "core/hw/reader.h"

namespace dlc {

void read_queues(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'queues'");
  for (const auto& e : m.entries()) {
    cx.valid_name(e.key, e.loc());
    MapReader q(cx, *e.value, "queue '" + e.key + "'");
    cx.hw.queues.push_back({e.key, q.integer("depth", 1, 65536, 1)});
    q.word("order", {"in"});
    q.done();
  }
}

namespace {
constexpr int64_t kMostTokenQueues = 8;  // a bit of 64 for each pair
}

void read_sync(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'sync'");
  HwSync s;
  const bool tokens = m.word("model", {"semaphores", "tokens"}) == "tokens";
  const int64_t queues = std::ssize(cx.hw.queues);
  if (const auto* o = m.need("object")) {
    const std::string name = cx.text(*o);
    std::vector<std::string> counters;
    for (const HwState& c : cx.hw.state)
      if (c.kind == HwState::Kind::counter) counters.push_back(c.name);
    if (std::ranges::count(counters, name) > 0)
      s.object = cx.hw.find_state(name);
    else
      cx.unknown(o->loc(), "counter", name, counters, "in 'state'");
  }
  if (tokens && s.object >= 0) {
    s.queues = static_cast<int>(queues);
    const HwState& c = cx.hw.state[static_cast<size_t>(s.object)];
    if (c.words != queues * queues)
      cx.error(c.loc,
               fmt::format("'{}' has {} counters; tokens between {} queues need {}, one for each ordered pair", c.name,
                           c.words, queues, queues * queues),
               fmt::format("count: {}", queues * queues));
    if (queues > kMostTokenQueues)
      cx.error(n.loc(), fmt::format("tokens between {} queues; at most {} can have them", queues, kMostTokenQueues));
  }
  const auto mask = [&](const yaml::Node* f) {
    const std::string name = f ? cx.text(*f) : "";
    const auto& common = cx.hw.isa.common;
    const auto it = std::find_if(common.begin(), common.end(), [&](const HwField& c) { return c.name == name; });
    if (f && it == common.end()) cx.unknown(f->loc(), "common field", name, names_of(common), "in 'isa'");
    const int64_t bits = tokens || s.object < 0 ? queues : cx.hw.state[static_cast<size_t>(s.object)].words;
    if (it != common.end() && s.object >= 0 && it->width != bits)
      cx.error(f->loc(), fmt::format("field '{}' has {} bits for {} {}", name, it->width, bits,
                                     tokens ? "queues" : "semaphores"));
    return name;
  };
  if (const auto* w = m.need("wait")) {
    MapReader wm(cx, *w, "'wait'");
    s.wait_field = mask(wm.need("field"));
    wm.word("at", {"start"});
    wm.integer("need", 1, 1, 1);
    wm.integer("take", 1, 1, 1);
    wm.done();
  }
  if (const auto* g = m.need("signal")) {
    MapReader gm(cx, *g, "'signal'");
    const auto* field = gm.need("field");
    s.signal_field = mask(field);
    if (field && s.signal_field == s.wait_field)
      cx.error(field->loc(),
               fmt::format("field '{}' is that of 'wait', so whoever waits would give, too", s.signal_field),
               "a common field of its own");
    gm.word("at", {"retire"});
    gm.integer("give", 1, 1, 1);
    gm.done();
  }
  if (const auto* v = m.find("visible")) {
    s.visible = m.text_map("visible");
    for (const auto& e : v->entries)
      if (cx.hw.find_queue(e.key) < 0) cx.unknown(e.loc(), "queue", e.key, names_of(cx.hw.queues), "for 'visible'");
  }
  m.done();
  cx.hw.sync = std::move(s);
}

void read_faults(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'faults'");
  if (const auto* c = m.need("causes")) {
    MapReader cm(cx, *c, "'causes'");
    for (const auto& e : cm.entries()) {
      cx.valid_name(e.key, e.loc());
      cx.hw.places["faults." + e.key] = e.loc();
      const HwFault f{e.key, cm.integer(e.key, 1, 255, 1)};
      for (const HwFault& old : cx.hw.faults)
        if (old.code == f.code)
          cx.error(e.loc(), "causes '" + old.name + "' and '" + f.name + "' both have code " + std::to_string(f.code));
      cx.hw.faults.push_back(f);
    }
  }
  cx.hw.fault_effect = m.text("effect");
  m.done();
}

namespace {

const std::vector<std::string> kAccess = {"ro", "rw", "w1", "w1c"};

void read_flags(ReadContext& cx, const yaml::Node& n, HwCsr& r) {
  MapReader m(cx, n, "bits of csr '" + r.name + "'");
  int next = 0;
  for (const auto& e : m.entries()) {
    HwCsrBits b{e.key, next, 1, "rw"};
    cx.valid_name(e.key, e.loc());
    if (e.value->kind == yaml::Kind::map) {
      MapReader bm(cx, *e.value, "bit '" + e.key + "' of csr '" + r.name + "'");
      b.at = static_cast<int>(bm.integer("at", 0, 63, next));
      b.width = static_cast<int>(bm.integer("w", 1, 64, 1));
      b.access = bm.word("access", kAccess, "rw");
      bm.done();
    } else {
      b.access = m.word(e.key, kAccess);
    }
    next = b.at + b.width;
    if (next > r.bits)
      cx.error(e.loc(),
               "bit '" + b.name + "' of csr '" + r.name + "' is beyond its " + std::to_string(r.bits) + " bits");
    for (const HwCsrBits& o : r.flags)
      if (b.at < o.at + o.width && o.at < b.at + b.width)
        cx.error(e.loc(), "bits '" + o.name + "' and '" + b.name + "' of csr '" + r.name + "' overlap");
    r.flags.push_back(std::move(b));
  }
}

}  // namespace

void read_csr(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'csr'");
  for (const auto& e : m.entries()) {
    HwCsr r;
    r.name = e.key;
    r.loc = e.loc();
    cx.valid_name(e.key, e.loc());
    MapReader rm(cx, *e.value, "csr '" + e.key + "'");
    if (rm.need("at")) r.at = rm.integer("at", 0, 1 << 20, 0);
    r.bits = static_cast<int>(rm.integer("w", 32, 64, 32));
    r.count = rm.integer("n", 1, 4096, 1);
    r.access = rm.word("access", kAccess, "rw");
    r.value = rm.word("ro", {"arch_hash"});
    if (!r.value.empty()) r.access = "ro";
    r.names = rm.texts("names");
    for (size_t i = 0; i < r.names.size(); ++i) {
      const yaml::Node& names = *rm.find("names");
      const Loc loc = names.items.empty() ? names.loc() : names.items[i]->loc();
      cx.valid_name(r.names[i], loc);
      cx.hw.places["csr." + r.name + "." + r.names[i]] = loc;
    }
    if (const auto* bits = rm.find("bits")) read_flags(cx, *bits, r);
    rm.done();
    if (r.bits != 32 && r.bits != 64)
      cx.error(r.loc, "csr '" + r.name + "' has " + std::to_string(r.bits) + " bits, not 32 or 64");
    if (r.at % 4 != 0) cx.error(r.loc, "csr '" + r.name + "' is not at a multiple of 4");
    if (!r.names.empty() && static_cast<int64_t>(r.names.size()) != r.count)
      cx.error(r.loc, "csr '" + r.name + "' has n = " + std::to_string(r.count) + " and " +
                          std::to_string(r.names.size()) + " names");
    const int64_t end = r.at + r.count * r.bits / 8;
    constexpr int64_t kWindow = 0x1000;  // 12 bits of address are on the pins
    if (end > kWindow) cx.error(r.loc, "csr '" + r.name + "' ends behind 0x1000: registers have 12 bits of address");
    for (const HwCsr& o : cx.hw.csr)
      if (r.at < o.at + o.count * o.bits / 8 && o.at < end)
        cx.error(r.loc, "csr '" + o.name + "' and csr '" + r.name + "' overlap");
    cx.hw.csr.push_back(std::move(r));
  }
}

void check_references(ReadContext& cx) {
  for (const HwState& s : cx.hw.state) {
    if (const int r = cx.hw.find_csr(s.base); r >= 0) {
      const HwCsr& base = cx.hw.csr[static_cast<size_t>(r)];
      if (base.count < std::ssize(s.segments))
        cx.error(s.loc,
                 "'" + s.name + "' has " + std::to_string(s.segments.size()) + " segments, and its register '" +
                     s.base + "' has n = " + std::to_string(base.count) + " elements for their places",
                 "line " + std::to_string(base.loc.line) + ": n: " + std::to_string(s.segments.size()));
    }
  }
}

}  // namespace dlc
