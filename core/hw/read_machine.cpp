// Sections `memories`, `ops` and `rtl`.
#include "core/hw/quantity.h"
#include "core/hw/reader.h"

namespace dlc {

void read_memories(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'memories'");
  for (const auto& e : m.entries()) {
    cx.valid_name(e.key, e.loc());
    MapReader mm(cx, *e.value, "memory '" + e.key + "'");
    HwMemory x{e.key, 0};
    if (const auto* size = mm.need("size")) x.size = cx.take(parse_bytes(cx.text(*size), size->loc()));
    mm.done();
    cx.hw.memories.push_back(std::move(x));
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
    if (m.need("place")) r.place = m.word("place", {"host", "refuse"});
    if (m.need("why")) r.why = m.text("why");
    if (const auto* t = m.find("types")) {
      for (const auto& s : cx.texts(*t))
        if (const auto d = cx.dtype(s, t->loc())) r.types.push_back(*d);
    }
    m.done();
    cx.hw.ops.push_back(std::move(r));
  }
}

void read_rtl(ReadContext& cx, const yaml::Node& n) {
  HwRtl& r = cx.hw.rtl;
  MapReader m(cx, n, "'rtl'");
  r.files = m.text("files");
  r.package = m.text("package");
  if (const auto* b = m.find("bus")) {
    MapReader bm(cx, *b, "'bus'");
    r.bus_bytes = bm.maybe_integer("data_bytes", 1, 1024);
    bm.done();
  }
  m.done();
}

}  // namespace dlc
