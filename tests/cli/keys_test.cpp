// docs/cli.md lists the keys of every command's JSON; this holds both to it: every key that is printed is listed, every
// key that is listed is printed.
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "dlc/io/numpy.h"
#include "tests/cli/integer_means.h"
#include "tests/error/run.h"

using namespace dlc;
using namespace dlc::test;

namespace {

using nlohmann::json;

struct Key {
  std::string path;  // a[].b
  bool always = true;
};

// Of each section whose heading is a command: the keys of its table.
std::map<std::string, std::vector<Key>> documented() {
  std::map<std::string, std::vector<Key>> out;
  std::istringstream in(read_file(DLC_SOURCE_DIR "/docs/cli.md"));
  std::string section;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) {
      const bool is_command = line.starts_with("## `dlc");
      section = is_command ? line.substr(4, line.find('`', 4) - 4) : "";
      if (is_command) REQUIRE(out.emplace(section, std::vector<Key>{}).second);
    }
    if (section.empty() || !line.starts_with("| `")) continue;
    const std::string cell = line.substr(2, line.find(" |", 2) - 2);
    static const std::regex quoted("`([^`]+)`");
    for (std::sregex_iterator it(cell.begin(), cell.end(), quoted), end; it != end; ++it) {
      const std::string text = (*it)[1];
      Key key{text, text.find('?') == std::string::npos};
      std::erase(key.path, '?');
      out[section].push_back(std::move(key));
    }
  }
  return out;
}

bool has_children(const std::vector<Key>& keys, const std::string& path) {
  return std::ranges::any_of(keys, [&](const Key& k) { return k.path.starts_with(path + "."); });
}

// The paths in a result. An object whose keys are not listed is opaque; a list of objects never is.
void collect(const json& j, const std::string& prefix, const std::vector<Key>& keys, std::set<std::string>& out) {
  for (const auto& [name, v] : j.items()) {
    const std::string path = prefix + name;
    if (v.is_array() && (has_children(keys, path + "[]") || (!v.empty() && v[0].is_object())))
      for (const auto& element : v) collect(element, path + "[].", keys, out);
    else if (v.is_object() && has_children(keys, path))
      collect(v, path + ".", keys, out);
    else
      out.insert(path);
  }
}

// In every element of the lists on the way, of which there is at least one.
bool has(const json& j, const std::string& path) {
  const size_t dot = path.find('.');
  std::string name = path.substr(0, dot);
  const bool list = name.ends_with("[]");
  if (list) name.resize(name.size() - 2);
  if (!j.is_object() || !j.contains(name)) return false;
  if (dot == std::string::npos) return true;
  const std::string rest = path.substr(dot + 1);
  if (!list) return has(j[name], rest);
  return !j[name].empty() && std::ranges::all_of(j[name], [&](const json& e) { return has(e, rest); });
}

struct Commands {
  std::string section;
  std::vector<std::string> arguments;
  int code = 0;
};

