// See dlc/program/state.h.
#include "dlc/program/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/kernel/rebuild.h"
#include "core/program/buffers.h"
#include "core/program/pieces.h"
#include "dlc/base/checked.h"
#include "dlc/graph/state.h"
#include "dlc/program/alias.h"

namespace dlc {

namespace {

// One state of a program on its way into place.
class InPlace {
 public:
  InPlace(Program& p, const StatePair& state)
      : p_(p), past_(p.find_buffer(state.input)), present_(p.find_buffer(state.output)) {}

  // False where it cannot be; the program is then of no use.
  bool run() {
    if (buffer(past_).alias || buffer(present_).alias) return false;
    if (const auto d = growing_dim(buffer(past_).type, buffer(present_).type, p_.symbols)) {
      const auto room = capacity(buffer(past_).type, buffer(present_).type, *d, p_.symbols);
      if (!room || !has_room(past_, *d, *room) || !has_room(present_, *d, *room)) return false;
    }
    if (buffer(past_).type.shape != buffer(present_).type.shape) return false;
    buffer(present_).alias = BufferAlias{past_, Expr(0), true, true};
    for (Call& call : p_.calls) drop_copies(call);
    std::erase_if(p_.calls, [](const Call& c) { return c.kernel < 0; });
    return true;
  }

 private:
  ProgramBuffer& buffer(int b) { return p_.buffers[static_cast<size_t>(b)]; }

  // Gives b, and what reshapes it, this capacity in dim d.
  bool has_room(int b, size_t d, int64_t room) {
    const std::vector<Expr> value = buffer(b).type.shape;
    if (!stretch(b, d, room)) return false;
    for (size_t v = 0; v < p_.buffers.size(); ++v) {
      const auto& alias = p_.buffers[v].alias;
      if (!alias || alias->base != b) continue;
      const auto same = same_dim(value, d, p_.buffers[v].type.shape);
      if (!alias->byte_offset.is(0) || alias->replaces || !same || !has_room(static_cast<int>(v), *same, room))
        return false;
    }
    if (buffer(b).kind != BufferKind::temp) buffer(b).holds = value;
    return true;
  }

  // The dim of a reshape that is dim d of `shape`: as many elements before it, and after it.
  std::optional<size_t> same_dim(const std::vector<Expr>& shape, size_t d, const std::vector<Expr>& reshaped) const {
    const auto product = [](const auto& begin, const auto& end) {
      Expr n(1);
      for (auto i = begin; i != end; ++i) n = n * *i;
      return n;
    };
    const auto at = [](const std::vector<Expr>& s, size_t i) { return s.begin() + static_cast<std::ptrdiff_t>(i); };
    for (size_t k = 0; k < reshaped.size(); ++k)
      if (reshaped[k] == shape[d] &&
          product(reshaped.begin(), at(reshaped, k)) == product(shape.begin(), at(shape, d)) &&
          product(at(reshaped, k + 1), reshaped.end()) == product(at(shape, d + 1), shape.end()))
        return k;
    return std::nullopt;
  }

  // The kernels see the larger shape; what they access of it is what they did before.
  bool stretch(int b, size_t d, int64_t room) {
    std::vector<Expr> shape = buffer(b).type.shape;
    detail::Embedding same;
    for (size_t i = 0; i < shape.size(); ++i) {
      same.dim.push_back(static_cast<int>(i));
      same.offset.emplace_back(0);
    }
    shape[d] = Expr(room);
    for (Call& call : p_.calls) {
      if (std::ranges::count(call.buffers, b) == 0) continue;
      Kernel& k = detail::own_kernel(p_, call);
      detail::split_choices(k, p_.symbols);
      const auto buffers = detail::buffers_of(k, call);
      for (size_t t = 0; t < buffers.size(); ++t) {
        if (buffers[t] != b) continue;
        if (!detail::stays_inside(k, static_cast<int>(t), p_.symbols)) return false;
        detail::embed(k, static_cast<int>(t), same, shape);
      }
    }
    buffer(b).type.shape = std::move(shape);
    return true;
  }

