#include "core/map/move.h"

#include <fmt/format.h>

#include <algorithm>

namespace dlc::map {

namespace {

bool select(FieldSolver& s, int field, int space) {
  if (field < 0) return true;
  for (const HwEnumerator& e : s.insn().fields[static_cast<size_t>(field)].enumerators)
    if (e.space == space) return s.set(field, e.value);
  return false;
}

// One instruction, or why it cannot be.
std::optional<Instruction> solve(const Machine& machine, const Mover& m, const Copy& c, std::string& why) {
  FieldSolver s = m.pattern.fields;
  const auto refuse = [&] {
    why = s.why();
    return std::nullopt;
  };
  if (c.dims.size() > m.order.size()) return refuse();
  if (!select(s, m.on_chip_selector, c.space) || !select(s, m.external_selector, c.segment)) return refuse();
  std::vector<CopyDim> dims = c.dims;
  dims.resize(m.order.size());
  int64_t start = c.offset, dense = m.lanes;
  for (size_t d = 0; d < dims.size(); ++d) {
    const size_t loop = m.order[d];
    if (!s.equal(m.pattern.loops[loop].extent, dims[d].count, "how many it copies")) return refuse();
    if (dims[d].size >= 0) start += dims[d].low * dims[d].stride;
    if (dims[d].count > 1 && !s.equal(m.on_chip.coefficients[loop], dense, "its step on chip, in bytes"))
      return refuse();
    // A step that is never taken is whatever the instruction fixes, or 0.
    const bool steps = dims[d].count > 1 || dims[d].size >= 0;
    if (steps && !s.equal(m.external.coefficients[loop], dims[d].stride, "its step in external memory, in bytes"))
      return refuse();
    dense *= dims[d].count;
  }
  std::vector<std::string> vars;
  for (const Loop& l : m.pattern.loops) vars.push_back(l.var);
  std::vector<bool> guarded(dims.size(), false);
  for (const Expr& g : m.guards) {
    const auto a = affine(g, vars);
    if (!a) return refuse();
    for (size_t d = 0; d < dims.size(); ++d) {
      const auto k = a->coefficients[m.order[d]].constant();
      if (!k || *k == 0) continue;
      const int64_t low = dims[d].size >= 0 ? dims[d].low : 0;
      const int64_t size = dims[d].size >= 0 ? dims[d].size : dims[d].count;
      if (!s.equal(a->base, *k > 0 ? low : size - 1 - low, "where it begins and ends to fill")) return refuse();
      guarded[d] = true;
    }
  }
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d].size >= 0 && !guarded[d]) {
      why = m.pattern.name + " cannot fill in this dim";
      return std::nullopt;
    }
  const bool fills = std::ranges::any_of(dims, [](const CopyDim& d) { return d.size >= 0; });
  if (fills && m.fill && !s.equal(m.fill, c.fill, "the value it fills with")) return refuse();
  if (!s.equal(m.on_chip.base, c.address, "its address on chip") ||
      !s.equal(m.external.base, start, "its address in external memory"))
    return refuse();
  Instruction out;
  if (!s.finish(*machine.hw, out)) return refuse();
  return out;
}

// Parts [0, half) and [half, count) of dim `at`, the outermost that has more than one; each is dense on chip.
std::pair<Copy, Copy> halves(const Copy& c, size_t at, int64_t word) {
  std::pair<Copy, Copy> out{c, c};
  const CopyDim& whole = c.dims[at];
  const int64_t half = whole.count / 2;
  out.first.dims[at].count = half;
  CopyDim& second = out.second.dims[at];
  second.count = whole.count - half;
  int64_t inner = word;
  for (size_t d = 0; d < at; ++d) inner *= c.dims[d].count;
  out.second.address += half * inner;
  if (whole.size < 0) {
    out.second.offset += half * whole.stride;
  } else {
    second.low += half;
    for (Copy* part : {&out.first, &out.second}) {
      CopyDim& d = part->dims[at];
      if (d.low >= 0) {  // the window starts inside: count from there
        part->offset += d.low * d.stride;
        d.size = std::max<int64_t>(d.size - d.low, 0);
        d.low = 0;
        if (d.size >= d.count) d.size = -1;
      }
    }
  }
  return out;
}

}  // namespace

