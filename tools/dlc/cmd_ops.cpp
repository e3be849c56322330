// dlc ops: which ops of ONNX there are, what they become, on which element types and where that runs. Everything is
// derived: from the importer's tables, the records, what machines match, and the lists of conformance results. As
// Markdown it is docs/ops.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "dlc/io/file.h"
#include "dlc/numerics/commit.h"
#include "frontends/onnx/onnx.h"
#include "tools/dlc/conform.h"
#include "tools/dlc/model.h"
#include "tools/dlc/output.h"
#include "tools/dlc/record_support.h"

namespace dlc::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string lists, output;
  std::vector<std::string> machines;
  bool markdown = false;
};

// What the tests of all suites say of one op.
struct Tested {
  std::set<std::string> records, types;
  int passed = 0, all = 0;
};

// LIST.txt has the results of a suite, LIST.uses beside it what its tests are made of.
Result<std::map<std::string, Tested>> read_lists(const std::string& folder) {
  std::map<std::string, Tested> out;
  if (folder.empty()) return out;
  std::vector<std::string> files;
  std::error_code ec;
  for (const auto& e : fs::directory_iterator(folder, ec))
    if (e.path().extension() == ".uses") files.push_back(e.path().string());
  if (files.empty())
    return fail({folder, 0, 0, {}}, "has no .uses file",
                "dlc conform --write-list L.txt --write-uses L.uses writes both");
  std::ranges::sort(files);
  for (const std::string& file : files) {
    DLC_TRY(const OpUses uses, read_uses(file));
    DLC_TRY(const Expectations results, read_expectations(fs::path(file).replace_extension(".txt").string()));
    for (const auto& [test, list] : uses) {
      const auto known = results.find(test);
      const bool passes = known != results.end() && known->second.result == Verdict::Result::passed;
      std::set<std::string> counted;
      for (const OpUse& u : list) {
        Tested& t = out[u.op];
        if (counted.insert(u.op).second) {
          ++t.all;
          t.passed += passes;
        }
        if (!passes) continue;
        t.records.insert(u.records.begin(), u.records.end());
        if (!u.type.empty()) t.types.insert(u.type);
      }
    }
  }
  return out;
}

struct Machine {
  Hardware hardware;
  Recipes recipes;
  Backend* backend = nullptr;
  bool runs(const Record& r) const {
    const AskDevice ask = [this](const Program& p) {
      return backend->match({p, hardware.text, hardware.file, hardware.params, "{}"});
    };
    return runs_quantised(r, hardware.description, recipes, backend->name(), ask);
  }
};

Json ops_json(const std::map<std::string, Tested>& tested) {
  std::map<std::pair<std::string, std::string>, std::vector<OnnxOp>>
      by_name;  // an op may mean another thing in old opsets
  for (OnnxOp& o : onnx_ops()) by_name[{o.domain, o.name}].push_back(std::move(o));
  Json out = Json::array();
  for (const auto& [key, entries] : by_name) {
    const auto& [domain, name] = key;
    const auto found = tested.find(domain.empty() ? name : fmt::format("{}.{}", domain, name));
    Tested t = found == tested.end() ? Tested{} : found->second;
    int first = entries[0].min_opset, last = 0;
    for (const OnnxOp& o : entries) {
      first = std::min(first, o.min_opset);
      last = std::max(last, o.max_opset);
      if (!o.record.empty()) t.records.insert(o.record);
    }
    out.push_back({{"domain", domain},
                   {"name", name},
                   {"first_opset", first},
                   {"last_opset", last},
                   {"records", t.records},
                   {"types", t.types},
                   {"passed", t.passed},
                   {"tests", t.all}});
  }
  return out;
}

Json records_json(const std::vector<Machine>& machines, const Context& cx) {
  const RecordSet& set = RecordSet::builtin();
  const auto names = set.names();
  Progress progress(cx, "records", names.size());
  Json out = Json::array();
  for (const std::string& name : names) {
    const Record& r = *set.find(name);
    Json j{{"name", name}, {"types", types_of(set, r)}, {"extern", r.is_extern()}, {"machines", Json::array()}};
    for (const Machine& m : machines)
      if (m.runs(r)) j["machines"].push_back(m.hardware.description.name);
    out.push_back(std::move(j));
    progress.step(name);
  }
  return out;
}

std::string joined(const Json& list) {
  return fmt::format("{}", fmt::join(list.get<std::vector<std::string>>(), ", "));
}

