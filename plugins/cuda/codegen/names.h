// Names of a text: what the model or the kernel calls things, as C++ identifiers that are all different.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace dlc::cuda {

class Names {
 public:
  // An identifier like `wanted` that this scope does not have yet.
  std::string fresh(std::string_view wanted);

 private:
  std::set<std::string, std::less<>> taken_;
};

// One line of comment text: no control characters, no backslash, and not endless.
std::string comment_text(std::string_view text, size_t most = 160);

}  // namespace dlc::cuda
