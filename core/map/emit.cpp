#include "core/map/emit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "dlc/base/checked.h"

namespace dlc::map {

bool is_assigned(const Plan& plan, size_t loop) {
  return std::ranges::find(plan.assign, static_cast<int>(loop)) != plan.assign.end();
}

int64_t constant_part(const Expr& e) {
  for (const Term& t : e.terms())
    if (t.factors.empty()) return t.coefficient;
  return 0;
}

std::vector<Box> boxes(const Target& t, const std::vector<int64_t>& tile, const std::vector<size_t>& which,
                       const Box& box) {
  std::vector<Box> out{box};
  for (const size_t l : which) {
    std::vector<Box> next;
    for (const Box& b : out)
      for (int64_t at = 0; at < t.loops[l].extent; at += tile[l]) {
        next.push_back(b);
        next.back().offset[l] = at;
        next.back().extent[l] = std::min(tile[l], t.loops[l].extent - at);
      }
    out = std::move(next);
  }
  return out;
}

namespace {

// Addresses whose every field value is possible are multiples of this.
int64_t alignment(const Expr& base) {
  int64_t g = 0;
  for (const Term& t : base.terms())
    if (!t.factors.empty()) g = std::gcd(g, t.coefficient);
  return std::max<int64_t>(g, 1);
}

void put_int(std::byte* to, int64_t value, int64_t bytes) { std::memcpy(to, &value, static_cast<size_t>(bytes)); }

}  // namespace

Ring& Emitter::ring(int space) {
  const int state = machine_.hw->spaces[static_cast<size_t>(space)].state;
  return rings_.try_emplace(state, machine_.hw->state[static_cast<size_t>(state)]).first->second;
}

Result<int64_t> Emitter::allocate(int space, int64_t bytes, int64_t align, const std::string& key, bool for_tile) {
  Ring& r = ring(space);
  if (const auto at = r.allocate(bytes, align, key, for_tile)) return *at;
  return fail(where_,
              fmt::format("does not fit: {} is {} bytes, and a tile's {} more find no place beside what it holds",
                          machine_.hw->spaces[static_cast<size_t>(space)].name, r.capacity(), bytes));
}

Result<> Emitter::copy(const Copy& c) {
  const size_t before = program.size();
  if (auto ok = emit_copy(machine_, c, program); !ok) {
    Loc loc = ok.error().diagnostics.front().loc;  // of the instruction that comes nearest
    loc.node = where_.node;
    return fail(std::move(loc), std::string(ok.error().message()));
  }
  tiles.insert(tiles.end(), program.size() - before, tile_);
  return {};
}

Result<> Emitter::call(const Chain& chain, const Tiling& tiling, const Loc& where) {
  chain_ = &chain;
  where_ = where;
  tile_ = 0;
  shapes_.clear();
  const Target& t = *chain.target;
  Box whole{std::vector<int64_t>(t.loops.size(), 0), std::vector<int64_t>(t.loops.size(), 1)};
  for (const Box& box : boxes(t, tiling.tile, tiling.order, whole)) {
    const size_t before = program.size();
    if (auto ok = tile(tiling, box); !ok) {
      // What is still there from before leaves holes: the tile gets the memories to itself.
      rings_.clear();
      program.resize(before);
      tiles.resize(before);
      DLC_CHECK(tile(tiling, box));
    }
    for (auto& [state, r] : rings_) r.end_tile();
    ++tile_;
  }
  ++calls_;
  return {};
}

Result<> Emitter::tile(const Tiling& tiling, const Box& box) {
  const Target& t = *chain_->target;
  temps_.assign(chain_->plans.size(), {});
  temp_address_.assign(chain_->plans.size(), -1);
  for (size_t p = 0; p < chain_->plans.size(); ++p) {
    std::vector<size_t> reductions;
    for (size_t l = 0; l < t.loops.size(); ++l)
      if (t.loops[l].reduction && chain_->plans[p].uses[l]) reductions.push_back(l);
    bool accumulate = false;
    for (const Box& part : boxes(t, tiling.tile, reductions, box)) {
      DLC_CHECK(issue(p, part, accumulate));
      accumulate = true;
    }
  }
  return {};
}

Result<const Solved*> Emitter::shape_of(size_t p, const Box& box, bool accumulate) {
  const Plan& plan = chain_->plans[p];
  // Whether a region leaves its buffer does not change the instruction, so only extents and temps matter.
  std::string key = fmt::format("{}.{}.{}", p, accumulate, fmt::join(box.extent, ","));
  if (const auto it = shapes_.find(key); it != shapes_.end()) return &it->second;
  std::vector<int64_t> base;
  for (const Operand& o : plan.reads) base.push_back(constant_part(o.address.base));
  base.push_back(constant_part(plan.store.address.base));
  std::string why;
  Box origin = box;
  auto solved = solve(machine_, *chain_, plan, origin, base, temps_, accumulate, &why);
  if (!solved) return fail(where_, why);
  return &shapes_.emplace(std::move(key), std::move(*solved)).first->second;
}

std::vector<Emitter::Group> Emitter::groups(const Plan& plan, const Solved& shape) const {
  std::vector<Group> out;
  for (size_t i = 0; i < plan.reads.size(); ++i) {
    const Operand& o = plan.reads[i];
    if (o.kind != OperandKind::constant) continue;
    const int64_t part = constant_part(o.address.base);
    const Expr base = o.address.base - part;
    auto it = std::ranges::find_if(out, [&](const Group& g) { return g.space == o.space && g.base == base; });
    if (it == out.end()) it = out.insert(out.end(), Group{o.space, base, part, part, {}});
    it->low = std::min(it->low, part);
    it->high = std::max(it->high, part + shape.reads[i].bytes);
    it->members.push_back(i);
  }
  return out;
}

Result<> Emitter::issue(size_t p, const Box& box, bool accumulate) {
  const Plan& plan = chain_->plans[p];
  DLC_TRY(const Solved* shape, shape_of(p, box, accumulate));
  std::vector<int64_t> base(plan.reads.size() + 1, 0);
  for (size_t i = 0; i < plan.reads.size(); ++i) {
    const Operand& o = plan.reads[i];
    if (o.kind == OperandKind::temp) base[i] = temp_address_[static_cast<size_t>(o.temp)];
    if (o.kind == OperandKind::data) {
      DLC_TRY(base[i], load_data(o, box));
    }
  }
  for (const Group& g : groups(plan, *shape)) {
    DLC_TRY(const int64_t address, load_group(plan, g, box, *shape));
    for (const size_t i : g.members) base[i] = address + constant_part(plan.reads[i].address.base);
  }
  const int over = temp_address_[p] < 0 ? in_place(*chain_, p, temps_, shape->store) : -1;
  if (over >= 0) {
    temp_address_[p] = base[static_cast<size_t>(over)];
    temps_[p] = shape->store;
  } else if (temp_address_[p] < 0) {
    const int64_t word = machine_.hw->state_of(plan.store.space).word_bytes();
    const int64_t align = std::lcm(alignment(plan.store.address.base), word);
    DLC_TRY(temp_address_[p], allocate(plan.store.space, shape->store.bytes, align, {}, true));
    temps_[p] = shape->store;
  }
  base.back() = temp_address_[p];
  std::string why;
  const auto solved = solve(machine_, *chain_, plan, box, base, temps_, accumulate, &why);
  if (!solved) return fail(where_, why);
  program.push_back(solved->instruction);
  tiles.push_back(tile_);
  for (auto& [state, r] : rings_) r.release();
  if (plan.store.kind == OperandKind::data) return store_result(plan, box, base.back());
  return {};
}

namespace {

// The copy of a region of a buffer; the innermost dim first.
Copy region_copy(const Layout& layout, const Region& r, const Place& place) {
  Copy c;
  c.segment = place.segment;
  c.offset = place.offset;
  const auto words = layout.words();
  int64_t stride = layout.lanes * layout.element_bytes;
  for (size_t d = words.size(); d-- > 0; stride *= words[d]) {
    CopyDim dim{r.extent[d], stride, 0, -1};
    if (r.may_leave[d] && r.base[d] < 0) {
      dim.low = r.base[d];
      dim.size = words[d];
    } else {
      c.offset += r.base[d] * stride;
      if (r.may_leave[d]) dim.size = std::max<int64_t>(words[d] - r.base[d], 0);
    }
    c.dims.push_back(dim);
  }
  if (c.dims.empty()) c.dims.push_back({1, stride, 0, -1});
  return c;
}

}  // namespace

namespace {

// Keys of what is loaded from a buffer begin so.
std::string key_of(int buffer) { return fmt::format("b{} ", buffer); }

}  // namespace

Result<int64_t> Emitter::load_data(const Operand& o, const Box& box) {
  const Target& t = *chain_->target;
  const Layout& layout = chain_->layouts[static_cast<size_t>(o.tensor)];
  const auto region = region_of(t, o, layout, box);
  if (!region) return fail(where_, "an operand is walked in a way that no region describes");
  const auto fill = t.fill.find(o.tensor);
  const int buffer = t.buffers[static_cast<size_t>(o.tensor)];
  const std::string key =
      key_of(buffer) + fmt::format("{} {} {}", fmt::join(region->base, ","), fmt::join(region->extent, ","),
                                   fill == t.fill.end() ? 0 : fill->second);
  if (const auto at = ring(o.space).find(key)) return *at;
  Copy c = region_copy(layout, *region, places_.at(buffer));
  c.space = o.space;
  c.fill = fill == t.fill.end() ? 0 : fill->second;
  const int64_t word = layout.lanes * layout.element_bytes;
  DLC_TRY(c.address, allocate(o.space, region->words * word, std::lcm(alignment(o.address.base), word), key, false));
  DLC_CHECK(copy(c));
  return c.address;
}

Result<> Emitter::store_result(const Plan& plan, const Box& box, int64_t address) {
  const Target& t = *chain_->target;
  const Layout& layout = chain_->layouts[static_cast<size_t>(plan.store.tensor)];
  const auto region = region_of(t, plan.store, layout, box);
  if (!region) return fail(where_, "the result is walked in a way that no region describes");
  const int buffer = t.buffers[static_cast<size_t>(plan.store.tensor)];
  Copy c = region_copy(layout, *region, places_.at(buffer));
  // A value may lie in the bytes of another (`over`): what was loaded of that one is no longer what the buffer holds.
  for (auto& [state, r] : rings_) r.forget(key_of(buffer));
  c.load = false;
  c.space = plan.store.space;
  c.address = address;
  return copy(c);
}

Result<int64_t> Emitter::load_group(const Plan& plan, const Group& g, const Box& box, const Solved& shape) {
  std::string key = fmt::format("c{} {}", calls_, g.members.front());
  for (size_t p = 0; p < chain_->plans.size(); ++p)
    if (&chain_->plans[p] == &plan) key += fmt::format(" p{}", p);
  for (size_t l = 0; l < box.offset.size(); ++l) {
    const std::string& var = chain_->target->loops[l].var;
    for (const size_t i : g.members)
      if (std::ranges::any_of(plan.reads[i].index, [&](const Expr& e) { return e.mentions(var); })) {
        key += fmt::format(" {}:{}+{}", l, box.offset[l], box.extent[l]);
        break;
      }
  }
  if (const auto at = ring(g.space).find(key)) return *at - g.low;
  const int64_t word = machine_.hw->state_of(g.space).elem.bytes();
  const int64_t size = ceil_div(g.high - g.low, word) * word;
  const auto [image, fresh] = images_.emplace(key, static_cast<int64_t>(weights.size()));
  if (fresh) {
    auto bytes = image_of(plan, g, box, shape);
    bytes.resize(static_cast<size_t>(size));
    weights.insert(weights.end(), bytes.begin(), bytes.end());
    const int64_t align = machine_.hw->state_of(machine_.weights).align;
    weights.resize(static_cast<size_t>(ceil_div(static_cast<int64_t>(weights.size()), align) * align));
  }
  DLC_TRY(const int64_t address, allocate(g.space, size, std::lcm(alignment(g.base), word), key, false));
  Copy c;
  c.space = g.space;
  c.address = address;
  c.segment = machine_.weights;
  c.offset = image->second;
  c.dims.push_back({size / word, word, 0, -1});
  DLC_CHECK(copy(c));
  return address - g.low;
}

std::vector<std::byte> Emitter::image_of(const Plan& plan, const Group& g, const Box& box, const Solved& shape) const {
  const Target& t = *chain_->target;
  std::vector<std::byte> out(static_cast<size_t>(g.high - g.low), std::byte{0});
  std::vector<std::string> vars;
  for (const TargetLoop& l : t.loops) vars.push_back(l.var);
  vars.push_back("data");
  struct Line {
    int64_t base;
    std::vector<int64_t> k;
    int64_t bound;
  };
  const auto line = [&](const Expr& e, int64_t bound) {
    Line l{0, std::vector<int64_t>(vars.size(), 0), bound};
    if (const auto a = affine(e, vars)) {
      l.base = a->base.constant().value_or(0);
      for (size_t i = 0; i < vars.size(); ++i) l.k[i] = a->coefficients[i].constant().value_or(0);
    }
    return l;
  };
  std::vector<Line> valid;
  for (const auto& [e, bound] : t.valid) valid.push_back(line(e, bound));
  for (const size_t member : g.members) {
    const Operand& o = plan.reads[member];
    const Placement& place = shape.reads[member];
    const Tensor* tensor = o.tensor >= 0 ? &t.constants.at(o.tensor) : nullptr;
    std::vector<Line> index;
    for (size_t d = 0; d < o.index.size(); ++d) index.push_back(line(o.index[d], t.shape(o.tensor)[d]));
    // Loops that move the place in the image.
    std::vector<size_t> walk;
    for (size_t l = 0; l < t.loops.size(); ++l)
      if (box.extent[l] > 1 && place.strides[l] > 0) walk.push_back(l);
    const int64_t entries = o.address.data ? o.address.data_extent : 1;
    std::vector<int64_t> at = box.offset;
    at.push_back(0);
    const int64_t part = constant_part(o.address.base) - g.low;
    while (true) {
      for (at.back() = 0; at.back() < entries; ++at.back()) {
        const auto value_of = [&](const Line& l) {
          int64_t v = l.base;
          for (size_t i = 0; i < at.size(); ++i) v += l.k[i] * at[i];
          return v;
        };
        bool inside = std::ranges::all_of(valid, [&](const Line& l) {
          // Only loops that this operand walks say whether its element is padding.
          const bool mine = std::ranges::any_of(walk, [&](size_t w) { return l.k[w] != 0; });
          return !mine || value_of(l) < l.bound;
        });
        int64_t element = 0;
        for (const Line& l : index) {
          const int64_t v = value_of(l);
          inside = inside && v >= 0 && v < l.bound;
          element = element * l.bound + v;
        }
        int64_t offset = part + at.back() * o.address.data_stride;
        for (const size_t w : walk) offset += (at[w] - box.offset[w]) * place.strides[w];
        if (inside) put_int(out.data() + offset, tensor ? tensor->get_int(element) : o.literal, o.address.width);
      }
      size_t d = walk.size();
      while (d > 0 && ++at[walk[d - 1]] == box.offset[walk[d - 1]] + box.extent[walk[d - 1]]) {
        at[walk[d - 1]] = box.offset[walk[d - 1]];
        --d;
      }
      if (d == 0) break;
    }
  }
  return out;
}

}  // namespace dlc::map
