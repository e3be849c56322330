// A folder for files that are wanted for a while; gone with its owner.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "dlc/base/diag.h"

namespace dlc::cli {

class Scratch {
 public:
  static Result<Scratch> make() {
    std::error_code ec;
    std::string path = (std::filesystem::temp_directory_path(ec) / "dlc-XXXXXX").string();
    if (ec || mkdtemp(path.data()) == nullptr)
      return fail({path, 0, 0, {}}, "cannot make a folder for temporary files", "TMPDIR says where they go");
    return Scratch(std::move(path));
  }
  ~Scratch() {
    std::error_code ec;
    if (!path_.empty()) std::filesystem::remove_all(path_, ec);
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace dlc::cli