const std::vector<Commands> kCommands = {
    {"dlc [compile] MODEL [-o OUT]",
     {"m.onnx -o m.dlca", "compile m.onnx -o m.so", "--hw=asic --dim N=1 q.onnx -o q.dlca"}},
    {"dlc MODEL --emit=graph|kernel|program|llvm|asm|cuda [-o FILE]",
     {"m.onnx --emit=graph", "m.onnx --emit=program -o p.dlct", "m.onnx --emit=kernel", "m.onnx --emit=llvm",
      "m.onnx --emit=asm", "m.onnx --hw=cuda-emu --emit=cuda"}},
    {"dlc run MODEL [--device URI] [--input FILE]… [--step FILE]… [-o FILE] [--threads N] [--each]",
     {"run s.dlct --state past=present --step step.npz", "run m.dlca --input x.npz -o y.npz",
      "run m.onnx --device interp: --input x.npz", "run q.dlca --device asic:func --each --input image.npz",
      "run q.dlca --device asic:rtl --input image.npz"}},
    {"dlc bench MODEL [--device URI] [--threads N] [--runs N | --seconds S] [--warmup N] [--seed N]",
     {"bench m.onnx --threads 1 --runs 3", "bench m.onnx --device interp: --runs 2",
      "bench q.dlca --device asic:rtl --runs 2 --warmup 0", "bench q.dlca --device asic:func --runs 1 --warmup 0"}},
    {"dlc compare MODEL [--hw=…] [--device URI] [--against URI] [--input FILE]… [--tolerance T]",
     {"compare m.onnx", "compare m.onnx --input x.npz --device cpu:", "compare m.onnx --against cpu:"}},
    {"dlc bisect MODEL [--hw=…] [--device URI] [--against URI] [--input FILE]… [--tolerance T] [--save DIR]",
     {"bisect m.onnx", "bisect m.onnx --input x.npz --device cpu:", "bisect means.onnx --hw=asic --device asic:func"}},
    {"dlc bisect MODEL [--hw=…] [--device URI] [--against URI] [--input FILE]… [--tolerance T] [--save DIR]",
     {"bisect norm.onnx --tolerance 0 --save d"},
     1},
    {"dlc reduce MODEL -o OUT [--expect-exit N] [--match REGEX] [--time-limit S] [--tries N] [--input FILE]… -- "
     "COMMAND…",
     {"reduce m.onnx -o small.dlct --tries 20 --json -- grep -q relu {} --expect-exit 0"}},
    {"dlc ops [--markdown] [--lists DIR] [--hw=…]… [-o FILE]", {"ops --hw=asic", "ops -o ops.txt"}},
    {"dlc replay BUNDLE", {"replay b"}},
    {"dlc conform --suite DIR [--device URI] [--hw MACHINE] [--variant V] [--expect LIST] [--floor N] [--write-list "
     "LIST] [--uses FILE] "
     "[--write-uses FILE] [--only TEXT]… "
     "[--sample N "
     "--seed S]",
     {"conform --suite /usr/share/libonnx-testdata/data/node --only test_abs --only test_bernoulli_seed --only "
      "squeeze"}},
    {"dlc cosim MODEL.dlca|BUNDLE [--input FILE]… [--seed N] [--device URI] [--bundle DIR] [--timeline FILE] "
     "[--junit FILE] [--cycles LIST] [--write-cycles LIST] [--matrix DIR]",
     {"cosim q.dlca", "cosim q.dlca --timeline t.json --junit j.xml --matrix green"}},
    {"dlc report MODEL -o OUT [--hw=…] [--device URI] [--input FILE]… [--seed N] [--cells [NAME=]FILE]…",
     {"report q.dlca -o r.html --device asic:rtl", "report q.dlca -o r.json", "report m.onnx -o r.html --device cpu:"}},
    {"dlc export-vectors MODEL.dlca -o DIR [--input FILE]… [--seed N]", {"export-vectors q.dlca -o vectors"}},
    {"dlc addr2op MODEL.dlca PLACE [--partition N]", {"addr2op q.dlca 20", "addr2op q.dlca acc:0"}},
    {"dlc explain MODEL [--hw=…]",
     {"explain m.onnx", "explain q.onnx --hw=asic --dim N=1", "explain q.dlca", "explain q.onnx --hw=asic",
      "explain m.onnx --hw=asic"}},
    {"dlc quantize MODEL --data FILE.npz|random:N -o OUT.onnx [--hw=…] [--range R] [--percentile P] [--symmetric] "
     "[--no-bias-correction] [--min-sqnr D] [--keep NODE]… [--samples N] [--measure N] [--seed N]",
     {"quantize norm.onnx --data random:2 -o n8.onnx", "quantize float.onnx --data random:1 -o f8.onnx --keep stem"}},
    {"dlc hw check DESCRIPTION", {"hw check asic", "hw check native"}},
    {"dlc hw explain DESCRIPTION", {"hw explain asic", "hw explain native"}},
    {"dlc hw emit DESCRIPTION --as sv|c|cpp|manual [-o FILE]", {"hw emit asic --as sv", "hw emit asic --as c -o nx.h"}},
    {"dlc targets", {"targets"}},
    {"dlc plugins [--why]", {"plugins", "plugins --why --plugin-path bad"}},
    {"dlc opt [--passes=a,b] [--weights FILE.npz] [--hw=…] [-o FILE] FILE",
     {"opt g.dlct", "opt g.dlct --passes=dce -o h.dlct", "opt cases.dlct"}},
    {"dlc opt --list", {"opt --list"}},
    {"dlc … --json",
     {"none.onnx -o n.dlca", "run none.dlca", "bench none.onnx", "compare none.onnx", "bisect none.onnx",
      "reduce none.onnx -o s.dlct --json -- cat {}", "ops --lists bad", "replay bad", "cosim none.dlca",
      "report none.dlca -o r.html", "export-vectors none.dlca -o v", "addr2op none.dlca 1", "explain none.onnx",
      "hw check none", "hw explain none", "hw emit none --as c", "opt none.dlct",
      "run m.dlca --plugin-path bad --device tpu: --input x.npz"},
     1},
    {"dlc … --json",
     {"", "-o x.dlca", "run", "bench m.onnx --runs many", "compare", "cosim", "explain", "hw", "hw check", "hw explain",
      "hw emit asic --as rust", "targets x", "plugins x", "opt", "m.onnx --emit=nothing", "--plugin-path nope targets"},
     2},
};

