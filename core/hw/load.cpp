// From a `--hw` argument or a text to a description: `like:`, the order of the sections, the hashes.
#include "dlc/hw/load.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/hw/canonical.h"
#include "core/hw/constants.h"
#include "core/hw/quantity.h"
#include "core/hw/reader.h"
#include "core/hw/standalone.h"
#include "dlc/hw/gpu.h"
#include "dlc/io/file.h"

namespace dlc {

namespace {

constexpr int kMaxLikeDepth = 8;

uint64_t hash(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

Result<std::string> read_file(const std::string& path) {
  DLC_TRY(const MappedFile file, map_file(path));
  if (file.bytes.size() > yaml::kMaxBytes) return fail({path, 0, 0, {}}, "the file is larger than 4 MiB");
  return std::string(file.text());
}

// The tree of the text, laid on the file that its `like:` names.
Result<yaml::Ptr> load_tree(std::string_view text, const std::string& file, int depth) {
  DLC_TRY(yaml::Ptr tree, yaml::parse(text, file));
  if (tree->kind != yaml::Kind::map) return fail(tree->loc(), "a hardware description is a map");
  const yaml::Entry* like = tree->find("like");
  if (!like) return tree;
  if (like->value->kind != yaml::Kind::scalar) return fail(like->value->loc(), "'like' names one file");
  if (depth >= kMaxLikeDepth)
    return fail(like->loc(), "'like' goes through more than " + std::to_string(kMaxLikeDepth) + " files");
  const auto path = std::filesystem::path(file).parent_path() / like->value->text;
  auto base_text = read_file(path.string());
  if (!base_text)
    return fail(like->value->loc(), "'like: " + like->value->text + "': " + std::string(base_text.error().message()));
  DLC_TRY(const yaml::Ptr base, load_tree(*base_text, path.string(), depth + 1));
  return yaml::merge(base, tree);
}

void read_clock(ReadContext& cx, const yaml::Node& n) {
  if (n.kind == yaml::Kind::scalar) {
    cx.hw.clocks["base"] = cx.take(parse_frequency(cx.text(n), n.loc()));
    return;
  }
  MapReader m(cx, n, "'clock'");
  for (const auto& e : m.entries()) {
    cx.valid_name(e.key, e.loc());
    cx.hw.clocks[e.key] = cx.take(parse_frequency(cx.text(*e.value), e.value->loc()));
  }
}

// Sections in the order in which one needs another.
void read_sections(ReadContext& cx, const yaml::Node& root, const HwOverrides& overrides) {
  MapReader m(cx, root, "the description");
  HwDescription& hw = cx.hw;
  for (const yaml::Entry& e : m.entries()) hw.places.emplace(e.key, e.loc());
  if (m.need("dlc_hw")) m.integer("dlc_hw", 1, 1, 1);
  if (const auto* n = m.need("name")) hw.name = cx.name(*n);
  m.find("like");
  hw.family = m.text("family");
  hw.plugin = m.text("plugin");
  hw.doc = m.text("doc");
  const yaml::Node* params = m.find("params");
  if (params) read_params(cx, *params, overrides);
  if (!params && !overrides.empty())
    cx.error(root.loc(), "there is no param '" + overrides.begin()->first + "' to override; the file has none");
  if (const auto* n = m.find("clock")) read_clock(cx, *n);
  const std::pair<std::string_view, void (*)(ReadContext&, const yaml::Node&)> sections[] = {
      {"queues", read_queues}, {"csr", read_csr},   {"state", read_state},   {"def", read_defs},
      {"isa", read_isa},       {"sync", read_sync}, {"faults", read_faults}, {"memories", read_memories},
      {"ops", read_ops},       {"cost", read_cost}, {"rtl", read_rtl},       {"gpu", read_gpu}};
  for (const auto& [key, read] : sections)
    if (const auto* n = m.find(key)) read(cx, *n);
  hw.recipes = read_path(cx, m, "recipes", "recipes");
  m.done();
}

// The tree as it is written: params as values, keys sorted, `doc` left out, blanks folded.
void canonical(ReadContext& cx, const yaml::Node& n, std::string& out) {
  switch (n.kind) {
    case yaml::Kind::null:
      out += "~";
      return;
    case yaml::Kind::scalar: {
      const std::string t = cx.text(n);
      out += '"';
      for (size_t i = 0; i < t.size(); ++i) {
        const bool blank = t[i] == ' ' || t[i] == '\n' || t[i] == '\t';
        if (!blank) out += t[i];
        if (blank && !out.ends_with(' ')) out += ' ';
      }
      out += '"';
      return;
    }
    case yaml::Kind::sequence:
      out += "[";
      for (const auto& item : n.items) {
        canonical(cx, *item, out);
        out += ",";
      }
      out += "]";
      return;
    case yaml::Kind::map: {
      std::vector<const yaml::Entry*> entries;
      for (const auto& e : n.entries)
        if (e.key != "doc") entries.push_back(&e);
      std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) { return a->key < b->key; });
      out += "{";
      for (const auto* e : entries) {
        out += e->key + ":";
        canonical(cx, *e->value, out);
        out += ",";
      }
      out += "}";
      return;
    }
  }
}

uint64_t hash_of_everything(ReadContext& cx, const yaml::Node& root) {
  std::string text = "dlc_hw 1\n";
  for (const HwParam& p : cx.hw.params) text += p.name + "=" + std::to_string(p.value) + "\n";
  for (const yaml::Entry& e : root.entries) {
    if (e.key == "params") continue;
    text += e.key + "=";
    canonical(cx, *e.value, text);
    text += "\n";
  }
  return hash(text);
}

}  // namespace

