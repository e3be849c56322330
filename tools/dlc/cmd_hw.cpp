// dlc hw check | explain | emit: hardware descriptions.
#include <fmt/format.h>

#include "dlc/hw/check_machine.h"
#include "dlc/hw/emit.h"
#include "dlc/hw/load.h"
#include "dlc/io/file.h"
#include "dlc/map/partition.h"
#include "tools/dlc/cli.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"

namespace dlc::cli {

namespace {

constexpr uint64_t kLawSeed = 1;
constexpr int kLawSamples = 1000;

struct Options {
  std::string hw, as = "manual", output;
};

Result<int> check(const Options& o, Context& cx) {
  DLC_TRY(const Hardware h, load_hardware(o.hw, cx.hw_options()));
  const HwDescription& hw = h.description;
  DLC_CHECK(check_laws(hw, kLawSeed, kLawSamples));
  DLC_TRY(const auto records, records_for(hw));
  DLC_CHECK(check_rules(hw, records ? *records : RecordSet::builtin()));
  DLC_CHECK(check_machine(hw));
  // The plugin reads the description as for a model, which here has nothing in it.
  DLC_TRY(Backend * backend, cx.plugins().for_hardware(hw));
  DLC_CHECK(backend->match({Program{}, h.text, h.file, h.params, "{}"}));
  const Json result{{"file", hw.file},
                    {"name", hw.name},
                    {"family", hw.family},
                    {"plugin", hw.plugin},
                    {"arch_hash", hash_text(hw.arch_hash)},
                    {"full_hash", hash_text(hw.full_hash)},
                    {"instructions", hw.isa.insns.size()},
                    {"state", hw.state.size()},
                    {"memories", hw.memories.size()},
                    {"defs", hw.defs.size()},
                    {"rtl", has_rtl(hw)},
                    {"ok", true}};
  const std::string no_rtl =
      hw.rtl.files.empty() || has_rtl(hw) ? "" : fmt::format("; {} is not here: no RTL can be built", hw.rtl.files);
  cx.print(result, fmt::format("{}: {} is right: {} instructions, {} memories, {} defs, arch_hash {}{}\n", hw.file,
                               hw.name, hw.isa.insns.size(), hw.state.size() + hw.memories.size(), hw.defs.size(),
                               hash_text(hw.arch_hash), no_rtl));
  return kOk;
}

Result<int> explain(const Options& o, Context& cx) {
  DLC_TRY(const Hardware h, load_hardware(o.hw, cx.hw_options()));
  // A machine with instructions has a manual; of the others the description itself says most.
  const bool has_isa = h.description.isa.word_bits > 0;
  const std::string text = has_isa ? emit_manual(h.description) : h.text;
  cx.print({{"file", h.file},
            {"name", h.description.name},
            {"arch_hash", hash_text(h.description.arch_hash)},
            {"features", h.description.feature_names()},
            {"text", text}},
           text);
  return kOk;
}

Result<int> emit(const Options& o, Context& cx) {
  DLC_TRY(const HwDescription hw, load_hw(o.hw, cx.hw_options()));
  if (!o.output.empty()) DLC_CHECK(check_output(o.output, {hw.file}));
  if (hw.isa.word_bits == 0)
    return fail({hw.file, 0, 0, {}}, fmt::format("{} has no instructions: there is nothing to emit", hw.name),
                "dlc hw explain prints the description");
  const std::string text = o.as == "sv"    ? emit_systemverilog(hw)
                           : o.as == "c"   ? emit_c_header(hw)
                           : o.as == "cpp" ? emit_cpp_header(hw)
                                           : emit_manual(hw);
  if (!o.output.empty()) {
    DLC_CHECK(write_file(o.output, text));
    cx.print({{"file", hw.file}, {"as", o.as}, {"output", o.output}}, fmt::format("{}\n", o.output));
    return kOk;
  }
  cx.print({{"file", hw.file}, {"as", o.as}, {"text", text}}, text);
  return kOk;
}

}  // namespace

void add_hw(CLI::App& app, Context& cx) {
  CLI::App* hw = app.add_subcommand("hw", "Hardware descriptions: check, explain, emit");
  hw->require_subcommand(1);
  const auto add = [&](const char* name, const char* summary, Result<int> (*f)(const Options&, Context&)) {
    auto o = std::make_shared<Options>();
    CLI::App* sub = add_command(*hw, cx, name, summary);
    sub->add_option("description", o->hw, "A file, a name, or native; with params: asic.yaml,R=8")
        ->required()
        ->check(hw_argument());
    sub->callback([o, &cx, f] { cx.action = [o, &cx, f] { return f(*o, cx); }; });
    return std::pair(sub, o);
  };
  add("check", "Say whether a description is right: text, references, examples, laws", check);
  add("explain", "Print the manual of a machine", explain);
  add_build_rtl(*hw, cx);
  auto [sub, o] = add("emit", "Write what is derived from a description", emit);
  sub->add_option("--as", o->as, "sv, c, cpp or manual")->check(CLI::IsMember({"sv", "c", "cpp", "manual"}));
  sub->add_option("-o,--output", o->output, "The file to write")->check(file_name());
}

}  // namespace dlc::cli
