// dlc reduce: the smallest model on which a command still fails. core/passes/reduce.cpp looks for it; here the graph is
// written out for each try, and the command says whether it is still what is looked for.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <regex>

#include "dlc/io/file.h"
#include "dlc/passes/reduce.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"
#include "tools/dlc/scratch.h"
#include "tools/dlc/subprocess.h"

namespace dlc::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModel = "{}", kInputs = "{inputs}";

struct Options {
  ModelOptions model;
  std::string output, match;
  std::vector<std::string> inputs, command;
  std::optional<int> expect_exit;
  double seconds = 60;
  int attempts = 2000;
  uint64_t seed = 1;
};

std::string inputs_beside(const std::string& text_file) {
  return fs::path(text_file).replace_extension(".inputs.npz").string();
}

NamedTensors named_inputs(const Sample& s) {
  NamedTensors out;
  for (size_t i = 0; i < s.inputs.size(); ++i) out.emplace_back(s.graph.value(s.graph.inputs[i]).name, s.inputs[i]);
  return out;
}

std::string ending_of(const Ran& r) {
  if (r.timed_out) return "not done in time";
  return r.signal != 0 ? fmt::format("signal {}", r.signal) : fmt::format("exit code {}", r.code);
}

class Search {
 public:
  Search(const Options& o, const Scratch& folder) : o_(o), folder_(folder) {
    if (!o.match.empty()) match_.emplace(o.match);
  }

  // The command on the whole model: how it ends there is how it has to end.
  Result<> begin(const Sample& whole) {
    DLC_TRY(first_, run(whole));
    const bool wanted = o_.expect_exit ? !first_.timed_out && first_.code == *o_.expect_exit
                                       : !o_.match.empty() || first_.timed_out || first_.code != 0;
    if (!wanted || !matches(first_.output))
      return fail(
          {o_.model.file, 0, 0, {}},
          fmt::format("the command does not fail on the model as it was read: {}{}", ending_of(first_),
                      wanted ? ", and no line matches" : ""),
          "try it by hand on what dlc opt --passes= or --emit=graph -o FILE writes; --expect-exit and --match say "
          "what a failure is");
    return {};
  }

  bool fails(const Sample& s) {
    ++tries_;
    const auto r = run(s);
    return r && r->code == first_.code && r->timed_out == first_.timed_out && matches(r->output);
  }

  // A pass in a process of its own: it may be what crashes.
  Result<Graph> after(const std::string& pass, const Graph& g) const {
    DLC_CHECK(write_text(folder_ / "before.dlct", print(g), outlined_constants(g)));
    std::vector<std::string> arguments = {"/proc/self/exe",   "opt", folder_ / "before.dlct",
                                          "--passes=" + pass, "-o",  folder_ / "after.dlct"};
    if (!o_.model.hw.empty()) arguments.insert(arguments.end(), {"--hw", o_.model.hw});
    DLC_TRY(const Ran ran, run_program(arguments, o_.seconds));
    if (ran.code != 0) return fail({}, ran.output);
    DLC_TRY(const MappedFile text, map_file(folder_ / "after.dlct"));
    DLC_TRY(const NamedTensors weights, weights_of("", folder_ / "after.dlct"));
    auto graph = read_graph(text.text(), folder_ / "after.dlct", weights, g.records);
    std::error_code ec;
    fs::remove(weights_beside(folder_ / "after.dlct"), ec);
    return graph;
  }

  const Ran& first() const { return first_; }
  int tries() const { return tries_; }

 private:
  Result<Ran> run(const Sample& s) const {
    const std::string model = folder_ / "candidate.dlct", inputs = folder_ / "candidate.inputs.npz";
    std::error_code ec;
    fs::remove(weights_beside(model), ec);
    DLC_CHECK(write_text(model, print(s.graph), outlined_constants(s.graph)));
    DLC_CHECK(write_npz(inputs, named_inputs(s)));
    std::vector<std::string> command = o_.command;
    for (std::string& word : command)
      for (const auto& [mark, file] : {std::pair(kInputs, inputs), std::pair(kModel, model)})
        for (size_t at = word.find(mark); at != std::string::npos; at = word.find(mark, at + file.size()))
          word.replace(at, mark.size(), file);
    return run_program(command, o_.seconds);
  }

  // By lines: an expression over a whole output could run out of stack.
  bool matches(const std::string& output) const {
    if (!match_) return true;
    for (size_t at = 0; at < output.size();) {
      const size_t end = std::min(output.find('\n', at), output.size());
      const std::string line = output.substr(at, std::min<size_t>(end - at, 4096));
      if (std::regex_search(line, *match_)) return true;
      at = end + 1;
    }
    return false;
  }

  const Options& o_;
  const Scratch& folder_;
  std::optional<std::regex> match_;
  Ran first_;
  int tries_ = 0;
};

// Whether the interpreter survives the model: it may be what crashes.
bool can_interpret(const Sample& s) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    alarm(60);
    (void)run_graph(s.graph, s.inputs);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status);
}