yaml::Ptr resolve_siblings(ReadContext& cx, const yaml::Node& n, int depth) {
  auto out = std::make_shared<yaml::Node>(n);
  bool again = false;
  for (yaml::Entry& e : out->entries) {
    const yaml::Entry* like = e.value->find("like");
    if (!like) continue;
    const std::string base_name = cx.text(*like->value);
    const yaml::Entry* base = n.find(base_name);
    if (!base || base_name == e.key || depth >= kMaxLikeDepth) {
      std::vector<std::string> names;
      for (const auto& s : n.entries) names.push_back(s.key);
      cx.error(like->value->loc(),
               "'like: " + base_name + "' " + (base ? "goes in a circle" : "names no entry beside it"),
               base ? "" : did_you_mean(base_name, names));
      base = nullptr;
    }
    auto own = std::make_shared<yaml::Node>(*e.value);
    own->remove("like");
    e.value = base ? yaml::merge(base->value, own) : own;
    again = again || e.value->find("like") != nullptr;
  }
  return again ? resolve_siblings(cx, *out, depth + 1) : out;
}

Result<std::string> standalone_hw(std::string_view text, const std::string& file) {
  DLC_TRY(const yaml::Ptr own, yaml::parse(text, file));
  if (!own->find("like")) return std::string(text);
  DLC_TRY(const yaml::Ptr tree, load_tree(text, file, 0));
  yaml::Node whole = *tree;
  whole.remove("like");
  return yaml::print(whole);
}

Result<> check_standalone(std::string_view text, const std::string& file) {
  DLC_TRY(yaml::Ptr tree, yaml::parse(text, file));
  const yaml::Entry* like = tree->find("like");
  if (like) return fail(like->loc(), "'like' names another file, this description must stand alone");
  return {};
}

Result<HwDescription> parse_hw(std::string_view text, const std::string& file, const HwOverrides& overrides) {
  DLC_TRY(const yaml::Ptr root, load_tree(text, file, 0));
  HwDescription hw;
  hw.file = file;
  ReadContext cx(hw);
  read_sections(cx, *root, overrides);
  if (cx.ok()) check_references(cx);
  if (cx.ok()) check_emitted_names(cx);
  if (cx.ok()) build_forms(cx);
  if (cx.ok()) {
    hw.arch_hash = hash(canonical_text(hw));
    hw.full_hash = hash_of_everything(cx, *root);
  }
  if (!cx.ok()) return std::unexpected(cx.failure());
  return hw;
}

Result<HwGpu> parse_hw_gpu(std::string_view text, const std::string& file, const HwOverrides& overrides) {
  DLC_TRY(const yaml::Ptr root, load_tree(text, file, 0));
  DLC_CHECK(parse_hw(text, file, overrides));
  const yaml::Entry* gpu = root->find("gpu");
  if (gpu == nullptr)
    return fail({file, 0, 0, {}}, "the description has no section 'gpu'", "`like: nvidia-sm80.yaml` has one");
  HwDescription hw;
  ReadContext cx(hw);
  read_sections(cx, *root, overrides);
  return gpu_section(cx, *gpu->value);
}

