#include "tools/dlc/conform.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>

#include "dlc/io/file.h"
#include "frontends/onnx/onnx.h"

namespace dlc::cli {

const char* to_string(Verdict::Result r) {
  switch (r) {
    case Verdict::Result::passed:
      return "passed";
    case Verdict::Result::failed:
      return "failed";
    default:
      return "refused";
  }
}

namespace {

constexpr double kAbsolute = 1e-7, kRelative = 1e-3;  // of ONNX's own runner

// The distance from x to the next number of its type.
double last_place(double x, DType t) {
  const int bits = t == kBF16 ? 8 : t == kF16 ? 11 : t == kF64 ? 53 : 24;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int least = t == kF16 ? -13 : t == kF64 ? -1021 : -125;
  return std::ldexp(1.0, std::max(exponent, least) - bits);
}

// The message without file and hint, on one line: what a list can hold.
std::string reason_of(const Error& e, const std::string& folder) {
  std::string s(e.message());
  if (e.diagnostics.size() > 1) s += fmt::format(" (and {} more)", e.diagnostics.size() - 1);
  for (size_t at = 0; (at = s.find(folder)) != std::string::npos;) s.erase(at, folder.size());
  std::ranges::replace(s, '\n', ' ');
  return s;
}

// 16-bit floats have no numpy type: old test data keeps bf16 as its bits in u16.
Result<Tensor> as_type(const Tensor& t, DType wanted) {
  if (wanted != kBF16 || t.dtype() != kU16) return t;
  return Tensor::wrap(kBF16, t.shape(), t.bytes(), std::make_shared<Tensor>(t));
}

class Case {
 public:
  Case(const TestRunner& runner, const std::string& name)
      : runner_(runner), folder_((std::filesystem::path(runner.suite) / name).string()) {}

  Verdict run() {
    const auto start = std::chrono::steady_clock::now();
    if (auto ops = read_onnx_ops(folder_ + "/model.onnx"))  // until the import knows more
      for (std::string& op : *ops) verdict_.uses.push_back({std::move(op), {}, {}});
    auto signature = read_onnx_signature(folder_ + "/model.onnx");
    if (!signature) return refused(signature.error());
    for (int set = 0; set == 0 || std::filesystem::exists(data(set)); ++set) {
      run_set(*signature, set);
      if (verdict_.result != Verdict::Result::passed) break;
    }
    verdict_.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return verdict_;
  }

 private:
  std::string data(int set) const { return fmt::format("{}/test_data_set_{}", folder_, set); }

  Verdict refused(const Error& e) {
    verdict_.result = Verdict::Result::refused;
    verdict_.reason = reason_of(e, folder_ + "/");
    return verdict_;
  }
  void failed(std::string why) {
    verdict_.result = Verdict::Result::failed;
    verdict_.reason = std::move(why);
  }

  static bool is_plain_tensor(const OnnxSignature& signature, const std::string& name) {
    return std::ranges::any_of(signature.inputs,
                               [&](const OnnxPort& p) { return p.name == name && p.kind == OnnxKind::tensor; });
  }

  void run_set(const OnnxSignature& signature, int set) {
    OnnxOptions options;
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      const std::string file = fmt::format("{}/input_{}.pb", data(set), i);
      // Trailing optional inputs of a test may have no file.
      if (!std::filesystem::exists(file)) continue;
      auto value = read_onnx_value(file, signature.inputs[i]);
      if (!value) return static_cast<void>(refused(value.error()));
      options.given.emplace(signature.inputs[i].name, *std::move(value));
    }
    const auto values = options.given;
    options.fold_given = runner_.variant == "constant";
    options.symbolic_dims = runner_.variant == "symbolic";
    if (runner_.variant == "unknown")
      std::erase_if(options.given, [&](const auto& g) { return is_plain_tensor(signature, g.first); });
    std::vector<OnnxNode> nodes;
    auto graph = import_onnx(folder_ + "/model.onnx", options, &nodes);
    if (!graph) return static_cast<void>(refused(graph.error()));
    if (set == 0) verdict_.uses = uses_of(*graph, nodes);
    NamedTensors given;
    for (const auto& [name, value] : values)
      for (size_t i = 0; i < value.tensors.size(); ++i) {
        const std::string port = value.sequence ? sequence_element(name, i) : name;
        const ValueId v = graph->find(port);
        if (std::ranges::find(graph->inputs, v) == graph->inputs.end()) {
          if (std::ranges::count(verdict_.folded, port) == 0) verdict_.folded.push_back(port);
          continue;
        }
        auto t = as_type(value.tensors[i], graph->value(v).type.dtype);
        if (!t) return failed(reason_of(t.error(), folder_));
        given.emplace_back(port, *std::move(t));
      }
    auto outputs = execute(*std::move(graph), given);
    if (!outputs || verdict_.result != Verdict::Result::passed) return;
    check(signature, set, *outputs);
  }

