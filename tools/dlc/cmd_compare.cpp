// dlc compare: every kernel call on a device beside the interpreter, on the inputs that the device itself computed. The
// first call that differs is where the fault is, not where its consequences show.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "dlc/plugin/reference.h"
#include "tools/dlc/model.h"

namespace dlc::cli {

namespace {

struct Options {
  ModelOptions model;
  std::string device;
  std::vector<std::string> inputs;
  uint64_t seed = 1;
  double tolerance = 1e-4;
};

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

struct Difference {
  double largest = 0;  // relative to the larger of the element and the tensor's root mean square
  int64_t wrong = 0;
};

Difference difference(const Tensor& want, const Tensor& got, double tolerance) {
  Difference d;
  if (!want.dtype().is_float()) {
    for (int64_t i = 0; i < want.elements(); ++i) {
      const auto e = static_cast<double>(std::abs(want.get_int(i) - got.get_int(i)));
      d.largest = std::max(d.largest, e);
      d.wrong += e != 0;
    }
    return d;
  }
  double squares = 0;
  for (int64_t i = 0; i < want.elements(); ++i)
    if (std::isfinite(want.get_double(i))) squares += want.get_double(i) * want.get_double(i);
  const double scale = std::sqrt(squares / static_cast<double>(std::max<int64_t>(want.elements(), 1)));
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double a = want.get_double(i), b = got.get_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double e = std::abs(a - b) / std::max({std::abs(a), scale, 1e-30});
    d.largest = std::isnan(e) ? INFINITY : std::max(d.largest, e);
    d.wrong += !(e <= tolerance);
  }
  return d;
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

struct Comparison {
  Json layers = Json::array();
  std::string first;
};

Result<> compare_calls(const Context& cx, const Program& p, std::span<const Tensor> inputs,
                       std::span<const Tensor> outputs, const Bindings& symbols, double tolerance, Comparison& result) {
  Values values(p, inputs, outputs);
  Progress progress(cx, "calls", p.calls.size());
  for (const Call& call : p.calls) {
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
    Difference worst;
    for (size_t o = 0; o < want.size(); ++o) {
      DLC_TRY(const Tensor got, values.of(buffer_of.at(static_cast<size_t>(k.outputs[o]))));
      const Difference d = difference(want[o], got, tolerance);
      worst.wrong += d.wrong;
      worst.largest = std::max(worst.largest, d.largest);
    }
    result.layers.push_back({{"name", name},
                             {"kernel", k.name},
                             {"match", worst.wrong == 0},
                             {"largest_difference", worst.largest},
                             {"elements_wrong", worst.wrong}});
    if (worst.wrong > 0 && result.first.empty()) result.first = name;
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

Result<int> compare(Options& o, Context& cx) {
  o.model.dims_of_inputs = o.inputs.empty();
  DLC_TRY(Built b, build(o.model, cx));
  std::vector<Tensor> inputs;
  if (o.inputs.empty()) {
    DLC_TRY(inputs, seeded_inputs(b.model.inputs, b.model.symbols, single_values(o.model.dims), o.seed));
  } else {
    DLC_TRY(const NamedTensors given, read_inputs(o.inputs));
    DLC_TRY(inputs, bind_inputs(b.model.inputs, b.model.symbols, given));
  }
  const Bindings symbols = symbols_of(b.model.inputs, inputs);
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[b.model.inputs[i].name] = inputs[i];
  Comparison all;
  std::vector<std::string> devices;
  for (const CompiledPartition& part : b.model.partitions) {
    if (part.device == kReferenceDevice) {  // the same on every device
      DLC_TRY(const auto reference, reference_executable(part));
      std::vector<Tensor> in;
      for (const std::string& name : part.inputs) in.push_back(values.at(name));
      DLC_TRY(const auto out, reference->run(in));
      for (size_t i = 0; i < out.size(); ++i) values[part.outputs[i]] = out[i];
      continue;
    }
    DLC_TRY(const Program plain, program_of(part));
    const Program program = observable(plain);
    // A model of its own: this partition alone, with everything it computes as outputs.
    CompiledModel one = b.model;
    Backend* backend = nullptr;
    if (part.device != "host") {
      DLC_TRY(backend, cx.plugins().find(part.device));
    }
    DLC_TRY(CompiledPartition seen, compile_partition(part.device, backend, program, b.hardware, "{}"));
    one.inputs.clear();
    one.outputs.clear();
    for (const ProgramBuffer& buffer : program.buffers) {
      if (buffer.kind == BufferKind::input) one.inputs.push_back({buffer.external_name, buffer.type});
      if (buffer.kind == BufferKind::output) one.outputs.push_back({buffer.external_name, buffer.type});
    }
    one.partitions = {std::move(seen)};
    const bool chosen = part.device != "host" || scheme_of(o.device) == "cpu" || scheme_of(o.device) == "interp";
    DLC_TRY(Session session, Session::open(one, cx.plugins(), {.device = chosen ? o.device : ""}));
    if (std::ranges::count(devices, session.device(0)) == 0) devices.push_back(session.device(0));
    std::vector<Tensor> in;
    for (const Port& p : one.inputs) in.push_back(values.at(p.name));
    DLC_TRY(const auto out, session.run(in));
    DLC_CHECK(compare_calls(cx, program, in, out, symbols, o.tolerance, all));
    for (size_t i = 0; i < out.size(); ++i) values[one.outputs[i].name] = out[i];
  }
  const bool match = all.first.empty();
  const std::string device = fmt::format("{}", fmt::join(devices, ", "));
  const Json result{{"model", o.model.file},
                    {"device", device},
                    {"tolerance", o.tolerance},
                    {"match", match},
                    {"first_diverging", match ? Json() : Json(all.first)},
                    {"layers", all.layers}};
  std::string text = match ? fmt::format("all {1} calls on {0} agree with the interpreter\n", device, all.layers.size())
                           : fmt::format("first diverging layer on {}: {}\n", device, all.first);
  for (const Json& l : all.layers)
    if (!l["match"].get<bool>())
      text += fmt::format("  {}: {} elements differ, at most by {:.3g}\n", l["name"].get<std::string>(),
                          l["elements_wrong"].get<int64_t>(), l["largest_difference"].get<double>());
  cx.print(result, text);
  return match ? kOk : kFailed;
}

}  // namespace

void add_compare(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "compare", "Find the first layer that differs from the interpreter");
  add_model_options(*sub, o->model);
  sub->add_option("--device", o->device, "The device; by default the one the model is compiled for");
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")->allow_extra_args(false);
  sub->add_option("--seed", o->seed, "Of the inputs");
  sub->add_option("--tolerance", o->tolerance, "Of floats, relative; integers must be equal")
      ->check(positive_number())
      ->capture_default_str();
  sub->callback([o, &cx] { cx.action = [o, &cx] { return compare(*o, cx); }; });
}

}  // namespace dlc::cli
