// Runs every .dlct file of this folder; see README.md here.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "dlc/pipeline/dlct.h"
#include "dlc/pipeline/pipeline.h"
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

const HwLoadOptions kMachines{.search = {DLC_SOURCE_DIR "/hwdesc"}};

// The third value of every symbol's range, or its last.
Bindings symbol_values(const Ranges& symbols) {
  Bindings values;
  for (const auto& [name, range] : symbols) {
    const int64_t step = range.divisible_by;
    const int64_t lo = range.bounds.lo == Interval::kNegInf ? 1 : range.bounds.lo;
    const int64_t first = (lo + step - 1) / step * step;
    values[name] = first + 2 * step <= range.bounds.hi ? first + 2 * step : range.bounds.hi / step * step;
  }
  return values;
}

struct Signature {
  std::vector<TensorType> inputs;
  Ranges symbols;
};
Signature signature(const Ir& ir) {
  Signature s;
  if (const auto* g = std::get_if<Graph>(&ir)) {
    for (const ValueId v : g->inputs) s.inputs.push_back(g->value(v).type);
    s.symbols = g->symbols;
  } else if (const auto* k = std::get_if<Kernel>(&ir)) {
    for (const int t : k->inputs)
      s.inputs.push_back({k->tensors[static_cast<size_t>(t)].dtype, k->tensors[static_cast<size_t>(t)].shape});
  } else {
    const auto& p = std::get<Program>(ir);
    for (const auto& b : p.buffers)
      if (b.kind == BufferKind::input) s.inputs.push_back(value_type(b));
    s.symbols = p.symbols;
  }
  return s;
}

Tensor seeded(const TensorType& type, const Bindings& symbols, std::mt19937& random) {
  std::vector<int64_t> shape;
  for (const Expr& d : type.shape) shape.push_back(evaluate(d, symbols).value());
  REQUIRE_OK(Tensor t, Tensor::make(type.dtype, shape));
  for (int64_t i = 0; i < t.elements(); ++i) {
    if (t.dtype().is_float())
      t.set_double(i, static_cast<double>(random() % 2001) / 500 - 2);
    else
      t.set_int(i, static_cast<int64_t>(random() % 3));  // small, so that it may be an index
  }
  return t;
}

// Constants that the text of a program only names.
void give_weights(Ir& ir) {
  auto* p = std::get_if<Program>(&ir);
  if (!p) return;
  std::mt19937 random(11);
  for (const auto& b : p->buffers)
    if (b.kind == BufferKind::constant && !b.alias && !p->weight(b.name))
      p->weights.emplace_back(b.name, seeded(b.type, symbol_values(p->symbols), random));
}

Result<std::vector<Tensor>> run(const Ir& ir, std::span<const Tensor> inputs, const InterpOptions& options) {
  if (const auto* g = std::get_if<Graph>(&ir)) return run_graph(*g, inputs, options);
  if (const auto* k = std::get_if<Kernel>(&ir)) return run_kernel(*k, inputs, options);
  return run_program(std::get<Program>(ir), inputs, options);
}

// Graphs and kernels run in doubles, programs as they are.
void check_same_results(const Ir& before, const Ir& after) {
  std::mt19937 random(7);
  const Signature s = signature(before);
  std::vector<Tensor> inputs;
  for (const TensorType& type : s.inputs) inputs.push_back(seeded(type, symbol_values(s.symbols), random));
  const bool doubles = !std::holds_alternative<Program>(before) && !std::holds_alternative<Program>(after);
  const InterpOptions options{.floats_as_double = doubles};
  const auto first = run(before, inputs, options), second = run(after, inputs, options);
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

// A graph of a machine's recipes is read with them only.
bool has_own_records(const Ir& ir) {
  const auto* g = std::get_if<Graph>(&ir);
  return g && g->records;
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
        const DlctOutcome outcome = run_case(c, kMachines);
        if (!update_wanted()) {
          CHECK(c.expects_error == outcome.is_error);
          CHECK(c.expected == outcome.text);
        }
        if (!outcome.is_error) {
          REQUIRE_OK(Ir before, parse_ir(c.input));
          give_weights(before);
          Ir after = before;
          REQUIRE(run_pipeline(after, c.passes, kMachines).has_value());
          CHECK(print(after) == outcome.text);
          check_same_results(before, after);
          if (has_own_records(after)) return;  // the section is done
          REQUIRE_OK(const Ir again, parse_ir(outcome.text));
          CHECK(print(again) == outcome.text);
        }
      }
    }
    if (!update_wanted()) continue;
    for (DlctCase& c : file.cases) {
      const DlctOutcome outcome = run_case(c, kMachines);
      c.expected = outcome.text;
      c.expects_error = outcome.is_error;
    }
    const std::string updated = print(file);
    if (updated != text) std::ofstream(path, std::ios::binary) << updated;
  }
}

TEST_CASE("every pass has a case", "[ir]") {
  std::set<std::string> covered;
  for (const auto& path : dlct_files()) {
    REQUIRE_OK(DlctFile file, parse_dlct(read_file(path), path.filename().string()));
    for (const DlctCase& c : file.cases)
      for (const std::string& pass : c.passes)
        if (!c.expects_error) covered.insert(pass.substr(0, pass.find('(')));
  }
  for (const IrPass& pass : all_passes()) {
    INFO(pass.name);
    CHECK(covered.contains(pass.name));
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
