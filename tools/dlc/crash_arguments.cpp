#include "tools/dlc/crash_arguments.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace dlc::cli::crash {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kResults = {"-o",     "--output",     "--dump",      "--bundle",
                                                      "--save", "--write-list", "--write-uses"};

bool is_result(std::string_view option) { return std::ranges::count(kResults, option) > 0; }

Word word_of(const std::string& text, const std::string& before_it) {
  const size_t equals = text.find('=');
  std::error_code ec;
  if (is_result(before_it)) return {"", text, "", Word::Role::output};
  if (text.starts_with("-o") && text.size() > 2 && text[2] != '=')
    return {"-o", text.substr(2), "", Word::Role::output};
  if (text.starts_with("-") && equals != std::string::npos && is_result(text.substr(0, equals)))
    return {text.substr(0, equals + 1), text.substr(equals + 1), "", Word::Role::output};
  for (const size_t begin : {size_t{0}, equals == std::string::npos ? size_t{0} : equals + 1})
    for (const size_t end : {text.size(), std::min(text.find(',', begin), text.size())}) {
      const std::string part = text.substr(begin, end - begin);
      if (fs::is_regular_file(part, ec)) return {text.substr(0, begin), part, text.substr(end), Word::Role::input};
      if (part.find('/') != std::string::npos && fs::is_directory(part, ec))
        return {text.substr(0, begin) + fs::absolute(part, ec).string() + text.substr(end), "", ""};
    }
  if (fs::is_directory(text, ec)) return {fs::absolute(text, ec).string(), "", ""};
  return {text, "", ""};
}

}  // namespace

std::vector<Word> classify(const std::vector<std::string>& arguments) {
  std::vector<Word> words;
  for (size_t i = 0; i < arguments.size(); ++i)
    words.push_back(i == 0 ? Word{arguments[i], "", ""} : word_of(arguments[i], arguments[i - 1]));
  return words;
}

}  // namespace dlc::cli::crash
