#include "tools/dlc/json.h"

#include <concepts>
#include <cstdint>
#include <limits>

#include "dlc/io/json.h"

namespace dlc::cli {

namespace {

Json parsed(std::string_view text) {
  return is_shallow_json(text) ? Json::parse(text, nullptr, false) : Json(Json::value_t::discarded);
}

}  // namespace

Json array_of(std::string_view text) {
  Json j = parsed(text);
  return j.is_array() ? j : Json::array();
}

Json object_of(std::string_view text) {
  Json j = parsed(text);
  return j.is_object() ? j : Json::object();
}

template <class T>
bool has(const Json& j, const std::string& key) {
  if (!j.is_object() || !j.contains(key)) return false;
  const Json& v = j[key];
  if constexpr (std::same_as<T, bool>) return v.is_boolean();
  if constexpr (std::same_as<T, std::string>) return v.is_string();
  if constexpr (std::same_as<T, double>) return v.is_number();
  if constexpr (std::same_as<T, int64_t>)
    return v.is_number_integer() &&
           (!v.is_number_unsigned() || v.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
}
template bool has<bool>(const Json&, const std::string&);
template bool has<std::string>(const Json&, const std::string&);
template bool has<double>(const Json&, const std::string&);
template bool has<int64_t>(const Json&, const std::string&);

Json objects_in(const Json& j, const std::string& key) {
  Json out = Json::array();
  if (!j.is_object() || !j.contains(key) || !j[key].is_array()) return out;
  for (const Json& x : j[key])
    if (x.is_object()) out.push_back(x);
  return out;
}

std::vector<std::string> texts_in(const Json& j, const std::string& key) {
  std::vector<std::string> out;
  if (!j.is_object() || !j.contains(key) || !j[key].is_array()) return out;
  for (const Json& x : j[key])
    if (x.is_string()) out.push_back(x.get<std::string>());
  return out;
}

}  // namespace dlc::cli
