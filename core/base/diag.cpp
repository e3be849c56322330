#include "dlc/base/diag.h"

#include <algorithm>
#include <numeric>

#include "dlc/base/printable.h"

namespace dlc {

void Error::add(Error other) {
  for (auto& d : other.diagnostics) diagnostics.push_back(std::move(d));
}

std::string_view Error::message() const {
  return diagnostics.empty() ? std::string_view() : diagnostics.front().message;
}

std::string printable(std::string_view text, bool is_one_line) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    const bool stays = u >= 0x20 ? u != 0x7f : (c == '\n' || c == '\t') && !is_one_line;
    if (stays)
      out += c;
    else
      out += {'\\', 'x', kHex[u >> 4], kHex[u & 15]};
  }
  return out;
}

std::string to_string(const Diagnostic& d) {
  std::string s;
  if (!d.loc.file.empty()) {
    s += printable(d.loc.file, true) + ":";
    if (d.loc.line > 0) {
      s += std::to_string(d.loc.line) + ":";
      if (d.loc.column > 0) s += std::to_string(d.loc.column) + ":";
    }
    s += " ";
  }
  s += d.severity == Severity::error ? "error: " : d.severity == Severity::warning ? "warning: " : "note: ";
  s += printable(d.message);
  if (!d.loc.node.empty()) s += " (node " + printable(d.loc.node, true) + ")";
  if (!d.hint.empty()) s += "\n  next: " + printable(d.hint);
  return s;
}

std::string to_string(const Error& e) {
  std::string s;
  for (const auto& d : e.diagnostics) {
    if (!s.empty()) s += "\n";
    s += to_string(d);
  }
  return s;
}

namespace {

// Letters put in, left out, changed, or two neighbours exchanged (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t limit = std::max<size_t>(1, word.size() / 3) + 1;  // more than a third wrong is another word
  for (const auto& c : candidates) {
    const size_t d = edit_distance(word, c);
    if (d < limit) {
      limit = d;
      best = c;
    }
  }
  return best;
}

}  // namespace dlc
