// The pipeline: import, passes, split into partitions, lowering, plugins.
#include "tools/dlc/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/hw/standalone.h"
#include "dlc/graph/segments.h"
#include "dlc/io/file.h"
#include "dlc/map/fill_lanes.h"
#include "dlc/plugin/reference.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/explain.h"
#include "tools/dlc/json.h"
#include "tools/dlc/output.h"

namespace dlc::cli {

namespace {

// --dump: every level after every step, numbered in order.
class Dump {
 public:
  explicit Dump(const ModelOptions& o) : folder_(o.dump), inputs_(files_of(o)) {}

  Result<> start() {
    if (folder_.empty()) return {};
    std::error_code ec;
    std::filesystem::create_directories(folder_, ec);
    if (ec) return fail({folder_, 0, 0, {}}, "cannot make the folder: " + ec.message());
    return {};
  }
  // The first failure is kept until done(): callbacks of passes have no way to fail.
  void write(std::string_view step, std::string_view suffix, const std::string& text) {
    if (folder_.empty() || !failure_.empty()) return;
    const std::string file = fmt::format("{}/{:02}_{}.{}", folder_, number_++, step, suffix);
    auto ok = check_output(file, inputs_);
    if (ok) ok = write_file(file, text);
    if (!ok) failure_ = std::move(ok).error();
  }
  Result<> done() {
    if (!failure_.empty()) return std::unexpected(std::move(failure_));
    return {};
  }
  bool wanted() const { return !folder_.empty(); }

