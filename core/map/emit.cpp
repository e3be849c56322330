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

// A part of the cycles that the first tile may wait for the constants of others. Cycles / instructions of whole
// networks at 16x16, by this part:
//
//                  1/128              1/512              1/2048             never
//   resnet8        59,974 / 333       59,976 / 337       59,978 / 341       59,986 / 345
//   kws            41,309 / 403       41,381 / 407       41,379 / 409       41,373 / 427
//   vww            87,283 / 1,231     87,402 / 1,242     87,402 / 1,294     87,404 / 1,338
//   ad             24,604 / 525       24,599 / 527       24,599 / 527       22,791 / 535
//   mobilenet_v2  1,901,058 / 7,207  1,900,119 / 7,309  1,900,039 / 7,444  1,897,530 / 9,185
//
// Which part it is matters little. That it is done at all shortens mobilenet_v2's stream by a fifth; ad, with one
// vector for each tile of weights, loses 8 % of its cycles.
constexpr int64_t kAhead = 512;

void put_int(std::byte* to, int64_t value, int64_t bytes) { std::memcpy(to, &value, static_cast<size_t>(bytes)); }

}  // namespace

Ring& Emitter::ring(int space) {
  const int state = machine_.hw->spaces[static_cast<size_t>(space)].state;
  return rings_.try_emplace(state, machine_.hw->state[static_cast<size_t>(state)]).first->second;
}

Result<int64_t> Emitter::allocate(int space, int64_t bytes, int64_t align, const std::string& key, bool for_tile) {
  Ring& r = ring(space);
  const auto at = r.allocate(bytes, align, key, for_tile);
  short_of_memory = !at;
  if (at) return *at;
  return fail(where_,
              fmt::format("does not fit: {} is {} bytes, and a tile's {} more find no place beside what it holds",
                          machine_.hw->spaces[static_cast<size_t>(space)].name, r.capacity(), bytes));
}

Result<> Emitter::copy(const Copy& c) {
  const size_t before = program.size();
  if (auto ok = copier_.emit(c, program); !ok) {
    Loc loc = ok.error().diagnostics.front().loc;  // of the instruction that comes nearest
    loc.node = where_.node;
    return fail(std::move(loc), std::string(ok.error().message()));
  }
  tiles.insert(tiles.end(), program.size() - before, before_ + tile_);
  return {};
}

