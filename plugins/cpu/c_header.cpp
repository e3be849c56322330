#include "plugins/cpu/c_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "dlc/program/state.h"

namespace dlc::cpu {

namespace {

// {0} prefix, {1} PREFIX, {2} tensors, {3} dims and what they must be, {4} weights, {5} macros of the weights
constexpr const char* kText = R"(/* A model, compiled by dlc. Tensors are dense and row-major:
{2} */
#ifndef {1}_H
#define {1}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Runs body(context, begin, end) on ranges that together are [0, count), each element once, in any order, on as many
 * threads as it likes; returns when all of them are done. `pool` is what the caller gave beside it. */
#ifndef DLC_PARALLEL_FOR
#define DLC_PARALLEL_FOR
typedef void (*dlc_parallel_for)(void* pool, int64_t count, void (*body)(void* context, int64_t begin, int64_t end),
                                 void* context);
#endif
{5}
/* Bytes of working memory, which must be aligned to 64; -2 where the model was not compiled for these dims.
 * dims: {3}. */
int64_t {0}_workspace_bytes(const int64_t* dims);

/* weights: {4}
 * Returns 0, or the number of the call (from 1) that met a value that is not defined (an index out of bounds, a division
 * by zero), or -1 when the weights are not this model's, or -2 when it was not compiled for these dims. May be called
 * from several threads with a workspace each. */
int32_t {0}_run(const void* const* inputs, void* const* outputs, void* workspace, const int64_t* dims,
    const void* weights);

/* The same with the caller's threads. parallel_for may be NULL. The results are the same, bit for bit. */
int32_t {0}_run_parallel(const void* const* inputs, void* const* outputs, void* workspace, const int64_t* dims,
    const void* weights, dlc_parallel_for parallel_for, void* pool);

#ifdef __cplusplus
}}
#endif

#endif
)";

}  // namespace

std::string c_header(const Program& p, const std::string& prefix, const std::string& file, size_t weights_bytes) {
  std::string dims, tensors, states, handed_on;
  const std::vector<StatePair> in_place = in_place_states(p);
  const auto is_state = [&](const ProgramBuffer& b) {
    return std::ranges::find(in_place, b.name, &StatePair::input) != in_place.end();
  };
  const auto next_value = [&](const ProgramBuffer& b) -> const ProgramBuffer& {
    return p
        .buffers[static_cast<size_t>(p.find_buffer(std::ranges::find(in_place, b.name, &StatePair::input)->output))];
  };
  for (const auto& [symbol, r] : p.symbols) dims += fmt::format(" {}", symbol);
  const std::vector<Guard> conditions = entry_conditions(p);
  for (size_t i = 0; i < conditions.size(); ++i)
    dims += fmt::format("{}{}", i == 0 ? ".\n * Compiled for " : ", ", to_string(conditions[i]));
  int input = 0, output = 0;
  std::map<std::string, std::string> place;  // of an input or output
  for (const ProgramBuffer& b : p.buffers) {
    const std::string type = to_string(value_type(b));
    if (b.kind == BufferKind::input && is_state(b)) {
      states += fmt::format(" *   inputs[{}] {}: {}", input, b.external_name, type);
      if (!b.holds.empty()) states += fmt::format(", in memory of {}", to_string(b.type));
      states += fmt::format("; then {}: {}\n", next_value(b).external_name, to_string(value_type(next_value(b))));
    }
    if (b.kind == BufferKind::input) place[b.name] = fmt::format("inputs[{}] {}", input, b.external_name);
    if (b.kind == BufferKind::output) place[b.name] = fmt::format("outputs[{}] {}", output, b.external_name);
    if (b.kind == BufferKind::input)
      tensors += fmt::format(" *   inputs[{}]  {}: {}\n", input++, b.external_name, type);
    if (b.kind == BufferKind::output)
      tensors += fmt::format(" *   outputs[{}] {}: {}{}\n", output++, b.external_name, type,
                             b.alias && b.alias->keeps ? " (a state, see below; not used, may be NULL)" : "");
  }
  for (const StatePair& s : p.states)
    if (std::ranges::find(in_place, s) == in_place.end())
      handed_on += fmt::format(" *   {} is the next {}\n", place[s.output], place[s.input]);
  if (!states.empty())
    tensors +=
        " *\n * States, read and written in place (the caller's memory; where it is larger than the value, that lies "
        "at "
        "its origin):\n" +
        states;
  if (!handed_on.empty())
    tensors += " *\n * States that the caller hands on from call to call, in buffers of their own:\n" + handed_on;
  // A name that would end the comment.
  for (size_t at = 0; (at = tensors.find("*/", at)) != std::string::npos;) tensors.replace(at, 2, "* /");
  std::string upper = prefix;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string weights = "NULL, they are inside.", macros;
  if (weights_bytes > 0) {
    weights = fmt::format("the bytes of {}_WEIGHTS_FILE, aligned to 64 (a mapped file is).", upper);
    macros = fmt::format(
        "\n#define {0}_WEIGHTS_FILE \"{1}.weights\" /* beside the library */\n"
        "#define {0}_WEIGHTS_BYTES {2}u\n",
        upper, file, weights_bytes);
  }
  return fmt::format(kText, prefix, upper, tensors, dims.empty() ? "none, NULL" : "the values of" + dims, weights,
                     macros);
}

}  // namespace dlc::cpu