 private:
  std::string folder_;
  std::vector<std::string> inputs_;
  int number_ = 0;
  Error failure_;
};

Result<std::vector<PassTiming>> optimise(Graph& g, const HwDescription* hw, Dump& dump, const Context& cx) {
  if (dump.wanted()) dump.write("import", "dlcg", print(g));
  const auto& pipeline = default_graph_pipeline();
  Progress progress(cx, "passes", pipeline.size());
  crash::at("pass " + pipeline.front());
  DLC_TRY(auto timings, run_passes(g, pipeline, [&](const std::string& pass, const Graph& after) {
            progress.step(pass);
            if (dump.wanted()) dump.write(pass, "dlcg", print(after));
          }));
  if (hw == nullptr) return timings;
  crash::at("pass fill_lanes");
  const Stopwatch watch;
  DLC_TRY(const int64_t changed, fill_lanes(g, *hw));
  if (changed > 0) timings.push_back({"fill_lanes", watch.ms(), {{"convolutions", changed}}});
  if (changed > 0 && dump.wanted()) dump.write("fill_lanes", "dlcg", print(g));
  return timings;
}

std::vector<Port> graph_ports(const Graph& g, bool outputs) {
  std::vector<Port> ports;
  if (outputs) {
    for (size_t i = 0; i < g.outputs.size(); ++i) ports.push_back({g.output_names[i], g.value(g.outputs[i]).type});
  } else {
    for (const ValueId v : g.inputs) ports.push_back({g.value(v).name, g.value(v).type});
  }
  return ports;
}

const std::string& port_name(const ProgramBuffer& b) { return b.external_name.empty() ? b.name : b.external_name; }

std::vector<Port> program_ports(const Program& p, BufferKind kind) {
  std::vector<Port> ports;
  for (const ProgramBuffer& b : p.buffers)
    if (b.kind == kind) ports.push_back({port_name(b), value_type(b)});
  return ports;
}

std::vector<StatePair> program_states(const Program& p) {
  std::vector<StatePair> states;
  for (const StatePair& s : p.states)
    states.push_back({port_name(p.buffers[static_cast<size_t>(p.find_buffer(s.input))]),
                      port_name(p.buffers[static_cast<size_t>(p.find_buffer(s.output))])});
  return states;
}

// A part of the model, and the plugin it is for ("host": compiled when loaded, "reference": never).
struct Piece {
  std::string device;
  Backend* backend = nullptr;
  Program program;
  std::optional<Graph> reference;
  // Control flow: what it is, and the pieces of each body.
  std::optional<CompiledPartition> control;
  std::vector<std::vector<Piece>> bodies;
};

Result<> add_pieces(const Graph& g, const std::string& device, Backend* backend, std::vector<Piece>& pieces);

// A body's outputs go by the names of their values: inputs that it hands on are made by no piece.
Result<> add_body(const Graph& g, const std::string& device, Backend* backend, Piece& piece) {
  CompiledGraph& body = piece.control->control.bodies.emplace_back();
  body.symbols = g.symbols;
  body.inputs = graph_ports(g, false);
  Graph made = g;
  made.outputs.clear();
  made.output_names.clear();
  for (const ValueId v : g.outputs) {
    const std::string& name = g.value(v).name;
    body.outputs.push_back({name, g.value(v).type});
    if (std::ranges::count(g.inputs, v) > 0 || std::ranges::count(made.outputs, v) > 0) continue;
    made.outputs.push_back(v);
    made.output_names.push_back(name);
  }
  auto& pieces = piece.bodies.emplace_back();
  return made.outputs.empty() ? Result<>() : add_pieces(made, device, backend, pieces);
}

// `g` is the one node.
Result<Piece> control_piece(const Graph& g, const std::string& device, Backend* backend) {
  const Node& n = g.node(g.order()[0]);
  Piece piece;
  CompiledPartition& part = piece.control.emplace();
  part.device = piece.device = kControlDevice;
  part.outputs = g.output_names;
  part.control.op = n.op;
  part.control.carried = carried_of(n);
  for (const ValueId v : g.outputs)
    part.control.outputs.push_back({static_cast<size_t>(g.value(v).result), g.value(v).type});
  for (const ValueId v : n.inputs) {
    part.inputs.push_back(v == kNoValue ? "" : g.value(v).name);
    if (v != kNoValue && g.value(v).constant) part.weights.emplace_back(g.value(v).name, *g.value(v).constant);
  }
  part.report = Json{{"node", n.locations.empty() ? "" : n.locations.front()}}.dump(-1, ' ', false,
                                                                                    Json::error_handler_t::replace);
  for (const auto& body : n.bodies) DLC_CHECK(add_body(*body, device, backend, piece));
  return piece;
}

// Programs for one device, with the extern ops and the control flow between them.
Result<> add_pieces(const Graph& g, const std::string& device, Backend* backend, std::vector<Piece>& pieces) {
  DLC_TRY(auto segments, cut_at_externs(g));
  for (Segment& s : segments) {
    if (s.kind == Segment::Kind::reference) {
      pieces.push_back({kReferenceDevice, nullptr, {}, std::move(s.graph), {}, {}});
    } else if (s.kind == Segment::Kind::control) {
      DLC_TRY(Piece piece, control_piece(s.graph, device, backend));
      pieces.push_back(std::move(piece));
    } else {
      DLC_TRY(Program program, lower_to_program(s.graph));
      pieces.push_back({device, backend, std::move(program), {}, {}, {}});
    }
  }
  return {};
}

// The part that takes a state and makes it has it; where another one reads it too, its value is handed on.
void keep_states(std::vector<Piece>& pieces, const std::vector<StatePair>& states) {
  const auto buffer = [](const Piece& piece, BufferKind kind, const std::string& name) -> const ProgramBuffer* {
    for (const ProgramBuffer& b : piece.program.buffers)
      if (b.kind == kind && port_name(b) == name) return &b;
    return nullptr;
  };
  const auto reads = [&](const Piece& piece, const std::string& name) {
    if (piece.control) return std::ranges::count(piece.control->inputs, name) > 0;
    if (!piece.reference) return buffer(piece, BufferKind::input, name) != nullptr;
    return std::ranges::any_of(piece.reference->inputs,
                               [&](ValueId v) { return piece.reference->value(v).name == name; });
  };
  for (Piece& piece : pieces) {
    piece.program.states.clear();
    for (const StatePair& s : states) {
      const ProgramBuffer *in = buffer(piece, BufferKind::input, s.input),
                          *out = buffer(piece, BufferKind::output, s.output);
      const bool shared = std::ranges::any_of(pieces, [&](const Piece& other) {
        return &other != &piece && (reads(other, s.input) || reads(other, s.output));
      });
      if (in != nullptr && out != nullptr && !shared) piece.program.states.push_back({in->name, out->name});
    }
  }
}

size_t count_of(const std::vector<Piece>& pieces) {
  size_t n = pieces.size();
  for (const Piece& piece : pieces)
    for (const auto& body : piece.bodies) n += count_of(body);
  return n;
}

Result<bool> is_refused(const std::vector<Piece>& pieces, const AskDevice& ask) {
  for (const Piece& piece : pieces) {
    for (const auto& body : piece.bodies) {
      DLC_TRY(const bool refused, is_refused(body, ask));
      if (refused) return true;
    }
    if (piece.reference || piece.control) continue;
    DLC_TRY(const auto refusals, ask(piece.program));
    if (!refusals.empty()) return true;
  }
  return false;
}

// The machine takes what its description and its plugin do not refuse.
Result<std::vector<Piece>> split(const Source& source, const ModelOptions& o, Built& b, Context& cx) {
  const HwDescription& hw = b.hardware.description;
  DLC_TRY(Backend * backend, cx.plugins().for_hardware(hw));
  const AskDevice ask = [&](const Program& p) {
    return backend->match({p, b.hardware.text, b.hardware.file, b.hardware.params, "{}"});
  };
  std::vector<Piece> pieces;
  if (source.program) {
    pieces.push_back({backend->name(), backend, *source.program, {}, {}, {}});
    return pieces;
  }
  // A machine without instructions is given the whole model, unless something of it is refused.
  if (hw.isa.word_bits == 0 && hw.ops.empty()) {
    DLC_CHECK(add_pieces(*source.graph, backend->name(), backend, pieces));
    DLC_TRY(const bool refused, is_refused(pieces, ask));
    if (!refused) return pieces;
    pieces.clear();
  }
  ModelNodes model{{}, b.numerics.ops};
  for (const NumericsReport::Kept& k : b.numerics.kept) model.in_float.emplace(k.name, k.why);
  DLC_TRY(Partitioning parts, partition(*source.graph, hw, backend->name(), ask, model));
  b.placements = std::move(parts.nodes);
  b.problems = std::move(parts.problems);
  Error errors;
  for (const Diagnostic& d : b.problems) {
    if (o.despite_problems) break;
    if (d.severity == Severity::error)
      errors.diagnostics.push_back(d);
    else
      tell(to_string(d) + "\n");
  }
  // What commit_numerics left in float is the likely reason why nothing runs there.
  if (!errors.empty() && std::ranges::all_of(b.placements, [](const NodePlacement& p) { return p.device == "host"; }))
    for (const NumericsReport::Kept& k : b.numerics.kept)
      if (k.name != errors.diagnostics.front().loc.node)
        errors.diagnostics.push_back({Severity::note, {"", 0, 0, k.name}, k.op + " stays in float: " + k.why, ""});
  if (!errors.empty()) return std::unexpected(std::move(errors));
  for (const Partition& part : parts.partitions) {
    if (part.device == "host") {
      DLC_CHECK(add_pieces(part.graph, part.device, nullptr, pieces));
    } else {
      DLC_TRY(Program program, lower_partition(part));
      pieces.push_back({part.device, backend, std::move(program), {}, {}, {}});
    }
  }
  return pieces;
}

// What the machine's recipes can do in integers, on the graph as it was imported.
Result<NumericsReport> commit(Graph& g, const HwDescription& hw, Dump& dump) {
  if (hw.recipes.empty()) return NumericsReport{};
  DLC_TRY(auto recipes, load_recipes(hw));
  DLC_TRY(NumericsReport report, commit_numerics(g, std::move(recipes)));
  if (dump.wanted()) dump.write("commit_numerics", "dlcg", print(g));
  return report;
}

// What the plugin says of its own time in "timing.json": [{"name", "ms"}]. Its report is stored and has none.
std::vector<PassTiming> plugin_steps(const std::string& plugin, const EmitResult& files) {
  std::vector<PassTiming> out;
  const auto* bytes = files.find("timing.json");
  if (bytes == nullptr) return out;
  const auto* text = reinterpret_cast<const char*>(bytes->data());
  for (const Json& s : array_of({text, bytes->size()}))
    if (s.is_object()) out.push_back({plugin + " " + field<std::string>(s, "name"), field<double>(s, "ms"), {}});
  return out;
}

// Compiles pieces in order of execution; what belongs to each partition follows the order of all_partitions().
class PieceCompiler {
 public:
  PieceCompiler(const std::string& options, ResultStore& results, Built& b, Dump& dump, Progress& progress)
      : options_(options), results_(results), b_(b), dump_(dump), progress_(progress) {}

