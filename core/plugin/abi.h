// What both sides of the C interface need: structs of unknown size, tensor tables, diagnostics.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"
#include "dlc/plugin/dlc_plugin.h"
#include "dlc/program/state.h"

namespace dlc::detail {

// A struct as its writer knows it: what the writer's version lacks is zero.
template <class T>
T read_struct(const T* given) {
  T own{};
  if (given == nullptr) return own;
  std::memcpy(&own, given, std::min<size_t>(given->struct_size, sizeof(T)));
  own.struct_size = sizeof(T);
  return own;
}

inline const char* or_empty(const char* s) { return s != nullptr ? s : ""; }

// Tensors as a table of dlc_tensor. Names, shapes and bytes belong to the tensors, which must outlive it.
class TensorTable {
 public:
  void add(const std::string& name, const Tensor& t) {
    dtypes_.push_back(to_string(t.dtype()));
    dlc_tensor c{};
    c.struct_size = sizeof(dlc_tensor);
    c.name = name.c_str();
    c.shape = t.shape().data();
    c.rank = t.shape().size();
    c.data = const_cast<std::byte*>(t.bytes());  // the callee only reads it
    c.bytes = t.byte_size();
    table_.push_back(c);
  }
  void add(const StateMemory& s) {
    dtypes_.push_back(to_string(s.dtype));
    dlc_tensor c{};
    c.struct_size = sizeof(dlc_tensor);
    c.name = "";
    c.shape = s.capacity.data();
    c.rank = s.capacity.size();
    c.data = s.bytes;
    c.bytes = static_cast<uint64_t>(s.dtype.bytes());
    for (const int64_t d : s.capacity) c.bytes *= static_cast<uint64_t>(d);
    c.holds = s.shape.data();
    table_.push_back(c);
  }
  // Valid until the next add().
  const dlc_tensor* data() {
    for (size_t i = 0; i < table_.size(); ++i) table_[i].dtype = dtypes_[i].c_str();
    return table_.data();
  }
  uint64_t size() const { return table_.size(); }

 private:
  std::vector<dlc_tensor> table_;
  std::vector<std::string> dtypes_;
};

// The tensors of a table, their bytes not copied.
Result<std::vector<std::pair<std::string, Tensor>>> wrap_tensors(const dlc_tensor* table, uint64_t count);

Result<std::vector<StateMemory>> wrap_states(const dlc_tensor* table, uint64_t count);

void report(const dlc_error* to, const Error& error);

// A dlc_error that collects.
class ErrorCollector {
 public:
  ErrorCollector();
  const dlc_error* c() const { return &c_; }
  // What was reported, as an error of `plugin`; a failure without any report has a message all the same.
  Error take(const std::string& plugin);

 private:
  dlc_error c_{};
  Error collected_;
};

}  // namespace dlc::detail
