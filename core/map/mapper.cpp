#include "core/map/mapper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>

namespace dlc::map {

namespace {

Refusal refusal(std::string rule, const Error& e, bool too_large = false) {
  const Diagnostic& d = e.diagnostics.front();
  return {-1, std::move(rule), d.message, d.loc.line, d.hint, too_large};
}

// All that the search looks at, as text: names of tensors are numbers, of constants only the type is told.
std::string kind_of(const Target& t) {
  Kernel k = t.kernel;
  std::string key;
  for (size_t i = 0; i < k.tensors.size(); ++i) {
    const int tensor = static_cast<int>(i);
    k.tensors[i].name = fmt::format("t{}", i);
    const auto fill = t.fill.find(tensor);
    key += fmt::format("{} {}[{}]{}{};", i, to_string(k.tensors[i].dtype), fmt::join(t.shapes[i], ","),
                       t.constants.contains(tensor) ? "c" : "",
                       fill == t.fill.end() ? "" : fmt::format(" fill {}", fill->second));
  }
  for (const TargetLoop& l : t.loops) key += fmt::format("{}<{}{}{};", l.var, l.extent, l.reduction, l.lane);
  for (const auto& [var, range] : t.ranges) key += fmt::format("{}:{}..{};", var, range.bounds.lo, range.bounds.hi);
  for (const auto& [e, bound] : t.valid) key += fmt::format("{}<{};", to_string(e), bound);
  key += fmt::format("t{}[", t.output);
  for (const Expr& e : t.output_index) key += to_string(e) + ",";
  return key + "]=" + print(t.value, k);
}

// `text` with # for numbers that only fill fields. What may leave a step out (+ 0, * 1, a clamp that never clamps) and
// small strides stay; an offset of an index goes.
std::string without_numbers(std::string_view text) {
  std::string out;
  const auto behind = [&](std::string_view what) { return out.ends_with(what); };
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    const std::string_view number = text.substr(i, end - i);
    const bool in_name = !out.empty() && (std::isalnum(static_cast<unsigned char>(out.back())) != 0 || behind("."));
    const bool bound = (number == "128" && behind(", -")) || (number == "127" && behind(", "));
    const bool small = (number == "0" || number == "1" || number == "2") && !behind("< ");
    if (number.empty()) {
      if ((text[i] == ',' || text[i] == ']') && behind(" + #")) out.resize(out.size() - 4);
      out += text[i++];
      continue;
    }
    if (!in_name && !bound && !small && (behind("- -") || behind("+ -"))) out.pop_back();
    if (in_name || bound || small)
      out += number;
    else
      out += '#';
    i = end;
  }
  return out;
}

// The same without sizes: an instruction that does one such call does the others, by the same loops.
std::string likeness_of(const Target& t) {
  std::string key;
  for (const TargetLoop& l : t.loops) key += fmt::format("{}{}{};", l.var, l.reduction, l.lane);
  key += fmt::format("{};", t.valid.size());
  Kernel k = t.kernel;
  std::vector<bool> seen(k.tensors.size(), false);
  int next = 0;
  walk(t.value, [&](const ValNode& n) {
    if (n.kind != ValKind::read || seen[static_cast<size_t>(n.tensor)]) return;
    seen[static_cast<size_t>(n.tensor)] = true;
    KernelTensor& tensor = k.tensors[static_cast<size_t>(n.tensor)];
    tensor.name = fmt::format("t{}", next++);
    key += fmt::format("{}{}{};", to_string(tensor.dtype), n.args.size(), t.constants.contains(n.tensor) ? "c" : "");
  });
  std::string text;
  for (const Expr& e : t.output_index) text += to_string(e) + ",";
  return key + without_numbers(text + print(t.value, k));
}

}  // namespace

Loc place_of(const Program& p, const Call& call) {
  Loc loc;
  loc.node = call.locations.empty() ? p.kernels[static_cast<size_t>(call.kernel)].name : call.locations.front();
  return loc;
}

std::string Mapping::plan() const {
  std::string out;
  for (const Plan& p : chain.plans) out += (out.empty() ? "" : ", ") + p.pattern->name;
  return out;
}

std::string Mapping::tile() const {
  std::string out;
  for (size_t l = 0; l < chain.target->loops.size(); ++l)
    if (tiling.tile[l] > 1 || chain.target->loops[l].extent > 1)
      out += fmt::format("{}{}:{}", out.empty() ? "" : " ", chain.target->loops[l].var, tiling.tile[l]);
  return out;
}

std::expected<std::vector<Mapping>, Refusal> Mapper::map(const Program& p, const Call& call) {
  auto parts = make_targets(p, call, machine_.lanes);
  if (!parts) {
    Refusal r = refusal("no instruction", parts.error());
    r.why = "no instruction computes this: " + r.why;
    return std::unexpected(std::move(r));
  }
  std::vector<Mapping> out;
  for (Target& part : *parts) {
    auto mapping = map(p, call, std::move(part));
    if (!mapping) return std::unexpected(std::move(mapping).error());
    out.push_back(std::move(*mapping));
  }
  return out;
}

std::expected<Mapping, Refusal> Mapper::map(const Program& p, const Call& call, Target part) {
  const auto target = std::make_shared<const Target>(std::move(part));
  const std::string kind = kind_of(*target);
  // What is said against a call has names in it.
  std::string named = kind;
  for (const KernelTensor& t : target->kernel.tensors) named += " " + t.name;
  if (const auto no = refused_.find(named); no != refused_.end()) return std::unexpected(no->second);
  auto it = known_.find(kind);
  if (it == known_.end()) {
    auto found = search(p, call, target);
    if (!found) {
      refused_.emplace(std::move(named), found.error());
      return std::unexpected(std::move(found).error());
    }
    it = known_.emplace(kind, std::move(*found)).first;
  }
  return Mapping{{target, layouts_of(*target, machine_.lanes), it->second.plans}, it->second.tiling};
}

std::expected<Mapper::Known, Refusal> Mapper::search(const Program& p, const Call& call,
                                                     const std::shared_ptr<const Target>& target) {
  const Loc where = place_of(p, call);
  const std::string likeness = likeness_of(*target);
  const auto like = likes_.find(likeness);
  std::optional<Chain> chain;
  if (like != likes_.end()) chain = make_chain_like(machine_, target, like->second);
  if (!chain) chain = make_chain(machine_, target);
  if (!chain) return std::unexpected(why_no_chain(machine_, target));
  bool short_of_memory = false;
  auto tiling = choose_tiling(machine_, *chain, where, short_of_memory);
  if (!tiling) return std::unexpected(refusal("does not fit", tiling.error(), short_of_memory));
  std::map<int, Place> places;
  for (const int b : target->buffers)
    if (b >= 0) places.emplace(b, Place{machine_.arena, 0});
  Emitter trial(machine_, std::move(places), true);
  if (auto ok = trial.call(*chain, *tiling, where); !ok)
    return std::unexpected(refusal("does not fit", ok.error(), trial.short_of_memory));
  likes_.emplace(likeness, chain->plans);
  return Known{std::move(chain->plans), std::move(*tiling)};
}

}  // namespace dlc::map
