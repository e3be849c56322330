#include "tools/dlc/junit.h"

#include <fmt/format.h>

#include <algorithm>

namespace dlc::cli {

namespace {

// How many bytes the character at the begin of a text has that XML 1.0 can hold; 0 where there is none: bytes that are
// no UTF-8, control characters, U+FFFE and U+FFFF.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\t' || first == '\r' ? 1 : 0;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  uint32_t code = first & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool is_too_long = size == 3 ? code < 0x800 : size == 4 && (code < 0x10000 || code > 0x10ffff);
  return is_too_long || (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff ? 0 : size;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t size = character(text.substr(at));
    const std::string_view c = text.substr(at, std::max<size_t>(size, 1));
    at += c.size();
    if (size != 1) {
      out += size == 0 ? "?" : c;
      continue;
    }
    switch (c[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
      case '\t':
      case '\r':
        out += fmt::format("&#{};", static_cast<int>(c[0]));
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::vector<JunitSuite::Case> cosim_cases(std::span<const Stream> streams, const Json& result) {
  std::vector<JunitSuite::Case> cases;
  for (const Stream& s : streams) {
    const Json& counters = result["partitions"][s.partition]["counters"];
    const Json first = counters.value("first_difference", Json());
    const auto stopped = field<std::string>(counters, "stopped");
    const std::string group = fmt::format("partition{}", s.partition);
    const auto at = first.is_object() ? field<int64_t>(first, "instruction") : int64_t{-1};
    for (const AcceleratorLayer& l : s.image().layers) {
      JunitSuite::Case c{group, l.name, {}, {}, {}, {}};
      if (first.is_object() && l.first <= at && at < l.end) {
        c.failure = fmt::format("{}[{}]: RTL {}, simulator {}", field<std::string>(first, "memory"),
                                field<int64_t>(first, "address"), field<std::string>(first, "rtl"),
                                field<std::string>(first, "simulator"));
        c.detail = fmt::format("instruction {} of queue {}, tile {}, cycle {}: {}", at,
                               field<std::string>(first, "queue"), field<int64_t>(first, "tile"),
                               field<int64_t>(first, "cycle"), field<std::string>(first, "text"));
        if (has<std::string>(counters, "bundle"))
          c.detail += "\nto replay it: dlc cosim " + field<std::string>(counters, "bundle");
      } else if (first.is_object() && l.first > at) {
        c.skipped = "it is behind the first difference";
      } else if (!first.is_object() && !stopped.empty()) {
        c.skipped = "the RTL stopped";
      }
      cases.push_back(std::move(c));
    }
    cases.push_back({group, "the RTL comes to the program's end", stopped, "", "", ""});
  }
  return cases;
}

std::string junit_xml(const JunitSuite& suite) {
  const auto failures = std::ranges::count_if(suite.cases, [](const auto& c) { return !c.failure.empty(); });
  const auto skipped = std::ranges::count_if(suite.cases, [](const auto& c) { return !c.skipped.empty(); });
  const auto errors = std::ranges::count_if(suite.cases, [](const auto& c) { return !c.error.empty(); });
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  out += fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n",
      escaped(suite.name), suite.cases.size(), failures, errors, skipped, suite.seconds);
  out += "    <properties>\n";
  for (const auto& [name, value] : suite.properties)
    out += fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", escaped(name), escaped(value));
  out += "    </properties>\n";
  for (const auto& c : suite.cases) {
    out += fmt::format("    <testcase classname=\"{}.{}\" name=\"{}\" time=\"0\"", escaped(suite.name),
                       escaped(c.group), escaped(c.name));
    if (!c.failure.empty())
      out += fmt::format(">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n", escaped(c.failure),
                         escaped(c.detail));
    else if (!c.error.empty())
      out += fmt::format(">\n      <error message=\"{}\"/>\n    </testcase>\n", escaped(c.error));
    else if (!c.skipped.empty())
      out += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", escaped(c.skipped));
    else
      out += "/>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace dlc::cli
