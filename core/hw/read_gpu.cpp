// Section `gpu`: machines that run one program text in many threads.
#include <algorithm>

#include "core/hw/quantity.h"
#include "core/hw/reader.h"
#include "dlc/hw/gpu.h"

namespace dlc {

namespace {

constexpr int64_t kMost = int64_t{1} << 40;

// Quantities by name: `limits` in numbers and bytes.
std::vector<HwGpuFigure> figures(ReadContext& cx, const yaml::Node& n, const std::string& what,
                                 double (*parse)(ReadContext&, const yaml::Node&)) {
  std::vector<HwGpuFigure> all;
  MapReader m(cx, n, what);
  for (const auto& e : m.entries()) {
    cx.valid_name(e.key, e.loc());
    if (const auto* v = m.find(e.key)) all.push_back({e.key, parse(cx, *v), v->loc()});
  }
  return all;
}

double number(ReadContext& cx, const yaml::Node& n) {
  const auto bytes = cx.take(parse_bytes(cx.text(n), n.loc()));
  if (bytes < 0 || bytes > kMost) cx.error(n.loc(), "this number is out of range");
  return static_cast<double>(bytes);
}
double bytes_per_second(ReadContext& cx, const yaml::Node& n) {
  const HwRate r = cx.take(parse_rate(cx.text(n), n.loc()));
  const auto clock = cx.hw.clocks.find("base");
  return r.per_cycle ? r.bytes * (clock == cx.hw.clocks.end() ? 0.0 : clock->second) : r.bytes;
}
double seconds(ReadContext& cx, const yaml::Node& n) {
  const HwTime t = cx.take(parse_time(cx.text(n), n.loc()));
  if (t.in_cycles) cx.error(n.loc(), "a time in us or ns is wanted");
  return t.value;
}

HwMma read_mma(ReadContext& cx, const yaml::Node& n) {
  HwMma x;
  x.loc = n.loc();
  MapReader m(cx, n, "an entry of 'tensor_core'");
  if (m.need("op")) x.op = m.text("op");
  if (const auto* shape = m.need("shape")) {
    if (shape->kind != yaml::Kind::sequence || shape->items.size() != 3) {
      cx.error(shape->loc(), "'shape' is three numbers: rows, columns and depth", "shape: [16, 8, 16]");
    } else {
      for (size_t i = 0; i < 3; ++i) x.shape[i] = cx.integer(*shape->items[i], 1, 4096);
    }
  }
  const auto type = [&](const char* key, DType& to) {
    const auto* t = m.need(key);
    if (t == nullptr) return;
    const std::string text = m.text(key);
    if (const auto d = cx.dtype(text == "tf32" ? "f32" : text, t->loc())) to = *d;
  };
  type("in", x.in);
  type("acc", x.acc);
  x.ops_per_cycle = m.integer("ops_per_cycle", 1, 1 << 20, 0);
  m.done();
  return x;
}

// A machine cannot have more than its architecture.
void check_limits(ReadContext& cx, const HwGpu& g) {
  for (const HwGpuFigure& f : g.limits) {
    const auto most = std::ranges::find(g.arch_limits, f.name, &HwGpuFigure::name);
    if (most == g.arch_limits.end() || f.value <= most->value) continue;
    cx.error(f.loc,
             "'" + f.name + "' is " + std::to_string(static_cast<int64_t>(f.value)) + ", and " + g.arch +
                 " has at most " + std::to_string(static_cast<int64_t>(most->value)),
             "lower it, or correct 'limits' of 'arch' at " + most->loc.file + ":" + std::to_string(most->loc.line));
  }
}

}  // namespace

HwGpu gpu_section(ReadContext& cx, const yaml::Node& n) {
  HwGpu g;
  MapReader m(cx, n, "'gpu'");
  if (const auto* arch = m.need("arch")) {
    MapReader a(cx, *arch, "'arch' of 'gpu'");
    if (a.need("target")) g.arch = a.text("target");
    g.fallback = a.text("fallback");
    g.features = a.texts("features");
    g.min_driver = a.integer("min_driver", 0, 100000, 0);
    if (const auto* limits = a.find("limits")) g.arch_limits = figures(cx, *limits, "'limits' of 'arch'", number);
    a.done();
  }
  g.processors = m.need("processors") ? m.integer("processors", 1, 1 << 16, 1) : 1;
  g.warp = m.integer("warp", 1, 1024, 32);
  if (const auto* l = m.need("limits")) g.limits = figures(cx, *l, "'limits' of 'gpu'", number);
  if (const auto* r = m.find("rates")) g.rates = figures(cx, *r, "'rates' of 'gpu'", bytes_per_second);
  if (const auto* c = m.find("costs")) g.costs = figures(cx, *c, "'costs' of 'gpu'", seconds);
  if (const auto* t = m.find("tensor_core")) {
    if (t->kind != yaml::Kind::sequence) {
      cx.error(t->loc(), "'tensor_core' is a list of instructions");
    } else {
      for (const auto& item : t->items) g.mma.push_back(read_mma(cx, *item));
    }
  }
  if (const auto* u = m.find("unmeasured")) {
    const auto known = [&](const std::string& name) {
      return name == "tensor_core" || (name.starts_with("rates.") && g.rate(name.substr(6))) ||
             (name.starts_with("costs.") && g.cost(name.substr(6)));
    };
    for (const std::string& name : m.texts("unmeasured")) {
      if (!known(name))
        cx.error(u->loc(), "'unmeasured' names '" + name + "', which is no figure of 'gpu'",
                 "rates.NAME, costs.NAME or tensor_core");
      g.unmeasured.push_back(name);
    }
  }
  m.done();
  check_limits(cx, g);
  return g;
}

void read_gpu(ReadContext& cx, const yaml::Node& n) { gpu_section(cx, n); }

namespace {

std::optional<double> find(const std::vector<HwGpuFigure>& all, std::string_view name) {
  const auto f = std::ranges::find(all, name, &HwGpuFigure::name);
  return f == all.end() ? std::nullopt : std::optional(f->value);
}

}  // namespace

std::optional<double> HwGpu::limit(std::string_view name) const { return find(limits, name); }
std::optional<double> HwGpu::rate(std::string_view name) const { return find(rates, name); }
std::optional<double> HwGpu::cost(std::string_view name) const { return find(costs, name); }

}  // namespace dlc
