#include "plugins/asic/runtime/bundle.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "dlc/io/file.h"
#include "dlc/io/numpy.h"
#include "dlc/io/pending_folder.h"
#include "plugins/asic/runtime/cosim.h"

namespace dlc::asic {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr uint64_t kBefore = 5000, kAfter = 1000;  // cycles of the waveform around a difference

class CosimExecutable : public Executable {
 public:
  CosimExecutable(DeviceUri uri, std::shared_ptr<const Loaded> loaded, Driver driver,
                  std::span<const std::byte> executable)
      : uri_(std::move(uri)),
        loaded_(std::move(loaded)),
        driver_(std::move(driver)),
        bytes_(executable.begin(), executable.end()) {}

  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) override {
    DLC_TRY(const CosimReport report, cosimulate(*loaded_, driver_, inputs));
    json_ = ordered_json::parse(to_json(report, uri_.times));
    json_["library"] = uri_.library;
    if (report.bit_exact || uri_.bundle.empty()) return report.outputs;
    if (auto written = write_bundle(report, inputs); !written) {  // the difference is found all the same
      for (const char* key : {"bundle", "wave", "no_wave"}) json_.erase(key);
      json_["no_bundle"] = to_string(written.error());
    }
    return report.outputs;
  }
  std::string counters() override { return json_.dump(); }

 private:
  std::string hash_of(std::span<const Tensor> inputs) const {
    uint64_t hash = XXH3_64bits(bytes_.data(), bytes_.size());
    for (const Tensor& t : inputs) {
      const std::vector<std::byte> npy = to_npy(t);
      hash = XXH3_64bits_withSeed(npy.data(), npy.size(), hash);
    }
    return fmt::format("{:016x}", hash);
  }
  Result<> write_bundle(const CosimReport& report, std::span<const Tensor> inputs) {
    const std::string name = uri_.each ? uri_.bundle + "/" + hash_of(inputs) : uri_.bundle;
    DLC_TRY(PendingFolder folder, PendingFolder::open(name, is_in_bundle));
    DLC_CHECK(write_file(folder / "executable.bin", bytes_));
    DLC_CHECK(write_file(folder / "program.txt", disassemble(*loaded_->hw, loaded_->image.program)));
    ordered_json names = ordered_json::array();
    for (size_t i = 0; i < inputs.size(); ++i) {
      names.push_back(fmt::format("input{}.npy", i));
      DLC_CHECK(write_file(folder / names.back(), to_npy(inputs[i])));
    }
    json_["bundle"] = name;
    DLC_CHECK(write_wave(report, inputs, folder / "wave.fst"));
    if (json_.contains("wave")) json_["wave"]["file"] = name + "/wave.fst";
    ordered_json said = json_;
    said.erase("times");
    DLC_CHECK(write_file(
        folder / "bundle.json",
        ordered_json{{"device", to_string(uri_)}, {"executable", "executable.bin"}, {"inputs", names}, {"report", said}}
                .dump(1) +
            "\n"));
    return folder.replace();
  }

  // The same run on a model with tracing. It must show the same difference; otherwise it is of other RTL.
  Result<> write_wave(const CosimReport& report, std::span<const Tensor> inputs, const std::string& path) {
    std::error_code error;
    const uint64_t at = report.first ? report.first->cycle : report.end;
    const uint64_t begin = at < kBefore ? 0 : at - kBefore, end = at + kAfter;
    for (const std::string& library : traced_models(uri_.library, *loaded_->hw)) {
      DeviceUri uri = uri_;
      uri.library = library;
      auto port = open_rtl(uri, *loaded_);
      if (!port || !(*port)->trace(path, begin, end)) continue;
      DLC_TRY(Driver driver, Driver::make(loaded_, std::move(*port), slowness(uri.options)));
      DLC_TRY(const CosimReport again, cosimulate(*loaded_, driver, inputs));
      const bool same = again.first.has_value() == report.first.has_value() && again.end == report.end &&
                        (!report.first || again.first->cycle == report.first->cycle);
      if (!same) continue;
      json_["wave"] = {{"file", path}, {"begin", begin}, {"end", std::min(end, again.end)}};
      return {};
    }
    fs::remove(path, error);
    json_["no_wave"] = "there is no model of this RTL with tracing beside " + uri_.library +
                       "; `dlc hw build-rtl --trace " + loaded_->hardware +
                       "` makes one, and `dlc cosim BUNDLE --bundle NEW` then has the waveform";
    return {};
  }

  DeviceUri uri_;
  std::shared_ptr<const Loaded> loaded_;
  Driver driver_;
  std::vector<std::byte> bytes_;
  ordered_json json_ = ordered_json::object();
};

}  // namespace

bool is_in_bundle(std::string_view name) {
  const bool is_hash = name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_hash || name == "bundle.json" || name == "executable.bin" || name == "program.txt" || name == "wave.fst" ||
         (name.starts_with("input") && name.ends_with(".npy"));
}

Result<std::unique_ptr<Executable>> make_cosim(DeviceUri uri, std::shared_ptr<const Loaded> loaded,
                                               std::span<const std::byte> executable) {
  if (uri.library.empty()) {
    DLC_TRY(uri.library, find_rtl(*loaded));
  }
  std::error_code error;
  if (const fs::path full = fs::absolute(uri.library, error); !error) uri.library = full.lexically_normal().string();
  DLC_TRY(auto port, open_port(uri, *loaded));
  DLC_TRY(Driver driver, Driver::make(loaded, std::move(port), slowness(uri.options)));
  return std::make_unique<CosimExecutable>(std::move(uri), std::move(loaded), std::move(driver), executable);
}

}  // namespace dlc::asic
