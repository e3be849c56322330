// `isa`: words, fields and the texts of instructions. build_forms() in forms.cpp makes kernels of the texts.
#include <algorithm>
#include <iterator>

#include "core/hw/quantity.h"
#include "core/hw/reader.h"

namespace dlc {

namespace {

// "u14@80"
bool read_position(ReadContext& cx, const std::string& t, const Loc& loc, HwField& f) {
  const size_t at = t.find('@');
  const auto width = at == std::string::npos || t.size() < 2 ? Result<int64_t>(fail(loc, ""))
                                                             : parse_integer(t.substr(1, at - 1), loc);
  const auto low = at == std::string::npos ? Result<int64_t>(fail(loc, "")) : parse_integer(t.substr(at + 1), loc);
  if (!width || !low || (t[0] != 'u' && t[0] != 's')) {
    cx.error(loc, "field '" + f.name + "': '" + t + "' is not of the form u14@80 or s16@152");
    return false;
  }
  f.is_signed = t[0] == 's';
  const int most = f.is_signed ? 64 : 63;
  if (*width < 1 || *width > most || *low < 0 || *low > 4096) {
    cx.error(loc, "field '" + f.name + "': width " + std::to_string(*width) + " is outside 1 .. " +
                      std::to_string(most) + " or position " + std::to_string(*low) + " outside 0 .. 4096");
    return false;
  }
  f.width = static_cast<int>(*width);
  f.at = static_cast<int>(*low);
  return true;
}

// The space an enumerator names: a memory, or a segment by its own name.
int space_named(const HwDescription& hw, std::string_view name) {
  const int direct = hw.find_space(name);
  if (direct >= 0) return direct;
  for (size_t i = 0; i < hw.spaces.size(); ++i)
    if (hw.spaces[i].segment >= 0 && hw.spaces[i].name.ends_with("." + std::string(name))) return static_cast<int>(i);
  return -1;
}

void read_enumerators(ReadContext& cx, const yaml::Node& n, HwField& f) {
  const auto add = [&](const std::string& name, int64_t code, const Loc& loc) {
    if (!cx.valid_name(name, loc)) return;
    if (code < f.raw_min() || code > f.raw_max())
      return cx.error(loc, "enumerator '" + name + "' = " + std::to_string(code) + " of field '" + f.name +
                               "' does not fit " + std::to_string(f.width) + " bits");
    for (const HwEnumerator& e : f.enumerators)
      if (e.name == name || e.value == code)
        return cx.error(loc, "enumerators '" + e.name + "' and '" + name + "' of field '" + f.name + "' are both " +
                                 (e.name == name ? "named so" : "number " + std::to_string(code)));
    f.enumerators.push_back({name, code, space_named(cx.hw, name)});
  };
  if (n.kind == yaml::Kind::sequence) {
    for (size_t i = 0; i < n.items.size(); ++i) add(cx.text(*n.items[i]), static_cast<int64_t>(i), n.items[i]->loc());
  } else {
    MapReader m(cx, n, "enumerators of field '" + f.name + "'");
    for (const auto& e : m.entries()) add(e.key, m.integer(e.key, INT64_MIN / 2, INT64_MAX / 2, 0), e.loc());
  }
  if (f.enumerators.empty()) cx.error(n.loc(), "field '" + f.name + "' has an empty enumeration");
}

HwField read_field(ReadContext& cx, const yaml::Entry& entry) {
  HwField f;
  f.name = entry.key;
  f.loc = entry.loc();
  cx.valid_name(entry.key, f.loc);
  const yaml::Node& n = *entry.value;
  if (n.kind == yaml::Kind::scalar) {
    read_position(cx, cx.text(n), n.loc(), f);
    return f;
  }
  MapReader m(cx, n, "field '" + f.name + "'");
  const auto* at = m.need("at");
  if (at) read_position(cx, cx.text(*at), at->loc(), f);
  f.unit = m.integer("unit", 1, 1 << 20, 1);
  f.plus = m.integer("plus", -(int64_t{1} << 32), int64_t{1} << 32, 0);
  f.reloc = m.boolean("reloc");
  f.doc = m.text("doc");
  if (const auto* e = m.find("e"); e && f.width > 0) read_enumerators(cx, *e, f);
  m.done();
  if (!f.enumerators.empty() && (f.unit != 1 || f.plus != 0))
    cx.error(f.loc, "field '" + f.name + "' has an enumeration, so it takes neither 'unit' nor 'plus'");
  if (f.width + (f.unit > 1 ? 20 : 0) > 62 && (f.unit != 1 || f.plus != 0))
    cx.error(f.loc, "field '" + f.name + "' is too wide for 'unit' or 'plus'");
  return f;
}

void read_fields(ReadContext& cx, const yaml::Node& n, const std::string& what, std::vector<HwField>& out) {
  MapReader m(cx, n, "fields of " + what);
  for (const auto& e : m.entries()) {
    HwField f = read_field(cx, e);
    for (const HwField& old : out)
      if (old.name == f.name) cx.error(f.loc, "field '" + f.name + "' of " + what + " is already a common field");
    if (cx.hw.find_space(f.name) >= 0)
      cx.error(f.loc, "field '" + f.name + "' of " + what + " has the name of a memory");
    if (cx.hw.param(f.name)) cx.error(f.loc, "field '" + f.name + "' of " + what + " has the name of a param");
    if (f.width > 0) out.push_back(std::move(f));
  }
}

void check_layout(ReadContext& cx, const HwInsn& insn, int word_bits) {
  std::vector<const HwField*> owner(static_cast<size_t>(word_bits), nullptr);
  for (const HwField& f : insn.fields) {
    if (f.at + f.width > word_bits) {
      cx.error(f.loc, "field '" + f.name + "' of insn '" + insn.name + "' takes bits " + std::to_string(f.at) + " .. " +
                          std::to_string(f.at + f.width - 1) + "; the word has " + std::to_string(word_bits));
      continue;
    }
    for (int b = f.at; b < f.at + f.width; ++b) {
      const HwField*& o = owner[static_cast<size_t>(b)];
      if (o) {
        cx.error(f.loc, "fields '" + o->name + "' and '" + f.name + "' of insn '" + insn.name + "' overlap at bit " +
                            std::to_string(b));
        break;
      }
      o = &f;
    }
  }
}

void read_fix(ReadContext& cx, const yaml::Node& n, const HwInsn& insn, HwVariant& v) {
  MapReader m(cx, n, "'fix' of variant '" + v.name + "'");
  for (const auto& e : m.entries()) {
    const int index = insn.field(e.key);
    if (index < 0) {
      cx.unknown(e.loc(), "field", e.key, names_of(insn.fields), "in insn '" + insn.name + "'");
      continue;
    }
    const HwField& f = insn.fields[static_cast<size_t>(index)];
    const std::string t = m.text(e.key);
    if (const HwEnumerator* en = f.find(t)) {
      v.fix.emplace_back(index, en->value);
    } else if (!f.enumerators.empty()) {
      cx.unknown(e.value->loc(), "enumerator", t, names_of(f.enumerators), "of field '" + f.name + "'");
    } else {
      v.fix.emplace_back(index, m.integer(e.key, f.min(), f.max(), f.min()));
    }
  }
}

// `does` or `stages` of an instruction or variant; false when it has neither.
bool read_texts(ReadContext& cx, MapReader& m, const HwInsn& insn, HwVariant& v) {
  std::vector<Loc>& locs = cx.text_locs[insn.name + "." + v.name];
  const auto* does = m.find("does");
  const auto* stages = m.find("stages");
  if (does && stages) cx.error(stages->loc(), m.what() + " has both 'does' and 'stages'");
  if (does) {
    v.texts = {cx.text(*does)};
    v.loc = does->text_loc();
    locs = {v.loc};
  } else if (stages) {
    if (stages->kind != yaml::Kind::sequence || stages->items.empty()) {
      cx.error(stages->loc(), "'stages' must be a list of texts");
      return false;
    }
    v.staged = true;
    v.texts = cx.texts(*stages);
    v.loc = stages->items[0]->text_loc();
    for (const auto& item : stages->items) locs.push_back(item->text_loc());
  }
  return does || stages;
}

bool can_both_hold(const HwVariant& a, const HwVariant& b) {
  for (const auto& [field, value] : a.fix)
    for (const auto& [other, its] : b.fix)
      if (field == other && value != its) return false;
  return true;
}

void read_variants(ReadContext& cx, MapReader& m, HwInsn& insn) {
  HwVariant whole;
  const bool has_text = read_texts(cx, m, insn, whole);
  if (has_text) insn.variants.push_back(std::move(whole));
  const auto* n = m.find("variants");
  if (!n) return;
  if (has_text) cx.error(n->loc(), m.what() + " has a text and 'variants' too");
  MapReader vm(cx, *n, "variants of " + m.what());
  const size_t errors_before = cx.errors.diagnostics.size();
  for (const auto& e : vm.entries()) {
    HwVariant v;
    v.name = e.key;
    cx.valid_name(e.key, e.loc());
    MapReader one(cx, *e.value, "variant '" + e.key + "' of " + m.what());
    if (const auto* fix = one.need("fix")) read_fix(cx, *fix, insn, v);
    if (!read_texts(cx, one, insn, v)) cx.error(e.loc(), one.what() + " says nothing about what it does");
    one.done();
    for (const HwVariant& other : insn.variants)
      if (cx.errors.diagnostics.size() == errors_before && !other.name.empty() && can_both_hold(other, v))
        cx.error(e.loc(), "variants '" + other.name + "' and '" + v.name + "' of insn '" + insn.name +
                              "' can hold at once: no field that both fix tells them apart");
    insn.variants.push_back(std::move(v));
  }
}

}  // namespace

HwNames field_names(const ReadContext& cx, const HwInsn& insn) {
  HwNames names = cx.param_names();
  names.value = [&insn, base = names.value](std::string_view name) {
    return insn.field(name) >= 0 ? std::optional<Expr>(Expr::symbol(name)) : base(name);
  };
  names.enumerator = [&insn](std::string_view field, std::string_view name) -> std::optional<int64_t> {
    const int i = insn.field(field);
    const HwEnumerator* e = i < 0 ? nullptr : insn.fields[static_cast<size_t>(i)].find(name);
    return e ? std::optional<int64_t>(e->value) : std::nullopt;
  };
  names.suggest = [&insn, base = names.suggest](std::string_view name) {
    std::vector<std::string> all = names_of(insn.fields);
    for (const HwField& f : insn.fields) std::ranges::copy(names_of(f.enumerators), std::back_inserter(all));
    const std::string near = nearest(name, all);
    return near.empty() ? base(name) : near;
  };
  return names;
}

namespace {

void read_insn(ReadContext& cx, const yaml::Entry& entry, const HwField* opcode_field) {
  HwInsn insn;
  insn.name = entry.key;
  insn.loc = entry.loc();
  insn.fields = cx.hw.isa.common;
  cx.valid_name(entry.key, insn.loc);
  MapReader m(cx, *entry.value, "insn '" + entry.key + "'");
  insn.doc = m.text("doc");
  const auto* op = m.need("op");
  if (op && opcode_field) insn.opcode = cx.integer(*op, opcode_field->raw_min(), opcode_field->raw_max());
  for (const HwInsn& other : cx.hw.isa.insns)
    if (op && other.opcode == insn.opcode)
      cx.error(op->loc(),
               "insns '" + other.name + "' and '" + insn.name + "' both have opcode " + std::to_string(insn.opcode));
  if (const auto* q = m.need("queue")) {
    const std::string name = cx.text(*q);
    insn.queue = cx.hw.find_queue(name);
    if (insn.queue < 0) cx.unknown(q->loc(), "queue", name, names_of(cx.hw.queues));
  }
  if (const auto* f = m.find("fields")) read_fields(cx, *f, "insn '" + insn.name + "'", insn.fields);
  check_layout(cx, insn, cx.hw.isa.word_bits);
  const HwNames names = field_names(cx, insn);
  if (const auto* n = m.find("loops")) {
    MapReader lm(cx, *n, "loops of insn '" + insn.name + "'");
    for (const auto& e : lm.entries()) {
      cx.valid_name(e.key, e.loc());
      if (insn.field(e.key) >= 0 || cx.hw.param(e.key) || cx.hw.find_space(e.key) >= 0)
        cx.error(e.loc(), "loop '" + e.key + "' of insn '" + insn.name + "' has the name of a field, param or memory");
      insn.loops.push_back({e.key, cx.take(parse_hw_expr(cx.text(*e.value), names, e.value->text_loc()))});
    }
  }
  read_variants(cx, m, insn);
  if (const auto* n = m.find("require")) {
    const bool list = n->kind == yaml::Kind::sequence;
    for (size_t i = 0; i < (list ? n->items.size() : 1); ++i) {
      const yaml::Node& item = list ? *n->items[i] : *n;
      const std::string t = cx.text(item);
      const auto e = parse_hw_condition(t, names, item.text_loc());
      if (e) insn.require.push_back({t, *e, item.loc()});
      if (!e) cx.error(e.error());
    }
  }
  if (const auto* n = m.find("cycles")) {
    const auto e = parse_hw_expr(cx.text(*n), names, n->text_loc());
    if (e) insn.cycles = *e;
    if (!e) cx.error(e.error());
  }
  m.done();
  cx.hw.isa.insns.push_back(std::move(insn));
}

void add_features(ReadContext& cx, const yaml::Node& n, std::vector<HwFeature>& out) {
  if (n.kind != yaml::Kind::sequence) return out.push_back({cx.text(n), n.loc()});
  for (const auto& item : n.items) out.push_back({cx.text(*item), item->loc()});
}

// A list, or lists by names of their own: those of several files that `like` puts together.
void read_features(ReadContext& cx, const yaml::Node& n) {
  if (n.kind != yaml::Kind::map) return add_features(cx, n, cx.hw.features);
  MapReader m(cx, n, "'features'");
  for (const auto& e : m.entries())
    if (const auto* list = m.find(e.key)) add_features(cx, *list, cx.hw.features);
}

void read_vectors(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'vectors'");
  for (const auto& e : m.entries()) {
    MapReader v(cx, *e.value, "vectors '" + e.key + "'");
    HwVectors x{e.key, 0, 0, {}, e.loc()};
    if (v.need("bytes")) x.bytes = v.integer("bytes", 1, 4096, 0);
    if (v.need("registers")) x.registers = v.integer("registers", 1, 1024, 0);
    if (const auto* needs = v.need("needs")) add_features(cx, *needs, x.needs);
    v.done();
    cx.hw.vectors.push_back(std::move(x));
  }
}

}  // namespace

void read_isa(ReadContext& cx, const yaml::Node& n) {
  MapReader m(cx, n, "'isa'");
  HwIsa& isa = cx.hw.isa;
  if (!m.has("word")) {
    if (const auto* features = m.find("features")) read_features(cx, *features);
    if (const auto* vectors = m.find("vectors")) read_vectors(cx, *vectors);
    return m.done();
  }
  isa.word_bits = static_cast<int>(m.integer("word", 32, 4096, 32));
  if (isa.word_bits % 32 != 0) {
    cx.error(m.find("word")->loc(), "'word' must be a multiple of 32 bits");
    isa.word_bits = 4096;
  }
  m.word("reserved", {"zero"});
  isa.opcode_field = m.text("opcode", "op");
  if (const auto* container = m.find("container")) {
    MapReader cm(cx, *container, "'container'");
    cm.word("magic", {"DLC1"});
    isa.transport = cm.word("transport", {"fetch"});
    cm.done();
  }
  if (const auto* common = m.need("common")) read_fields(cx, *common, "'common'", isa.common);
  const HwField* opcode = nullptr;
  for (const HwField& f : isa.common)
    if (f.name == isa.opcode_field) opcode = &f;
  if (!opcode) cx.error(m.loc(), "'common' has no field '" + isa.opcode_field + "' for the opcode");
  if (const auto* insns = m.need("insns")) {
    const yaml::Ptr resolved = resolve_siblings(cx, *insns);
    MapReader im(cx, *resolved, "'insns'");
    for (const auto& e : im.entries()) read_insn(cx, e, opcode);
  }
  m.done();
}

}  // namespace dlc
