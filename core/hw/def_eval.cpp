#include "core/hw/def_eval.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "dlc/hw/load.h"
#include "dlc/interp/interp.h"
#include "dlc/ops/record.h"

namespace dlc {

namespace {

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Every argument x in the text becomes the read x[i_]: the op language has tensors, not variables.
std::string index_arguments(const std::string& text, std::span<const HwDefArg> args) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (!name_char(text[i])) {
      out += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && name_char(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    out += word;
    for (const HwDefArg& a : args)
      if (a.name == word) out += "[i_]";
    i = end;
  }
  return out;
}

// The defs that the text needs, with those that they need, as the op language has them.
std::string needed(const HwDescription& hw, std::string_view text) {
  std::set<size_t> found;
  std::vector<std::string_view> open{text};
  while (!open.empty()) {
    const std::string_view next = open.back();
    open.pop_back();
    for (const std::string_view word : words_of(next)) {
      const auto d = std::ranges::find(hw.defs, word, &HwDef::name);
      if (d != hw.defs.end() && found.insert(static_cast<size_t>(d - hw.defs.begin())).second) open.push_back(d->body);
    }
  }
  std::string out;
  for (const size_t d : found) out += def_head(hw.defs[d]) + hw.defs[d].body + "\n";
  return out;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && name_char(text[end])) ++end;
    if (end > i) out.push_back(text.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return out;
}

std::string def_head(const HwDef& d) {
  std::string text = "def " + d.name + "(";
  for (size_t i = 0; i < d.args.size(); ++i)
    text += (i ? ", " : "") + d.args[i].name + ": " + to_string(d.args[i].dtype);
  return text + ") -> " + to_string(d.result) + " = ";
}

std::string call_text(const HwDef& d) {
  std::string s = d.name + "(";
  for (size_t i = 0; i < d.args.size(); ++i) s += (i ? ", " : "") + d.args[i].name;
  return s + ")";
}

Result<std::vector<int64_t>> evaluate_text(const HwDescription& hw, const std::string& text,
                                           std::span<const HwDefArg> args,
                                           std::span<const std::vector<int64_t>> samples, const Loc& where) {
  const auto count = static_cast<int64_t>(samples.empty() ? 1 : samples[0].size());
  FragmentContext context;
  context.defs = needed(hw, text);
  context.loops = {{"i_", Expr(count)}};
  context.tensors.push_back({"result_", kS64, {Expr(count)}, Role::output, std::nullopt});
  for (const HwDefArg& a : args) context.tensors.push_back({a.name, a.dtype, {Expr(count)}, Role::input, std::nullopt});
  DLC_TRY(const Kernel k, parse_fragment("result_[i_] = " + index_arguments(text, args), context, where));
  DLC_TRY(const PreparedKernel p, PreparedKernel::prepare(k));
  std::vector<Tensor> storage;
  DLC_TRY(Tensor result, Tensor::make(kS64, {count}));
  for (size_t a = 0; a < args.size(); ++a) {
    DLC_TRY(Tensor t, Tensor::make(args[a].dtype, {count}));
    for (int64_t i = 0; i < count; ++i) t.set_int(i, samples[a][static_cast<size_t>(i)]);
    storage.push_back(std::move(t));
  }
  std::vector<Buffer> buffers;
  for (const KernelTensor& t : k.tensors) {
    Tensor* mine = t.name == "result_" ? &result : nullptr;
    for (size_t a = 0; a < args.size(); ++a)
      if (args[a].name == t.name) mine = &storage[a];
    buffers.push_back(mine ? Buffer{mine->mutable_bytes(), static_cast<int64_t>(mine->byte_size())} : Buffer{});
  }
  if (auto ok = p.run(buffers); !ok)
    return fail(where, "'" + text + "' has no value for some arguments: " + std::string(ok.error().message()),
                "a shift by more than 63, a division by 0: say with `if` what it is there");
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(result.get_int(i));
  return out;
}

Result<int64_t> evaluate_def(const HwDescription& hw, const HwDef& d, std::span<const int64_t> args) {
  std::vector<std::vector<int64_t>> samples;
  for (const int64_t a : args) samples.push_back({a});
  DLC_TRY(const auto values, evaluate_text(hw, call_text(d), d.args, samples, d.loc));
  return values[0];
}

Result<> check_def(const HwDescription& hw, const HwDef& d, const Loc& where) {
  FragmentContext context;
  context.defs = needed(hw, d.body) + def_head(d) + d.body + "\n";
  context.loops = {{"i_", Expr(1)}};
  context.tensors.push_back({"result_", kS64, {Expr(1)}, Role::output, std::nullopt});
  for (const HwDefArg& a : d.args) context.tensors.push_back({a.name, a.dtype, {Expr(1)}, Role::input, std::nullopt});
  DLC_TRY(const Kernel k, parse_fragment("result_[i_] = " + index_arguments(call_text(d), d.args), context, where));
  (void)k;
  return {};
}

}  // namespace dlc