  Result<> run(std::vector<Piece> pieces, std::vector<CompiledPartition>& to) {
    for (Piece& piece : pieces) {
      const std::string device = piece.device;
      DLC_TRY(CompiledPartition part, piece.control     ? control(std::move(piece))
                                      : piece.reference ? reference(*piece.reference)
                                                        : program(std::move(piece)));
      to.push_back(std::move(part));
      progress_.step(device);
    }
    return {};
  }

 private:
  // Of what has no program.
  void add_nothing() {
    b_.programs.emplace_back();
    b_.files.emplace_back();
  }

  Result<CompiledPartition> reference(const Graph& g) {
    add_nothing();
    return reference_partition(g);
  }

  Result<CompiledPartition> control(Piece piece) {
    add_nothing();
    CompiledPartition part = *std::move(piece.control);
    for (size_t i = 0; i < piece.bodies.size(); ++i)
      DLC_CHECK(run(std::move(piece.bodies[i]), part.control.bodies[i].partitions));
    return part;
  }

  Result<CompiledPartition> program(Piece piece) {
    const Stopwatch step;
    crash::at("compiling for " + piece.device);
    dump_.write(piece.device, "dlcp", dump_.wanted() ? print(piece.program) : std::string());
    const auto kernels = static_cast<int64_t>(piece.program.kernels.size());
    EmitResult files;
    b_.programs.push_back(piece.program);
    DLC_TRY(CompiledPartition part, compile_partition(piece.device, piece.backend, std::move(piece.program),
                                                      b_.hardware, options_, &files, results_));
    double own_ms = 0;  // of the plugin's own steps; the rest is crossing the boundary
    for (PassTiming& t : plugin_steps(part.device, files)) {
      own_ms += t.ms;
      b_.passes.push_back(std::move(t));
    }
    b_.passes.push_back({"emit " + piece.device, std::max(step.ms() - own_ms, 0.0), {{"kernels", kernels}}});
    b_.files.push_back(std::move(files));
    return part;
  }

