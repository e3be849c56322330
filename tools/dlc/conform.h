// A folder of tests in ONNX's layout, and the list of what is expected of each.
//
//   SUITE/test_abs/model.onnx, SUITE/test_abs/test_data_set_0/{input_0.pb, output_0.pb}
//
// A list is text, one test a line, in order of names:
//
//   pass test_abs ulp 0
//   refuse test_strnormalizer_nostopwords_nochangecase: element type STRING is not supported
//   differ test_adam_multiple: the data was made with an epsilon that the node does not state
//
// `ulp` is a ceiling of the largest error, a power of two; up to 4 machines may differ. Every direction is strict: a
// test that passes though a refusal is expected is as wrong as one that fails. `differ` is for tests whose own data is
// wrong, with the reason.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/plugin/compiled.h"
#include "tools/dlc/op_uses.h"

namespace CLI {
class App;
}

namespace dlc::cli {

class Context;
void add_conform(CLI::App& app, Context& cx);

struct Verdict {
  enum class Result : uint8_t { passed, failed, refused } result = Result::passed;
  std::string reason;               // unless it passed
  double ulp = 0;                   // the largest error of an element, in units of the expected one's last place
  std::vector<std::string> folded;  // inputs that became constants: the graph's structure depends on them
  std::vector<OpUse> uses;          // of the model of the first data
  double ms = 0;
};
const char* to_string(Verdict::Result r);

// What `got` is against `want`: a float may differ by ONNX's own 1e-7 + 1e-3 |want|, anything else not at all. Puts the
// largest error into `ulp`; says what is wrong, or nothing.
std::string compare(const Tensor& got, const Tensor& want, double& ulp);

// Names of the tests of a suite, sorted.
Result<std::vector<std::string>> list_tests(const std::string& suite);

// Runs the tests of one suite on one device.
struct TestRunner {
  std::string suite, device;
  // "known": the inputs' values are known when compiling. "unknown": only the lengths of sequences are.
  // "constant": every input is a constant. "symbolic": every extent above 1 of an input is a symbol, and an input whose
  // elements decide the rank of a value, or which nodes there are, is known (Verdict::folded names it).
  std::string variant = "known";
  PluginRegistry* plugins = nullptr;
  std::function<Result<Graph>(Graph)> optimise;         // for interp:
  std::function<Result<CompiledModel>(Graph)> compile;  // for any other device
  Verdict run(const std::string& name) const;
};

struct Expectation {
  Verdict::Result result = Verdict::Result::passed;
  double ulp = 0;
  std::string reason;
};
using Expectations = std::map<std::string, Expectation>;
Result<Expectations> read_expectations(const std::string& file);
// A list that these verdicts satisfy; ceilings and the reasons of `differ` of an older list are kept.
std::string print_expectations(const std::map<std::string, Verdict>& verdicts, const Expectations& older);
// One line for each test that is not as expected. `whole`: every test of the list was run.
std::vector<std::string> surprises(const Expectations& want, const std::map<std::string, Verdict>& got, bool whole);

}  // namespace dlc::cli
