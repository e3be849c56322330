// A compiled model: partitions in order of execution, each made by one plugin, with tensors between them by name. It is
// what a .dlca holds (docs/artifact.md). A partition of control flow has bodies, which are compiled as a model is.
//
//   DLC_TRY(CompiledModel m, CompiledModel::read("resnet8.dlca"));
//   DLC_TRY(Session s, Session::open(m, plugins, {.device = "asic:func"}));
//   DLC_TRY(auto outputs, s.run(inputs));
//
// A model with states (dlc/graph/state.h) can also be run step by step: the session keeps them from one step to the
// next, in place where a partition has them so.
//
//   for (const Tensor& token : tokens) {
//     DLC_TRY(const auto logits, s.step({&token, 1}));   // inputs and outputs that are no states
//   }
//   DLC_TRY(const Tensor keys, s.state(0));
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dlc/graph/control.h"
#include "dlc/hw/description.h"
#include "dlc/hw/load.h"
#include "dlc/io/numpy.h"
#include "dlc/plugin/host.h"

namespace dlc {

// A hardware description together with the text that plugins are given.
struct Hardware {
  HwDescription description;
  std::string text, file, params;  // params: "R=8,C=8"
};
Result<Hardware> load_hardware(std::string_view argument, const HwLoadOptions& options = {});

struct Port {
  std::string name;
  TensorType type;
};

struct CompiledGraph;

// One node of control flow (dlc/graph/control.h): no plugin compiles it, the runtime runs its bodies.
struct CompiledControl {
  std::string op;  // "if" or "loop"; empty: the partition is none
  int64_t carried = 0;
  std::vector<CompiledGraph> bodies;  // the partition's inputs are the operands: absent ones "", constants in `weights`
  struct Given {
    size_t result = 0;  // of the node
    TensorType type;
  };
  std::vector<Given> outputs;  // the partition's, in order
};

// Runs control flow; the outputs of the partition.
Result<std::vector<Tensor>> run_control(const CompiledControl& control, std::span<const Tensor> operands,
                                        const RunBody& run);

struct CompiledPartition {
  // The plugin's name; "host": compiled when it is loaded; "reference" and "control": run by the runtime itself.
  std::string device;
  std::vector<std::string> inputs, outputs;
  std::string program;  // `dlc.program 1` text: any other device can be given it
  NamedTensors weights;
  // The same function as the plugin compiled it, when it laid constants out anew: what the executable is loaded with,
  // and what an artifact holds. Empty: `program` and `weights` are that.
  std::string own_program;
  NamedTensors own_weights;
  std::shared_ptr<const void> owner;  // of the executable's bytes
  std::span<const std::byte> executable;
  std::string report = "{}";  // JSON
  CompiledControl control;

  bool is_control() const { return !control.op.empty(); }
  const std::string& compiled_program() const { return own_program.empty() ? program : own_program; }
  const NamedTensors& compiled_weights() const { return own_program.empty() ? weights : own_weights; }
};

struct CompiledGraph {
  Ranges symbols;
  std::vector<Port> inputs, outputs;  // an output of a body may be one of its inputs, which no partition makes then
  std::vector<CompiledPartition> partitions;
  std::vector<StatePair> states;  // of a model, by the names of its ports
};

// Every partition, those of bodies behind the one that has the bodies.
std::vector<const CompiledPartition*> all_partitions(const CompiledGraph& g);

struct CompiledModel : CompiledGraph {
  std::string name;
  std::string hardware_name, arch_hash, hardware_text;
  std::vector<std::string> features;  // that the hardware was said to have (native code)
  std::string explanation = "{}";     // JSON: where every node runs and why

