#include <fmt/format.h>

#include "core/graph/text.h"
#include "dlc/program/program.h"

namespace dlc {

using detail::name_text;

namespace {

std::string_view kind_text(BufferKind k) {
  switch (k) {
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::constant:
      return "const";
    case BufferKind::temp:
      return "temp";
  }
  return "?";
}

std::string locations_text(const std::vector<std::string>& locations) {
  std::string s;
  for (const std::string& l : locations) s += (s.empty() ? " loc " : ", ") + detail::quoted(l);
  return s;
}

}  // namespace

std::string print(const Program& p) {
  std::string s = fmt::format("dlc.program 1\nprogram @{}", name_text(p.name));
  std::string separator = " (";
  for (const auto& symbol : p.symbols) {
    s += separator + detail::symbol_text(symbol);
    separator = ", ";
  }
  if (!p.symbols.empty()) s += ")";
  s += " {\n";
  for (const Guard& g : p.guards)
    s += "  guard " + to_string(g) + (g.locations.empty() ? "" : ",") + locations_text(g.locations) + "\n";
  for (const auto& b : p.buffers) {
    s += fmt::format("  {} {}", kind_text(b.kind), name_text(b.name));
    if (!b.external_name.empty()) s += " " + detail::quoted(b.external_name);
    s += ": " + to_string(b.type);
    for (size_t d = 0; d < b.holds.size(); ++d) s += (d == 0 ? " holds [" : ",") + to_string(b.holds[d]);
    if (!b.holds.empty()) s += "]";
    if (b.alias && b.alias->replaces)
      s += (b.alias->keeps ? " keeping " : " over ") + name_text(p.buffers[static_cast<size_t>(b.alias->base)].name);
    else if (b.alias)
      s += fmt::format(" in {} at {}", name_text(p.buffers[static_cast<size_t>(b.alias->base)].name),
                       to_string(b.alias->byte_offset));
    else if (b.kind == BufferKind::temp)
      s += " at " + to_string(b.offset);
    s += "\n";
  }
  for (const StatePair& state : p.states)
    s += fmt::format("  state {} -> {}\n", name_text(state.input), name_text(state.output));
  s += "  arena " + to_string(p.arena_bytes) + "\n";
  for (const auto& c : p.calls) {
    s += fmt::format("  call @{}(", name_text(p.kernels[static_cast<size_t>(c.kernel)].name));
    for (size_t i = 0; i < c.buffers.size(); ++i)
      s += (i ? ", " : "") + name_text(p.buffers[static_cast<size_t>(c.buffers[i])].name);
    s += ")";
    s += (c.locations.empty() ? "" : " ") + locations_text(c.locations) + "\n";
  }
  s += "}\n";
  for (const auto& k : p.kernels) s += print(k);
  return s;
}

}  // namespace dlc
