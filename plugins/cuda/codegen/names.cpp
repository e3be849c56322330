#include "plugins/cuda/codegen/names.h"

#include <algorithm>
#include <cctype>

namespace dlc::cuda {

namespace {

// Words that CUDA C++ or dlc_dev.h has; what ends in _t is a type, what is long and in capitals may be a macro.
constexpr std::string_view kReserved[] = {
    "alignas",  "alignof",  "and",      "asm",       "auto",    "bf16",      "blockDim",   "blockIdx", "bool",
    "break",    "case",     "catch",    "char",      "class",   "compl",     "concept",    "const",    "constexpr",
    "continue", "decltype", "default",  "delete",    "dlc",     "do",        "double",     "else",     "enum",
    "explicit", "export",   "extern",   "f16",       "f4e2m1",  "f8e4m3fn",  "f8e4m3fnuz", "f8e5m2",   "f8e5m2fnuz",
    "f8e8m0",   "false",    "float",    "for",       "friend",  "goto",      "gridDim",    "if",       "inline",
    "int",      "linux",    "long",     "main",      "mutable", "namespace", "new",        "noexcept", "not",
    "nullptr",  "operator", "or",       "p",         "private", "protected", "public",     "register", "requires",
    "restrict", "return",   "short",    "signed",    "sizeof",  "static",    "status",     "struct",   "switch",
    "template", "this",     "thread",   "threadIdx", "throw",   "true",      "try",        "typedef",  "typename",
    "union",    "unix",     "unsigned", "using",     "virtual", "void",      "volatile",   "warpSize", "while",
    "xor"};

constexpr size_t kLongest = 40;

bool is_reserved(const std::string& name) {
  const bool is_capital =
      name.size() > 2 && std::ranges::none_of(name, [](unsigned char c) { return std::islower(c); });
  return is_capital || name.ends_with("_t") || std::ranges::find(kReserved, name) != std::end(kReserved);
}

}  // namespace

std::string Names::fresh(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
    if (name.size() == kLongest) break;
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "v" + name;
  std::string unique = is_reserved(name) ? name + "_0" : name;
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
