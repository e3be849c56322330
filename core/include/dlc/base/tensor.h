// A tensor at run time: dtype, static shape, dense row-major bytes. Copies share the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/dtype.h"

namespace dlc {

class Tensor {
 public:
  Tensor() = default;  // f32 scalar without data; is_valid() is false

  // Zero-filled. Fails on a negative dim, on overflow and above max_bytes().
  static Result<Tensor> make(DType dtype, std::vector<int64_t> shape);
  // Wraps bytes owned by somebody else (a mapped file), which `owner` keeps alive. 64-byte alignment is not promised.
  static Result<Tensor> wrap(DType dtype, std::vector<int64_t> shape, const void* bytes,
                             std::shared_ptr<const void> owner);
  template <class T>
  static Result<Tensor> from(DType dtype, std::vector<int64_t> shape, std::span<const T> values);  // sizes must agree

  bool is_valid() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t elements() const { return elements_; }
  size_t byte_size() const { return static_cast<size_t>(elements_) * static_cast<size_t>(dtype_.bytes()); }

  const std::byte* bytes() const { return data_.get(); }
  // The bytes for writing. Copies them first when they are shared with another Tensor or wrapped (copy on write).
  std::byte* mutable_bytes();
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes()), static_cast<size_t>(elements_)};
  }
  template <class T>
  std::span<T> as_mutable() {
    return {reinterpret_cast<T*>(mutable_bytes()), static_cast<size_t>(elements_)};
  }

  // Element i in row-major order, converted. get_int truncates floats; u64 keeps its bits.
  double get_double(int64_t i) const;
  int64_t get_int(int64_t i) const;
  void set_double(int64_t i, double v);  // rounds to nearest even; integers wrap after rounding toward zero
  void set_int(int64_t i, int64_t v);    // integers wrap

  // The same elements under another shape. The element counts must agree.
  Result<Tensor> reshaped(std::vector<int64_t> shape) const;
  // Element-wise conversion (float to int truncates toward zero, int to int wraps, to bool is != 0).
  Result<Tensor> cast(DType to) const;

  static int64_t max_bytes();  // 64 GiB: a larger request is an error, not an allocation

 private:
  DType dtype_ = kF32;
  bool owned_ = false;
  std::vector<int64_t> shape_;
  int64_t elements_ = 0;
  std::shared_ptr<std::byte> data_;
};

// "f32[1,3,224,224]"
std::string to_string(DType dtype, std::span<const int64_t> shape);

template <class T>
Result<Tensor> Tensor::from(DType dtype, std::vector<int64_t> shape, std::span<const T> values) {
  if (static_cast<int>(sizeof(T)) != dtype.bytes()) return fail({}, "element size does not match " + to_string(dtype));
  auto t = make(dtype, std::move(shape));
  if (!t) return t;
  if (t->elements() != static_cast<int64_t>(values.size()))
    return fail({},
                "tensor of " + std::to_string(t->elements()) + " elements made from " + std::to_string(values.size()));
  if (!values.empty()) std::copy(values.begin(), values.end(), t->template as_mutable<T>().begin());
  return t;
}

}  // namespace dlc
