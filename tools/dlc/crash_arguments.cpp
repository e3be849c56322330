#include "tools/dlc/crash_arguments.h"

#include <filesystem>

#include "tools/dlc/cli.h"

namespace dlc::cli::crash {

namespace {

namespace fs = std::filesystem;

bool has_validator(CLI::Option& o, const char* name) {
  try {
    return o.get_validator(name) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

// Plugins are no part of a bundle: their folders are meant wherever the command runs.
std::string absolute_folders(const std::string& given) {
  std::string out;
  std::error_code ec;
  for (const std::string& folder : CLI::detail::split(given, ':'))
    out += (out.empty() ? "" : ":") + fs::absolute(folder, ec).string();
  return out;
}

class Reader {
 public:
  void option(CLI::Option& o) {
    const std::string name = o.get_positional() ? "" : "--" + o.get_lnames().front();
    for (const std::string& value : o.results()) {
      if (!name.empty() && o.get_type_size() == 0) {
        line_.words.push_back({name, "", ""});
      } else if (!name.empty() && value.empty()) {
        line_.words.push_back({name, "", ""});
        line_.words.push_back({"", "", ""});
      } else {
        Word w = word(o, value);
        if (!name.empty()) w.before.insert(0, name + "=");
        (name.empty() ? positional_ : line_.words).push_back(std::move(w));
      }
    }
  }
  void verb(const std::string& name) { line_.words.push_back({name, "", ""}); }

  CommandLine done() {
    const auto is_option = [](const Word& w) { return w.before.starts_with("-"); };
    if (std::ranges::any_of(positional_, is_option)) verb("--");
    line_.words.insert(line_.words.end(), positional_.begin(), positional_.end());
    return std::move(line_);
  }

 private:
  Word word(CLI::Option& o, const std::string& value) {
    if (has_validator(o, kFoldersValue)) return {absolute_folders(value), "", ""};
    size_t begin = 0, end = value.size();
    std::error_code ec;
    if (has_validator(o, kHwValue))
      end = std::min(value.find(','), end);
    else if (has_validator(o, kTensorValue))
      begin = fs::exists(value, ec) ? 0 : value.find('=') + 1;  // npos + 1: none
    else if (!has_validator(o, kFileValue))
      return {value, "", ""};
    const fs::path path = value.substr(begin, end - begin);
    note_folder(path);
    if (path.is_relative()) return {value, "", ""};
    return {value.substr(0, begin), path.lexically_normal().string(), value.substr(end)};
  }

  void note_folder(const fs::path& path) {
    std::error_code ec;
    const fs::path there = fs::absolute(path, ec).lexically_normal();
    const fs::path folder = fs::is_directory(there, ec) ? there : there.parent_path();
    if (fs::is_directory(folder, ec)) line_.folders.push_back(folder.string());
  }

  CommandLine line_;
  std::vector<Word> positional_;
};

}  // namespace

CommandLine command_line(CLI::App& app) {
  Reader reader;
  for (CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    reader.verb(at->get_name());
    for (CLI::Option* o : at->get_options([](const CLI::Option* option) { return option->count() > 0; }))
      reader.option(*o);
  }
  return reader.done();
}

}  // namespace dlc::cli::crash
