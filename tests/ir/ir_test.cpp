// Runs every .dlct file of this folder; see README.md here.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "dlc/graph/graph.h"
#include "dlc/passes/dlct.h"
#include "dlc/passes/pass.h"
#include "dlc_test/catch.h"

using namespace dlc;

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

std::vector<std::filesystem::path> dlct_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(DLC_SOURCE_DIR "/tests/ir"))
    if (entry.path().extension() == ".dlct") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

// The third value of every symbol's range, or its last.
std::map<std::string, int64_t, std::less<>> symbol_values(const Graph& g) {
  std::map<std::string, int64_t, std::less<>> values;
  for (const auto& [name, range] : g.symbols) {
    const int64_t step = range.divisible_by;
    const int64_t lo = range.bounds.lo == Interval::kNegInf ? 1 : range.bounds.lo;
    const int64_t first = (lo + step - 1) / step * step;
    values[name] = first + 2 * step <= range.bounds.hi ? first + 2 * step : range.bounds.hi / step * step;
  }
  return values;
}

std::vector<Tensor> seeded_inputs(const Graph& g) {
  std::mt19937 random(7);
  const auto symbols = symbol_values(g);
  std::vector<Tensor> inputs;
  for (ValueId v : g.inputs) {
    std::vector<int64_t> shape;
    for (const Expr& d : g.value(v).type.shape) shape.push_back(evaluate(d, symbols).value());
    REQUIRE_OK(Tensor t, Tensor::make(g.value(v).type.dtype, shape));
    for (int64_t i = 0; i < t.elements(); ++i) {
      if (t.dtype().is_float())
        t.set_double(i, static_cast<double>(random() % 2001) / 500 - 2);
      else
        t.set_int(i, static_cast<int64_t>(random() % 3));  // small, so that it may be an index
    }
    inputs.push_back(std::move(t));
  }
  return inputs;
}

void check_same_results(const Graph& before, const Graph& after) {
  const auto inputs = seeded_inputs(before);
  const InterpOptions options{.floats_as_double = true};
  const auto first = run_graph(before, inputs, options), second = run_graph(after, inputs, options);
  if (!first && !second) {  // the passes keep an error of the run, too
    CHECK(to_string(first.error()) == to_string(second.error()));
    return;
  }
  REQUIRE_OK(const auto expected, first);
  REQUIRE_OK(const auto results, second);
  REQUIRE(results.size() == expected.size());
  for (size_t r = 0; r < results.size(); ++r) {
    REQUIRE(results[r].dtype() == expected[r].dtype());
    REQUIRE(results[r].shape() == expected[r].shape());
    for (int64_t i = 0; i < results[r].elements(); ++i) {
      const double a = expected[r].get_double(i), b = results[r].get_double(i);
      const bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-5 * (1 + std::abs(a));
      if (!same) FAIL("result " << r << ", element " << i << ": " << a << " before, " << b << " after the passes");
    }
  }
}

bool update_wanted() {
  const char* update = std::getenv("DLC_UPDATE");
  return update && std::string_view(update) == "1";
}

}  // namespace

TEST_CASE("cases of .dlct files", "[ir]") {
  const auto files = dlct_files();
  REQUIRE_FALSE(files.empty());
  for (const auto& path : files) {
    const std::string text = read_file(path);
    REQUIRE_OK(DlctFile file, parse_dlct(text, path.filename().string()));
    for (DlctCase& c : file.cases) {
      DYNAMIC_SECTION(path.filename().string() << ": " << c.name) {
        const DlctOutcome outcome = run_case(c);
        if (!update_wanted()) {
          CHECK(c.expects_error == outcome.is_error);
          CHECK(c.expected == outcome.text);
        }
        if (!outcome.is_error) {
          REQUIRE_OK(Graph before, parse_graph(c.input));
          REQUIRE_OK(Graph after, parse_graph(outcome.text));
          CHECK(print(after) == outcome.text);
          check_same_results(before, after);
        }
      }
    }
    if (!update_wanted()) continue;
    for (DlctCase& c : file.cases) {
      const DlctOutcome outcome = run_case(c);
      c.expected = outcome.text;
      c.expects_error = outcome.is_error;
    }
    const std::string updated = print(file);
    if (updated != text) std::ofstream(path, std::ios::binary) << updated;
  }
}

TEST_CASE("a .dlct file prints as it was written", "[ir]") {
  for (const auto& path : dlct_files()) {
    const std::string text = read_file(path);
    REQUIRE_OK(DlctFile file, parse_dlct(text, path.filename().string()));
    CHECK(print(file) == text);
  }
}

TEST_CASE("errors in .dlct files", "[ir]") {
  REQUIRE_ERROR(parse_dlct("nonsense\n", "f.dlct"), "f.dlct:1: error: expected a comment or '=== name of a case'");
  REQUIRE_ERROR(parse_dlct("=== a\n--- output\n", "f.dlct"), "'--- output' comes after '--- input'");
  REQUIRE_ERROR(parse_dlct("=== a\npasses: dce\n", "f.dlct"), "case 'a' has no input");
  REQUIRE_ERROR(parse_dlct("=== a\nwhat\n", "f.dlct"), "expected 'passes: a, b' or '--- input'");
}