Result<> emit_copy(const Machine& machine, Copy c, std::vector<Instruction>& out) {
  const Mover* m = machine.mover(c.space, c.load);
  if (m == nullptr)
    return fail({}, fmt::format("no instruction {} {}", c.load ? "loads into" : "stores from",
                                machine.hw->spaces[static_cast<size_t>(c.space)].name));
  // Neighbouring dims without holes are one.
  for (size_t d = 0; d + 1 < c.dims.size();) {
    const CopyDim &a = c.dims[d], &b = c.dims[d + 1];
    if (a.size < 0 && b.size < 0 && b.stride == a.stride * a.count) {
      c.dims[d].count *= b.count;
      c.dims.erase(c.dims.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    } else if (b.count == 1 && b.size < 0) {
      c.dims.erase(c.dims.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    } else if (a.count == 1 && a.size < 0) {
      c.dims.erase(c.dims.begin() + static_cast<std::ptrdiff_t>(d));
    } else {
      ++d;
    }
  }
  // An instruction's rows are words side by side: words that are not are rows of one.
  if (c.dims.front().count > 1 && c.dims.front().stride != m->lanes)
    c.dims.insert(c.dims.begin(), CopyDim{1, m->lanes, 0, -1});
  std::string why;
  if (const auto i = solve(machine, *m, c, why)) {
    out.push_back(*i);
    return {};
  }
  if (c.dims.size() < m->order.size()) {  // a long dim as rows
    for (size_t d = 0; d < c.dims.size(); ++d) {
      if (c.dims[d].size >= 0) continue;
      for (int64_t row = std::min<int64_t>(c.dims[d].count / 2, 4096); row >= 16; --row) {
        if (c.dims[d].count % row != 0) continue;
        Copy rows = c;
        rows.dims[d].count = row;
        rows.dims.insert(rows.dims.begin() + static_cast<std::ptrdiff_t>(d) + 1,
                         CopyDim{c.dims[d].count / row, c.dims[d].stride * row, 0, -1});
        if (const auto i = solve(machine, *m, rows, why)) {
          out.push_back(*i);
          return {};
        }
      }
    }
  }
  while (c.dims.size() > 1 && c.dims.back().count == 1 && c.dims.back().size < 0) c.dims.pop_back();
  size_t many = c.dims.size();  // one past the outermost dim that can be divided
  while (many > 0 && c.dims[many - 1].count == 1) --many;
  if (many == 0)
    return fail({machine.hw->file, m->pattern.line, 0, {}},
                "no instruction makes a copy that this needs; nearest is " + why);
  const auto [first, second] = halves(c, many - 1, m->lanes);
  DLC_CHECK(emit_copy(machine, first, out));
  return emit_copy(machine, second, out);
}

std::optional<AddressField> address_field(const Expr& base) {
  std::optional<AddressField> out;
  for (const Term& t : base.terms()) {
    if (t.factors.size() != 1 || t.factors[0].kind() != AtomKind::symbol) continue;
    if (out) return std::nullopt;
    out = AddressField{std::string(t.factors[0].name()), t.coefficient};
  }
  return out;
}

Result<> Copier::emit(const Copy& copy, std::vector<Instruction>& out) {
  std::string key = fmt::format("{} {} {} {}", copy.load, copy.space, copy.segment, copy.fill);
  for (const CopyDim& d : copy.dims) key += fmt::format(";{} {} {} {}", d.count, d.stride, d.low, d.size);
  const auto it = known_.find(key);
  if (it != known_.end() && again(it->second, copy, out)) return {};
  const size_t before = out.size();
  DLC_CHECK(emit_copy(machine_, copy, out));
  if (it == known_.end())
    known_.emplace(key, Known{copy, {out.begin() + static_cast<std::ptrdiff_t>(before), out.end()}});
  return {};
}

// False: the instructions cannot say these addresses.
bool Copier::again(const Known& known, const Copy& copy, std::vector<Instruction>& out) const {
  const Mover& m = *machine_.mover(copy.space, copy.load);
  const size_t before = out.size();
  for (Instruction i : known.instructions) {
    bool ok = true;
    for (const auto& [address, by] : {std::pair(&m.on_chip, copy.address - known.copy.address),
                                      std::pair(&m.external, copy.offset - known.copy.offset)}) {
      if (by == 0) continue;
      const auto field = address_field(address->base);
      const int f = field ? m.pattern.what->field(field->name) : -1;
      ok = ok && f >= 0 && by % field->scale == 0;
      if (ok) i.fields[static_cast<size_t>(f)] += by / field->scale;
    }
    if (!ok || !check_instruction(*machine_.hw, i)) {
      out.resize(before);
      return false;
    }
    out.push_back(std::move(i));
  }
  return true;
}

}  // namespace dlc::map
