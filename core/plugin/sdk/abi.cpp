#include "core/plugin/abi.h"

#include <fmt/format.h>

#include <exception>

namespace dlc::detail {

Result<std::vector<std::pair<std::string, Tensor>>> wrap_tensors(const dlc_tensor* table, uint64_t count) {
  std::vector<std::pair<std::string, Tensor>> out;
  if (count > 0 && table == nullptr) return fail({}, "a table of tensors is missing");
  const uint64_t stride = count > 0 ? table->struct_size : 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto* at = reinterpret_cast<const std::byte*>(table) + i * stride;
    const dlc_tensor c = read_struct(reinterpret_cast<const dlc_tensor*>(at));
    const std::string name = or_empty(c.name);
    const auto dtype = parse_dtype(or_empty(c.dtype));
    if (!dtype) return fail({}, fmt::format("tensor {} has the unknown dtype '{}'", name, or_empty(c.dtype)));
    std::vector<int64_t> shape(c.shape, c.shape + c.rank);
    static constexpr std::byte kNothing{};
    DLC_TRY(Tensor t, Tensor::wrap(*dtype, std::move(shape), c.data != nullptr ? c.data : &kNothing, nullptr));
    if (t.byte_size() != c.bytes || (c.data == nullptr && c.bytes > 0))
      return fail({}, fmt::format("tensor {} has {} bytes, {} is {}", name, c.bytes, to_string(t.dtype(), t.shape()),
                                  t.byte_size()));
    out.emplace_back(name, std::move(t));
  }
  return out;
}

Result<std::vector<StateMemory>> wrap_states(const dlc_tensor* table, uint64_t count) {
  std::vector<StateMemory> out;
  DLC_TRY(const auto memory, wrap_tensors(table, count));  // checks them
  const uint64_t stride = count > 0 ? table->struct_size : 0;
  for (uint64_t i = 0; i < count; ++i) {
    const dlc_tensor c =
        read_struct(reinterpret_cast<const dlc_tensor*>(reinterpret_cast<const std::byte*>(table) + i * stride));
    if (c.holds == nullptr) return fail({}, fmt::format("state {} has no shape of its value", i));
    const Tensor& t = memory[i].second;
    out.push_back({static_cast<std::byte*>(c.data), t.dtype(), t.shape(), {c.holds, c.holds + c.rank}});
  }
  return out;
}

void report(const dlc_error* to, const Error& error) {
  const dlc_error c = read_struct(to);
  if (c.report == nullptr) return;
  for (const Diagnostic& d : error.diagnostics)
    c.report(c.context, static_cast<int32_t>(d.severity), d.loc.file.c_str(), d.loc.line, d.loc.column,
             d.loc.node.c_str(), d.message.c_str(), d.hint.c_str());
}

ErrorCollector::ErrorCollector() {
  c_.struct_size = sizeof(c_);
  c_.context = this;
  c_.report = [](void* context, int32_t severity, const char* file, int32_t line, int32_t column, const char* node,
                 const char* message, const char* hint) {
    // Called through C, which no exception may cross. A report that memory has no room for is lost; that the call
    // failed is told by its code.
    try {
      Diagnostic d;
      d.severity = severity == DLC_NOTE      ? Severity::note
                   : severity == DLC_WARNING ? Severity::warning
                                             : Severity::error;
      d.loc = {or_empty(file), line, column, or_empty(node)};
      d.message = or_empty(message);
      d.hint = or_empty(hint);
      static_cast<ErrorCollector*>(context)->collected_.diagnostics.push_back(std::move(d));
    } catch (const std::exception&) {
    }
  };
}

Error ErrorCollector::take(const std::string& plugin) {
  if (collected_.empty()) return Error({}, fmt::format("plugin {} failed without saying why", plugin));
  return std::move(collected_);
}

}  // namespace dlc::detail
