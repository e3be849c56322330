#include "tests/fuzz/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "dlc/graph/read.h"
#include "dlc/map/partition.h"
#include "dlc/numerics/commit.h"
#include "dlc/passes/pass.h"
#include "dlc/plugin/compiled.h"
#include "tests/fuzz/in_control.h"
#include "tests/fuzz/oracle.h"
#include "tests/fuzz/random_graph.h"

namespace dlc::fuzz {

namespace {

using Problem = std::optional<Failure>;

Problem failed(const std::string& stage, const Error& e) { return Failure{stage, to_string(e)}; }

Problem compare(const std::string& stage, const std::vector<BoundTensor>& want, const std::vector<Tensor>& got) {
  if (want.size() != got.size())
    return Failure{stage, fmt::format("{} outputs expected, {} computed", want.size(), got.size())};
  for (size_t i = 0; i < want.size(); ++i)
    if (auto d = difference(want[i], got[i])) return Failure{stage, fmt::format("output {}, {}", i, *d)};
  return {};
}

Problem compare(const std::string& stage, const std::vector<BoundTensor>& want,
                const Result<std::vector<Tensor>>& got) {
  if (!got) return failed(stage, got.error());
  return compare(stage, want, *got);
}

// Printed, read and printed again.
Problem text_round_trip(const Graph& g) {
  const auto table = table_constants(g);
  const auto weights = [&](std::string_view name) -> std::optional<Tensor> {
    const auto known = std::ranges::find(table, name, &std::pair<std::string, Tensor>::first);
    return known == table.end() ? std::nullopt : std::optional(known->second);
  };
  const std::string text = print(g);
  const auto back = parse_graph(text, "", weights);
  if (!back) return failed("text", back.error());
  if (print(*back) != text) return Failure{"text", "printed again, the graph reads\n" + print(*back)};
  return {};
}

Problem program_is_right(const Program& p) {
  if (auto ok = verify(p); !ok) return failed("program verifier", ok.error());
  if (auto ok = check_memory_plan(p); !ok) return failed("memory plan", ok.error());
  const auto back = parse_program(print(p));
  if (!back) return failed("program text", back.error());
  if (print(*back) != print(p)) return Failure{"program text", "printed again, the program reads\n" + print(*back)};
  return {};
}

// The graph as a body of control flow, through the same passes.
Problem check_control(const Sample& s, const Way& w, const std::vector<BoundTensor>& want) {
  for (const auto& [stage, make] :
       {std::pair("branch", &as_branch), std::pair("known branch", &as_known_branch), std::pair("loop", &as_loop)}) {
    auto g = make(s.graph);
    if (!g) return failed(stage, g.error());
    if (auto ok = verify(*g); !ok) return failed(stage, ok.error());
    if (auto ok = run_passes(*g, w.passes); !ok) return failed(stage, ok.error());
    if (auto p = text_round_trip(*g)) return p;
    std::vector<Tensor> inputs = s.inputs;
    if (g->inputs.size() > inputs.size()) {
      inputs.push_back(*Tensor::make(kBool, {}));
      inputs.back().set_int(0, static_cast<int64_t>(w.fuse));
    }
    if (auto p = compare(stage, want, run_graph(*g, inputs))) return p;
  }
  return {};
}

PluginRegistry& plugins() {
  static PluginRegistry registry;
  return registry;
}

Result<const Hardware*> hardware(const std::string& name) {
  static std::map<std::string, Hardware> known;
  if (const auto it = known.find(name); it != known.end()) return &it->second;
  DLC_TRY(Hardware hw, load_hardware(name, {.search = {std::string(DLC_SOURCE_DIR) + "/hwdesc"}}));
  return &known.emplace(name, std::move(hw)).first->second;
}

std::vector<Port> ports(const Graph& g, bool outputs) {
  std::vector<Port> list;
  for (size_t i = 0; outputs && i < g.outputs.size(); ++i)
    list.push_back({g.output_names[i], g.value(g.outputs[i]).type});
  for (size_t i = 0; !outputs && i < g.inputs.size(); ++i)
    list.push_back({g.value(g.inputs[i]).name, g.value(g.inputs[i]).type});
  return list;
}

Result<std::vector<Tensor>> run_on(const CompiledModel& m, const std::string& device, int threads,
                                   const std::vector<Tensor>& inputs) {
  DLC_TRY(Session session, Session::open(m, plugins(), {.device = device, .threads = threads}));
  return session.run(inputs);
}

Result<CompiledModel> compiled(const Graph& g, Program program, const Hardware& hw) {
  DLC_TRY(Backend * backend, plugins().for_hardware(hw.description));
  CompiledModel m;
  m.name = "fuzz";
  m.symbols = g.symbols;
  m.inputs = ports(g, false);
  m.outputs = ports(g, true);
  DLC_TRY(CompiledPartition part, compile_partition(backend->name(), backend, std::move(program), hw, "{}"));
  m.partitions.push_back(std::move(part));
  return m;
}

Problem check_cpu(const Graph& g, const Program& program, const std::vector<Tensor>& inputs,
                  const std::vector<BoundTensor>& want, const Way& w) {
  const auto hw = hardware(w.hardware);
  if (!hw) return failed("hardware", hw.error());
  const auto m = compiled(g, program, **hw);
  if (!m) return failed("cpu", m.error());
  return compare("cpu", want, run_on(*m, "cpu:", w.threads, inputs));
}

// Integers of the accelerator and of the interpreter on the committed graph: equal.
Problem check_asic(const Sample& s, const Way& w) {
  const auto hw = hardware("asic");
  if (!hw) return failed("hardware", hw.error());
  static const auto recipes = load_recipes((*hw)->description);
  if (!recipes) return failed("recipes", recipes.error());
  Graph g = s.graph;
  if (auto ok = commit_numerics(g, *recipes); !ok) return failed("commit_numerics", ok.error());
  const auto want = run_graph(g, s.inputs);
  if (!want) return failed("committed graph", want.error());
  if (auto ok = run_passes(g, w.passes); !ok) return failed("passes", ok.error());
  const auto backend = plugins().find("asic");
  if (!backend) return failed("plugin", backend.error());
  const auto parts = partition(g, (*hw)->description, "asic", [&](const Program& p) {
    return (*backend)->match({p, (*hw)->text, (*hw)->file, (*hw)->params, "{}"});
  });
  if (!parts) return failed("partition", parts.error());
  CompiledModel m;
  m.name = "fuzz";
  m.inputs = ports(g, false);
  m.outputs = ports(g, true);
  for (const Partition& part : parts->partitions) {
    auto program = lower_partition(part);
    if (!program) return failed("program", program.error());
    auto c =
        compile_partition(part.device, part.device == "host" ? nullptr : *backend, *std::move(program), **hw, "{}");
    if (!c) return failed("asic", c.error());
    m.partitions.push_back(*std::move(c));
  }
  const bool on_device = std::ranges::any_of(m.partitions, [](const auto& p) { return p.device == "asic"; });
  const auto got = run_on(m, on_device ? "asic:func" : "interp:", w.threads, s.inputs);
  if (!got) return failed("asic", got.error());
  for (size_t i = 0; i < want->size(); ++i)
    for (int64_t e = 0; e < (*want)[i].elements(); ++e) {
      const double a = (*want)[i].get_double(e), b = (*got)[i].get_double(e);
      const bool close = (*want)[i].dtype().is_float() && std::abs(a - b) <= 1e-4 * (1 + std::abs(a));
      if (a != b && !close && !(std::isnan(a) && std::isnan(b)))
        return Failure{"asic", fmt::format("output {}, element {}: {} expected, {} computed", i, e, a, b)};
    }
  return {};
}

}  // namespace

Way random_way(uint64_t seed) {
  Random random(seed * 7919 + 17);
  Way w;
  const auto& all = graph_passes();
  if (random.chance(40)) {
    w.passes = default_graph_pipeline();
  } else {
    for (int64_t n = random.between(0, 6); n > 0; --n) w.passes.push_back(random.pick(all).name);
  }
  w.fuse = random.chance(85);
  w.hardware = random.pick(std::vector<std::string>{"x86-64", "x86-64-v3", "x86-64-v4"});
  w.threads = static_cast<int>(random.between(1, 2));
  return w;
}

std::string to_string(const Way& w) {
  return fmt::format("{}passes {}; {}, {} thread{}", w.fuse ? "" : "not fused; ", fmt::join(w.passes, ", "), w.hardware,
                     w.threads, w.threads == 1 ? "" : "s");
}

std::optional<Failure> check(const Sample& s, const Way& w, bool compile) {
  if (w.hardware == "asic") return check_asic(s, w);
  if (auto ok = verify(s.graph); !ok) return failed("verifier", ok.error());
  if (auto p = text_round_trip(s.graph)) return p;
  if (!with_constant_shapes(s)) return {};  // no such sample; a reduction tries them
  const auto want = expectations(s);
  if (!want) return {};
  if (auto p = compare("interpreter", *want, run_graph(s.graph, s.inputs))) return p;
  if (auto p = compare("interpreter in f64", *want, run_graph(s.graph, s.inputs, {.floats_as_double = true}))) return p;
  Graph g = s.graph;
  if (auto ok = run_passes(g, w.passes); !ok) return failed("passes", ok.error());
  if (auto p = text_round_trip(g)) return p;
  if (auto p = compare("passes", *want, run_graph(g, s.inputs))) return p;
  if (auto p = check_control(s, w, *want)) return p;
  auto program = lower_to_program(g, {.fuse = w.fuse});
  if (!program) return failed("program", program.error());
  if (auto p = program_is_right(*program)) return p;
  if (auto p = compare("program", *want, run_program(*program, s.inputs))) return p;
  if (!compile) return {};
  return check_cpu(g, *program, s.inputs, *want, w);
}

}  // namespace dlc::fuzz
