// Sections of machines whose code comes from a skeleton emitter: scopes, memories, links, units; and ops, rtl,
// sim.
#include "core/hw/quantity.h"
#include "core/hw/reader.h"
#include "dlc/ops/record.h"

namespace dlc {

namespace {
constexpr int64_t kMany = int64_t{1} << 40;

std::optional<HwTime> maybe_time(ReadContext& cx, MapReader& m, std::string_view key) {
  const auto* n = m.find(key);
  return n ? std::optional<HwTime>(cx.take(parse_time(cx.text(*n), n->loc()))) : std::nullopt;
}

std::optional<int64_t> maybe_bytes(ReadContext& cx, MapReader& m, std::string_view key) {
  const auto* n = m.find(key);
  return n ? std::optional<int64_t>(cx.take(parse_bytes(cx.text(*n), n->loc()))) : std::nullopt;
}
}  // namespace

void read_scopes(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'scopes'");
  for (const auto& e : m.entries()) {
    cx.valid_name(e.key, e.loc());
    cx.hw.scopes.push_back({e.key, m.maybe_integer(e.key, 1, kMany)});
  }
}

void read_memories(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'memories'");
  for (const auto& e : m.entries()) {
    HwMemory x;
    x.name = e.key;
    x.loc = e.loc();
    cx.valid_name(e.key, e.loc());
    MapReader mm(cx, *e.value, "memory '" + e.key + "'");
    if (mm.need("scope")) x.scope = mm.text("scope");
    if (mm.need("size")) x.size = *maybe_bytes(cx, mm, "size");
    if (mm.need("managed")) x.managed = mm.word("managed", {"cache", "compiler", "planner", "os"});
    x.usable_per_block = maybe_bytes(cx, mm, "usable_per_block");
    x.word = maybe_bytes(cx, mm, "word");
    x.line = maybe_bytes(cx, mm, "line");
    x.align = maybe_bytes(cx, mm, "align");
    x.ways = mm.maybe_integer("ways", 1, 65536);
    x.regs = mm.maybe_integer("regs", 1, kMany);
    x.banks = mm.maybe_integer("banks", 1, 65536);
    x.slices = mm.maybe_integer("slices", 1, 65536);
    x.max_per_thread = mm.maybe_integer("max_per_thread", 1, kMany);
    x.bank_map = mm.text("bank_map");
    x.double_buffer = mm.text("double_buffer");
    for (const auto& s : mm.texts("swizzle")) x.swizzle += (x.swizzle.empty() ? "" : ", ") + s;
    x.needs = mm.texts("needs");
    if (const auto* p = mm.find("ports")) {
      MapReader pm(cx, *p, "ports of memory '" + e.key + "'");
      for (const std::string_view k : {"rd", "wr"})
        if (const auto v = pm.maybe_integer(k, 1, 64)) x.ports[std::string(k)] = *v;
      pm.done();
    }
    if (const auto* t = mm.find("timing")) x.timing = cx.timing(*t, "memory '" + e.key + "'");
    mm.done();
    cx.hw.memories.push_back(std::move(x));
  }
}

void read_links(ReadContext& cx, const yaml::Node& n) {
  const yaml::Ptr resolved = resolve_siblings(cx, n);
  MapReader m(cx, *resolved, "'links'");
  for (const auto& e : m.entries()) {
    HwLink x;
    x.name = e.key;
    x.loc = e.loc();
    cx.valid_name(e.key, e.loc());
    MapReader lm(cx, *e.value, "link '" + e.key + "'");
    x.engine = lm.text("engine");
    if (lm.need("from")) x.from = lm.text("from");
    if (lm.need("to")) x.to = lm.text("to");
    x.dims = lm.integer("dims", 1, 16, 1);
    x.align = lm.integer("align", 1, 65536, 1);
    x.async = lm.boolean("async");
    x.sync = lm.text("sync");
    x.can = lm.texts("can");
    x.min_arch = lm.text("min_arch");
    lm.done();
    cx.hw.links.push_back(std::move(x));
  }
}

namespace {

void read_unit_loops(ReadContext& cx, const yaml::Node& n, HwUnit& u) {
  MapReader m(cx, n, "loops of unit '" + u.name + "'");
  for (const auto& e : m.entries()) {
    HwUnitLoop l;
    l.name = e.key;
    cx.valid_name(e.key, e.loc());
    MapReader lm(cx, *e.value, "loop '" + e.key + "' of unit '" + u.name + "'");
    const auto* spatial = lm.find("spatial");
    const auto* temporal = lm.find("temporal");
    lm.done();
    if ((spatial != nullptr) == (temporal != nullptr)) {
      cx.error(e.loc(), "loop '" + e.key + "' of unit '" + u.name + "' must be either spatial or temporal");
      continue;
    }
    l.spatial = spatial != nullptr;
    const yaml::Node& size = spatial ? *spatial : *temporal;
    if (size.kind == yaml::Kind::map) {
      MapReader sm(cx, size, "size of loop '" + e.key + "'");
      l.min = sm.integer("min", 1, kMany, 1);
      l.max = sm.integer("max", l.min, kMany, l.min);
      l.step = sm.integer("step", 1, kMany, 1);
      sm.done();
    } else {
      l.min = l.max = cx.integer(size, 1, kMany);
    }
    u.loops.push_back(std::move(l));
  }
}

void read_unit_operands(ReadContext& cx, const yaml::Node& n, HwUnit& u) {
  MapReader m(cx, n, "operands of unit '" + u.name + "'");
  for (const auto& e : m.entries()) {
    HwUnitOperand o;
    o.name = e.key;
    MapReader om(cx, *e.value, "operand '" + e.key + "' of unit '" + u.name + "'");
    if (const auto* t = om.need("type")) {
      for (const auto& s : cx.texts(*t))
        if (const auto d = cx.dtype(s, t->loc())) o.types.push_back(*d);
    }
    if (om.need("in")) o.in = om.texts("in");
    o.layout = om.text("layout");
    om.done();
    u.operands.push_back(std::move(o));
  }
}

// The unit's text over its operands: extents are the largest sizes of its loops.
void parse_unit(ReadContext& cx, HwUnit& u, const Loc& where) {
  FragmentContext context;
  for (const HwUnitLoop& l : u.loops) context.loops.push_back({l.name, Expr::symbol("n_" + l.name)});
  for (const HwUnitLoop& l : u.loops) context.symbols.push_back("n_" + l.name);
  for (const HwUnitOperand& o : u.operands) {
    // The rank is what the text uses: count the indices of the first mention.
    const size_t at = u.does.find(o.name + "[");
    if (at == std::string::npos || o.types.empty()) {
      cx.error(where, "operand '" + o.name + "' of unit '" + u.name + "' does not occur in its 'does'");
      return;
    }
    const std::string inside = u.does.substr(at + o.name.size() + 1, u.does.find(']', at) - at - o.name.size() - 1);
    KernelTensor t{o.name, o.types[0], {}, o.name == "out" ? Role::output : Role::input, std::nullopt};
    for (size_t i = 0; i <= inside.size();) {
      const size_t comma = std::min(inside.find(',', i), inside.size());
      std::string loop = inside.substr(i, comma - i);
      std::erase(loop, ' ');
      bool known = false;
      for (const HwUnitLoop& l : u.loops) known = known || l.name == loop;
      if (!known)
        return cx.error(where, "index '" + loop + "' of '" + o.name + "' is not a loop of unit '" + u.name + "'");
      t.shape.push_back(Expr::symbol("n_" + loop));
      i = comma + 1;
    }
    context.tensors.push_back(std::move(t));
  }
  auto k = parse_fragment(u.does, context, where);
  if (!k) return cx.error(k.error());
  u.kernel = std::move(*k);
}

}  // namespace

void read_units(ReadContext& cx, const yaml::Node& n) {
  const yaml::Ptr resolved = resolve_siblings(cx, n);
  MapReader m(cx, *resolved, "'units'");
  for (const auto& e : m.entries()) {
    HwUnit u;
    u.name = e.key;
    u.loc = e.loc();
    cx.valid_name(e.key, e.loc());
    MapReader um(cx, *e.value, "unit '" + e.key + "'");
    if (um.need("scope")) u.scope = um.text("scope");
    u.does = um.text("does");
    u.ops = um.texts("ops");
    u.needs = um.texts("needs");
    u.clock = um.text("clock");
    u.min_arch = um.text("min_arch");
    u.lanes = um.maybe_integer("lanes", 1, 65536);
    u.pipes = um.maybe_integer("pipes", 1, 64);
    u.issue_cycles = um.maybe_integer("issue_cycles", 1, 1 << 20);
    u.latency = maybe_time(cx, um, "latency");
    u.async = um.boolean("async");
    u.numerics = um.text_map("numerics");
    if (const auto* r = um.find("rate")) {
      MapReader rm(cx, *r, "rate of unit '" + e.key + "'");
      for (const auto& re : rm.entries()) u.rate[re.key] = static_cast<double>(rm.integer(re.key, 1, kMany, 1));
    }
    if (const auto* l = um.find("loops")) read_unit_loops(cx, *l, u);
    if (const auto* o = um.find("operands")) read_unit_operands(cx, *o, u);
    const auto* does = um.find("does");
    if ((does != nullptr) == um.has("ops")) cx.error(u.loc, "unit '" + u.name + "' needs one of 'does' and 'ops'");
    um.done();
    if (does) parse_unit(cx, u, does->text_loc());
    cx.hw.units.push_back(std::move(u));
  }
}

void read_ops(ReadContext& cx, const yaml::Node& n) {
  if (n.kind != yaml::Kind::sequence) return cx.error(n.loc(), "'ops' must be a list");
  for (const auto& item : n.items) {
    HwOpRule r;
    r.loc = item->loc();
    MapReader m(cx, *item, "an entry of 'ops'");
    m.need("op");
    r.ops = m.texts("op");
    r.place = m.word("place", {"host", "refuse"});
    r.unit = m.text("unit");
    r.why = m.text("why");
    r.when = m.text("when");
    r.lower = m.text("lower");
    r.recipe = m.boolean("recipe");
    r.epilogue = m.texts("epilogue");
    if (const auto* t = m.find("types")) {
      for (const auto& s : cx.texts(*t))
        if (const auto d = cx.dtype(s, t->loc())) r.types.push_back(*d);
    }
    m.done();
    if (!r.place.empty() && r.why.empty())
      cx.error(r.loc, "an entry of 'ops' that places on the host or refuses must say 'why'");
    cx.hw.ops.push_back(std::move(r));
  }
}

void read_rtl(ReadContext& cx, const yaml::Node& n) {
  HwRtl& r = cx.hw.rtl;
  MapReader m(cx, n, "'rtl'");
  r.top = m.text("top");
  r.files = m.text("files");
  r.package = m.text("package");
  if (const auto* b = m.find("bus")) {
    MapReader bm(cx, *b, "'bus'");
    r.bus_kind = bm.word("kind", {"axi4"});
    r.bus_bytes = bm.maybe_integer("data_bytes", 1, 1024);
    r.addr_bits = bm.maybe_integer("addr_bits", 1, 64);
    bm.done();
  }
  m.done();
}

void read_sim(ReadContext& cx, const yaml::Node& n) {
  HwSim& s = cx.hw.sim;
  MapReader m(cx, n, "'sim'");
  s.verilator = m.text_map("verilator");
  s.require = m.text_map("require");
  s.fuzz = m.text_map("fuzz");
  s.trace = m.text("trace");
  s.functional = m.text("functional");
  s.watchdog = m.maybe_integer("watchdog", 1, kMany);
  if (const auto* d = m.find("dram")) {
    MapReader dm(cx, *d, "'dram' of 'sim'");
    s.dram_latency = dm.maybe_integer("latency", 0, 1 << 20);
    for (const auto& t : dm.texts("jitter")) s.dram_jitter.push_back(cx.take(parse_integer(t, d->loc())));
    dm.done();
  }
  m.done();
}

}  // namespace dlc
