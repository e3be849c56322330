// `def`: bit-exact functions. The text is handed to the op language; the examples are evaluated here.
#include <algorithm>
#include <set>

#include "core/hw/def_eval.h"
#include "core/hw/quantity.h"
#include "core/hw/reader.h"

namespace dlc {

namespace {

std::string trimmed(std::string s) {
  while (!s.empty() && s.back() == ' ') s.pop_back();
  size_t i = 0;
  while (i < s.size() && s[i] == ' ') ++i;
  return s.substr(i);
}

// "(x: s64, s: u6) -> s64 = body"
bool read_signature(ReadContext& cx, const std::string& text, const Loc& loc, HwDef& d) {
  const size_t close = text.find(')');
  const size_t arrow = text.find("->", close == std::string::npos ? 0 : close);
  const size_t equals = text.find('=', arrow == std::string::npos ? 0 : arrow);
  if (!text.starts_with("(") || close == std::string::npos || arrow == std::string::npos ||
      equals == std::string::npos) {
    cx.error(loc, "def '" + d.name + "' is not of the form \"(x: s64, s: u6) -> s64 = expression\"");
    return false;
  }
  const std::string args = text.substr(1, close - 1);
  for (size_t i = 0; i <= args.size();) {
    const size_t comma = std::min(args.find(',', i), args.size());
    const std::string arg = args.substr(i, comma - i);
    const size_t colon = arg.find(':');
    if (colon == std::string::npos) {
      cx.error(loc, "argument '" + trimmed(arg) + "' of def '" + d.name + "' has no type", "write x: s32");
      return false;
    }
    const auto t = cx.dtype(trimmed(arg.substr(colon + 1)), loc);
    const std::string name = trimmed(arg.substr(0, colon));
    if (!t || !cx.valid_name(name, loc)) return false;
    if (!t->is_int()) {
      cx.error(loc, "argument '" + name + "' of def '" + d.name + "' must be an integer type of stated width");
      return false;
    }
    d.args.push_back({name, *t});
    i = comma + 1;
  }
  const auto result = cx.dtype(trimmed(text.substr(arrow + 2, equals - arrow - 2)), loc);
  if (!result) return false;
  d.result = *result;
  d.body = trimmed(text.substr(equals + 1));
  return true;
}

void read_examples(ReadContext& cx, const yaml::Node& n, HwDef& d) {
  if (n.kind != yaml::Kind::sequence || n.items.empty())
    return cx.error(n.loc(), "'ex' of def '" + d.name + "' must be a list of [[arguments], result]");
  for (const auto& item : n.items) {
    const bool pair =
        item->kind == yaml::Kind::sequence && item->items.size() == 2 && item->items[0]->kind == yaml::Kind::sequence;
    if (!pair) {
      cx.error(item->loc(), "an example is [[arguments], result]");
      continue;
    }
    HwExample e;
    e.loc = item->loc();
    for (const auto& a : item->items[0]->items) e.args.push_back(cx.take(parse_integer(cx.text(*a), a->loc())));
    e.result = cx.take(parse_integer(cx.text(*item->items[1]), item->items[1]->loc()));
    if (e.args.size() != d.args.size()) {
      cx.error(e.loc, "example with " + std::to_string(e.args.size()) + " arguments; def '" + d.name + "' has " +
                          std::to_string(d.args.size()));
      continue;
    }
    for (size_t i = 0; i < e.args.size(); ++i)
      if (wrap_to(d.args[i].dtype, e.args[i]) != e.args[i])
        cx.error(e.loc, "argument " + d.args[i].name + " = " + std::to_string(e.args[i]) + " does not fit " +
                            to_string(d.args[i].dtype));
    d.examples.push_back(std::move(e));
  }
}

// Of a law "monotone in x": its word and its argument. Any other law is a condition.
void check_law_words(ReadContext& cx, const HwDef& d, const std::string& law, Loc loc) {
  const size_t in = law.find(" in ");
  if (in == std::string::npos) return;
  const std::string word = law.substr(0, in), arg = law.substr(in + 4);
  if (word != "monotone") return cx.unknown(loc, "law", word, {"monotone"}, "of def '" + d.name + "'");
  loc.column += static_cast<int>(in + 4);
  if (std::ranges::count(names_of(d.args), arg) == 0)
    cx.unknown(loc, "argument", arg, names_of(d.args), "of def '" + d.name + "'");
}

void check_examples(ReadContext& cx, const HwDef& d) {
  for (const HwExample& e : d.examples) {
    const auto got = evaluate_def(cx.hw, d, e.args);
    if (!got) return cx.error(got.error());
    if (*got == e.result) continue;
    std::string call = d.name + "(";
    for (size_t i = 0; i < e.args.size(); ++i) call += (i ? ", " : "") + std::to_string(e.args[i]);
    cx.error(e.loc, "the example says " + call + ") = " + std::to_string(e.result) + ", the definition gives " +
                        std::to_string(*got));
  }
}

}  // namespace

namespace {

bool uses_any(std::string_view body, const std::set<std::string, std::less<>>& names) {
  return std::ranges::any_of(words_of(body), [&](std::string_view word) { return names.contains(word); });
}

}  // namespace

void read_defs(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'def'");
  std::set<std::string, std::less<>> wrong;
  for (const auto& e : m.entries()) {
    HwDef d;
    d.name = e.key;
    d.loc = e.loc();
    cx.valid_name(e.key, e.loc());
    MapReader dm(cx, *e.value, "def '" + e.key + "'");
    const auto* is = dm.need("is");
    const auto* ex = dm.need("ex");
    d.laws = dm.texts("laws");
    const auto* laws = dm.find("laws");
    dm.done();
    if (!is || !read_signature(cx, cx.text(*is), is->text_loc(), d)) continue;
    if (ex) read_examples(cx, *ex, d);
    for (size_t i = 0; i < d.laws.size(); ++i)
      check_law_words(cx, d, d.laws[i], (laws->kind == yaml::Kind::sequence ? *laws->items[i] : *laws).text_loc());
    // What uses a wrong def would only say so again.
    if (uses_any(d.body, wrong)) {
      wrong.insert(d.name);
      continue;
    }
    const std::string head = def_head(d);
    auto parsed = check_def(cx.hw, d, is->text_loc());
    if (!parsed) {
      // The places are in text of which this def is the last line; the user has the description.
      const auto body = static_cast<int>(cx.text(*is).rfind(d.body)) - static_cast<int>(head.size());
      for (Diagnostic& e : parsed.error().diagnostics) {
        e.loc.line = is->text_loc().line;
        e.loc.column = is->text_loc().column + std::max(0, e.loc.column - 1 + body);
      }
      cx.error(parsed.error());
      wrong.insert(d.name);
      continue;
    }
    cx.hw.defs_text += head + d.body + "\n";
    cx.hw.defs.push_back(std::move(d));
    check_examples(cx, HwDef(cx.hw.defs.back()));
  }
}

}  // namespace dlc
