// Structural rules of programs.
#include <fmt/format.h>

#include <set>

#include "dlc/graph/state.h"
#include "dlc/program/alias.h"
#include "dlc/program/state.h"

namespace dlc {

namespace {

std::unexpected<Error> bad(const Program& p, const Call& c, std::string message) {
  const std::string node = c.locations.empty() ? std::string() : c.locations.front();
  return fail({{}, 0, 0, node}, fmt::format("program @{}: {}", p.name, message));
}

Result<> verify_call(const Program& p, const Call& c, const std::set<int>& written) {
  if (c.kernel < 0 || c.kernel >= static_cast<int>(p.kernels.size())) return bad(p, c, "a call names no kernel");
  const Kernel& k = p.kernels[static_cast<size_t>(c.kernel)];
  size_t i = 0;
  for (const auto& t : k.tensors) {
    if (t.role == Role::temp || t.view) continue;
    if (i >= c.buffers.size()) return bad(p, c, fmt::format("call @{}: tensor {} has no buffer", k.name, t.name));
    const int b = c.buffers[i++];
    if (b < 0 || b >= static_cast<int>(p.buffers.size()))
      return bad(p, c, fmt::format("call @{}: no such buffer", k.name));
    const auto& buffer = p.buffers[static_cast<size_t>(b)];
    if (buffer.type.dtype != t.dtype || buffer.type.shape != t.shape)
      return bad(p, c,
                 fmt::format("call @{}: buffer {} is {}, tensor {} is {}", k.name, buffer.name, to_string(buffer.type),
                             t.name, to_string(TensorType{t.dtype, t.shape})));
    const bool writes = t.role == Role::output;
    if (writes && (buffer.kind == BufferKind::input || buffer.kind == BufferKind::constant) && !buffer.alias)
      return bad(p, c, fmt::format("call @{} writes {}, which is read-only", k.name, buffer.name));
    if (!writes && !written.contains(b) && buffer.kind != BufferKind::input && buffer.kind != BufferKind::constant)
      return bad(p, c, fmt::format("call @{} reads {} before it is written", k.name, buffer.name));
  }
  if (i != c.buffers.size())
    return bad(p, c, fmt::format("call @{} has {} buffers, {} are needed", k.name, c.buffers.size(), i));
  return {};
}

// Pairs of an input and an output; a buffer that holds less than its bytes, or keeps others', belongs to one.
Result<> verify_states(const Program& p) {
  std::set<std::string> names;
  for (const StatePair& s : p.states) {
    const int input = p.find_buffer(s.input), output = p.find_buffer(s.output);
    const auto refuse = [&](const std::string& why) {
      return fail({}, fmt::format("program @{}: state {} -> {}: {}", p.name, s.input, s.output, why));
    };
    if (input < 0 || p.buffers[static_cast<size_t>(input)].kind != BufferKind::input)
      return refuse("the first is no input");
    if (output < 0 || p.buffers[static_cast<size_t>(output)].kind != BufferKind::output)
      return refuse("the second is no output");
    if (!names.insert(s.input).second || !names.insert(s.output).second) return refuse("a buffer belongs to one state");
    const ProgramBuffer &in = p.buffers[static_cast<size_t>(input)], &out = p.buffers[static_cast<size_t>(output)];
    if (const std::string why = not_a_state(value_type(in), value_type(out), p.symbols); !why.empty())
      return refuse("the output cannot be the next input: " + why);
  }
  std::set<std::string> in_place;
  for (const StatePair& s : in_place_states(p)) in_place.insert({s.input, s.output});
  for (const ProgramBuffer& b : p.buffers) {
    const bool keeps = b.alias && b.alias->keeps;
    if ((keeps || !b.holds.empty()) && !in_place.contains(b.name))
      return fail({}, fmt::format("program @{}: buffer {} {}, and is in the place of no state", p.name, b.name,
                                  keeps ? "keeps another one" : "holds less than its bytes"));
    if (keeps && b.type != p.buffers[static_cast<size_t>(b.alias->base)].type)
      return fail({}, fmt::format("program @{}: buffer {} keeps one of another type", p.name, b.name));
    if (b.holds.empty()) continue;
    for (const Expr& d : b.holds)
      if (!provably_le(0, d, p.symbols))
        return fail({},
                    fmt::format("program @{}: what buffer {} holds, {}, may be below 0", p.name, b.name, to_string(d)));
    bool fits = b.holds.size() == b.type.shape.size();
    for (size_t d = 0; fits && d < b.holds.size(); ++d) fits = provably_le(b.holds[d], b.type.shape[d], p.symbols);
    if (!fits)
      return fail(
          {}, fmt::format("program @{}: what buffer {} holds may be more than {}", p.name, b.name, to_string(b.type)));
  }
  return {};
}

}  // namespace

Result<> verify(const Program& p) {
  std::set<std::string> names;
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const auto& b = p.buffers[i];
    if (b.name.empty() || !names.insert(b.name).second)
      return fail({}, fmt::format("program @{}: buffer name '{}' is empty or not unique", p.name, b.name));
    if (b.alias && (b.alias->base < 0 || b.alias->base >= static_cast<int>(i)))
      return fail(
          {}, fmt::format("program @{}: buffer {} lies in a buffer that is not declared before it", p.name, b.name));
  }
  DLC_CHECK(verify_states(p));
  for (const Guard& g : p.guards)
    for (const std::string& s : g.excess.symbols())
      if (!p.symbols.contains(s))
        return fail({}, fmt::format("program @{}: guard {}: {} is no symbol of the program", p.name, to_string(g), s));
  names.clear();
  for (const auto& k : p.kernels) {
    if (!names.insert(k.name).second)
      return fail({}, fmt::format("program @{}: two kernels are named @{}", p.name, k.name));
    DLC_CHECK(verify(k));
  }
  std::set<int> written;
  std::vector<std::vector<int>> inside(p.buffers.size());
  for (size_t i = 0; i < p.buffers.size(); ++i)
    if (const auto& a = p.buffers[i].alias) inside[static_cast<size_t>(a->base)].push_back(static_cast<int>(i));
  // An alias holds what its base holds, and writing an alias writes part of its base.
  const auto mark = [&](int b) {
    std::vector<int> reached{b};
    for (auto a = p.buffers[static_cast<size_t>(b)].alias; a; a = p.buffers[static_cast<size_t>(a->base)].alias)
      reached.push_back(a->base);
    while (!reached.empty()) {
      const int r = reached.back();
      reached.pop_back();
      if (!written.insert(r).second) continue;
      const auto& parts = inside[static_cast<size_t>(r)];
      reached.insert(reached.end(), parts.begin(), parts.end());
    }
  };
  for (size_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].kind == BufferKind::input || p.buffers[i].kind == BufferKind::constant) mark(static_cast<int>(i));
  for (const auto& c : p.calls) {
    DLC_CHECK(verify_call(p, c, written));
    const Kernel& k = p.kernels[static_cast<size_t>(c.kernel)];
    for (const Expr& e : k.assumptions)
      if (!implies_nonnegative(p.guards, p.symbols, e))
        return bad(p, c,
                   fmt::format("call @{} assumes {}, which no guard checks", k.name, to_string(Guard{e, false, {}})));
    size_t i = 0;
    for (const auto& t : k.tensors) {
      if (t.role == Role::temp || t.view) continue;
      if (t.role == Role::output) mark(c.buffers[i]);
      ++i;
    }
  }
  for (size_t i = 0; i < p.buffers.size(); ++i)
    if (p.buffers[i].kind == BufferKind::output && !written.contains(static_cast<int>(i)))
      return fail({}, fmt::format("program @{}: output {} is never written", p.name, p.buffers[i].name));
  return check_aliases(p);
}

}  // namespace dlc