  // Nothing when the verdict is settled.
  std::optional<NamedTensors> execute(Graph graph, const NamedTensors& given) {
    std::vector<Port> ports;
    Result<std::vector<Tensor>> outputs;
    if (runner_.device == "interp:") {
      auto g = runner_.optimise(std::move(graph));
      if (!g) return refused(g.error()), std::nullopt;
      std::vector<Port> in;
      for (const ValueId v : g->inputs) in.push_back({g->value(v).name, g->value(v).type});
      for (size_t i = 0; i < g->outputs.size(); ++i)
        ports.push_back({g->output_names[i], g->value(g->outputs[i]).type});
      auto inputs = bind_inputs(in, g->symbols, given);
      if (!inputs) return failed(reason_of(inputs.error(), folder_)), std::nullopt;
      outputs = run_graph(*g, *inputs);
    } else {
      auto built = runner_.compile(std::move(graph));
      if (!built) return refused(built.error()), std::nullopt;
      ports = built->outputs;
      auto session = Session::open(*built, *runner_.plugins, {.device = runner_.device, .threads = 1});
      if (!session) return refused(session.error()), std::nullopt;
      auto inputs = bind_inputs(built->inputs, built->symbols, given);
      if (!inputs) return failed(reason_of(inputs.error(), folder_)), std::nullopt;
      outputs = session->run(*inputs);
    }
    if (!outputs) return failed(reason_of(outputs.error(), folder_)), std::nullopt;
    NamedTensors named;
    for (size_t i = 0; i < outputs->size(); ++i) named.emplace_back(ports[i].name, (*outputs)[i]);
    return named;
  }

  void check(const OnnxSignature& signature, int set, const NamedTensors& outputs) {
    size_t next = 0;
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      const std::string& name = signature.outputs[i].name;
      auto want = read_onnx_value(fmt::format("{}/output_{}.pb", data(set), i), signature.outputs[i]);
      if (!want) return static_cast<void>(refused(want.error()));
      for (size_t e = 0; e < want->tensors.size(); ++e, ++next) {
        const std::string port = want->sequence ? sequence_element(name, e) : name;
        if (next >= outputs.size() || outputs[next].first != port)
          return failed(fmt::format("output '{}' is missing", port));
        auto t = as_type(want->tensors[e], outputs[next].second.dtype());
        if (!t) return failed(reason_of(t.error(), folder_));
        if (const std::string why = compare(outputs[next].second, *t, verdict_.ulp); !why.empty())
          return failed(fmt::format("output '{}': {}", port, why));
      }
    }
    if (next != outputs.size()) failed(fmt::format("{} outputs, {} are wanted", outputs.size(), next));
  }

  const TestRunner& runner_;
  std::string folder_;
  Verdict verdict_;
};

}  // namespace

Verdict TestRunner::run(const std::string& name) const { return Case(*this, name).run(); }

