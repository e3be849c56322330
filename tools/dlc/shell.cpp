#include "tools/dlc/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace dlc::cli {

namespace {

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_./:=,@%+-").find(c) != std::string_view::npos;
}

bool is_control(char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  const bool escapes = std::ranges::any_of(word, is_control);  // $'...' of bash and zsh; '...' has none
  std::string out = escapes ? "$'" : "'";
  for (const char c : word) {
    if (is_control(c))
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else if (c == '\'')
      out += escapes ? "\\'" : "'\\''";
    else if (c == '\\' && escapes)
      out += "\\\\";
    else
      out += c;
  }
  return out + "'";
}

std::string shell_command(std::span<const std::string> words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + shell_word(word);
  return out;
}

}  // namespace dlc::cli
