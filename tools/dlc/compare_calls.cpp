// Every kernel call on a device beside the interpreter.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "dlc/plugin/reference.h"
#include "dlc/program/state.h"
#include "tools/dlc/comparison.h"

namespace dlc::cli {

namespace {

// The program with every value between calls as an output as well: what a device computes can then be seen.
Program observable(Program p) {
  for (ProgramBuffer& b : p.buffers) {
    if (b.kind != BufferKind::temp || b.alias) continue;
    b.kind = BufferKind::output;
    b.external_name = "tmp:" + b.name;  // no name of the model
    b.offset = Expr();
  }
  p.arena_bytes = Expr(0);
  return p;
}

// Values of buffers as the device made them.
class Values {
 public:
  Values(const Program& p, std::span<const Tensor> inputs, std::span<const Tensor> outputs) : p_(p) {
    size_t in = 0, out = 0;
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      if (p.buffers[i].kind == BufferKind::input) values_[static_cast<int>(i)] = inputs[in++];
      if (p.buffers[i].kind == BufferKind::output) values_[static_cast<int>(i)] = outputs[out++];
    }
  }
  Result<Tensor> of(int buffer) {
    const auto known = values_.find(buffer);
    if (known != values_.end()) return known->second;
    const ProgramBuffer& b = p_.buffers[static_cast<size_t>(buffer)];
    if (b.alias) {
      DLC_TRY(Tensor base, of(b.alias->base));
      if (b.alias->byte_offset.is(0) && b.type.dtype == base.dtype()) return base;  // a view: the kernel has the shape
      return fail({}, fmt::format("buffer {} lies inside another one", b.name));
    }
    const Tensor* w = p_.weight(b.name);
    if (w == nullptr) return fail({}, fmt::format("constant {} has no value", b.name));
    return *w;
  }

 private:
  const Program& p_;
  std::map<int, Tensor> values_;
};

// Gives t the shape that the kernel's tensor has with these dims.
Result<Tensor> shaped(const Tensor& t, const std::vector<Expr>& dims, const Bindings& symbols) {
  std::vector<int64_t> shape;
  for (const Expr& d : dims) {
    const auto v = evaluate(d, symbols);
    if (!v) return fail({}, fmt::format("dim {} is not known", to_string(d)));
    shape.push_back(*v);
  }
  return t.reshaped(std::move(shape));
}

struct Layer {
  std::string name, kernel;
  Difference worst;
};

// What all calls gave; one in the body of a loop is compared in every trip.
struct Layers {
  std::vector<Layer> list;
  std::map<std::pair<const CompiledPartition*, size_t>, size_t> layer_of;
  std::optional<size_t> first;  // that differed
};

Result<> compare_calls(const Context& cx, const CompiledPartition& part, const Program& p,
                       std::span<const Tensor> inputs, std::span<const Tensor> outputs, const Bindings& symbols,
                       double tolerance, Layers& result) {
  Values values(p, inputs, outputs);
  Progress progress(cx, "calls", p.calls.size());
  for (size_t c = 0; c < p.calls.size(); ++c) {
    const Call& call = p.calls[c];
    const Kernel& k = p.kernels[static_cast<size_t>(call.kernel)];
    const std::string name = call.locations.empty() ? k.name : call.locations.front();
    std::map<size_t, int> buffer_of;  // kernel tensor -> program buffer
    size_t next = 0;
    for (size_t t = 0; t < k.tensors.size(); ++t)
      if (k.tensors[t].role != Role::temp && !k.tensors[t].view) buffer_of[t] = call.buffers[next++];
    std::vector<Tensor> in;
    for (const int t : k.inputs) {
      if (t < 0) {
        in.emplace_back();
        continue;
      }
      const auto tensor = static_cast<size_t>(t);
      DLC_TRY(const Tensor v, values.of(buffer_of.at(tensor)));
      DLC_TRY(Tensor s, shaped(v, k.tensors[tensor].shape, symbols));
      in.push_back(std::move(s));
    }
    DLC_TRY(const auto want, run_kernel(substitute(k,
                                                   [&] {
                                                     std::map<std::string, Expr, std::less<>> known;
                                                     for (const auto& [s, v] : symbols) known.emplace(s, Expr(v));
                                                     return known;
                                                   }()),
                                        in));
    const auto [known, fresh] = result.layer_of.emplace(std::pair(&part, c), result.list.size());
    if (fresh) result.list.push_back({name, k.name, {}});
    Difference& worst = result.list[known->second].worst;
    for (size_t o = 0; o < want.size(); ++o) {
      DLC_TRY(const Tensor got, values.of(buffer_of.at(static_cast<size_t>(k.outputs[o]))));
      const Difference d = difference(want[o], got, tolerance);
      if (worst.wrong == 0) worst.text = d.text;
      worst.wrong += d.wrong;
      worst.largest = std::max(worst.largest, d.largest);
    }
    if (worst.wrong > 0 && !result.first) result.first = known->second;
    progress.step(name);
  }
  return {};
}

Bindings symbols_of(const std::vector<Port>& ports, std::span<const Tensor> inputs) {
  Bindings out;
  for (size_t i = 0; i < ports.size(); ++i)
    for (size_t d = 0; d < ports[i].type.shape.size(); ++d)
      if (const auto s = ports[i].type.shape[d].as_symbol()) out.emplace(std::string(*s), inputs[i].shape()[d]);
  return out;
}

// Runs a compiled model partition by partition and compares every call on the way, those in bodies too.
class Comparer {
 public:
  Comparer(const std::string& device, double tolerance, const Built& b, Context& cx)
      : device_(device), tolerance_(tolerance), b_(b), cx_(cx) {}

