// A reproducer of a crash or of an internal error: a folder that `dlc replay` runs again.
//
//   crash::arm(app, json);            // main, before the command's work
//   crash::at("pass fold");           // where the work is
//   crash::keep("hardware.yaml", text);
//   ... SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL: the folder is written, and the process dies of that signal
//
// What happens in the signal's handler is only copying bytes that were prepared before, with calls that are safe there.
// From then on every file that dlc opens for reading is one of the folder's. It is made in $DLC_CRASH_DIR (empty: none
// is made), by default in that for temporary files; docs/cli.md says what lies in it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace dlc::cli::crash {

inline constexpr const char* kFolderVariable = "DLC_CRASH_DIR";
inline constexpr const char* kManifest = "bundle.json";

void arm(CLI::App& app, bool json);
void at(std::string_view step);
// A text of the bundle, under this name.
void keep(const std::string& name, std::string text);

// Of an internal error: writes the folder, and says on stderr where it is, or why there is none.
void internal_error(std::string_view message);

}  // namespace dlc::cli::crash
