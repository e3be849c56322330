// Where a run begins: the symbols' values from the inputs, and whether the program is right for them.
#include <fmt/format.h>

#include <algorithm>

#include "core/graph/text.h"
#include "dlc/program/state.h"

namespace dlc {

namespace {

bool holds(const Guard& g, const Bindings& symbols) {
  const auto v = evaluate(g.excess, symbols);
  return v && (g.is_equality ? *v == 0 : *v >= 0);
}

Error refused(const Guard& g, const Bindings& symbols) {
  std::string values, dims;
  for (const std::string& name : g.excess.symbols()) {
    const auto v = symbols.find(name);
    const std::string value = v == symbols.end() ? "?" : std::to_string(v->second);
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", name, value);
    dims += fmt::format(" --dim {}={}", name, value);
  }
  const std::string node = g.locations.empty() ? "" : fmt::format(" (node {})", g.locations.front());
  if (values.empty()) return Error({}, fmt::format("no run is possible: the program assumes {}{}", to_string(g), node));
  return Error({}, fmt::format("{} is not supported by this compilation: it assumes {}{}", values, to_string(g), node),
               "compile the model for these sizes:" + dims);
}

}  // namespace

std::vector<Guard> entry_conditions(const Program& p) {
  std::vector<Guard> all;
  for (const auto& symbol : p.symbols) std::ranges::move(guards_of(symbol), std::back_inserter(all));
  all.insert(all.end(), p.guards.begin(), p.guards.end());
  return all;
}

Result<> check_entry(const Program& p, const Bindings& symbols) {
  for (const auto& symbol : p.symbols) {
    const auto v = symbols.find(symbol.first);
    if (v == symbols.end()) continue;  // no input has it: whatever needs it says so
    for (const Guard& g : guards_of(symbol))
      if (!holds(g, symbols))
        return fail(
            {}, fmt::format("{} = {} is outside its range: {}", symbol.first, v->second, detail::symbol_text(symbol)));
  }
  for (const Guard& g : p.guards)
    if (!holds(g, symbols)) return std::unexpected(refused(g, symbols));
  return {};
}

namespace {

// What is given for an input.
struct Given {
  DType dtype;
  const std::vector<int64_t>* shape = nullptr;
};

Result<Bindings> bindings_of(const Program& p, const std::vector<const ProgramBuffer*>& wanted,
                             const std::vector<Given>& given) {
  Bindings symbols;
  // A dim that is one symbol gives its value; every other dim is compared once all of them are known.
  for (const bool compare : {false, true})
    for (size_t i = 0; i < wanted.size(); ++i) {
      const TensorType type = value_type(*wanted[i]);
      const std::vector<int64_t>& shape = *given[i].shape;
      bool fits = given[i].dtype == type.dtype && shape.size() == type.shape.size();
      for (size_t d = 0; fits && d < shape.size(); ++d) {
        if (const auto s = type.shape[d].as_symbol()) symbols.try_emplace(std::string(*s), shape[d]);
        if (compare) fits = evaluate(type.shape[d], symbols).value_or(shape[d]) == shape[d];
      }
      if (!fits)
        return fail({}, fmt::format("input {} is {}, {} is expected", wanted[i]->external_name,
                                    to_string(given[i].dtype, shape), to_string(type)));
    }
  DLC_CHECK(check_entry(p, symbols));
  return symbols;
}

Result<> check_count(const std::vector<const ProgramBuffer*>& wanted, size_t given) {
  if (given < wanted.size()) return fail({}, fmt::format("input {} is missing", wanted[given]->external_name));
  if (given > wanted.size())
    return fail({}, fmt::format("{} inputs are given, the program has {}", given, wanted.size()));
  return {};
}

}  // namespace

Result<Bindings> bind_symbols(const Program& p, std::span<const Tensor> inputs) {
  std::vector<const ProgramBuffer*> wanted;
  for (const ProgramBuffer& b : p.buffers)
    if (b.kind == BufferKind::input) wanted.push_back(&b);
  DLC_CHECK(check_count(wanted, inputs.size()));
  std::vector<Given> given;
  for (const Tensor& t : inputs) given.push_back({t.dtype(), &t.shape()});
  return bindings_of(p, wanted, given);
}

Result<Bindings> bind_symbols(const Program& p, std::span<const Tensor> inputs, std::span<const StateMemory> states) {
  const auto in_place = in_place_states(p);
  if (in_place.size() != states.size())
    return fail({}, fmt::format("{} states are given, the program has {} in place", states.size(), in_place.size()));
  std::vector<const ProgramBuffer*> wanted, kept;
  for (const ProgramBuffer& b : p.buffers)
    if (b.kind == BufferKind::input && std::ranges::find(in_place, b.name, &StatePair::input) == in_place.end())
      wanted.push_back(&b);
  DLC_CHECK(check_count(wanted, inputs.size()));
  std::vector<Given> given;
  for (const Tensor& t : inputs) given.push_back({t.dtype(), &t.shape()});
  for (size_t i = 0; i < states.size(); ++i) {
    kept.push_back(&p.buffers[static_cast<size_t>(p.find_buffer(in_place[i].input))]);
    given.push_back({states[i].dtype, &states[i].shape});
  }
  wanted.insert(wanted.end(), kept.begin(), kept.end());
  DLC_TRY(const Bindings symbols, bindings_of(p, wanted, given));
  for (size_t i = 0; i < states.size(); ++i) {
    DLC_TRY(const auto capacity, shape_of(kept[i]->type.shape, symbols));
    if (states[i].capacity != capacity)
      return fail({},
                  fmt::format("the memory of state {} is {}, {} is needed", kept[i]->external_name,
                              to_string(states[i].dtype, states[i].capacity), to_string(states[i].dtype, capacity)));
  }
  return symbols;
}

}  // namespace dlc
