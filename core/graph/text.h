// The words of graph text, shared by printer and parser: names, strings, numbers, constants.
#pragma once

#include <string>
#include <string_view>

#include "dlc/base/tensor.h"
#include "dlc/ops/record.h"

namespace dlc::detail {

inline constexpr std::string_view kGraphHeader = "dlc.graph 1";
inline constexpr int64_t kInlineElements = 16;      // constants up to this size are written out
inline constexpr int64_t kSplatElements = 1 << 20;  // and up to this one when every element is the same

// Letters, digits and _ . / $ - are written as they are; any other name is quoted.
bool is_bare_name_char(char c);
std::string name_text(std::string_view name);
std::string quoted(std::string_view s);

// A double with a point, an exponent, inf or nan, so that it cannot be read as an integer.
std::string double_text(double v);
// Elements in the shortest form that reads back to the same bits, e.g. "[1, 2]"; one number when all are the same.
std::string elements_text(const Tensor& t);

std::string type_text(const Tensor& t);
// "axis = 1", "to: f32"
std::string attribute_text(const Attrs::value_type& attr);
// "N", "N in 1..64", "N in ..M - 1 by 8"; a plain N is at least 1.
std::string symbol_text(const Ranges::value_type& symbol);

// What comes before the names of a body's constants in the weight table: constants of different bodies may have one
// name.
std::string body_prefix(const std::string& around, const std::string& result, std::string_view op, size_t body);

}  // namespace dlc::detail
