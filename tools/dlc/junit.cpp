#include "tools/dlc/junit.h"

#include <fmt/format.h>

#include <algorithm>

namespace dlc::cli {

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
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
        out += "&#10;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;  // XML 1.0 has no others
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
