// The command line as it was parsed, word by word, for a bundle: which parts of it are paths, so that a replay can lay
// them somewhere else. An option says so by its validator (file_name(), tensor_file(), hw_argument(),
// existing_folders() in cli.h), never a word that happens to be called as a file is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dlc::cli::crash {

// before + path + after is the word: "--input=x=" "/data/a.npy" "", or "--hw=" "/hw/asic.yaml" ",R=8". A relative path
// is part of `before`: it means the same in a copy of the current folder.
struct Word {
  std::string before, path, after;
};

struct CommandLine {
  std::vector<Word> words;           // after the program's name
  std::vector<std::string> folders;  // that are there now, and that the words are in or name
};

CommandLine command_line(CLI::App& app);

}  // namespace dlc::cli::crash
