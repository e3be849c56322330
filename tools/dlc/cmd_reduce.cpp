// dlc reduce: the smallest model on which a command still fails. core/passes/reduce.cpp looks for it; here the graph is
// written out for each try, and the command says whether it is still what is looked for.
#include <fmt/format.h>
#include <re2/re2.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <limits>
#include <unordered_map>

#include "dlc/io/file.h"
#include "dlc/passes/reduce.h"
#include "tools/dlc/crash.h"
#include "tools/dlc/interrupt.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"
#include "tools/dlc/scratch.h"
#include "tools/dlc/subprocess.h"

namespace dlc::cli {

namespace {

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

bool mentions(const std::vector<std::string>& command, std::string_view mark) {
  return std::ranges::any_of(command, [&](const std::string& w) { return w.find(mark) != std::string::npos; });
}

std::string nodes_text(size_t n) { return fmt::format("{} node{}", n, n == 1 ? "" : "s"); }

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
  Search(const Options& o, const Scratch& folder)
      : o_(o), folder_(folder), takes_inputs_(mentions(o.command, kInputs)), match_(o.match, RE2::Quiet) {}

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

  // A command that is given the same does the same: it is not run again.
  bool fails(const Sample& s) {
    const auto [known, fresh] = known_.try_emplace(key(s), false);
    if (!fresh) return known->second;
    ++tries_;
    const auto r = run(s);
    known->second = r && r->code == first_.code && r->timed_out == first_.timed_out && matches(r->output);
    return known->second;
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
    return read_graph(text.text(), folder_ / "after.dlct", weights, g.records);
  }

  const Ran& first() const { return first_; }
  int tries() const { return tries_; }
  // What the command is given beside the model: nothing, if it does not ask.
  NamedTensors tensors(const Sample& s) const { return takes_inputs_ ? named_inputs(s) : NamedTensors(); }

 private:
  uint64_t key(const Sample& s) const {
    uint64_t h = XXH3_64bits_withSeed(nullptr, 0, 0);
    const auto add = [&](const void* bytes, size_t n) { h = XXH3_64bits_withSeed(bytes, n, h); };
    const std::string text = print(s.graph);
    add(text.data(), text.size());
    for (const NamedTensors& list : {outlined_constants(s.graph), tensors(s)})
      for (const auto& [name, t] : list) {
        add(name.data(), name.size());
        add(t.shape().data(), t.shape().size() * sizeof(int64_t));
        add(t.bytes(), static_cast<size_t>(t.byte_size()));
      }
    return h;
  }

  Result<Ran> run(const Sample& s) const {
    const std::string model = folder_ / "candidate.dlct", inputs = folder_ / "candidate.inputs.npz";
    const NamedTensors given = tensors(s);
    DLC_CHECK(write_text(model, print(s.graph), outlined_constants(s.graph), &given));
    if (takes_inputs_ && given.empty()) DLC_CHECK(write_npz(inputs, given));  // it is named all the same
    std::vector<std::string> command = o_.command;
    for (std::string& word : command)
      for (const auto& [mark, file] : {std::pair(kInputs, inputs), std::pair(kModel, model)})
        for (size_t at = word.find(mark); at != std::string::npos; at = word.find(mark, at + file.size()))
          word.replace(at, mark.size(), file);
    return run_program(command, o_.seconds);
  }

  bool matches(std::string_view output) const {
    if (o_.match.empty()) return true;
    while (!output.empty()) {
      const size_t end = std::min(output.find('\n'), output.size());
      if (RE2::PartialMatch(re2::StringPiece(output.data(), end), match_)) return true;
      output.remove_prefix(std::min(end + 1, output.size()));
    }
    return false;
  }

  const Options& o_;
  const Scratch& folder_;
  bool takes_inputs_;
  RE2 match_;  // its time is linear in what a command prints, whatever the expression is
  Ran first_;
  int tries_ = 0;
  std::unordered_map<uint64_t, bool> known_;
};

// Whether the interpreter survives the model: it may be what crashes.
bool can_interpret(const Sample& s) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    alarm(60);
    [[maybe_unused]] const auto ran = run_graph(s.graph, s.inputs);
    _exit(0);
  }
  const StoppedBySignal stopped(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
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
  const Interruptible guard;
  Search search(o, folder);
  DLC_CHECK(search.begin(whole));
  ReduceOptions options{.attempts = std::numeric_limits<int>::max(),
                        .stop = [&] { return interrupted() != 0 || search.tries() >= o.attempts; },
                        .interpret = can_interpret(whole),
                        .simplify = {}};
  for (const PassInfo& pass : graph_passes())
    options.simplify.emplace_back([&, name = pass.name](const Graph& g) { return search.after(name, g); });
  Progress progress(cx, "tries", static_cast<size_t>(o.attempts));
  const Sample small = reduce(
      std::move(whole),
      [&](const Sample& s) {
        progress.step(nodes_text(s.graph.order().size()));
        return search.fails(s);
      },
      options);
  const NamedTensors given = search.tensors(small);
  DLC_TRY(const std::string weights, write_text(o.output, print(small.graph), outlined_constants(small.graph), &given));
  const std::string inputs = given.empty() ? "" : inputs_beside(o.output);
  const size_t nodes = small.graph.order().size();
  const bool complete = !options.stop();
  std::string text = fmt::format("{} -> {}{}{}: {} of {}, {} tries; the command ends with {}\n", o.model.file, o.output,
                                 weights.empty() ? "" : ", " + weights, inputs.empty() ? "" : ", " + inputs,
                                 nodes_text(nodes), nodes_before, search.tries(), ending_of(search.first()));
  if (!complete)
    text += interrupted() != 0 ? "stopped by a signal: it is the smallest that was found until then\n"
                               : "all tries are used: more of them (--tries) may find a smaller one\n";
  cx.print({{"model", o.model.file},
            {"output", o.output},
            {"weights", weights},
            {"inputs", inputs},
            {"nodes_before", nodes_before},
            {"nodes_after", nodes},
            {"tries", search.tries()},
            {"complete", complete},
            {"ending", ending_of(search.first())}},
           text);
  return kOk;
}

CLI::Validator regular_expression() {
  return {[](const std::string& given) {
            const RE2 checked(given, RE2::Quiet);
            return checked.ok() ? std::string()
                                : fmt::format("'{}' is no regular expression: {}", given, checked.error());
          },
          "REGEX"};
}

}  // namespace

void add_reduce(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "reduce", "Find the smallest model on which a command still fails");
  add_model_options(*sub, o->model);
  sub->get_option("model")->description("The model: .onnx or graph text");
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
      ->check(number_in(0.1, 86400))
      ->capture_default_str();
  sub->add_option("--tries", o->attempts, "At most so many runs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  sub->add_option("--input", o->inputs, "Inputs; seeded ones if none are given")
      ->allow_extra_args(false)
      ->check(tensor_file());
  add_seed(*sub, o->seed);
  sub->callback([o, &cx] {
    if (!mentions(o->command, kModel)) throw CLI::ValidationError("the command has no {}, which stands for the model");
    cx.action = [o, &cx] { return reduce_model(*o, cx); };
  });
}

}  // namespace dlc::cli
