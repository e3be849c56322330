#include "tools/dlc/onnxruntime.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "dlc/io/file.h"
#include "frontends/onnx/onnx.h"
#include "tools/dlc/scratch.h"
#include "tools/dlc/subprocess.h"

namespace dlc::cli {

namespace {

namespace fs = std::filesystem;

constexpr double kSeconds = 600;
constexpr int kNoModule = 42;

// Names of tensors may be no names of files, so they travel as numbers in the order of the model's.
constexpr const char* kScript = R"(
import sys
try:
    import numpy, onnxruntime as ort
except ImportError as e:
    sys.stdout.write(str(e))
    sys.exit(42)
model, given, results, folder = sys.argv[1:5]
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
options.log_severity_level = 3
options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
try:
    session = ort.InferenceSession(open(model, "rb").read(), options, providers=["CPUExecutionProvider"])
    inputs = numpy.load(given)
    names = [i.name for i in session.get_inputs()]
    feed = {n: inputs[str(names.index(n))] for n in names}
    outputs = session.run(None, feed)
except Exception as e:
    sys.stdout.write(str(e))
    sys.exit(1)
names = [o.name for o in session.get_outputs()]
kept = [(n, t) for n, t in zip(names, outputs) if isinstance(t, numpy.ndarray) and t.dtype.kind in "biuf"]
numpy.savez(results + "/values.npz", **{str(i): t for i, (n, t) in enumerate(kept)})
open(results + "/names", "w").write("".join(n + "\n" for n, t in kept))
)";

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

Result<NamedTensors> run_onnxruntime(const std::string& model, const NamedTensors& inputs,
                                     const std::vector<WantedValue>& values) {
  DLC_TRY(const Scratch files, Scratch::make());
  DLC_TRY(const auto bytes, onnx_for_numpy(model, values));
  DLC_CHECK(write_file(files / "with_outputs.onnx", bytes));
  DLC_TRY(const OnnxSignature signature, read_onnx_signature(model));
  NamedTensors numbered;
  for (size_t i = 0; i < signature.inputs.size(); ++i)
    for (const auto& [name, t] : inputs)
      if (name == signature.inputs[i].name) {
        DLC_TRY(Tensor held, t.cast(carrier_type(t.dtype())));
        numbered.emplace_back(std::to_string(i), std::move(held));
      }
  DLC_CHECK(write_npz(files / "inputs.npz", numbered));
  const char* chosen = std::getenv("DLC_PYTHON");
  const std::string python = chosen != nullptr && *chosen != 0 ? chosen : "python3";
  std::error_code ec;
  const std::string folder = fs::absolute(model, ec).parent_path().string();  // of its external data
  const auto ran = run_program(
      {python, "-c", kScript, files / "with_outputs.onnx", files / "inputs.npz", files.path(), folder}, kSeconds);
  if (!ran || ran->code == kNoModule)
    return fail({},
                fmt::format("there is no onnxruntime to compare with: {}", ran ? ran->output : ran.error().message()),
                "install it (pip install onnxruntime), or set DLC_PYTHON to a Python that has it and numpy");
  if (ran->timed_out) return fail({model, 0, 0, {}}, fmt::format("onnxruntime is not done after {} s", kSeconds));
  if (ran->code != 0) return fail({model, 0, 0, {}}, "onnxruntime refuses the model: " + ran->output);
  DLC_TRY(const MappedFile names, map_file(files / "names"));
  DLC_TRY(NamedTensors out, read_npz(files / "values.npz"));
  const std::vector<std::string> list = lines(names.text());
  if (list.size() != out.size()) return fail({model, 0, 0, {}}, "onnxruntime gave results that cannot be read");
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].first = list[i];
    for (const WantedValue& v : values)
      if (carrier_type(v.type) != v.type && carried_name(v.name) == list[i]) {
        DLC_TRY(Tensor t, out[i].second.cast(v.type));
        out[i] = {v.name, std::move(t)};
      }
  }
  return out;
}

}  // namespace dlc::cli