std::string markdown(const Json& ops, const Json& records, const std::vector<Machine>& machines) {
  std::string s =
      "# Ops\n\nMade by `dlc ops --markdown` from the importer's tables, the op records, what machines match, and the "
      "lists of "
      "results in\n`tests/conformance`; `ctest -R ops_page` fails where it is not what dlc says.\n\n## ONNX\n\nWhat an "
      "op becomes, "
      "and on which element types, as its passing tests have it: every test of the lists that the op is\nin. They pass "
      "on `interp:` and "
      "on `cpu:`. Without tests there is only what the importer's table says.\n\n";
  s += "| op | opsets | records | types | tests passed |\n|---|---|---|---|---|\n";
  for (const Json& j : ops) {
    const std::string domain = j["domain"];
    const int last = j["last_opset"];
    const std::string opsets = !domain.empty() ? "" : fmt::format("{}–{}", j["first_opset"].get<int>(), last);
    const int all = j["tests"];
    s += fmt::format("| {}{} | {} | {} | {} | {} |\n", domain.empty() ? "" : domain + ".", j["name"].get<std::string>(),
                     opsets, joined(j["records"]), joined(j["types"]),
                     all == 0 ? "" : fmt::format("{} of {}", j["passed"].get<int>(), all));
  }
  s += "\n## Records\n\nThe element types that the first operand of a record may have, found by trying. `interp:` runs "
       "every record; "
       "`cpu:` compiles those\nthat an index expression states and calls the reference of the others.";
  if (!machines.empty())
    s += " A machine with integers runs a record when it takes one of\nsome uses of it between QuantizeLinear and "
         "DequantizeLinear in 8 bits.";
  s += "\n\n| record | types | `cpu:` |";
  for (const Machine& m : machines) s += fmt::format(" {} |", m.hardware.description.name);
  s += "\n|---|---|---|";
  for (size_t i = 0; i < machines.size(); ++i) s += "---|";
  s += "\n";
  for (const Json& j : records) {
    s += fmt::format("| {} | {} | {} |", j["name"].get<std::string>(), joined(j["types"]),
                     j["extern"].get<bool>() ? "reference" : "compiled");
    for (const Machine& m : machines) {
      const auto runs = j["machines"].get<std::vector<std::string>>();
      s += std::ranges::count(runs, m.hardware.description.name) > 0 ? " 8 bits |" : " |";
    }
    s += "\n";
  }
  return s;
}

std::string plain(const Json& ops) {
  std::string s;
  for (const Json& j : ops) {
    const std::string domain = j["domain"];
    s += fmt::format("{:<40} {}\n", (domain.empty() ? "" : domain + ".") + j["name"].get<std::string>(),
                     joined(j["records"]));
  }
  return s;
}

Result<int> list_ops(const Options& o, Context& cx) {
  if (!o.output.empty()) DLC_CHECK(check_output(o.output, {}));
  DLC_TRY(const auto tested, read_lists(o.lists));
  std::vector<Machine> machines;
  for (const std::string& name : o.machines) {
    DLC_TRY(Hardware hardware, load_hardware(name, cx.hw_options()));
    if (hardware.description.recipes.empty())
      return fail({hardware.file, 0, 0, {}}, "has no recipes: it computes what it is given, as cpu: does");
    DLC_TRY(Backend * backend, cx.plugins().for_hardware(hardware.description));
    DLC_TRY(auto recipes, load_recipes(hardware.description));
    machines.push_back({std::move(hardware), std::move(recipes), backend});
  }
  const Json ops = ops_json(tested);
  const bool wants_records = o.markdown || cx.json;
  const Json records = wants_records ? records_json(machines, cx) : Json::array();
  const std::string text = o.markdown ? markdown(ops, records, machines) : plain(ops);
  Json result{{"ops", ops}, {"records", records}};
  if (o.output.empty()) {
    cx.print(result, text);
    return kOk;
  }
  DLC_CHECK(write_file(o.output, text));
  result["output"] = o.output;
  cx.print(result, fmt::format("{} ops, {} records -> {}\n", ops.size(), records.size(), o.output));
  return kOk;
}

}  // namespace

void add_ops(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub = add_command(app, cx, "ops", "List the ops of ONNX that are supported, and what they become");
  sub->add_flag("--markdown", o->markdown, "As the page docs/ops.md, with the records");
  sub->add_option("--lists", o->lists, "A folder of conformance results: L.txt, and L.uses beside it")
      ->check(CLI::ExistingDirectory)
      ->check(file_name());
  sub->add_option("--hw", o->machines, "A machine with recipes, whose records are told apart")
      ->allow_extra_args(false)
      ->check(hw_argument());
  sub->add_option("-o,--output", o->output, "The file to write")->check(file_name());
  sub->callback([o, &cx] { cx.action = [o, &cx] { return list_ops(*o, cx); }; });
}

}  // namespace dlc::cli
