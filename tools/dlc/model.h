// From a model in any of its forms to a compiled one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dlc/map/partition.h"
#include "dlc/numerics/commit.h"
#include "dlc/passes/pass.h"
#include "dlc/plugin/compiled.h"
#include "tools/dlc/cli.h"
#include "tools/dlc/dims.h"
#include "tools/dlc/fates.h"

namespace dlc::cli {

struct ModelOptions {
  std::string file;
  std::string hw;                       // empty: native
  std::vector<std::string> dims_given;  // N=1, S=1..512
  Dims dims;
  std::vector<std::string> states;  // past=present
  bool dims_of_inputs = false;      // of an artifact or program, whose dims are fixed: the sizes of inputs made here
  std::string weights;              // .npz, for graph and program text
  std::string dump;                 // folder
  std::string format = "dlca";      // dlca, so, o, a
  std::string name;                 // prefix of a library's symbols; empty: the model's
  std::string listing;              // asm, llvm: asked of the plugin
  bool despite_problems = false;    // compile what the machine can do even where the model asks for more
};
void add_model_options(CLI::App& sub, ModelOptions& o);

// What a file holds: exactly one of the three. `records`: the ops of graph text, the built-in ones when null.
struct Source {
  std::string name;  // the file's, without folder and suffix
  std::optional<Graph> graph;
  std::vector<OnnxNode> nodes;  // of an ONNX model's graph
  std::optional<Program> program;
  std::optional<CompiledModel> compiled;
};
Result<Source> read_source(const ModelOptions& o, std::shared_ptr<const RecordSet> records = nullptr);
// The ops of texts for this machine: the built-in ones, and its recipes if it has any.
Result<std::shared_ptr<const RecordSet>> records_for(const HwDescription& hw);
// Which level a text is of: "graph", "kernel", "program", or "" for anything else.
std::string level_of(std::string_view text);
// Constants of a text: those of --weights, or else of the file beside it.
Result<NamedTensors> weights_of(const std::string& weights, const std::string& text_file);
Result<Graph> read_graph(std::string_view text, const std::string& file, const NamedTensors& weights,
                         std::shared_ptr<const RecordSet> records);
Result<Program> read_program(std::string_view text, const std::string& file, const NamedTensors& weights);
// The texts of one level, one behind the other in a file.
std::vector<std::string_view> split_texts(std::string_view text);

struct Built {
  Hardware hardware;
  std::optional<Graph> graph;  // after the passes; empty when the source was a program
  Origins origins;             // the graph as it was read
  CompiledModel model;
  std::vector<Program> programs;  // of each partition
  std::vector<EmitResult> files;
  std::vector<PassTiming> passes;
  std::vector<NodePlacement> placements;  // of a machine that takes only some nodes
  std::vector<Diagnostic> problems;       // of the placement
  NumericsReport numerics;
  double import_ms = 0, compile_ms = 0;  // compile: all of it, import too
};

// Imports, optimises, splits, compiles.
Result<Built> build(const ModelOptions& o, Context& cx);
// Every input file of a command: the model, its weights (of a text those beside it too), the machine's description,
// tensors.
std::vector<std::string> files_of(const ModelOptions& o, const std::vector<std::string>& tensors = {});
// The optimised graph alone; with --hw as integers, if the machine has them.
Result<Graph> optimised_graph(const ModelOptions& o, Context& cx);
// An artifact as it is, anything else built.
Result<CompiledModel> load_or_build(const ModelOptions& o, Context& cx);

// Where each partition of a model would be lowered to: its program, ready for a backend.
Result<Program> program_of(const CompiledPartition& p);

inline constexpr const char* kInterpreter = "interp:";

// A command's inputs: those of the files, or seeded ones if there are none.
Result<std::vector<Tensor>> inputs_for(const std::vector<Port>& ports, const Ranges& symbols, const ModelOptions& o,
                                       const std::vector<std::string>& files, uint64_t seed);
// .npz, .npy, .pb, or NAME=FILE for the last two.
Result<NamedTensors> read_inputs(const std::vector<std::string>& files);
Json ports_json(const std::vector<Port>& ports);
Json shape_json(const Tensor& t);

}  // namespace dlc::cli