std::string compare(const Tensor& got, const Tensor& want, double& ulp) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return fmt::format("is {}, {} is wanted", to_string(got.dtype(), got.shape()),
                       to_string(want.dtype(), want.shape()));
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < got.elements(); ++i) {
    bool ok = true;
    if (got.dtype().is_float()) {
      const double a = got.get_double(i), b = want.get_double(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double error = std::abs(a - b);
      // Floats of 8 bits are told apart, however small they are.
      ok = got.dtype().bits > 8 && error <= kAbsolute + kRelative * std::abs(b);
      if (ok && error > kAbsolute) ulp = std::max(ulp, error / last_place(b, got.dtype()));
    } else {
      ok = got.get_int(i) == want.get_int(i);
    }
    if (ok) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return {};
  return fmt::format("{} of {} elements are wrong, the first is {}: {} for {}", wrong, got.elements(), first,
                     got.get_double(first), want.get_double(first));
}

Result<std::vector<std::string>> list_tests(const std::string& suite) {
  namespace fs = std::filesystem;
  std::error_code ec;
  std::vector<std::string> names;
  for (fs::directory_iterator it(suite, ec), end; !ec && it != end; it.increment(ec))
    if (fs::exists(it->path() / "model.onnx", ec)) names.push_back(it->path().filename().string());
  if (ec) return fail({suite, 0, 0, {}}, "cannot read the folder: " + ec.message());
  if (names.empty())
    return fail({suite, 0, 0, {}}, "holds no test", "each test is a folder with model.onnx and test_data_set_0 in it");
  std::ranges::sort(names);
  return names;
}

namespace {

constexpr double kNoise = 4;  // ulp by which machines differ: vector widths, fused products
constexpr std::string_view kPass = "pass", kRefuse = "refuse", kDiffer = "differ";

Result<std::pair<std::string, Expectation>> parse_line(std::string_view line, const Loc& where) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  std::string_view rest = line.substr(std::min(space + 1, line.size()));
  Expectation e;
  if (word == kPass) {
    const size_t at = rest.find(" ulp ");
    if (at == std::string_view::npos) return fail(where, "a pass needs its ceiling: pass NAME ulp N");
    const std::string_view number = rest.substr(at + 5);
    const auto [stop, bad] = std::from_chars(number.data(), number.data() + number.size(), e.ulp);
    if (bad != std::errc() || stop != number.data() + number.size())
      return fail(where, fmt::format("'{}' is no number", number));
    return std::pair(std::string(rest.substr(0, at)), std::move(e));
  }
  if (word != kRefuse && word != kDiffer)
    return fail(where, "a line is `pass NAME ulp N`, `refuse NAME: REASON` or `differ NAME: REASON`");
  const size_t at = rest.find(": ");
  if (at == std::string_view::npos) return fail(where, fmt::format("{} needs a reason: {} NAME: REASON", word, word));
  e.result = word == kRefuse ? Verdict::Result::refused : Verdict::Result::failed;
  e.reason = rest.substr(at + 2);
  return std::pair(std::string(rest.substr(0, at)), std::move(e));
}

}  // namespace

Result<Expectations> read_expectations(const std::string& file) {
  DLC_TRY(const MappedFile f, map_file(file));
  Expectations out;
  std::string_view text = f.text();
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty() || one.starts_with('#')) continue;
    DLC_TRY(auto parsed, parse_line(one, {file, line, 0, {}}));
    const std::string name = parsed.first;
    if (!out.insert(std::move(parsed)).second)
      return fail({file, line, 0, {}}, fmt::format("{} is listed twice", name));
  }
  return out;
}

std::string print_expectations(const std::map<std::string, Verdict>& verdicts, const Expectations& older) {
  std::string s = "# What `dlc conform` says of each test; tools/dlc/conform.h has the form.\n";
  for (const auto& [name, v] : verdicts) {
    const auto it = older.find(name);
    const bool same = it != older.end() && it->second.result == v.result;
    if (v.result == Verdict::Result::passed) {
      const auto ceiling =
          v.ulp == 0 ? 0.0 : static_cast<double>(std::bit_ceil(static_cast<uint64_t>(std::ceil(v.ulp))));
      s += fmt::format("{} {} ulp {}\n", kPass, name, same ? std::max(ceiling, it->second.ulp) : ceiling);
    } else if (v.result == Verdict::Result::refused) {
      s += fmt::format("{} {}: {}\n", kRefuse, name, v.reason);
    } else {
      s += fmt::format("{} {}: {}\n", kDiffer, name, same ? it->second.reason : v.reason);
    }
  }
  return s;
}

std::vector<std::string> surprises(const Expectations& want, const std::map<std::string, Verdict>& got, bool whole) {
  using enum Verdict::Result;
  std::vector<std::string> out;
  for (const auto& [name, v] : got) {
    const auto it = want.find(name);
    if (it == want.end()) {
      out.push_back(fmt::format("{}: {}, but is not in the list", name, to_string(v.result)));
      continue;
    }
    const Expectation& e = it->second;
    if (v.result != e.result)
      out.push_back(fmt::format("{}: {}, not {}: {}", name, to_string(v.result), to_string(e.result),
                                v.reason.empty() ? e.reason : v.reason));
    else if (v.result == passed && v.ulp > std::max(e.ulp, kNoise))
      out.push_back(fmt::format("{}: an error of {:.1f} ulp, at most {} are expected", name, v.ulp, e.ulp));
    else if (v.result == refused && v.reason != e.reason)
      out.push_back(fmt::format("{}: refused because '{}', expected is '{}'", name, v.reason, e.reason));
  }
  if (!whole) return out;
  for (const auto& [name, e] : want)
    if (!got.contains(name)) out.push_back(fmt::format("{}: is in the list, but not in the suite", name));
  return out;
}

}  // namespace dlc::cli
