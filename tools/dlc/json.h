// JSON that plugins and files say: reports, counters, replay bundles. It may hold anything.
//
//   const Json counters = object_of(session.counters(0));        // {} where it is no object
//   const auto cycles = field<int64_t>(counters, "cycles");      // 0 where it is no such number
#pragma once

#include <string>
#include <string_view>

#include "tools/dlc/cli.h"

namespace dlc::cli {

// The text as an array or an object; of another kind, or deeper than can be printed, it is the empty one.
Json array_of(std::string_view text);
Json object_of(std::string_view text);

// Whether `j` is an object with a T of this name: bool, int64_t, double or std::string.
template <class T>
bool has(const Json& j, const std::string& key);
// That field; a T of nothing if there is none.
template <class T>
T field(const Json& j, const std::string& key) {
  return has<T>(j, key) ? j[key].get<T>() : T{};
}
// The objects of a list of this name, and the texts of one.
Json objects_in(const Json& j, const std::string& key);
std::vector<std::string> texts_in(const Json& j, const std::string& key);

}  // namespace dlc::cli
