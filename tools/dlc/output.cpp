#include "tools/dlc/output.h"

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

std::string weights_beside(const std::string& text_file) {
  return fs::path(text_file).replace_extension(".weights.npz").string();
}

NamedTensors outlined_constants(const Graph& g) { return table_constants(g); }

Result<std::string> write_text(const std::string& file, const std::string& text, const NamedTensors& constants) {
  std::vector<FileContent> files;
  std::vector<std::byte> npz;
  const std::string weights = constants.empty() ? "" : weights_beside(file);
  if (!constants.empty()) {
    DLC_TRY(npz, to_npz(constants));
    files.push_back({weights, npz});
  }
  files.push_back({file, std::as_bytes(std::span(text.data(), text.size()))});
  DLC_CHECK(write_files(files));
  return weights;
}

}  // namespace dlc::cli
