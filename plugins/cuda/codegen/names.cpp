#include "plugins/cuda/codegen/names.h"

#include <algorithm>
#include <cctype>

namespace dlc::cuda {

namespace {

// Words that CUDA C++ or dlc_dev.h has; all that begin with two underscores or end in _t are never made.
constexpr std::string_view kReserved[] = {
    "alignas",    "alignof",  "and",        "asm",      "auto",     "bf16",      "bool",      "break",    "case",
    "catch",      "char",     "class",      "const",    "continue", "default",   "delete",    "dlc",      "do",
    "double",     "else",     "enum",       "explicit", "export",   "extern",    "f16",       "f4e2m1",   "f8e4m3fn",
    "f8e4m3fnuz", "f8e5m2",   "f8e5m2fnuz", "f8e8m0",   "false",    "float",     "for",       "friend",   "goto",
    "if",         "inline",   "int",        "long",     "mutable",  "namespace", "new",       "noexcept", "not",
    "nullptr",    "operator", "or",         "p",        "private",  "protected", "public",    "register", "return",
    "short",      "signed",   "sizeof",     "static",   "status",   "struct",    "switch",    "template", "this",
    "throw",      "true",     "try",        "typedef",  "typename", "union",     "unsigned",  "using",    "virtual",
    "void",       "volatile", "wchar_t",    "while",    "xor",      "blockDim",  "blockIdx",  "gridDim",  "threadIdx",
    "warpSize",   "asm",      "compl",      "concept",  "requires", "decltype",  "constexpr", "restrict", "linux",
    "unix",       "NULL",     "main",       "ok"};

}  // namespace

std::string Names::fresh(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (fits)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
    if (name.size() == 40) break;
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "v" + name;
  const bool reserved = std::ranges::find(kReserved, name) != std::end(kReserved) || name.ends_with("_t");
  std::string unique = reserved ? name + "_0" : name;
  for (int i = 1; !taken_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
  return unique;
}

std::string comment_text(std::string_view text, size_t most) {
  std::string line;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    line += byte < 0x20 || byte >= 0x7f || c == '\\' ? '?' : c;
  }
  return text.size() > most ? line + " ..." : line;
}

}  // namespace dlc::cuda
