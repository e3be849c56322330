#include "tools/dlc/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "dlc/graph/read.h"
#include "dlc/io/file.h"

namespace dlc::cli {

namespace fs = std::filesystem;

Result<> check_output(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code ec;
  for (const std::string& given : inputs) {
    const size_t equals = given.find('=');
    const std::string file = equals == std::string::npos || fs::exists(given, ec) ? given : given.substr(equals + 1);
    if (fs::equivalent(file, output, ec))
      return fail({output, 0, 0, {}}, "is an input of this command", "give the output another name");
  }
  return check_writable(output);
}

Result<> check_outputs(const std::vector<std::string>& files, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& folders) {
  std::error_code ec;
  std::vector<std::pair<std::string, fs::path>> seen;  // as it was given, and where it leads
  const auto clash = [&](const std::string& given, bool is_folder) -> Result<> {
    fs::path real = fs::weakly_canonical(fs::absolute(given, ec), ec);
    if (!real.has_filename()) real = real.parent_path();            // "folder/"
    const auto inside = [](const fs::path& a, const fs::path& b) {  // a in b, or b itself
      return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).second == b.end();
    };
    for (const auto& [other, place] : seen)
      if (place == real || fs::equivalent(place, real, ec) || (is_folder && inside(place, real)))
        return fail({given, 0, 0, {}},
                    place == real || given == other ? "is written twice by this command"
                                                    : fmt::format("{} is written too, and is in it", other),
                    "give every output a name of its own");
    seen.emplace_back(given, real);
    return {};
  };
  for (const std::string& file : files) {
    if (file.empty()) continue;
    DLC_CHECK(clash(file, false));
    DLC_CHECK(check_output(file, inputs));
  }
  for (const std::string& folder : folders)
    if (!folder.empty()) DLC_CHECK(clash(folder, true));
  return {};
}

Result<> check_folder(const std::string& folder) {
  std::error_code ec;
  fs::path there = fs::absolute(folder, ec);
  while (!fs::exists(there, ec) && there.has_relative_path()) there = there.parent_path();
  if (!fs::is_directory(there, ec)) return fail({folder, 0, 0, {}}, fmt::format("{} is no folder", there.string()));
  if (::access(there.c_str(), W_OK | X_OK) == 0) return {};
  return fail({folder, 0, 0, {}}, fmt::format("cannot write in {}: {}", there.string(), std::strerror(errno)));
}

std::string weights_beside(const std::string& text_file) {
  return fs::path(text_file).replace_extension(".weights.npz").string();
}

NamedTensors outlined_constants(const Graph& g) { return table_constants(g); }

std::string inputs_beside(const std::string& text_file) {
  return fs::path(text_file).replace_extension(".inputs.npz").string();
}

Result<std::string> write_text(const std::string& file, const std::string& text, const NamedTensors& constants,
                               const NamedTensors* inputs) {
  std::vector<FileContent> files;
  std::vector<std::byte> npz, inputs_npz;
  const std::string weights = weights_beside(file), tensors = inputs_beside(file);
  if (!constants.empty()) {
    DLC_TRY(npz, to_npz(constants));
    files.push_back({weights, npz});
  }
  if (inputs != nullptr && !inputs->empty()) {
    DLC_TRY(inputs_npz, to_npz(*inputs));
    files.push_back({tensors, inputs_npz});
  }
  files.push_back({file, std::as_bytes(std::span(text.data(), text.size()))});
  DLC_CHECK(write_files(files));
  // What an earlier text had beside it would be taken for this one's.
  std::error_code ec;
  if (constants.empty()) fs::remove(weights, ec);
  if (inputs != nullptr && inputs->empty()) fs::remove(tensors, ec);
  return constants.empty() ? std::string() : weights;
}

}  // namespace dlc::cli
