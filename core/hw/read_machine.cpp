// Sections `memories`, `ops` and `rtl`.
#include <bit>

#include "core/hw/quantity.h"
#include "core/hw/reader.h"
#include "dlc/io/inside.h"

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

std::string read_path(ReadContext& cx, MapReader& m, std::string_view key, const std::string& name) {
  const auto* n = m.find(key);
  if (n == nullptr) return {};
  std::string path = cx.text(*n);
  cx.hw.places[name] = n->loc();
  if (auto ok = check_inside(path, name, n->loc()); !ok) cx.error(std::move(ok).error());
  return path;
}

namespace {

// It becomes a file of the build folder, and the name of a package and a namespace.
void check_package(ReadContext& cx, const std::string& package, const Loc& loc) {
  const size_t dot = package.find('.');
  const std::string name = package.substr(0, dot), suffix = dot == std::string::npos ? "" : package.substr(dot);
  if (suffix != ".svh" && suffix != ".sv")
    return cx.error(loc, "'package' is '" + package + "', which is not the name of a SystemVerilog file",
                    "a name of letters, digits and _ with .svh or .sv, such as nx_cfg.svh");
  cx.valid_name(name, loc);
}

}  // namespace

void read_rtl(ReadContext& cx, const yaml::Node& n) {
  HwRtl& r = cx.hw.rtl;
  MapReader m(cx, n, "'rtl'");
  r.files = read_path(cx, m, "files", "rtl.files");
  r.package = m.text("package");
  if (const auto* p = m.find("package")) {
    cx.hw.places["rtl.package"] = p->loc();
    check_package(cx, r.package, p->loc());
  }
  if (const auto* b = m.find("bus")) {
    MapReader bm(cx, *b, "'bus'");
    r.bus_bytes = bm.maybe_integer("data_bytes", 1, 1024);
    if (r.bus_bytes && !std::has_single_bit(static_cast<uint64_t>(*r.bus_bytes)))
      cx.error(bm.find("data_bytes")->loc(),
               "a bus of " + std::to_string(*r.bus_bytes) + " bytes: 'data_bytes' must be a power of two");
    bm.done();
  }
  m.done();
}

}  // namespace dlc
