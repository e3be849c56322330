#include "tests/fuzz/case_file.h"

#include "dlc/pipeline/dlct.h"

namespace dlc::fuzz {

std::string case_text(const Sample& s, const Way& w, const std::string& comment) {
  Graph tensors;
  tensors.name = "inputs";
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const std::string& name = s.graph.value(s.graph.inputs[i]).name;
    tensors.outputs.push_back(tensors.add_constant(name, s.inputs[i]));
    tensors.output_names.push_back(name);
  }
  DlctFile f;
  for (size_t at = 0; at < comment.size();) {
    const size_t end = std::min(comment.find('\n', at), comment.size());
    f.preamble += "# " + comment.substr(at, end - at) + "\n";
    at = end + 1;
  }
  f.cases.push_back({.name = "inputs", .passes = {}, .input = print(tensors), .expected = {}});
  f.cases.push_back({.name = w.hardware, .passes = w.passes, .input = print(s.graph), .expected = {}});
  return print(f);
}

Result<Case> parse_case(std::string_view text, const std::string& file) {
  DLC_TRY(const DlctFile f, parse_dlct(text, file));
  if (f.cases.size() != 2) return fail({file}, "a case of the fuzzer has its inputs and its graph");
  DLC_TRY(const Graph tensors, parse_graph(f.cases[0].input, file));
  Case c;
  DLC_TRY(c.sample.inputs, run_graph(tensors, {}));
  DLC_TRY(c.sample.graph, parse_graph(f.cases[1].input, file));
  c.way.passes = f.cases[1].passes;
  c.way.hardware = f.cases[1].name;
  return c;
}

}  // namespace dlc::fuzz