  // present[i] = past[i] moves nothing, the bytes are the same; unless present[i] was written before it.
  void drop_copies(Call& call) {
    if (std::ranges::count(call.buffers, past_) == 0 || std::ranges::count(call.buffers, present_) == 0) return;
    Kernel split = p_.kernels[static_cast<size_t>(call.kernel)];
    detail::split_choices(split, p_.symbols);
    const auto buffers = detail::buffers_of(split, call);
    const auto is_copy = [&](const Stmt& s) {
      return s.kind == Stmt::Kind::assign && buffers[static_cast<size_t>(s.tensor)] == present_ &&
             s.value->kind == ValKind::read && buffers[static_cast<size_t>(s.value->tensor)] == past_ &&
             std::ranges::equal(s.value->args, s.indices, val::structurally_equal);
    };
    Written before = Boxes();
    std::vector<Stmt> left;
    for (Stmt& s : split.body) {
      Written now = written(split, buffers, s);
      if (is_copy(s) && apart(before, now)) continue;
      if (before && now)
        before->insert(before->end(), now->begin(), now->end());
      else
        before.reset();
      left.push_back(std::move(s));
    }
    if (left.size() == split.body.size()) return;
    Kernel& k = detail::own_kernel(p_, call);
    k.body = std::move(left);
    detail::drop_unused(p_, call);
  }

  using Boxes = std::vector<detail::Box>;
  using Written = std::optional<Boxes>;  // nothing: anything

  // What a statement writes of present.
  Written written(const Kernel& k, const std::vector<int>& buffers, const Stmt& s) const {
    const Kernel alone{.name = {}, .tensors = k.tensors, .body = {s}};
    Boxes all;
    for (size_t t = 0; t < k.tensors.size(); ++t) {
      const bool is_present = buffers[t] == present_;
      if (!is_present && !k.tensors[t].view &&
          (buffers[t] < 0 || detail::family_of(p_, buffers[t]) != detail::family_of(p_, present_)))
        continue;
      const auto boxes = detail::boxes_written(alone, static_cast<int>(t));
      if (!boxes || (!is_present && !boxes->empty())) return std::nullopt;
      all.insert(all.end(), boxes->begin(), boxes->end());
    }
    return all;
  }

  bool apart(const Written& before, const Written& now) const {
    if (before && before->empty()) return true;
    return before && now && std::ranges::all_of(*before, [&](const detail::Box& b) {
             return std::ranges::all_of(
                 *now, [&](const detail::Box& n) { return detail::provably_disjoint(b, n, p_.symbols); });
           });
  }

