// dlc conform: a folder of tests in ONNX's layout on a device.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "dlc/io/file.h"
#include "tools/dlc/build.h"
#include "tools/dlc/conform.h"
#include "tools/dlc/output.h"

namespace dlc::cli {

namespace {

struct Options {
  std::string suite, device = "interp:", hw = "native", variant = "known", expect, write_list, uses, write_uses;
  std::vector<std::string> only;
  int sample = 1;
  int64_t floor = 0;
  uint64_t seed = 1;
};

// As `dlc` itself compiles: the passes, then the host's backend. The interpreter gets the graph after the passes.
TestRunner runner(const Options& o, Context& cx) {
  TestRunner r;
  r.suite = o.suite;
  r.device = o.device;
  r.variant = o.variant;
  r.plugins = &cx.plugins();
  r.optimise = [&cx](Graph g) {
    Source source{"model", std::move(g), {}, {}};
    return optimised_source(std::move(source), nullptr, {}, cx);
  };
  r.compile = [&cx, hw = o.hw](Graph g) -> Result<CompiledModel> {
    Source source{"model", std::move(g), {}, {}};
    DLC_TRY(Hardware machine, load_hardware(hw, cx.hw_options()));
    DLC_TRY(Built b, build_source(std::move(source), std::move(machine), {}, cx));
    return std::move(b.model);
  };
  return r;
}

Json case_json(const std::string& name, const Verdict& v) {
  Json j{{"name", name}, {"result", to_string(v.result)}, {"ulp", v.ulp}, {"ms", v.ms}};
  if (!v.reason.empty()) j["reason"] = v.reason;
  if (!v.folded.empty()) j["folded"] = v.folded;
  return j;
}

// The tests that the user asked for: all, those whose name holds a text, or a seeded part.
Result<std::vector<std::string>> chosen(const Options& o) {
  DLC_TRY(std::vector<std::string> names, list_tests(o.suite));
  if (!o.only.empty())
    std::erase_if(names, [&](const std::string& n) {
      return std::ranges::none_of(o.only, [&](const std::string& text) { return n.find(text) != std::string::npos; });
    });
  if (o.sample > 1) {
    std::mt19937_64 random(o.seed);
    std::erase_if(names, [&](const std::string&) { return random() % static_cast<uint64_t>(o.sample) != 0; });
  }
  return names;
}

Result<int> run(const Options& o, Context& cx) {
  DLC_TRY(const auto names, chosen(o));
  DLC_CHECK(check_outputs({o.write_list, o.write_uses}, {}));
  Expectations expected;
  if (!o.expect.empty()) {
    DLC_TRY(expected, read_expectations(o.expect));
  }
  OpUses uses, expected_uses;
  if (!o.uses.empty()) {
    DLC_TRY(expected_uses, read_uses(o.uses));
  }
  const TestRunner tests_of = runner(o, cx);
  const Stopwatch watch;
  std::map<std::string, Verdict> verdicts;
  std::map<std::string, int64_t> counts{{"passed", 0}, {"failed", 0}, {"refused", 0}};
  Progress progress(cx, "tests", names.size());
  Json tests = Json::array();
  std::string text;
  for (const std::string& name : names) {
    Verdict v = tests_of.run(name);
    ++counts[to_string(v.result)];
    tests.push_back(case_json(name, v));
    if (v.result != Verdict::Result::passed) text += fmt::format("{} {}: {}\n", to_string(v.result), name, v.reason);
    uses.emplace(name, std::move(v.uses));
    verdicts.emplace(name, std::move(v));
    progress.step(name);
  }
  const bool whole = o.only.empty() && o.sample <= 1;
  const bool judged = !o.expect.empty() || o.floor > 0 || !o.uses.empty();
  const auto beyond_refusals = [&] {  // what the variant may not know is refused, never wrong
    std::map<std::string, Verdict> run;
    for (const auto& [name, v] : verdicts)
      if (v.result != Verdict::Result::refused) run.emplace(name, v);
    return run;
  };
  std::vector<std::string> wrong;
  if (!o.expect.empty())
    wrong = o.floor > 0 ? surprises(expected, beyond_refusals(), false) : surprises(expected, verdicts, whole);
  if (counts["passed"] < o.floor) wrong.push_back(fmt::format("{} tests pass, {} must", counts["passed"], o.floor));
  if (!o.uses.empty())
    for (const auto& [name, u] : uses)
      if (const auto known = expected_uses.find(name); known == expected_uses.end() || known->second != u)
        wrong.push_back(fmt::format("{}: its ops or their records are others than in {}", name, o.uses));
  if (judged) {
    text.clear();
    for (const std::string& w : wrong) text += w + "\n";
  }
  if (!o.write_list.empty()) {
    Expectations older;
    if (std::error_code ec; std::filesystem::exists(o.write_list, ec)) {
      DLC_TRY(older, read_expectations(o.write_list));
    }
    DLC_CHECK(write_file(o.write_list, print_expectations(verdicts, older)));
  }
  if (!o.write_uses.empty()) DLC_CHECK(write_file(o.write_uses, print_uses(uses)));
  text += fmt::format("{}: {} passed, {} failed, {} refused of {} in {:.1f} s\n", o.device, counts["passed"],
                      counts["failed"], counts["refused"], names.size(), watch.ms() / 1000);
  Json result{{"suite", o.suite},           {"device", o.device},           {"variant", o.variant},
              {"passed", counts["passed"]}, {"failed", counts["failed"]},   {"refused", counts["refused"]},
              {"total", names.size()},      {"seconds", watch.ms() / 1000}, {"unexpected", wrong},
              {"tests", std::move(tests)}};
  cx.print(result, text);
  const bool good = judged ? wrong.empty() : counts["failed"] == 0;
  return good ? kOk : kFailed;
}

}  // namespace

void add_conform(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "conform", "Run a folder of tests in ONNX's layout on a device");
  sub->add_option("--suite", o->suite, "The folder: one folder for each test, with model.onnx in it")
      ->required()
      ->check(file_name());
  sub->add_option("--device", o->device, "interp: (the default), cpu:, ...");
  sub->add_option("--hw", o->hw, "The machine that the models are compiled for: native (the default), cuda-emu, ...");
  sub->add_option(
         "--variant", o->variant,
         "What is known when compiling: the inputs' values (known), nothing of them (unknown), not their sizes "
         "(symbolic); or every input is a constant")
      ->check(CLI::IsMember({"known", "unknown", "constant", "symbolic"}));
  sub->add_option("--expect", o->expect, "The list of what each test does; anything else is a failure")
      ->check(file_name());
  sub->add_option("--floor", o->floor,
                  "At least so many tests must pass; with --expect, any test may be refused, but none may be wrong")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  sub->add_option("--write-list", o->write_list, "Write such a list; what one that is there allows stays allowed")
      ->check(file_name());
  sub->add_option("--uses", o->uses, "Which ops and records each test is made of; anything else is a failure")
      ->check(file_name());
  sub->add_option("--write-uses", o->write_uses, "Write that; docs/ops.md is made from it")->check(file_name());
  sub->add_option("--only", o->only, "Only tests whose name holds this text")->allow_extra_args(false);
  sub->add_option("--sample", o->sample, "Only one test in N, chosen by the seed")->check(CLI::Range(1, 1000));
  add_seed(*sub, o->seed, "Of the sample");
  sub->callback([o, &cx] { cx.action = [o, &cx] { return run(*o, cx); }; });
}

}  // namespace dlc::cli
