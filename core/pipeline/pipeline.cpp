#include "dlc/pipeline/pipeline.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>

#include "dlc/graph/state.h"
#include "dlc/kernel/normal_form.h"
#include "dlc/map/fill_lanes.h"
#include "dlc/numerics/commit.h"
#include "dlc/program/alias.h"
#include "dlc/program/layout.h"
#include "dlc/program/state.h"

namespace dlc {

namespace {

Result<> commit(Ir& ir, const PassArgument& machine, PassContext& context) {
  if (machine.text.empty())
    return fail({}, "commit_numerics is for a machine", "commit_numerics(asic.yaml), or another description");
  DLC_TRY(const HwDescription hw, load_hw(machine.text, machine.search));
  DLC_TRY(auto recipes, load_recipes(hw));
  DLC_TRY(const NumericsReport report, commit_numerics(std::get<Graph>(ir), std::move(recipes)));
  context.counts["committed"] = static_cast<int64_t>(report.committed.size());
  context.counts["kept"] = static_cast<int64_t>(report.kept.size());
  return {};
}

Result<> lay_taps(Ir& ir, const PassArgument& machine, PassContext& context) {
  if (machine.text.empty())
    return fail({}, "fill_lanes is for a machine", "fill_lanes(asic.yaml), or another description");
  DLC_TRY(const HwDescription hw, load_hw(machine.text, machine.search));
  DLC_TRY(context.counts["convolutions"], fill_lanes(std::get<Graph>(ir), hw));
  return {};
}

Result<> lower(Ir& ir, bool fuse) {
  DLC_TRY(Program p, lower_to_program(std::get<Graph>(ir), {.fuse = fuse, .max_nodes = 32, .may_join = {}}));
  ir = std::move(p);
  return {};
}

Result<> layouts(Ir& ir, const PassArgument& argument, PassContext& context) {
  LayoutOptions options;
  const std::string& block = argument.text;
  const char* end = block.data() + block.size();
  if (!block.empty()) {
    const auto [at, error] = std::from_chars(block.data(), end, options.block);
    if (error != std::errc() || at != end || options.block < 2 || options.block > 1024)
      return fail({}, fmt::format("layouts({}): a block is 2 to 1024 elements", block), "layouts(16)");
  }
  DLC_TRY(context.counts["buffers"], assign_layouts(std::get<Program>(ir), options));
  return {};
}

Result<> declare(Ir& ir, const PassArgument& argument) {
  if (argument.text.empty())
    return fail({}, "declare_state is for an input and an output", "declare_state(past=present)");
  return declare_states(std::get<Graph>(ir), {argument.text});
}

Result<> aliases(Ir& ir, PassContext& context) {
  DLC_TRY(const AliasStats stats, alias_sets(std::get<Program>(ir)));
  context.counts = {
      {"views", stats.views}, {"in_place", stats.in_place}, {"calls", stats.calls}, {"refused", stats.refused}};
  return {};
}

Result<> plan(Ir& ir) {
  auto& p = std::get<Program>(ir);
  DLC_CHECK(plan_memory(p));
  return check_memory_plan(p);
}

std::vector<IrPass> make_passes() {
  using enum IrLevel;
  std::vector<IrPass> passes;
  for (const PassInfo& pass : graph_passes())
    passes.push_back(
        {pass.name, pass.summary, "", graph, graph,
         [run = pass.run](Ir& ir, const PassArgument&, PassContext& cx) { return run(std::get<Graph>(ir), cx); }});
  passes.push_back({"commit_numerics", "quantised meaning becomes the integers of a machine", "its description", graph,
                    graph, commit});
  passes.push_back({"declare_state", "an output is an input of the next run", "past=present", graph, graph,
                    [](Ir& ir, const PassArgument& argument, PassContext&) { return declare(ir, argument); }});
  passes.push_back({"fill_lanes", "taps of a convolution go into channels that a machine's vectors leave empty",
                    "its description", graph, graph, lay_taps});
  passes.push_back({"lower", "fusion groups become kernels, values between them buffers with a place", "", graph,
                    program, [](Ir& ir, const PassArgument&, PassContext&) { return lower(ir, true); }});
  passes.push_back({"lower_unfused", "the same with a kernel for every node", "", graph, program,
                    [](Ir& ir, const PassArgument&, PassContext&) { return lower(ir, false); }});
  passes.push_back({"normalise", "every reduction becomes a statement of its own over its free loops", "", kernel,
                    kernel, [](Ir& ir, const PassArgument&, PassContext&) -> Result<> {
                      DLC_TRY(ir, normalise(std::get<Kernel>(ir)));
                      return {};
                    }});
  passes.push_back({"inline_temporaries", "element-wise temporaries go where they are read", "", kernel, kernel,
                    [](Ir& ir, const PassArgument&, PassContext&) -> Result<> {
                      ir = inline_temporaries(std::get<Kernel>(ir), {});
                      return {};
                    }});
  passes.push_back({"states_in_place", "states are updated where they are", "", program, program,
                    [](Ir& ir, const PassArgument&, PassContext& cx) -> Result<> {
                      DLC_TRY(cx.counts["states"], states_in_place(std::get<Program>(ir)));
                      return {};
                    }});
  passes.push_back({"alias_sets", "views instead of copies, results in the place of operands", "", program, program,
                    [](Ir& ir, const PassArgument&, PassContext& cx) { return aliases(ir, cx); }});
  passes.push_back(
      {"layouts", "activations in blocks of channels with a halo", "elements of a block", program, program, layouts});
  passes.push_back({"plan_memory", "offsets in one arena for buffers that are not needed at the same time", "", program,
                    program, [](Ir& ir, const PassArgument&, PassContext&) { return plan(ir); }});
  passes.push_back({"share_kernels", "kernels that differ in names only become one", "", program, program,
                    [](Ir& ir, const PassArgument&, PassContext&) -> Result<> {
                      share_kernels(std::get<Program>(ir));
                      return {};
                    }});
  return passes;
}

struct Step {
  const IrPass* pass = nullptr;
  PassArgument argument;
};

// "layouts(8)": the pass and its argument.
Result<Step> find_step(const std::string& text) {
  const size_t open = text.find('(');
  const std::string name = text.substr(0, open);
  if (open != std::string::npos && !text.ends_with(')'))
    return fail({}, fmt::format("pass '{}': the argument has no ')'", text));
  Step step;
  if (open != std::string::npos) step.argument.text = text.substr(open + 1, text.size() - open - 2);
  std::vector<std::string> names;
  for (const IrPass& p : all_passes()) {
    if (p.name == name) step.pass = &p;
    names.push_back(p.name);
  }
  if (step.pass == nullptr) {
    const std::string near = nearest(name, names);
    return fail({}, "no pass is called '" + name + "'",
                near.empty() ? "`dlc opt --list` names them" : "did you mean '" + near + "'?");
  }
  if (!step.argument.text.empty() && step.pass->argument.empty())
    return fail({}, fmt::format("pass {} takes no argument", name), name);
  return step;
}

IrLevel level_of(const Ir& ir) { return static_cast<IrLevel>(ir.index()); }

}  // namespace

std::string_view to_string(IrLevel l) {
  return l == IrLevel::graph ? "graph" : l == IrLevel::kernel ? "kernel" : "program";
}

const std::vector<IrPass>& all_passes() {
  static const std::vector<IrPass> kPasses = make_passes();
  return kPasses;
}

Result<Ir> parse_ir(std::string_view text, const std::string& file) {
  // The first line that is neither empty nor a comment names the level; what names none is read as a graph, whose
  // parser says what is wrong.
  size_t at = text.find_first_not_of(" \t\r\n");
  while (at != std::string_view::npos && text[at] == '#')
    at = text.find_first_not_of(" \t\r\n", std::min(text.find('\n', at), text.size()));
  const std::string_view head = at == std::string_view::npos ? std::string_view() : text.substr(at);
  if (head.starts_with("dlc.kernel")) {
    DLC_TRY(Kernel k, parse_kernel(text, file));
    return Ir(std::move(k));
  }
  if (head.starts_with("dlc.program")) {
    DLC_TRY(Program p, parse_program(text, file));
    return Ir(std::move(p));
  }
  DLC_TRY(Graph g, parse_graph(text, file));
  return Ir(std::move(g));
}

std::string print(const Ir& ir) {
  return std::visit([](const auto& x) { return print(x); }, ir);
}

Result<> verify(const Ir& ir) {
  return std::visit([](const auto& x) { return verify(x); }, ir);
}

Result<> check_passes(const std::vector<std::string>& passes) {
  for (const std::string& text : passes) DLC_CHECK(find_step(text));
  return {};
}

Result<std::vector<PassTiming>> run_pipeline(Ir& ir, const std::vector<std::string>& passes,
                                             const HwLoadOptions& search) {
  std::vector<Step> steps;
  IrLevel level = level_of(ir);
  for (const std::string& text : passes) {
    DLC_TRY(Step step, find_step(text));
    step.argument.search = search;
    if (step.pass->takes != level)
      return fail({},
                  fmt::format("pass {} takes a {}, here is a {}", step.pass->name, to_string(step.pass->takes),
                              to_string(level)),
                  step.pass->takes == IrLevel::program && level == IrLevel::graph ? "run 'lower' before it" : "");
    level = step.pass->leaves;
    steps.push_back(std::move(step));
  }
  std::vector<PassTiming> timings;
  for (const Step& step : steps) {
    PassContext context;
    const auto start = std::chrono::steady_clock::now();
    DLC_CHECK(step.pass->run(ir, step.argument, context));
    if (auto valid = verify(ir); !valid) {
      Error error({}, fmt::format("pass {} left a {} that is not valid", step.pass->name, to_string(level_of(ir))),
                  "this is a defect of the pass");
      error.add(std::move(valid).error());
      return std::unexpected(std::move(error));
    }
    const std::chrono::duration<double, std::milli> ms = std::chrono::steady_clock::now() - start;
    timings.push_back({step.pass->name, ms.count(), std::move(context.counts)});
  }
  return timings;
}

}  // namespace dlc
