#include "frontends/onnx/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace dlc::onnx_frontend {

namespace {

// The bytes of the UTF-8 character at the start of `s`; 0 when there is none.
size_t utf8_length(std::string_view s) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  if (at(0) < 0x80) return 1;
  const size_t n = (at(0) & 0xE0) == 0xC0 ? 2 : (at(0) & 0xF0) == 0xE0 ? 3 : (at(0) & 0xF8) == 0xF0 ? 4 : 0;
  if (n == 0 || s.size() < n) return 0;
  uint32_t code = at(0) & (0xFFU >> (n + 1));
  for (size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (at(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // no longer than needed, no surrogate
  return code < kLeast[n] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : n;
}

bool is_escape(std::string_view s) {
  const auto hex = [&](size_t i) { return std::isxdigit(static_cast<unsigned char>(s[i])) != 0; };
  return s.size() >= 4 && s[0] == '\\' && s[1] == 'x' && hex(2) && hex(3);
}

template <class Strings>
void clean_all(Strings& strings) {
  for (std::string& s : strings) s = clean_name(s);
}

void clean_graph(onnx::GraphProto& g);

template <class Nodes>
void clean_nodes(Nodes& nodes) {
  for (onnx::NodeProto& n : nodes) {
    n.set_name(clean_name(n.name()));
    n.set_op_type(clean_name(n.op_type()));
    n.set_domain(clean_name(n.domain()));
    clean_all(*n.mutable_input());
    clean_all(*n.mutable_output());
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_name()) a.set_name(clean_name(a.name()));
      if (a.has_g()) clean_graph(*a.mutable_g());
      for (auto& g : *a.mutable_graphs()) clean_graph(g);
    }
  }
}

// What a node is called: by its name, or by its first result.
const std::string& called(const onnx::NodeProto& n) {
  return n.name().empty() && n.output_size() > 0 ? n.output(0) : n.name();
}

template <class Nodes>
void tell_apart(Nodes& nodes, bool named, std::set<std::string>& taken) {
  for (onnx::NodeProto& n : nodes) {
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) tell_apart(*a.mutable_g()->mutable_node(), named, taken);
      for (auto& g : *a.mutable_graphs()) tell_apart(*g.mutable_node(), named, taken);
    }
    if (named != !n.name().empty() || called(n).empty() || taken.insert(called(n)).second) continue;
    std::string unique;
    for (int i = 2; !taken.insert(unique = fmt::format("{}_{}", called(n), i)).second;) ++i;
    n.set_name(unique);
  }
}

// Exporters write "?" and "-1" for dims of which they know nothing.
bool is_dim_name(std::string_view s) {
  return std::ranges::any_of(s, [](unsigned char c) { return std::isalpha(c) != 0 || c == '_' || c >= 0x80; });
}

void clean_graph(onnx::GraphProto& g) {
  clean_nodes(*g.mutable_node());
  for (auto& t : *g.mutable_initializer()) t.set_name(clean_name(t.name()));
  for (auto* values : {g.mutable_input(), g.mutable_output(), g.mutable_value_info()})
    for (auto& v : *values) {
      v.set_name(clean_name(v.name()));
      if (!v.type().tensor_type().has_shape()) continue;
      for (auto& d : *v.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (d.has_dim_param() && !is_dim_name(d.dim_param())) d.clear_dim_param();
    }
}

}  // namespace

std::string clean_name(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const std::string_view rest = std::string_view(name).substr(i);
    const size_t n = utf8_length(rest);
    const auto byte = static_cast<unsigned char>(name[i]);
    if (n == 0 || byte < 0x20 || byte == 0x7F || is_escape(rest)) {
      out += fmt::format("\\x{:02x}", byte);
      ++i;
    } else {
      out += rest.substr(0, n);
      i += n;
    }
  }
  return out;
}

void clean_names(onnx::ModelProto& model) {
  clean_graph(*model.mutable_graph());
  for (auto& o : *model.mutable_opset_import()) o.set_domain(clean_name(o.domain()));
  for (auto& f : *model.mutable_functions()) {
    f.set_name(clean_name(f.name()));
    f.set_domain(clean_name(f.domain()));
    clean_all(*f.mutable_input());
    clean_all(*f.mutable_output());
    clean_nodes(*f.mutable_node());
    for (auto& o : *f.mutable_opset_import()) o.set_domain(clean_name(o.domain()));
  }
}

void tell_nodes_apart(onnx::ModelProto& model) {
  std::set<std::string> taken;
  for (const bool named : {true, false}) {
    tell_apart(*model.mutable_graph()->mutable_node(), named, taken);
    for (auto& f : *model.mutable_functions()) tell_apart(*f.mutable_node(), named, taken);
  }
}

}  // namespace dlc::onnx_frontend
