// The words of a command line, as a bundle keeps them: which are files to copy, which are results.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dlc::cli::crash {

// before + file + after is the word: "x=" "a.npy" "", or "" "asic.yaml" ",R=8".
struct Word {
  std::string before, file, after;  // file: empty when there is none in it
  enum class Role : uint8_t { plain, input, output } role = Role::plain;
};

// Files are those that are there now; a word after -o, --output and the like is a result. Folders become absolute.
std::vector<Word> classify(const std::vector<std::string>& arguments);

}  // namespace dlc::cli::crash
