#include "core/graph/kernel_cache.h"

#include <type_traits>

namespace dlc::detail {

namespace {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_pointer_v<T>;

template <Plain T>
void put(std::string& key, T v) {
  key.append(reinterpret_cast<const char*>(&v), sizeof v);
}

void put(std::string& key, std::string_view s) {
  put(key, s.size());
  key.append(s);
}

void put(std::string& key, DType t) {
  put(key, t.kind);
  put(key, t.bits);
}

void put(std::string& key, const Expr& e) { put(key, e.node()); }

template <class T>
void put(std::string& key, const std::vector<T>& items) {
  put(key, items.size());
  for (const auto& i : items) put(key, i);
}

constexpr size_t kLargestTensor = 4096;  // bytes of a tensor attribute that may be part of a key

bool put_attribute(std::string& key, const AttrValue& value) {
  put(key, value.index());
  if (const auto* t = std::get_if<Tensor>(&value)) {
    if (t->byte_size() > kLargestTensor) return false;
    put(key, t->dtype());
    put(key, t->shape());
    put(key, std::string_view(reinterpret_cast<const char*>(t->bytes()), t->byte_size()));
    return true;
  }
  std::visit(
      [&](const auto& v) {
        using V = std::decay_t<decltype(v)>;
        if constexpr (!std::is_same_v<V, Tensor>) put(key, v);
      },
      value);
  return true;
}

}  // namespace

std::optional<std::string> instantiation_key(std::string_view op, std::span<const Operand> operands, const Attrs& attrs,
                                             const Ranges& ranges) {
  std::string key;
  put(key, op);
  for (const auto& o : operands) {
    put(key, o.present);
    put(key, o.types.size());
    for (const auto& t : o.types) {
      put(key, t.dtype);
      put(key, t.shape);
    }
  }
  for (const auto& [name, value] : attrs) {
    put(key, name);
    if (!put_attribute(key, value)) return std::nullopt;
  }
  for (const auto& [name, range] : ranges) {
    put(key, name);
    put(key, range.bounds.lo);
    put(key, range.bounds.hi);
    put(key, range.upper);
    put(key, range.divisible_by);
  }
  return key;
}

std::shared_ptr<const Kernel> KernelCache::find(const std::string& key) const {
  std::lock_guard lock(mutex_);
  auto it = kernels_.find(key);
  return it == kernels_.end() ? nullptr : it->second;
}

void KernelCache::insert(const std::string& key, std::shared_ptr<const Kernel> kernel) {
  std::lock_guard lock(mutex_);
  kernels_.emplace(key, std::move(kernel));
}

}  // namespace dlc::detail