  const std::string& options_;
  ResultStore& results_;
  Built& b_;
  Dump& dump_;
  Progress& progress_;
};

// A library is one program: it has no runtime that could run bodies.
Result<> check_library(const std::vector<Piece>& pieces, const ModelOptions& o) {
  const auto control = std::ranges::find_if(pieces, [](const Piece& p) { return p.control.has_value(); });
  if (o.format == "dlca" || control == pieces.end()) return {};
  return fail(
      {o.file, 0, 0, field<std::string>(object_of(control->control->report), "node")},
      fmt::format("a library cannot hold control flow that only a run decides ({})", control->control->control.op),
      "write a .dlca; or make conditions and numbers of trips known: constants, --dim NAME=VALUE");
}

Result<Built> build_into(Source source, Hardware hardware, const ModelOptions& o, ResultStore& results, Context& cx) {
  const Stopwatch all;
  Built b;
  b.hardware = std::move(hardware);
  Dump dump(o);
  DLC_CHECK(dump.start());
  if (source.compiled)
    return fail({o.file, 0, 0, {}}, "is compiled already",
                "dlc run, bench, cosim and explain take it as it is; the others want the model that it was made from");
  if (source.graph) {
    b.model.inputs = graph_ports(*source.graph, false);
    b.model.outputs = graph_ports(*source.graph, true);
    b.model.symbols = source.graph->symbols;
    b.model.states = source.graph->states;
    b.origins = Origins(*source.graph, source.nodes);
    const Stopwatch watch;
    crash::at("commit_numerics");
    DLC_TRY(b.numerics, commit(*source.graph, b.hardware.description, dump));
    b.passes.push_back({"commit_numerics",
                        watch.ms(),
                        {{"committed", static_cast<int64_t>(b.numerics.committed.size())},
                         {"kept", static_cast<int64_t>(b.numerics.kept.size())}}});
    DLC_TRY(const auto passes, optimise(*source.graph, &b.hardware.description, dump, cx));
    b.passes.insert(b.passes.end(), passes.begin(), passes.end());
  } else {
    if (auto plan = check_memory_plan(*source.program); !plan)
      return fail({o.file, 0, 0, {}}, std::string(plan.error().message()),
                  "dlc opt --passes=plan_memory gives every buffer a place");
    b.model.inputs = program_ports(*source.program, BufferKind::input);
    b.model.outputs = program_ports(*source.program, BufferKind::output);
    b.model.symbols = source.program->symbols;
    b.model.states = program_states(*source.program);
  }
  b.model.name = source.name;
  b.model.hardware_name = b.hardware.description.name;
  b.model.arch_hash = hash_text(b.hardware.description.arch_hash);
  DLC_TRY(b.model.hardware_text, standalone_hw(b.hardware.text, b.hardware.file));
  b.model.features = b.hardware.description.feature_names();

  crash::keep("hardware.yaml", b.model.hardware_text);
  crash::at("lowering");
  Stopwatch step;
  DLC_TRY(std::vector<Piece> pieces, split(source, o, b, cx));
  if (!source.program) keep_states(pieces, b.model.states);
  b.passes.push_back({"lower", step.ms(), {{"partitions", static_cast<int64_t>(pieces.size())}}});
  const Json options{{"format", o.format}, {"name", o.name.empty() ? source.name : o.name}, {"listing", o.listing}};
  // Names may be any bytes of a path.
  const std::string options_text = options.dump(-1, ' ', false, Json::error_handler_t::replace);
  DLC_CHECK(check_library(pieces, o));
  Progress progress(cx, "partitions", count_of(pieces));
  DLC_CHECK(PieceCompiler(options_text, results, b, dump, progress).run(std::move(pieces), b.model.partitions));
  DLC_CHECK(dump.done());
  b.graph = std::move(source.graph);
  step = Stopwatch();
  DLC_TRY(Json said, explanation(b));
  said["description"] = std::filesystem::path(b.hardware.file).filename().string();  // the same in every folder
  b.model.explanation = said.dump(-1, ' ', false, Json::error_handler_t::replace);
  b.passes.push_back({"explain", step.ms(), {}});
  b.compile_ms = all.ms();
  return b;
}

}  // namespace

Result<Built> build(const ModelOptions& o, ResultStore& results, Context& cx) {
  const Stopwatch all;
  DLC_TRY(Hardware hardware, load_hardware(o.hw.empty() ? "native" : o.hw, cx.hw_options()));
  DLC_TRY(auto records, records_for(hardware.description));
  crash::at("reading " + o.file);
  DLC_TRY(Source source, read_source(o, std::move(records)));
  const double import_ms = all.ms();
  DLC_TRY(Built b, build_into(std::move(source), std::move(hardware), o, results, cx));
  b.import_ms = import_ms;
  b.compile_ms = all.ms();
  return b;
}

Result<Built> build(const ModelOptions& o, Context& cx) {
  MemoryStore memory;
  return build(o, memory, cx);
}

Result<Built> build_source(Source source, Hardware hardware, const ModelOptions& o, Context& cx) {
  MemoryStore memory;
  return build_into(std::move(source), std::move(hardware), o, memory, cx);
}

Result<Graph> optimised_graph(const ModelOptions& o, Context& cx) {
  std::optional<HwDescription> hw;
  std::shared_ptr<const RecordSet> records;
  if (!o.hw.empty()) {
    DLC_TRY(hw, load_hw(o.hw, cx.hw_options()));
    DLC_TRY(records, records_for(*hw));
  }
  DLC_TRY(Source source, read_source(o, std::move(records)));
  return optimised_source(std::move(source), hw ? &*hw : nullptr, o, cx);
}

Result<Graph> optimised_source(Source source, const HwDescription* hw, const ModelOptions& o, Context& cx) {
  if (!source.graph)
    return fail({o.file, 0, 0, {}}, "is no graph any more: programs and artifacts are lowered already",
                "give the .onnx file or graph text");
  Dump dump(o);
  DLC_CHECK(dump.start());
  if (hw) DLC_CHECK(commit(*source.graph, *hw, dump));
  DLC_CHECK(optimise(*source.graph, hw, dump, cx));
  DLC_CHECK(dump.done());
  return *std::move(source.graph);
}

Result<CompiledModel> load_or_build(const ModelOptions& o, Context& cx) {
  DLC_TRY(const MappedFile file, map_file(o.file));
  if (file.text().starts_with("DLCA")) {
    DLC_TRY(Source source, read_source(o));
    CompiledModel model = *std::move(source.compiled);
    if (o.hw.empty()) return model;
    DLC_TRY(const HwDescription hw, load_hw(o.hw, cx.hw_options()));
    if (hash_text(hw.arch_hash) != model.arch_hash)
      return fail({o.file, 0, 0, {}},
                  fmt::format("was compiled for {} with arch_hash {}; --hw={} is {} with {}", model.hardware_name,
                              model.arch_hash, o.hw, hw.name, hash_text(hw.arch_hash)),
                  "compile it again for this machine");
    return model;
  }
  DLC_TRY(Built b, build(o, cx));
  return std::move(b.model);
}

Result<Program> program_of(const CompiledPartition& p) {
  DLC_TRY(Program program, parse_program(p.program, "program"));
  program.weights = p.weights;
  return program;
}

}  // namespace dlc::cli