  Program& p_;
  int past_, present_;
};

// What the ranges say of symbols beside each other, S <= 512 - P, for kernels whose accesses are inside because of it:
// a kernel has no ranges, but assumptions, which verify() compares with the program's.
void tell_relations(Program& p) {
  for (const auto& symbol : p.symbols) {
    if (symbol.second.upper == nullptr) continue;
    std::vector<std::string> names = Expr(symbol.second.upper).symbols();
    names.push_back(symbol.first);
    std::vector<Expr> facts;
    for (const std::string& name : names)
      for (const Guard& g : guards_of(*p.symbols.find(name)))
        if (!g.is_equality) facts.push_back(g.excess);
    for (Kernel& k : p.kernels) {
      const auto used = names_in(k);
      if (std::ranges::none_of(names, [&](const std::string& n) { return used.contains(n); })) continue;
      for (const Expr& e : facts)
        if (std::ranges::find(k.assumptions, e) == k.assumptions.end()) k.assumptions.push_back(e);
    }
  }
}

// Those of `wanted` together; nothing where they are not proved right.
std::optional<Program> attempt(const Program& p, std::span<const StatePair> wanted) {
  Program trial = p;
  for (const StatePair& s : wanted)
    if (!InPlace(trial, s).run()) return std::nullopt;
  tell_relations(trial);
  detail::order_buffers(trial);
  share_kernels(trial);
  if (!plan_memory(trial) || !verify(trial)) return std::nullopt;
  return trial;
}

// As many of them as can be: half of them where all together cannot. How many.
int place(Program& p, std::span<const StatePair> wanted) {
  if (auto done = attempt(p, wanted)) {
    p = *std::move(done);
    return static_cast<int>(wanted.size());
  }
  const size_t half = wanted.size() / 2;
  return half == 0 ? 0 : place(p, wanted.first(half)) + place(p, wanted.subspan(half));
}

// Elements that follow each other in a value and in its memory, and how the rows of them lie.
struct Rows {
  int64_t elements = 1;
  size_t outer = 0;  // dims before them
};
Rows rows_of(const std::vector<int64_t>& value, const std::vector<int64_t>& memory) {
  Rows r{1, value.size()};
  while (r.outer > 0) {
    --r.outer;
    r.elements *= value[r.outer];
    if (value[r.outer] != memory[r.outer]) break;
  }
  return r;
}

// f(offset in the value, offset in the memory) of every row, in elements.
template <class F>
void each_row(const std::vector<int64_t>& value, const std::vector<int64_t>& memory, const F& f) {
  const Rows r = rows_of(value, memory);
  if (std::ranges::count(value, 0) > 0) return;
  std::vector<int64_t> stride(memory.size(), 1), at(r.outer, 0);
  for (size_t d = memory.size(); d-- > 1;) stride[d - 1] = stride[d] * memory[d];
  for (int64_t from = 0, to = 0;; from += r.elements) {
    f(from, to, r.elements);
    size_t d = r.outer;
    while (d > 0 && ++at[d - 1] == value[d - 1]) {
      to -= stride[d - 1] * (value[d - 1] - 1);
      at[--d] = 0;
    }
    if (d == 0) return;
    to += stride[d - 1];
  }
}

}  // namespace

Result<int> states_in_place(Program& p) {
  if (p.states.empty()) return 0;
  const std::vector<StatePair> states = p.states;
  return place(p, states);
}

std::vector<StatePair> in_place_states(const Program& p) {
  std::vector<StatePair> found;
  for (const StatePair& s : p.states) {
    const int output = p.find_buffer(s.output);
    const auto& alias = p.buffers[static_cast<size_t>(output)].alias;
    if (alias && alias->keeps && alias->base == p.find_buffer(s.input)) found.push_back(s);
  }
  return found;
}

Result<std::vector<int64_t>> shape_of(const std::vector<Expr>& dims, const Bindings& symbols) {
  std::vector<int64_t> shape;
  for (const Expr& d : dims) {
    const auto n = evaluate(d, symbols);
    if (!n || *n < 0) {
      std::string unknown;
      for (const std::string& s : d.symbols())
        if (!symbols.contains(s)) unknown += (unknown.empty() ? "" : ", ") + s;
      return fail({}, unknown.empty()
                          ? fmt::format("dim {} would be below 0", to_string(d))
                          : fmt::format("dim {} is not known: no input has {} as a dim", to_string(d), unknown));
    }
    shape.push_back(*n);
  }
  return shape;
}

void put_value(const Tensor& value, const StateMemory& memory) {
  const int64_t size = memory.dtype.bytes();
  each_row(value.shape(), memory.capacity, [&](int64_t from, int64_t to, int64_t n) {
    std::memcpy(memory.bytes + to * size, value.bytes() + from * size, static_cast<size_t>(n * size));
  });
}

Result<Tensor> take_value(const StateMemory& memory) {
  bool fits = memory.shape.size() == memory.capacity.size();
  for (size_t d = 0; fits && d < memory.shape.size(); ++d) fits = memory.shape[d] <= memory.capacity[d];
  if (!fits)
    return fail({}, fmt::format("a value of {} does not lie in memory of {}", to_string(memory.dtype, memory.shape),
                                to_string(memory.dtype, memory.capacity)));
  DLC_TRY(Tensor value, Tensor::make(memory.dtype, memory.shape));
  const int64_t size = memory.dtype.bytes();
  std::byte* bytes = value.mutable_bytes();
  each_row(memory.shape, memory.capacity, [&](int64_t to, int64_t from, int64_t n) {
    std::memcpy(bytes + to * size, memory.bytes + from * size, static_cast<size_t>(n * size));
  });
  return value;
}

Result<std::vector<Tensor>> run_by_value(const Program& p, std::span<const Tensor> inputs, const RunInPlace& run) {
  DLC_TRY(const Bindings symbols, bind_symbols(p, inputs));
  const auto states = in_place_states(p);
  std::vector<Tensor> given, memory(states.size());
  std::vector<StateMemory> kept(states.size());
  size_t next = 0;
  for (const ProgramBuffer& b : p.buffers) {
    if (b.kind != BufferKind::input) continue;
    const Tensor& input = inputs[next++];
    const auto state = std::ranges::find(states, b.name, &StatePair::input);
    if (state == states.end()) {
      given.push_back(input);
      continue;
    }
    const auto i = static_cast<size_t>(state - states.begin());
    DLC_TRY(auto shape, shape_of(b.type.shape, symbols));
    DLC_TRY(memory[i], Tensor::make(b.type.dtype, shape));
    kept[i] = {memory[i].mutable_bytes(), b.type.dtype, std::move(shape), input.shape()};
    put_value(input, kept[i]);
  }
  DLC_TRY(auto results, run(given, kept));
  std::vector<Tensor> all;
  next = 0;
  for (const ProgramBuffer& b : p.buffers) {
    if (b.kind != BufferKind::output) continue;
    const auto state = std::ranges::find(states, b.name, &StatePair::output);
    if (state == states.end()) {
      all.push_back(std::move(results.at(next++)));
      continue;
    }
    StateMemory& m = kept[static_cast<size_t>(state - states.begin())];
    DLC_TRY(m.shape, shape_of(value_type(b).shape, symbols));
    DLC_TRY(Tensor value, take_value(m));
    all.push_back(std::move(value));
  }
  return all;
}

}  // namespace dlc