Result<HwArgument> parse_hw_argument(std::string_view text) {
  HwArgument out;
  std::istringstream in{std::string(text)};
  std::string part;
  while (std::getline(in, part, ',')) {
    const size_t equals = part.find('=');
    if (equals == std::string::npos && out.name.empty()) {
      out.name = part;
      continue;
    }
    if (equals == std::string::npos || equals == 0 || out.name.empty())
      return fail({}, "--hw: '" + part + "' is not of the form NAME=VALUE", "--hw=asic.yaml,R=8,C=8");
    const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
    if (out.name == "native") {
      if (key != "max") return fail({}, "--hw=native takes max=v1 .. v4, not '" + key + "'");
      if (!out.max.empty()) return fail({}, "--hw=native: max is given twice");
      out.max = value;
      continue;
    }
    DLC_TRY(const int64_t v, parse_integer(value, Loc{"--hw", 0, 0, {}}));
    if (!out.params.emplace(key, v).second) return fail({}, "--hw: param '" + key + "' is given twice");
  }
  if (out.name.empty()) return fail({}, "--hw: a file name or 'native' is wanted", "--hw=asic.yaml,R=8,C=8");
  return out;
}

namespace {

// What `--hw` may be: native, and the descriptions of these folders.
std::vector<std::string> files_in(const std::vector<std::string>& folders) {
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    std::error_code ec;
    for (const auto& e : std::filesystem::directory_iterator(folder, ec))
      if (e.path().extension() == ".yaml") files.push_back(e.path().string());
  }
  std::ranges::sort(files);
  return files;
}

// The next step for a name that no file has: one that is spelt nearly so, those whose machine or plugin is called so,
// or all there are.
std::string instead_of(const std::string& name, const std::vector<std::string>& folders) {
  std::vector<std::string> names = {"native"}, words = names, called;
  const auto is_called = [&](const std::string& machine) {
    const auto hw = load_hw(machine);
    return hw && (hw->name == name || hw->plugin == name);
  };
  if (is_called("native")) called.push_back("native");
  for (const std::string& file : files_in(folders)) {
    const std::filesystem::path path(file);
    names.push_back(path.stem().string());
    words.insert(words.end(), {path.stem().string(), path.filename().string()});
    if (is_called(file)) called.push_back(path.stem().string());
  }
  const auto listed = [](std::vector<std::string> list) {
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
    std::string text;
    for (const std::string& n : list) text += (text.empty() ? "--hw=" : ", --hw=") + n;
    return text;
  };
  if (!called.empty()) return name + " is a machine or a plugin, whose descriptions are " + listed(called);
  std::ranges::sort(words);
  const std::string near = did_you_mean(name, words);
  return near.empty() ? "there are " + listed(names) : near;
}

}  // namespace

Result<HwDescription> load_hw(std::string_view argument, const HwLoadOptions& options) {
  DLC_TRY(const HwArgument arg, parse_hw_argument(argument));
  if (arg.name == "native") {
    DLC_TRY(const std::string text, native_yaml(arg.max));
    return parse_hw(text, "native");
  }
  std::vector<std::string> tried = {arg.name};
  const bool is_path = arg.name.find('/') != std::string::npos;
  for (const std::string& folder : is_path ? std::vector<std::string>() : options.search)
    for (const char* suffix : {"", ".yaml"}) tried.push_back(folder + "/" + arg.name + suffix);
  std::string list;
  for (const std::string& path : tried) {
    std::error_code ec;
    if (std::filesystem::exists(path, ec) && !std::filesystem::is_directory(path, ec)) {
      DLC_TRY(const std::string text, read_file(path));
      return parse_hw(text, path, arg.params);
    }
    list += (list.empty() ? "" : ", ") + path;
  }
  std::error_code ec;
  if (std::filesystem::is_directory(arg.name, ec))
    return fail({arg.name, 0, 0, {}}, "this is a folder, and a hardware description is a file");
  const std::string instead = instead_of(arg.name, options.search);
  return fail({}, "no hardware description '" + arg.name + "'",
              instead + (instead.ends_with('?') ? " " : "; ") + "looked for " + list);
}

}  // namespace dlc
