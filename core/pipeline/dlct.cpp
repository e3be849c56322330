#include "dlc/pipeline/dlct.h"

#include "dlc/pipeline/pipeline.h"

namespace dlc {

namespace {

std::string_view trimmed(std::string_view s) {
  const size_t first = s.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> words(std::string_view s) {
  std::vector<std::string> list;
  while (!s.empty()) {
    const size_t comma = s.find(',');
    if (auto word = trimmed(s.substr(0, comma)); !word.empty()) list.emplace_back(word);
    s = comma == std::string_view::npos ? std::string_view() : s.substr(comma + 1);
  }
  return list;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<DlctFile> parse() {
    while (!text_.empty()) {
      const size_t end = std::min(text_.find('\n'), text_.size() - 1);
      const std::string_view line = text_.substr(0, end + 1);
      text_.remove_prefix(end + 1);
      ++line_;
      DLC_CHECK(take(line));
    }
    DLC_CHECK(finish());
    return std::move(result_);
  }

 private:
  enum class Section : uint8_t { preamble, head, input, expected };

  Result<> take(std::string_view line) {
    const std::string_view content = trimmed(line.substr(0, line.find('\n')));
    if (content.starts_with("=== ")) {
      DLC_CHECK(finish());
      result_.cases.push_back({.name = std::string(trimmed(content.substr(4)))});
      section_ = Section::head;
      return {};
    }
    if (section_ == Section::preamble) {
      if (!content.empty() && content[0] != '#') return fail(here(), "expected a comment or '=== name of a case'");
      result_.preamble += line;
      return {};
    }
    DlctCase& c = result_.cases.back();
    if (content == "--- input") {
      c.input_line = line_ + 1;
      section_ = Section::input;
      return {};
    }
    if (content == "--- output" || content == "--- error") {
      if (section_ != Section::input) return fail(here(), "'" + std::string(content) + "' comes after '--- input'");
      c.expects_error = content == "--- error";
      section_ = Section::expected;
      return {};
    }
    if (section_ == Section::input) {
      c.input += line;
    } else if (section_ == Section::expected) {
      c.expected += line;
    } else if (content.starts_with("passes:")) {
      c.passes = words(content.substr(7));
    } else if (!content.empty()) {
      return fail(here(), "expected 'passes: a, b' or '--- input'");
    }
    return {};
  }

  Result<> finish() {
    if (section_ == Section::preamble) return {};
    if (section_ == Section::head) return fail(here(), "case '" + result_.cases.back().name + "' has no input");
    for (std::string* s : {&result_.cases.back().input, &result_.cases.back().expected}) {
      while (s->ends_with("\n\n")) s->pop_back();  // blank lines between cases
      if (*s == "\n") s->clear();
    }
    return {};
  }

  Loc here() const { return {.file = file_, .line = line_}; }

  std::string_view text_;
  std::string file_;
  int line_ = 0;
  Section section_ = Section::preamble;
  DlctFile result_;
};

Result<std::string> result_of(const DlctCase& c, const HwLoadOptions& search) {
  DLC_TRY(Ir ir, parse_ir(c.input, "input"));
  DLC_CHECK(verify(ir));
  DLC_CHECK(run_pipeline(ir, c.passes, search));
  return print(ir);
}

}  // namespace

Result<DlctFile> parse_dlct(std::string_view text, const std::string& file) { return Parser(text, file).parse(); }

std::string print(const DlctFile& f) {
  std::string s = f.preamble;
  for (const DlctCase& c : f.cases) {
    if (!s.empty() && !s.ends_with("\n\n")) s += "\n";
    s += "=== " + c.name + "\n";
    if (!c.passes.empty()) {
      s += "passes:";
      for (size_t i = 0; i < c.passes.size(); ++i) s += (i ? ", " : " ") + c.passes[i];
      s += "\n";
    }
    s += "--- input\n" + c.input;
    s += (c.expects_error ? "--- error\n" : "--- output\n") + c.expected;
  }
  return s;
}

DlctOutcome run_case(const DlctCase& c, const HwLoadOptions& search) {
  auto result = result_of(c, search);
  if (!result) return {to_string(result.error()) + "\n", true};
  return {*std::move(result), false};
}

}  // namespace dlc
