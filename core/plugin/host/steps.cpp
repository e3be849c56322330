// Runs of a session: all of a model's values given, or a step on the states that it keeps.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/plugin/host/ports.h"
#include "dlc/graph/state.h"

namespace dlc {

// What partitions hand on, and results of the model, which may be called as an input is.
struct Session::Values {
  Bindings symbols;
  std::map<std::string, Tensor, std::less<>> values, results;
};

namespace {

const Port& port_called(const std::vector<Port>& ports, const std::string& name) {
  return *std::ranges::find(ports, name, &Port::name);  // which was checked when the model was made or read
}

// The symbol by which a state grows.
std::optional<std::string> growing_symbol(const CompiledGraph& g, const StatePair& s) {
  const TensorType &past = port_called(g.inputs, s.input).type, &present = port_called(g.outputs, s.output).type;
  const auto d = growing_dim(past, present, g.symbols);
  if (!d) return std::nullopt;
  return std::string(*past.shape[*d].as_symbol());
}

// A hint to bind dims is of no use where one of them is none of the model's: a run finds it out; nor where it is the
// length of a state, another one in every step.
Error with_dims_of(const CompiledGraph& g, Error error) {
  constexpr std::string_view kDim = "--dim ";
  std::set<std::string, std::less<>> known, lengths;
  for (const Port& p : g.inputs)
    for (const Expr& d : p.type.shape)
      for (const auto& s : d.symbols()) known.emplace(s);
  for (const StatePair& s : g.states)
    if (auto length = growing_symbol(g, s)) lengths.insert(*std::move(length));
  for (Diagnostic& d : error.diagnostics)
    for (size_t at = d.hint.find(kDim); at != std::string::npos; at = d.hint.find(kDim, at + 1)) {
      const size_t begin = at + kDim.size();
      const std::string name = d.hint.substr(begin, d.hint.find('=', begin) - begin);
      if (known.contains(name) && !lengths.contains(name)) continue;
      d.hint = fmt::format("{} is {}", name,
                           known.contains(name) ? "the length of a state: begin anew, or give other inputs"
                                                : "a size that only a run finds out");
      break;
    }
  return error;
}

bool same_type(const TensorType& a, const TensorType& b, const Ranges& symbols) {
  return a.dtype == b.dtype && std::ranges::equal(a.shape, b.shape, [&](const Expr& x, const Expr& y) {
           return x == y || provably_eq(x, y, symbols);
         });
}

Result<> bind_port(const Port& port, const Tensor& given, Bindings& symbols) {
  if (const auto why = detail::mismatch(port.type, given, symbols))
    return fail({}, fmt::format("input '{}' is {}, the model takes {}{}", port.name,
                                to_string(given.dtype(), given.shape()), to_string(port.type), *why));
  return {};
}

// A state beside what the step's inputs and the states before it say.
Result<> bind_state(const Port& port, const Tensor& shape, Bindings& symbols) {
  if (const auto why = detail::mismatch(port.type, shape, symbols))
    return fail({},
                fmt::format("state '{}' is {}, this step takes {}{}", port.name,
                            to_string(shape.dtype(), shape.shape()), to_string(port.type), *why),
                "a sequence keeps its sizes from its first step on; begin anew for others");
  return {};
}

// The memory of a state in place, for the most that it may be.
Result<Tensor> memory_of(const CompiledGraph& g, const StatePair& s, DType dtype, const std::vector<int64_t>& room) {
  auto memory = Tensor::make(dtype, room);
  if (memory) return memory;
  const auto length = growing_symbol(g, s);
  return fail({}, fmt::format("state '{}' has no memory: {}", s.input, memory.error().message()),
              length ? fmt::format("compile the model with a smaller --dim {}=..", *length) : "");
}

// States of one length begin together: zeros would be rows that nobody gave.
template <class IsSet>
Result<> check_together(const CompiledGraph& g, const Bindings& symbols, const IsSet& is_set) {
  std::map<std::string, std::string, std::less<>> begun;  // a state that has a value, by its symbol
  for (size_t i = 0; i < g.states.size(); ++i)
    if (const auto s = growing_symbol(g, g.states[i]); s && is_set(i)) begun.try_emplace(*s, g.states[i].input);
  for (size_t i = 0; i < g.states.size(); ++i) {
    const auto s = growing_symbol(g, g.states[i]);
    if (!s || is_set(i) || !begun.contains(*s)) continue;
    const int64_t length = symbols.find(*s)->second;
    if (length > 0)
      return fail({},
                  fmt::format("state '{}' has no value, but '{}' has one with {} = {}, and both have the length {}",
                              g.states[i].input, begun.find(*s)->second, *s, length, *s),
                  "give both, or none");
  }
  return {};
}

}  // namespace

Result<> Session::find_states(Part& part, const std::string& text) {
  DLC_TRY(Program program, parse_program(text, "program"));
  for (const StatePair& s : in_place_states(program)) {
    const ProgramBuffer& input = program.buffers[static_cast<size_t>(program.find_buffer(s.input))];
    const ProgramBuffer& output = program.buffers[static_cast<size_t>(program.find_buffer(s.output))];
    const auto at = std::ranges::find(model_->states, StatePair{input.external_name, output.external_name});
    if (at == model_->states.end())
      return fail(
          {}, fmt::format("partition on {} keeps '{}', which is no state of the model", part.uri, input.external_name));
    for (const auto& [port, type] : {std::pair(&port_called(model_->inputs, at->input), value_type(input)),
                                     std::pair(&port_called(model_->outputs, at->output), value_type(output))})
      if (!same_type(port->type, type, program.symbols))
        return fail({}, fmt::format("partition on {} keeps '{}' as {}, the model has {}", part.uri, port->name,
                                    to_string(type), to_string(port->type)));
    const auto i = static_cast<size_t>(at - model_->states.begin());
    part.states.push_back(i);
    states_[i].type = input.type;
    states_[i].in_place = true;
  }
  return {};
}

Result<> Session::run_parts(Values& all, bool in_place) {
  for (Part& part : parts_) {
    const auto is_kept = [&](const std::string& name, std::string StatePair::* side) {
      return in_place && std::ranges::any_of(part.states, [&](size_t i) { return model_->states[i].*side == name; });
    };
    std::vector<Tensor> in;
    for (const std::string& name : part.compiled->inputs) {
      if (is_kept(name, &StatePair::input)) continue;
      if (part.compiled->is_control()) {
        const auto& constants = part.compiled->weights;
        const auto constant = std::ranges::find(constants, name, &NamedTensors::value_type::first);
        if (name.empty() || constant != constants.end()) {
          in.push_back(name.empty() ? Tensor() : constant->second);
          continue;
        }
      }
      const auto it = all.values.find(name);
      if (it == all.values.end())
        return fail({}, fmt::format("partition on {} reads '{}', which nothing made", part.uri, name));
      in.push_back(it->second);
    }
    std::vector<StateMemory> memory;
    if (in_place)
      for (const size_t i : part.states) memory.push_back(states_[i].place());
    auto made = memory.empty() ? part.executable->run(in) : part.executable->run_in_place(in, memory);
    if (!made) return std::unexpected(with_dims_of(*model_, std::move(made).error()));
    auto& out = *made;
    const size_t expected = part.compiled->outputs.size() - memory.size();
    if (out.size() != expected)
      return fail({}, fmt::format("partition on {} gave {} results, {} are expected", part.uri, out.size(), expected));
    size_t next = 0;
    for (size_t i = 0; i < part.compiled->outputs.size(); ++i) {
      const std::string& name = part.compiled->outputs[i];
      if (is_kept(name, &StatePair::output)) continue;
      Tensor& result = out[next++];
      if (const auto why = detail::mismatch(part.results.at(i), result, all.symbols))
        return fail({}, fmt::format("partition on {} gave '{}' as {}, {} is expected{}", part.uri, name,
                                    to_string(result.dtype(), result.shape()), to_string(part.results[i]), *why));
      all.values.try_emplace(name, result);
      all.results[name] = std::move(result);
    }
  }
  return {};
}

Result<Tensor> Session::output(const Values& all, const std::string& name) {
  const auto made = all.results.find(name), given = all.values.find(name);  // given: an input that a body hands on
  if (made == all.results.end() && given == all.values.end())
    return fail({}, fmt::format("output '{}' was not computed", name));
  return made != all.results.end() ? made->second : given->second;
}

Result<std::vector<Tensor>> Session::run(std::span<const Tensor> inputs) {
  Values all;
  if (inputs.size() != model_->inputs.size())
    return fail({}, fmt::format("{} inputs are given, the model has {}", inputs.size(), model_->inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    DLC_CHECK(bind_port(model_->inputs[i], inputs[i], all.symbols));
    all.values[model_->inputs[i].name] = inputs[i];
  }
  DLC_CHECK(run_parts(all, false));
  std::vector<Tensor> outputs;
  for (const Port& p : model_->outputs) {
    DLC_TRY(Tensor t, output(all, p.name));
    outputs.push_back(std::move(t));
  }
  return outputs;
}

// ---- steps

StateMemory Session::Kept::place() { return {memory.mutable_bytes(), type.dtype, memory.shape(), shape}; }

std::vector<Port> Session::step_inputs() const {
  std::vector<Port> ports;
  for (const Port& p : model_->inputs)
    if (std::ranges::find(model_->states, p.name, &StatePair::input) == model_->states.end()) ports.push_back(p);
  return ports;
}

std::vector<Port> Session::step_outputs() const {
  std::vector<Port> ports;
  for (const Port& p : model_->outputs)
    if (std::ranges::find(model_->states, p.name, &StatePair::output) == model_->states.end()) ports.push_back(p);
  return ports;
}

// Zeros, without elements along a dim whose symbol nothing else says.
Result<> Session::begin_state(size_t state, Bindings& symbols) {
  const Port& port = port_called(model_->inputs, model_->states[state].input);
  for (const Expr& d : port.type.shape)
    for (const std::string& s : d.symbols()) {
      if (symbols.contains(s)) continue;
      if (!d.as_symbol())
        return fail({}, fmt::format("state '{}' has no value yet, and no input has {} as a dim", port.name, s),
                    fmt::format("compile the model with a number, --dim {}=..", s));
      const auto range = model_->symbols.find(s);
      if (range == model_->symbols.end() || range->second.bounds.lo > 0)
        return fail({}, fmt::format("state '{}' has no value yet, and its {} cannot be 0", port.name, s),
                    fmt::format("give '{}' once, or compile the model with --dim {}=0..", port.name, s));
      symbols.emplace(s, 0);
    }
  Kept& kept = states_[state];
  DLC_TRY(kept.shape, shape_of(port.type.shape, symbols));
  DLC_TRY(const auto room, shape_of(kept.type.shape, symbols));
  DLC_TRY(kept.memory, memory_of(*model_, model_->states[state], kept.type.dtype, room));
  kept.is_set = true;
  return {};
}

// Refuses a step whose state would be longer than there is room for.
Result<> Session::check_room(const Bindings& symbols) const {
  for (const StatePair& s : model_->states) {
    const TensorType &past = port_called(model_->inputs, s.input).type,
                     &present = port_called(model_->outputs, s.output).type;
    const auto d = growing_dim(past, present, model_->symbols);
    const auto room = d ? capacity(past, present, *d, model_->symbols) : std::nullopt;
    const auto wanted = room ? evaluate(present.shape[*d], symbols) : std::nullopt;
    if (!wanted || *wanted <= *room) continue;
    const std::string length(*past.shape[*d].as_symbol());
    return fail({},
                fmt::format("state '{}' is full: with {} of {} there is no room for {} more", s.input,
                            symbols.find(length)->second, *room, *wanted - symbols.find(length)->second),
                fmt::format("begin anew, or compile the model with a larger --dim {}=..", length));
  }
  return {};
}

Result<std::vector<Tensor>> Session::step(std::span<const Tensor> inputs) {
  const std::vector<Port> ports = step_inputs();
  if (inputs.size() != ports.size())
    return fail({}, fmt::format("{} inputs are given, a step takes {}", inputs.size(), ports.size()));
  Values all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    DLC_CHECK(bind_port(ports[i], inputs[i], all.symbols));
    all.values[ports[i].name] = inputs[i];
  }
  std::vector<size_t> begun;
  const auto prepare = [&]() -> Result<> {
    for (const bool set : {true, false}) {  // those that are set say the symbols of the others
      for (size_t i = 0; i < states_.size(); ++i) {
        Kept& kept = states_[i];
        if (set != kept.is_set || std::ranges::count(begun, i) > 0) continue;
        const Port& port = port_called(model_->inputs, model_->states[i].input);
        if (!set) {
          begun.push_back(i);
          DLC_CHECK(begin_state(i, all.symbols));
        }
        DLC_TRY(const Tensor shape, Tensor::wrap(port.type.dtype, kept.shape, nullptr, nullptr));
        DLC_CHECK(bind_state(port, shape, all.symbols));
        if (!kept.in_place) all.values[port.name] = kept.memory;
      }
      if (set) DLC_CHECK(check_together(*model_, all.symbols, [&](size_t i) { return states_[i].is_set; }));
    }
    return check_room(all.symbols);
  };
  auto done = prepare();
  if (done) done = run_parts(all, true);
  if (!done) {
    for (const size_t i : begun) states_[i] = {.type = states_[i].type, .in_place = states_[i].in_place};
    return std::unexpected(std::move(done).error());
  }
  std::vector<Tensor> outputs;
  for (const Port& p : step_outputs()) {
    DLC_TRY(Tensor t, output(all, p.name));
    outputs.push_back(std::move(t));
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    const Port& port = port_called(model_->outputs, model_->states[i].output);
    if (states_[i].in_place) {
      DLC_TRY(states_[i].shape, shape_of(port.type.shape, all.symbols));
      continue;
    }
    DLC_TRY(states_[i].memory, output(all, port.name));
    states_[i].shape = states_[i].memory.shape();
  }
  return outputs;
}

// ---- the values of states

Result<> Session::check_state(size_t state) const {
  if (state < states_.size()) return {};
  return fail({}, fmt::format("there is no state {}, the model has {}", state, states_.size()));
}

Result<> Session::set_state(size_t state, const Tensor& value) {
  DLC_CHECK(check_state(state));
  Kept& kept = states_[state];
  Bindings symbols;
  DLC_CHECK(bind_port(port_called(model_->inputs, model_->states[state].input), value, symbols));
  if (!kept.in_place) {
    kept.memory = value;
    kept.memory.mutable_bytes();  // of its own
  } else {
    DLC_TRY(const auto room, shape_of(kept.type.shape, symbols));
    for (size_t d = 0; d < room.size(); ++d)
      if (value.shape()[d] > room[d])
        return fail({}, fmt::format("'{}' is {}, there is room for {}", model_->states[state].input,
                                    to_string(value.dtype(), value.shape()), to_string(value.dtype(), room)));
    if (!kept.memory.is_valid() || kept.memory.shape() != room) {
      DLC_TRY(kept.memory, memory_of(*model_, model_->states[state], kept.type.dtype, room));
    }
    put_value(value, {kept.memory.mutable_bytes(), kept.type.dtype, room, value.shape()});
  }
  kept.shape = value.shape();
  kept.is_set = true;
  return {};
}

Result<Tensor> Session::state(size_t state) const {
  DLC_CHECK(check_state(state));
  const Kept& kept = states_[state];
  if (!kept.is_set) return fail({}, fmt::format("state '{}' has no value yet", model_->states[state].input));
  return take_value(
      {const_cast<std::byte*>(kept.memory.bytes()), kept.memory.dtype(), kept.memory.shape(), kept.shape});
}

Result<> Session::shrink_state(size_t state, std::span<const int64_t> shape) {
  DLC_CHECK(check_state(state));
  Kept& kept = states_[state];
  bool fits = kept.is_set && shape.size() == kept.shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = shape[d] >= 0 && shape[d] <= kept.shape[d];
  if (!fits)
    return fail({}, fmt::format("state '{}' is {} and cannot shrink to {}", model_->states[state].input,
                                to_string(kept.type.dtype, kept.shape), to_string(kept.type.dtype, shape)));
  std::vector<int64_t> wanted(shape.begin(), shape.end());
  if (!kept.in_place) {
    DLC_TRY(kept.memory,
            take_value({const_cast<std::byte*>(kept.memory.bytes()), kept.type.dtype, kept.shape, wanted}));
  }
  kept.shape = std::move(wanted);
  return {};
}

void Session::clear_states() {
  for (Kept& kept : states_) {
    kept.memory = Tensor();
    kept.shape.clear();
    kept.is_set = false;
  }
}

int64_t Session::state_bytes() const {
  int64_t bytes = 0;
  for (const Kept& kept : states_)
    if (kept.is_set) bytes += static_cast<int64_t>(kept.memory.byte_size());
  return bytes;
}

}  // namespace dlc
