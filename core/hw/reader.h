// Reading a YAML tree key by key, with errors collected instead of returned: one run reports all that is wrong.
//
//   MapReader m(cx, node, "queue 'ld'");
//   q.depth = m.integer("depth", 1, 1024);
//   m.done();                                // every key that nobody asked for is an error here
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/hw/hw_expr.h"
#include "core/hw/yaml.h"
#include "dlc/hw/description.h"

namespace dlc {

struct HwGpu;

// What is being read: the description so far, the params, the errors.
class ReadContext {
 public:
  explicit ReadContext(HwDescription& hw) : hw(hw) {}

  HwDescription& hw;
  Error errors, unknown_keys;
  std::map<std::string, std::vector<Loc>, std::less<>> text_locs;  // "insn.variant": where each of its texts begins

  void error(const Loc& loc, std::string message, std::string hint = {});
  void error(Error e) { errors.add(std::move(e)); }
  // "there is no queue 'vecc' in ...", with the nearest of the names that there are, or all of them, as the hint.
  void unknown(const Loc& loc, std::string_view kind, std::string_view name, const std::vector<std::string>& known,
               std::string_view where = {});
  bool ok() const { return errors.empty() && unknown_keys.empty(); }
  // Unknown keys alone, if there are any: what else is wrong may be only because of them.
  Error failure() { return std::move(unknown_keys.empty() ? errors : unknown_keys); }
  // The value of r, or T{} with the error noted.
  template <class T>
  T take(Result<T> r) {
    if (r) return std::move(*r);
    error(std::move(r).error());
    return T{};
  }

  // The scalar's text with every ${expr} replaced by its value. Not a scalar: an error and "".
  std::string text(const yaml::Node& n);
  std::string name(const yaml::Node& n);  // letters, digits and _, beginning with a letter
  bool valid_name(std::string_view name, const Loc& loc);
  int64_t integer(const yaml::Node& n, int64_t lo, int64_t hi);
  bool boolean(const yaml::Node& n);
  std::vector<std::string> texts(const yaml::Node& n);   // one scalar or a list of them
  HwElem elem(const std::string& text, const Loc& loc);  // "s8[R]", "s32"
  std::optional<DType> dtype(std::string_view text, const Loc& loc);
  HwTiming timing(const yaml::Node& n, const std::string& what);
  HwTime latency(HwTime t, const Loc& loc);  // in whole cycles of the base clock

  // Names of params only.
  HwNames param_names() const;
};

class MapReader {
 public:
  // Not a map: an error, and every key is absent.
  MapReader(ReadContext& cx, const yaml::Node& node, std::string what);

  const yaml::Node* find(std::string_view key);  // nullptr when absent or null
  const yaml::Node* need(std::string_view key);  // absent: an error
  bool has(std::string_view key);
  const std::vector<yaml::Entry>& entries() const { return node_.entries; }
  const std::string& what() const { return what_; }
  Loc loc() const { return node_.loc(); }

  std::string text(std::string_view key, std::string fallback = {});
  int64_t integer(std::string_view key, int64_t lo, int64_t hi, int64_t fallback);
  std::optional<int64_t> maybe_integer(std::string_view key, int64_t lo, int64_t hi);
  bool boolean(std::string_view key, bool fallback = false);
  std::vector<std::string> texts(std::string_view key);
  std::map<std::string, std::string> text_map(std::string_view key);  // any names
  // One of the words.
  std::string word(std::string_view key, const std::vector<std::string>& words, std::string fallback = {});

  void done();  // unknown keys

 private:
  ReadContext& cx_;
  const yaml::Node& node_;
  std::string what_;
  bool is_map_;
  std::set<std::string, std::less<>> known_;
};

// The hint for a word that nobody knows: "did you mean 'words'?", or "" where no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// ---- the sections, each reading its part of the description
// -----------------------------------------------------------

void read_params(ReadContext& cx, const yaml::Node& n, const std::map<std::string, int64_t, std::less<>>& overrides);
void read_state(ReadContext& cx, const yaml::Node& n);
void read_defs(ReadContext& cx, const yaml::Node& n);
void read_isa(ReadContext& cx, const yaml::Node& n);
void read_queues(ReadContext& cx, const yaml::Node& n);
void read_sync(ReadContext& cx, const yaml::Node& n);
void read_faults(ReadContext& cx, const yaml::Node& n);
void read_csr(ReadContext& cx, const yaml::Node& n);
void read_memories(ReadContext& cx, const yaml::Node& n);
void read_ops(ReadContext& cx, const yaml::Node& n);
void read_cost(ReadContext& cx, const yaml::Node& n);
void read_rtl(ReadContext& cx, const yaml::Node& n);
void read_gpu(ReadContext& cx, const yaml::Node& n);  // only whether it is right
HwGpu gpu_section(ReadContext& cx, const yaml::Node& n);
void check_references(ReadContext& cx);  // between sections, after all are read

// The file that `key` of the map names, relative to a folder that nothing may lead out of. It is called `name` in
// messages and in HwDescription::places.
std::string read_path(ReadContext& cx, MapReader& m, std::string_view key, const std::string& name);

// The fields, loops and texts of instructions become kernels, once state and defs are known.
void build_forms(ReadContext& cx);

// The names of queues, registers, ... for did_you_mean().
template <class T>
std::vector<std::string> names_of(const std::vector<T>& all) {
  std::vector<std::string> names;
  for (const T& x : all) names.push_back(x.name);
  return names;
}

// What expressions of an instruction may name: its fields, their enumerators, params.
HwNames field_names(const ReadContext& cx, const HwInsn& insn);

// `like: sibling` inside the entries of a map section.
yaml::Ptr resolve_siblings(ReadContext& cx, const yaml::Node& n, int depth = 0);

}  // namespace dlc