// Told only when RTL and simulator part or a file cannot be written, which nothing here makes them do
// (tests/cosim_tools does).
const std::set<std::string> kNotSeen = {"first_difference", "stopped",      "bundle",        "wave",     "no_wave",
                                        "cycles_differ",    "matrix[].why", "not_written[]", "no_bundle"};
// Takes minutes: the test of the installed package builds the RTL.
const std::string kNotRun = "dlc hw build-rtl";

}  // namespace

TEST_CASE("the keys of JSON are those of docs/cli.md", "[cli]") {
  const Folder f("cli_keys");
  f.write("m.onnx", mlp());
  f.write("means.onnx", integer_means());
  f.write("q.onnx", read_file(DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_int8.onnx"));
  f.write("float.onnx", read_file(DLC_SOURCE_DIR "/tests/models/fashion_mnist/fashion_float.onnx"));
  f.write("cases.dlct",
          "=== one\npasses: dce\n--- input\ndlc.graph 1\ngraph @g {\n  in %x: f32[2]\n  %0: f32[2] = relu(%x)\n"
          "  out %0 \"y\"\n}\n--- output\n");
  std::filesystem::create_directories(f / "bad");
  f.write("bad/libbad.so", "no library");
  REQUIRE_OK(Tensor x, Tensor::make(kF32, {2, 8}));
  REQUIRE_OK(Tensor image, Tensor::make(kF32, {1, 1, 28, 28}));
  REQUIRE(write_tensors(f / "x.npz", {{"x", x}}).has_value());
  REQUIRE(write_tensors(f / "image.npz", {{"image", image}}).has_value());
  REQUIRE_OK(Tensor step, Tensor::make(kF32, {3}));
  REQUIRE(write_tensors(f / "step.npz", {{"x", step}}).has_value());
  f.write("s.dlct",
          "dlc.graph 1\ngraph @g (P in 0..8, S in 1..8) {\n  in %x: f32[S]\n  in %past: f32[P]\n"
          "  %0: f32[P + S] = concat(%past, %x) {axis = 0}\n  out %0 \"present\"\n}\n");
  must_succeed(f, "m.onnx --emit=graph -o g.dlct");
  auto norm = model();  // folding the norm changes bits
  input(norm, "x", {1, 3, 8, 8});
  weight(norm, "w", {4, 3, 3, 3});
  for (const char* name : {"scale", "shift", "mean", "variance"})
    for (int i = 0; auto& v : *weight(norm, name, {4})->mutable_float_data())
      v = 0.3F + 0.17F * static_cast<float>(i++);
  node(norm, "Conv", "conv", {"x", "w"}, "c");
  node(norm, "BatchNormalization", "norm", {"c", "scale", "shift", "mean", "variance"}, "y");
  output(norm, "y", {1, 4, 6, 6});
  f.write("norm.onnx", norm);
  std::filesystem::create_directories(f / "b");
  f.write("b/bundle.json", R"({"folder": "/", "arguments": ["targets"], "signal": 11})");

  const auto sections = documented();
  std::map<std::string, std::set<std::string>> seen;
  for (const Commands& c : kCommands) {
    INFO(c.section);
    REQUIRE(sections.contains(c.section));
    const std::vector<Key>& keys = sections.at(c.section);
    for (const std::string& arguments : c.arguments) {
      const Outcome o = dlc::test::dlc(f, arguments + " --json");
      INFO("dlc " << arguments << "\n" << o.out << o.err);
      CHECK(o.code == c.code);
      const auto j = json::parse(o.out, nullptr, false);
      REQUIRE(j.is_object());
      std::set<std::string> found;
      collect(j, "", keys, found);
      for (const std::string& path : found) {
        INFO(path << " is printed and not in docs/cli.md");
        CHECK(std::ranges::count(keys, path, &Key::path) == 1);
      }
      for (const Key& k : keys)
        if (k.always) {
          INFO(k.path << " is in docs/cli.md and not printed");
          CHECK(has(j, k.path));
        }
      seen[c.section].merge(found);
    }
  }
  for (const auto& [section, keys] : sections)
    for (const Key& k : keys) {
      if (section.starts_with(kNotRun)) continue;
      INFO(section << ": " << k.path << " is in docs/cli.md and never printed");
      CHECK((seen[section].contains(k.path) || kNotSeen.contains(k.path)));
    }
}