  Result<> write(const std::string& path) const;
  // Everything is checked; weights and executables stay in the mapped file.
  static Result<CompiledModel> read(const std::string& path);
};

// Why no partition of the model is for `device`: it was compiled for another machine, or all of it is on the host, for
// the reason that `dlc explain` gives.
Error nothing_for(const CompiledModel& m, std::string_view device);

// Compiles one partition. `device` is "host" or the name of a plugin, `backend` that plugin (null for the host).
Result<CompiledPartition> compile_partition(const std::string& device, Backend* backend, Program program,
                                            const Hardware& hardware, const std::string& options,
                                            EmitResult* files = nullptr);

// The inputs in the model's order. A single tensor without a name is the single input. Checks names, dtypes, shapes and
// the ranges of symbolic dims.
Result<std::vector<Tensor>> bind_inputs(std::span<const Port> ports, const Ranges& symbols, const NamedTensors& given);
// Values for every input: symbols at `dims` or the smallest they may be, elements seeded: floats in [-1, 1), integers
// of 8 bits anywhere, wider ones 0 or 1, since they may be indices.
Result<std::vector<Tensor>> seeded_inputs(std::span<const Port> ports, const Ranges& symbols, const Bindings& dims,
                                          uint64_t seed);

// The part of a device URI before ':'.
std::string_view scheme_of(std::string_view uri);

namespace detail {
class DeviceChoice;
}

// A compiled model on devices.
class Session {
 public:
  struct Options {
    std::string device;  // URI; empty: for each partition the first available device of its plugin
    int threads = 0;     // of host partitions; 0: as the plugin chooses
  };
  static Result<Session> open(const CompiledModel& model, PluginRegistry& plugins, const Options& options);
  // A body, on the devices that were chosen for the model.
  static Result<Session> open(const CompiledGraph& body, detail::DeviceChoice& choice);

  // All inputs to all outputs, in the model's order; states that are kept have no part in it.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs);

  // One step on the states that are kept: the inputs that are none (step_inputs), the outputs that are none. States
  // that were never set begin as zeros: without elements along a dim whose symbol may be 0 and that no input has (a
  // cache of keys). A step that fails before it computes leaves them as they were; after that, what was written stays.
  Result<std::vector<Tensor>> step(std::span<const Tensor> inputs);
  std::vector<Port> step_inputs() const;
  std::vector<Port> step_outputs() const;
  // By number, in the order of the model's states. A state's value is copied on its way in and out.
  Result<> set_state(size_t state, const Tensor& value);
  Result<Tensor> state(size_t state) const;
  // Only the first elements are kept: what later steps added is taken back. `shape` is at most the state's.
  Result<> shrink_state(size_t state, std::span<const int64_t> shape);
  void clear_states();          // as if they had never been set
  int64_t state_bytes() const;  // that are held for them

  // Of each partition: the URI it runs on, and the device's counters of the last run as JSON.
  size_t partitions() const { return parts_.size(); }
  const std::string& device(size_t partition) const { return parts_[partition].uri; }
  std::string counters(size_t partition) { return parts_[partition].executable->counters(); }

 private:
  struct Part {
    std::string uri;
    const CompiledPartition* compiled = nullptr;
    std::vector<TensorType> results;
    CompiledPartition own;  // when it was compiled here
    std::unique_ptr<Device> device;
    std::unique_ptr<Executable> executable;
    std::vector<size_t> states;  // of the model, which it has in place, in the order of its program
  };
  // A value, and the memory around it where a partition has it in place.
  struct Kept {
    Tensor memory;               // the value itself, where no partition has it in place
    std::vector<int64_t> shape;  // of the value
    TensorType type;             // of the memory
    bool is_set = false, in_place = false;
    StateMemory place();
  };
  struct Values;
  Result<> find_states(Part& part, const std::string& program);
  Result<> run_parts(Values& all, bool in_place);
  static Result<Tensor> output(const Values& all, const std::string& name);
  Result<> begin_state(size_t state, Bindings& symbols);
  Result<> check_room(const Bindings& symbols) const;
  Result<> check_state(size_t state) const;
  const CompiledGraph* model_ = nullptr;
  std::vector<Part> parts_;
  std::vector<Kept> states_;
};

// `interp:`, which is always there: runs programs through the interpreter.
Backend& interpreter_backend();

}  // namespace dlc
