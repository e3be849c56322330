// Differential fuzzing: random graphs from the op records, and what must agree on them (check.h).
//
//   fuzz --seed S --graphs N [--quantised] [--save DIR]   prints the seed of each failure, reduces it and writes it
//   fuzz --seed S --show [--quantised]                    the graph of a seed
//   fuzz --cases DIR                                      replays the failures of the past, every way
#include <fmt/format.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>

#include "dlc/io/file.h"
#include "dlc/passes/pass.h"
#include "tests/fuzz/case_file.h"
#include "tests/fuzz/isolate.h"
#include "tests/fuzz/random_graph.h"

namespace dlc::fuzz {

namespace {

struct Arguments {
  uint64_t seed = 1, graphs = 100;
  bool quantised = false, show = false, reduce = true;
  std::string save = ".", cases;
};

Sample sample_of(const Arguments& a, uint64_t seed) {
  return a.quantised ? random_quantised_sample(seed) : random_sample(seed);
}
Way way_of(const Arguments& a, uint64_t seed) {
  Way w = random_way(seed);
  if (a.quantised) w.hardware = "asic";
  return w;
}

// What the working child tells its parent, also when it dies.
struct Progress {
  std::atomic<uint64_t> seed{0}, nodes{0};
};

Progress* shared_progress() {
  void* p = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : new (p) Progress();
}

void report(const Arguments& a, uint64_t seed, const Failure& f) {
  fmt::print("seed {}: {}: {}\n", seed, f.stage, f.message);
  if (!a.reduce) return;
  const Way w = way_of(a, seed);
  const std::string path = fmt::format("{}/{}_{}.dlct", a.save, a.quantised ? "quantised" : "graph", seed);
  // In a child, since the interpreter may be what crashes.
  (void)isolated(
      [&]() -> std::optional<Failure> {
        Failure last = f;
        std::vector<std::function<Result<Graph>(const Graph&)>> passes;
        for (const PassInfo& pass : graph_passes())
          passes.emplace_back([name = pass.name](Graph g) -> Result<Graph> {
            DLC_CHECK(run_passes(g, {name}));
            return g;
          });
        const bool compile = f.stage == "cpu" || f.stage == "crash" || f.stage == "hang";
        const Sample small = reduce(sample_of(a, seed),
                                    [&](const Sample& s) {
                                      const auto again = isolated([&] { return check(s, w, compile); });
                                      if (again && again->stage == f.stage) last = *again;
                                      return again && again->stage == f.stage;
                                    },
                                    {.attempts = 400, .interpret = true, .simplify = passes});
        const std::string comment = fmt::format("Seed {}: {}: {}\n{}", seed, last.stage, last.message, to_string(w));
        const std::string text = case_text(small, w, comment);
        fmt::print("{}", text);
        if (auto ok = write_file(path, text); !ok) fmt::print("{}\n", to_string(ok.error()));
        std::fflush(stdout);
        return {};
      },
      600);
  fmt::print("\n");
  std::fflush(stdout);
}

int fuzz(const Arguments& a) {
  Progress* progress = shared_progress();
  if (progress == nullptr) return 2;
  int failures = 0;
  for (uint64_t next = a.seed; next < a.seed + a.graphs;) {
    const auto f = isolated([&]() -> std::optional<Failure> {
      for (uint64_t seed = next; seed < a.seed + a.graphs; ++seed) {
        progress->seed = seed;
        limit_time(kSeconds);
        const Sample s = sample_of(a, seed);
        progress->nodes += s.graph.order().size();
        if (auto failure = check(s, way_of(a, seed))) return failure;
      }
      return {};
    });
    if (!f) break;
    ++failures;
    report(a, progress->seed, *f);
    next = progress->seed + 1;
  }
  fmt::print("{} graphs of {} nodes from seed {}: {} failures\n", a.graphs, progress->nodes.load(), a.seed, failures);
  return failures > 0;
}

// A case once failed; now every way of compiling it must agree.
int replay(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  int failures = 0;
  for (const std::string& file : files) {
    const auto mapped = map_file(file);
    const auto c = mapped ? parse_case(mapped->text(), file) : Result<Case>(std::unexpected(mapped.error()));
    if (!c) {
      fmt::print("{}\n", to_string(c.error()));
      ++failures;
      continue;
    }
    std::vector<Way> ways;
    if (c->way.hardware == "asic") {
      ways.push_back(c->way);
    } else {
      for (const char* hardware : {"x86-64", "x86-64-v3", "x86-64-v4"})
        ways.push_back({c->way.passes, ways.size() != 1, hardware, ways.size() == 1 ? 2 : 1});
    }
    for (const Way& w : ways)
      if (const auto f = isolated([&] { return check(c->sample, w); })) {
        fmt::print("{}: {}: {} ({})\n", file, f->stage, f->message, to_string(w));
        ++failures;
      }
  }
  fmt::print("{} cases: {} failures\n", files.size(), failures);
  return failures > 0 || files.empty();
}

}  // namespace

}  // namespace dlc::fuzz

int main(int argc, char** argv) {
  dlc::fuzz::Arguments a;
  CLI::App app("Random graphs: passes, programs, compiled code and the interpreter agree");
  app.add_option("--seed", a.seed, "the first seed");
  app.add_option("--graphs", a.graphs, "how many seeds");
  app.add_flag("--quantised", a.quantised, "quantised networks on asic:func");
  app.add_flag("--show", a.show, "print the graph of the seed");
  app.add_flag("!--no-reduce", a.reduce, "leave failures as they are");
  app.add_option("--save", a.save, "folder for reduced failures");
  app.add_option("--cases", a.cases, "replay the cases of this folder");
  CLI11_PARSE(app, argc, argv);
  if (!a.cases.empty()) return dlc::fuzz::replay(a.cases);
  if (a.show) {
    fmt::print("# {}\n{}", to_string(dlc::fuzz::way_of(a, a.seed)), print(dlc::fuzz::sample_of(a, a.seed).graph));
    return 0;
  }
  return dlc::fuzz::fuzz(a);
}