Result<Sample> read_sample(const Options& o, Context& cx) {
  std::shared_ptr<const RecordSet> records;
  if (!o.model.hw.empty()) {
    DLC_TRY(const HwDescription hw, load_hw(o.model.hw, cx.hw_options()));
    DLC_TRY(records, records_for(hw));
  }
  DLC_TRY(Source source, read_source(o.model, std::move(records)));
  if (!source.graph)
    return fail({o.model.file, 0, 0, {}}, "is no graph: programs and artifacts are not reduced",
                "give the .onnx file or graph text");
  Sample s{*std::move(source.graph), {}};
  std::vector<Port> ports;
  for (const ValueId v : s.graph.inputs) ports.push_back({s.graph.value(v).name, s.graph.value(v).type});
  DLC_TRY(s.inputs, inputs_for(ports, s.graph.symbols, o.model, o.inputs, o.seed));
  return s;
}

Result<int> reduce_model(Options& o, Context& cx) {
  if (o.output.ends_with(".onnx"))
    return fail({o.output, 0, 0, {}}, "reduce writes graph text, which every command takes",
                "give it another ending: .dlct");
  const std::vector<std::string> outputs = {o.output, weights_beside(o.output), inputs_beside(o.output)};
  for (const std::string& file : outputs) DLC_CHECK(check_output(file, files_of(o.model, o.inputs)));
  setenv(crash::kFolderVariable, "", 1);  // crashes of the command are what is looked for, not news
  DLC_TRY(Sample whole, read_sample(o, cx));
  const size_t nodes_before = whole.graph.order().size();
  DLC_TRY(const Scratch folder, Scratch::make());
  Search search(o, folder);
  DLC_CHECK(search.begin(whole));
  ReduceOptions options{.attempts = o.attempts, .interpret = can_interpret(whole), .simplify = {}};
  for (const PassInfo& pass : graph_passes())
    options.simplify.emplace_back([&, name = pass.name](const Graph& g) { return search.after(name, g); });
  Progress progress(cx, "tries", static_cast<size_t>(o.attempts));
  const Sample small = reduce(
      std::move(whole),
      [&](const Sample& s) {
        progress.step(fmt::format("{} nodes", s.graph.order().size()));
        return search.fails(s);
      },
      options);
  DLC_TRY(const std::string weights, write_text(o.output, print(small.graph), outlined_constants(small.graph)));
  std::string inputs;
  if (!small.inputs.empty()) {
    inputs = inputs_beside(o.output);
    DLC_CHECK(write_npz(inputs, named_inputs(small)));
  }
  const size_t nodes = small.graph.order().size();
  cx.print({{"model", o.model.file},
            {"output", o.output},
            {"weights", weights},
            {"inputs", inputs},
            {"nodes_before", nodes_before},
            {"nodes_after", nodes},
            {"tries", search.tries()},
            {"ending", ending_of(search.first())}},
           fmt::format("{} -> {}{}{}: {} nodes of {}, {} tries; the command ends with {}\n", o.model.file, o.output,
                       weights.empty() ? "" : ", " + weights, inputs.empty() ? "" : ", " + inputs, nodes, nodes_before,
                       search.tries(), ending_of(search.first())));
  return kOk;
}

CLI::Validator regular_expression() {
  return {[](const std::string& given) {
            try {
              const std::regex checked(given);
            } catch (const std::regex_error& e) {
              return fmt::format("'{}' is no regular expression: {}", given, e.what());
            }
            return std::string();
          },
          "REGEX"};
}

}  // namespace

void add_reduce(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "reduce", "Find the smallest model on which a command still fails");
  add_model_options(*sub, o->model);
  sub->add_option("-o,--output", o->output, "The graph text to write, with its constants and inputs beside it")
      ->required()
      ->check(file_name());
  sub->add_option("command", o->command, "After --: the command; {} stands for the model, {inputs} for tensors (.npz)")
      ->required();
  sub->add_option("--expect-exit", o->expect_exit,
                  "The exit code of a failure (128 + N for signal N); by default that of the whole model")
      ->check(CLI::Range(0, 255));
  sub->add_option("--match", o->match, "A line that a failure prints, as a regular expression")
      ->check(regular_expression());
  sub->add_option("--time-limit", o->seconds, "Seconds for each run; a run that takes longer is stopped")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  sub->add_option("--tries", o->attempts, "At most so many runs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")->allow_extra_args(false);
  sub->add_option("--seed", o->seed, "Of the inputs");
  sub->callback([o, &cx] {
    const auto has = [&](std::string_view mark) {
      return std::ranges::any_of(o->command, [&](const std::string& w) { return w.find(mark) != std::string::npos; });
    };
    if (!has(kModel)) throw CLI::ValidationError("the command has no {}, which stands for the model");
    cx.action = [o, &cx] { return reduce_model(*o, cx); };
  });
}

}  // namespace dlc::cli
