// Everything that keeps a model from being imported, told in one answer.
#include <fmt/format.h>

#include <algorithm>

#include "frontends/onnx/importer.h"

namespace dlc::onnx_frontend {

namespace {

// The nearest legal change: an older or newer opset, another domain, another spelling; or else the op in terms of
// others.
std::string instead_of(const std::string& domain, const std::string& op, int opset) {
  std::vector<std::string> names;
  std::string other;
  for (const auto& table : op_tables())
    for (const OpEntry& e : table) {
      names.emplace_back(e.op);
      if (e.op != op) continue;
      if (e.domain != domain) {
        other = fmt::format("{} is supported", e.domain.empty() ? op + " of the default domain" : spelt(e.domain, op));
      } else if (e.max_opset > 0 && e.max_opset < opset) {
        return fmt::format("{} is of opsets up to {}, the model's is {}: newer ops say the same", op, e.max_opset,
                           opset);
      } else if (opset < kFirstOpset) {
        return fmt::format("convert the model to an opset from {} to {}", kFirstOpset, kMaxOpset);
      }
    }
  if (!other.empty()) return other;
  if (const std::string near = nearest(op, names); !near.empty()) return fmt::format("did you mean {}?", near);
  return "export the model without it, or give the model a function of supported ops (dlc ops lists them)";
}

}  // namespace

void Importer::check_supported(const onnx::NodeProto& node, Error& all) const {
  for (const auto& a : node.attribute()) {
    if (a.has_g())
      for (const auto& n : a.g().node()) check_supported(n, all);
    for (const auto& g : a.graphs())
      for (const auto& n : g.node()) check_supported(n, all);
  }
  if (find_op(node) != nullptr || find_function(node) != nullptr) return;
  const std::string name = !node.name().empty() ? node.name() : node.output_size() > 0 ? node.output(0) : std::string();
  const std::string domain = is_default_domain(node.domain()) ? std::string() : node.domain();
  const int opset = opset_of(domain);
  std::string op = spelt(domain, node.op_type());
  if (domain.empty() && opset < kFirstOpset) op += fmt::format(" of opset {}", opset);
  all.add(
      Error({file_, 0, 0, name}, fmt::format("op {} is not supported", op), instead_of(domain, node.op_type(), opset)));
}

void Importer::refuse(Error why, const std::vector<std::string>& missing) {
  refused_.add(std::move(why));
  missing_.insert(missing.begin(), missing.end());
}

bool Importer::needs_missing(const onnx::NodeProto& node) const {
  if (missing_.empty()) return false;
  const auto is_missing = [&](const std::string& value) { return !value.empty() && missing_.contains(value); };
  const auto within = [&](const onnx::GraphProto& body) {
    return std::ranges::any_of(body.node(), [&](const onnx::NodeProto& n) { return needs_missing(n); }) ||
           std::ranges::any_of(body.output(), [&](const auto& v) { return is_missing(v.name()); });
  };
  return std::ranges::any_of(node.input(), is_missing) ||
         std::ranges::any_of(node.attribute(), [&](const onnx::AttributeProto& a) {
           return (a.has_g() && within(a.g())) || std::ranges::any_of(a.graphs(), within);
         });
}

}  // namespace dlc::onnx_frontend