Result<> Emitter::call(const Chain& chain, const Tiling& tiling, const Loc& where) {
  chain_ = &chain;
  where_ = where;
  tile_ = 0;
  shapes_.clear();
  loaded_.clear();
  ahead_ = tiling.loads ? 0 : tiling.cycles / kAhead;
  const Target& t = *chain.target;
  const Box whole{std::vector<int64_t>(t.loops.size(), 0), std::vector<int64_t>(t.loops.size(), 1)};
  tiles_ = boxes(t, tiling.tile, tiling.order, whole);
  for (const Box& box : tiles_) {
    const size_t before = program.size();
    if (auto ok = tile(tiling, box); !ok) {
      // What is still there from before leaves holes: the tile gets the memories to itself.
      rings_.clear();
      program.resize(before);
      tiles.resize(before);
      loaded_.clear();
      DLC_CHECK(tile(tiling, box));
    }
    for (auto& [state, r] : rings_) r.end_tile();
    ++tile_;
  }
  ++calls_;
  before_ += tile_;
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

// The instruction of this shape with other addresses. Only its address fields differ from one tile to the next.
Result<Instruction> Emitter::at_addresses(const Plan& plan, const Box& box, const std::vector<int64_t>& base,
                                          Instruction i, bool accumulate) const {
  const HwInsn& what = *plan.pattern->what;
  std::map<int, int64_t> fields;
  bool alone = true;
  const auto put = [&](const Operand& o, int64_t address) {
    const auto field = address_field(o.address.base);
    const int64_t left = field ? address - constant_part(o.address.base) : 0;
    if (!field) return o.address.base.constant() == address;
    const int f = what.field(field->name);
    if (f < 0 || left % field->scale != 0) return false;
    const auto [it, fresh] = fields.emplace(f, left / field->scale);
    return it->second == left / field->scale;
  };
  for (size_t r = 0; r < plan.reads.size(); ++r) alone = alone && put(plan.reads[r], base[r]);
  alone = alone && put(plan.store, base.back());
  for (const auto& [f, value] : fields) i.fields[static_cast<size_t>(f)] = value;
  if (alone && check_instruction(*machine_.hw, i)) return i;
  std::string why;
  const auto solved = solve(machine_, *chain_, plan, box, base, temps_, accumulate, &why);
  if (!solved) return fail(where_, why);
  return solved->instruction;
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
  // They begin where an address may: what an instruction reads need not be the first of what its base points at.
  for (Group& g : out) g.low = floor_div(g.low, alignment(g.base)) * alignment(g.base);
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
  DLC_TRY(Instruction instruction, at_addresses(plan, box, base, shape->instruction, accumulate));
  program.push_back(std::move(instruction));
  tiles.push_back(before_ + tile_);
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
    CopyDim dim{r.extent[d], stride * r.step[d], 0, -1};
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
std::string key_of_buffer(int buffer) { return fmt::format("b{} ", buffer); }

}  // namespace

Result<int64_t> Emitter::load_data(const Operand& o, const Box& box) {
  const Target& t = *chain_->target;
  const Layout& layout = chain_->layouts[static_cast<size_t>(o.tensor)];
  const auto region = region_of(t, o, layout, box);
  if (!region) return fail(where_, "an operand is walked in a way that no region describes");
  const auto fill = t.fill.find(o.tensor);
  const int buffer = t.buffers[static_cast<size_t>(o.tensor)];
  const std::string key =
      key_of_buffer(buffer) + fmt::format("{} {} {} {}", fmt::join(region->base, ","), fmt::join(region->extent, ","),
                                          fmt::join(region->step, ","), fill == t.fill.end() ? 0 : fill->second);
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
  for (auto& [state, r] : rings_) r.forget(key_of_buffer(buffer));
  c.load = false;
  c.space = plan.store.space;
  c.address = address;
  return copy(c);
}

std::string Emitter::key_of(const Plan& plan, const Group& g, const Box& box) const {
  std::string key = fmt::format("c{} {} p{}", calls_, g.members.front(), &plan - chain_->plans.data());
  for (size_t l = 0; l < box.offset.size(); ++l) {
    if (std::ranges::any_of(g.members, [&](size_t i) { return plan.reads[i].walks[l]; }))
      key += fmt::format(" {}:{}+{}", l, box.offset[l], box.extent[l]);
  }
  return key;
}

int64_t Emitter::image(const Plan& plan, const Group& g, const Box& box, const Solved& shape, const std::string& key,
                       int64_t size) {
  const auto [at, fresh] = images_.emplace(key, weight_bytes_);
  if (!fresh) return at->second;
  const int64_t align = machine_.hw->state_of(machine_.weights).align;
  weight_bytes_ += ceil_div(size, align) * align;
  if (trial_) return at->second;
  const auto bytes = image_of(plan, g, box, shape);
  weights.insert(weights.end(), bytes.begin(), bytes.end());
  weights.resize(static_cast<size_t>(weight_bytes_));
  return at->second;
}

// Constants of the tiles to come lie behind each other as those of this one do, so one instruction loads many: as many
// as have been loaded so far, so that the first tile need not wait for those of others, or for few of them.
Result<int64_t> Emitter::load_group(const Plan& plan, const Group& g, const Box& box, const Solved& shape) {
  const std::string key = key_of(plan, g, box);
  if (const auto at = ring(g.space).find(key)) return *at - g.low;
  const int64_t word = machine_.hw->state_of(g.space).elem.bytes();
  const int64_t size = ceil_div(g.high - g.low, word) * word, align = std::lcm(alignment(g.base), word);
  Copy c;
  c.space = g.space;
  c.segment = machine_.weights;
  c.offset = image(plan, g, box, shape, key, size);
  std::vector<std::string> keys{key};
  int64_t& loaded = loaded_[fmt::format("{} {}", g.members.front(), &plan - chain_->plans.data())];
  const int64_t first = ahead_ * word / std::max<int64_t>(size, 1);
  const int64_t most = std::min(std::max(loaded, first), ring(g.space).capacity() / 4 / std::max<int64_t>(size, 1));
  if (ahead_ > 0 && size % align == 0 && size % machine_.hw->state_of(machine_.weights).align == 0) {
    for (size_t next = static_cast<size_t>(tile_) + 1; next < tiles_.size() && std::ssize(keys) < most; ++next) {
      Box other = tiles_[next];
      for (size_t l = 0; l < other.offset.size(); ++l) {
        if (!chain_->target->loops[l].reduction) continue;
        other.offset[l] = box.offset[l];
        other.extent[l] = box.extent[l];
      }
      if (other.extent != box.extent) break;
      std::string more = key_of(plan, g, other);
      if (more == keys.back()) continue;
      if (ring(g.space).has(more) || std::ranges::find(keys, more) != keys.end()) break;
      if (image(plan, g, other, shape, more, size) != c.offset + std::ssize(keys) * size) break;
      keys.push_back(std::move(more));
    }
  }
  auto at = ring(g.space).allocate(size * std::ssize(keys), align, key, false);
  if (!at) keys.resize(1);
  if (!at) {
    DLC_TRY(at, allocate(g.space, size, align, key, false));
  }
  c.address = *at;
  for (size_t i = 0; i < keys.size(); ++i) ring(g.space).put(keys[i], *at + static_cast<int64_t>(i) * size, size);
  loaded += std::ssize(keys);
  c.dims.push_back({size * std::ssize(keys) / word, word, 0, -1});
  DLC_CHECK(copy(c));
  return c.address - g.low;
}

std::vector<std::byte> Emitter::image_of(const Plan& plan, const Group& g, const Box& box, const Solved& shape) const {
  const Target& t = *chain_->target;
  std::vector<std::byte> out(static_cast<size_t>(g.high - g.low), std::byte{0});
  std::vector<std::string> vars;
  for (const TargetLoop& l : t.loops) vars.push_back(l.var);
  vars.push_back("data");
  struct Line {
    int64_t value;  // where the walk is
    std::vector<int64_t> k;
    int64_t bound;
  };
  const auto line = [&](const Expr& e, int64_t bound) {
    Line l{0, std::vector<int64_t>(vars.size(), 0), bound};
    if (const auto a = affine(e, vars)) {
      l.value = a->base.constant().value_or(0);
      for (size_t i = 0; i < vars.size(); ++i) l.k[i] = a->coefficients[i].constant().value_or(0);
    }
    for (size_t i = 0; i < box.offset.size(); ++i) l.value += l.k[i] * box.offset[i];
    return l;
  };
  struct Step {  // a loop that moves the place in the image
    size_t loop;
    int64_t count, stride, at;
  };
  for (const size_t member : g.members) {
    const Operand& o = plan.reads[member];
    const Tensor* tensor = o.tensor >= 0 ? &t.constants.at(o.tensor) : nullptr;
    std::vector<Step> steps;
    for (size_t l = 0; l < t.loops.size(); ++l)
      if (box.extent[l] > 1 && shape.reads[member].strides[l] > 0)
        steps.push_back({l, box.extent[l], shape.reads[member].strides[l], 0});
    if (o.address.data) steps.push_back({t.loops.size(), o.address.data_extent, o.address.data_stride, 0});
    std::vector<Line> lines;  // of the index, then those that say what is padding
    for (size_t d = 0; d < o.index.size(); ++d) lines.push_back(line(o.index[d], t.shape(o.tensor)[d]));
    for (const auto& [e, bound] : t.valid) {
      Line l = line(e, bound);
      // Only loops that this operand walks say whether its element is padding.
      if (std::ranges::any_of(steps, [&](const Step& s) { return l.k[s.loop] != 0; })) lines.push_back(std::move(l));
    }
    int64_t offset = constant_part(o.address.base) - g.low;
    while (true) {
      int64_t element = 0;
      for (size_t d = 0; d < o.index.size(); ++d) element = element * lines[d].bound + lines[d].value;
      if (std::ranges::all_of(lines, [](const Line& l) { return l.value >= 0 && l.value < l.bound; }))
        put_int(out.data() + offset, tensor ? tensor->get_int(element) : o.literal, o.address.width);
      size_t d = steps.size();
      for (; d > 0; --d) {
        Step& s = steps[d - 1];
        const bool again = ++s.at < s.count;
        const int64_t by = again ? 1 : 1 - s.count;
        if (!again) s.at = 0;
        for (Line& l : lines) l.value += by * l.k[s.loop];
        offset += by * s.stride;
        if (again) break;
      }
      if (d == 0) break;
    }
  }
  return out;
}

}  // namespace dlc::map
