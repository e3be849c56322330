#include "dlc/base/diag.h"

#include <algorithm>
#include <numeric>

namespace dlc {

void Error::add(Error other) {
  for (auto& d : other.diagnostics) diagnostics.push_back(std::move(d));
}

std::string_view Error::message() const {
  return diagnostics.empty() ? std::string_view() : diagnostics.front().message;
}

std::string to_string(const Diagnostic& d) {
  std::string s;
  if (!d.loc.file.empty()) {
    s += d.loc.file + ":";
    if (d.loc.line > 0) {
      s += std::to_string(d.loc.line) + ":";
      if (d.loc.column > 0) s += std::to_string(d.loc.column) + ":";
    }
    s += " ";
  }
  s += d.severity == Severity::error ? "error: " : d.severity == Severity::warning ? "warning: " : "note: ";
  s += d.message;
  if (!d.loc.node.empty()) s += " (node " + d.loc.node + ")";
  if (!d.hint.empty()) s += "\n  next: " + d.hint;
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

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t up = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = up;
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