  Result<std::vector<Tensor>> run(const CompiledGraph& g, std::span<const Tensor> inputs) {
    std::map<std::string, Tensor, std::less<>> values;
    for (size_t i = 0; i < inputs.size(); ++i) values[g.inputs[i].name] = inputs[i];
    for (const CompiledPartition& part : g.partitions) {
      std::vector<Tensor> in;
      for (const std::string& name : part.inputs) in.push_back(operand(part, name, values));
      DLC_TRY(auto out, part.is_control() ? run_control(part.control, in,
                                                        [&](size_t body, std::vector<Tensor> given) {
                                                          return run(part.control.bodies[body], given);
                                                        })
                                          : partition(part, in));
      for (size_t i = 0; i < part.outputs.size(); ++i) values[part.outputs[i]] = std::move(out[i]);
    }
    std::vector<Tensor> outputs;
    for (const Port& p : g.outputs) outputs.push_back(values.at(p.name));
    return outputs;
  }

  const Layers& result() const { return all_; }
  const std::vector<std::string>& devices() const { return devices_; }

 private:
  // A partition as a model of its own, with everything it computes as outputs.
  struct Observed {
    Program program;
    CompiledModel model;
    std::optional<Session> session;
    std::unique_ptr<Executable> reference;  // instead: the same on every device
  };

  static Tensor operand(const CompiledPartition& part, const std::string& name,
                        const std::map<std::string, Tensor, std::less<>>& values) {
    if (part.is_control()) {
      if (name.empty()) return {};
      for (const auto& [constant, t] : part.weights)
        if (constant == name) return t;
    }
    return values.at(name);
  }

  Result<> observe(const CompiledPartition& part, Observed& seen) {
    if (part.device == kReferenceDevice) {
      DLC_TRY(seen.reference, reference_executable(part));
      return {};
    }
    DLC_TRY(const Program plain, program_of(part));
    seen.program = observable(plain);
    if (!in_place_states(plain).empty())
      return fail({}, "the program has states in place, whose calls cannot be looked at one by one",
                  "compare the model, or the program before states_in_place");
    seen.model = b_.model;
    seen.model.states.clear();
    Backend* backend = nullptr;
    if (part.device != "host") {
      DLC_TRY(backend, cx_.plugins().find(part.device));
    }
    DLC_TRY(CompiledPartition compiled, compile_partition(part.device, backend, seen.program, b_.hardware, "{}"));
    seen.model.inputs.clear();
    seen.model.outputs.clear();
    for (const ProgramBuffer& buffer : seen.program.buffers) {
      if (buffer.kind == BufferKind::input) seen.model.inputs.push_back({buffer.external_name, value_type(buffer)});
      if (buffer.kind == BufferKind::output) seen.model.outputs.push_back({buffer.external_name, value_type(buffer)});
    }
    seen.model.symbols = seen.program.symbols;
    seen.model.partitions = {std::move(compiled)};
    const bool chosen = part.device != "host" || scheme_of(device_) == "cpu" || scheme_of(device_) == "interp";
    DLC_TRY(seen.session, Session::open(seen.model, cx_.plugins(), {.device = chosen ? device_ : ""}));
    if (const std::string& uri = seen.session->device(0); std::ranges::count(devices_, uri) == 0)
      devices_.push_back(uri);
    return {};
  }

  // What the partition gives, in its order.
  Result<std::vector<Tensor>> partition(const CompiledPartition& part, std::span<const Tensor> in) {
    const auto [known, fresh] = observed_.try_emplace(&part);
    Observed& seen = known->second;
    if (fresh) DLC_CHECK(observe(part, seen));
    if (seen.reference) return seen.reference->run(in);
    DLC_TRY(const auto out, seen.session->run(in));
    DLC_CHECK(compare_calls(cx_, part, seen.program, in, out, symbols_of(seen.model.inputs, in), tolerance_, all_));
    std::vector<Tensor> results;
    for (const std::string& name : part.outputs)
      results.push_back(out[static_cast<size_t>(std::ranges::find(seen.model.outputs, name, &Port::name) -
                                                seen.model.outputs.begin())]);
    return results;
  }

  const std::string& device_;
  double tolerance_;
  const Built& b_;
  Context& cx_;
  std::map<const CompiledPartition*, Observed> observed_;
  Layers all_;
  std::vector<std::string> devices_;
};

}  // namespace

Result<Comparison> compare_calls(const Built& b, const std::string& device, std::span<const Tensor> inputs,
                                 double tolerance, Context& cx) {
  Comparer comparer(device, tolerance, b, cx);
  DLC_CHECK(comparer.run(b.model, inputs));
  Comparison all;
  const Layers& found = comparer.result();
  for (const Layer& l : found.list) all.add(l.name, l.kernel, l.worst);
  if (found.first) all.first = found.list[*found.first].name;
  all.against = kInterpreter;
  all.device = fmt::format("{}", fmt::join(comparer.devices(), ", "));
  return all;
}

}  // namespace dlc::cli
