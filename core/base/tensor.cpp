#include "dlc/base/tensor.h"

#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "dlc/base/checked.h"
#include "dlc/base/huge.h"

namespace dlc {

namespace {

constexpr size_t kAlign = 64;

constexpr size_t kFromSystem = size_t{32} << 20;  // from here on malloc asks the system each time, too

// Zeros. Large ones are the system's fresh pages, which cost memory when they are written: a cache's capacity.
std::shared_ptr<std::byte> allocate(size_t bytes) {
  const size_t padded = (bytes + kAlign) / kAlign * kAlign;  // never 0, so that an empty tensor is valid
  if (padded >= kFromSystem) {
    void* pages = mmap(nullptr, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    prefer_huge_pages(pages, padded);
    return {static_cast<std::byte*>(pages), [padded](std::byte* q) { munmap(q, padded); }};
  }
  auto* p = static_cast<std::byte*>(std::aligned_alloc(kAlign, padded));
  if (p == nullptr) return nullptr;
  prefer_huge_pages(p, padded);
  std::memset(p, 0, padded);
  return {p, [](std::byte* q) { std::free(q); }};
}

Result<int64_t> checked_elements(DType dtype, std::span<const int64_t> shape) {
  const auto n = checked_product(shape);
  const auto bytes = n ? checked_mul(*n, dtype.bytes()) : std::nullopt;
  if (!bytes) return fail({}, "tensor size of " + to_string(dtype, shape) + " is negative or overflows");
  if (*bytes > Tensor::max_bytes())
    return fail({}, "tensor " + to_string(dtype, shape) + " needs " + std::to_string(*bytes) +
                        " bytes, above the limit of " + std::to_string(Tensor::max_bytes()));
  return *n;
}

// Float to integer as dlc defines it: truncated toward zero, out of range saturates at int64, NaN is 0.
int64_t truncate(double v) {
  if (std::isnan(v)) return 0;
  if (v >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (v < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(v);
}

template <class T>
T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}
template <class T, class V>
void store(std::byte* p, V value) {
  const T v = static_cast<T>(value);
  std::memcpy(p, &v, sizeof(T));
}

}  // namespace

int64_t Tensor::max_bytes() { return int64_t{64} << 30; }

Result<Tensor> Tensor::make(DType dtype, std::vector<int64_t> shape) {
  DLC_TRY(const int64_t n, checked_elements(dtype, shape));
  Tensor t;
  t.dtype_ = dtype;
  t.elements_ = n;
  t.shape_ = std::move(shape);
  t.owned_ = true;
  t.data_ = allocate(t.byte_size());
  if (!t.data_) return fail({}, "out of memory for " + to_string(dtype, t.shape_));
  return t;
}

Result<Tensor> Tensor::wrap(DType dtype, std::vector<int64_t> shape, const void* bytes,
                            std::shared_ptr<const void> owner) {
  DLC_TRY(const int64_t n, checked_elements(dtype, shape));
  Tensor t;
  t.dtype_ = dtype;
  t.elements_ = n;
  t.shape_ = std::move(shape);
  // Never written through: mutable_bytes() copies first, since owned_ is false.
  auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(bytes));
  t.data_ = std::shared_ptr<std::byte>(data, [owner = std::move(owner)](std::byte*) {});
  return t;
}

std::byte* Tensor::mutable_bytes() {
  if (!owned_ || data_.use_count() > 1) {
    auto copy = allocate(byte_size());
    if (copy && data_) std::memcpy(copy.get(), data_.get(), byte_size());
    data_ = std::move(copy);
    owned_ = true;
  }
  return data_.get();
}

double Tensor::get_double(int64_t i) const {
  const std::byte* p = bytes() + i * dtype_.bytes();
  if (dtype_ == kF32) return load<float>(p);
  if (dtype_ == kF64) return load<double>(p);
  if (dtype_.is_narrow_float())
    return from_bits(dtype_, dtype_.bytes() == 1 ? uint32_t{load<uint8_t>(p)} : load<uint16_t>(p));
  const int64_t v = get_int(i);
  return dtype_ == kU64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
}

int64_t Tensor::get_int(int64_t i) const {
  if (dtype_.is_float()) return truncate(get_double(i));
  const std::byte* p = bytes() + i * dtype_.bytes();
  const bool sign = dtype_.is_signed();
  switch (dtype_.bytes()) {
    case 1:
      return sign ? int64_t{load<int8_t>(p)} : int64_t{load<uint8_t>(p)};
    case 2:
      return sign ? int64_t{load<int16_t>(p)} : int64_t{load<uint16_t>(p)};
    case 4:
      return sign ? int64_t{load<int32_t>(p)} : int64_t{load<uint32_t>(p)};
    default:
      return load<int64_t>(p);
  }
}

void Tensor::set_double(int64_t i, double v) {
  std::byte* p = mutable_bytes() + i * dtype_.bytes();
  if (dtype_ == kF32) return store<float>(p, v);
  if (dtype_ == kF64) return store<double>(p, v);
  if (dtype_.is_narrow_float()) {
    const uint32_t bits = to_bits(dtype_, static_cast<float>(v));
    return dtype_.bytes() == 1 ? store<uint8_t>(p, bits) : store<uint16_t>(p, bits);
  }
  if (dtype_.is_bool()) return store<uint8_t>(p, v != 0);
  set_int(i, truncate(v));
}

void Tensor::set_int(int64_t i, int64_t v) {
  if (dtype_.is_float()) return set_double(i, static_cast<double>(v));
  std::byte* p = mutable_bytes() + i * dtype_.bytes();
  const int64_t w = wrap_to(dtype_, v);
  switch (dtype_.bytes()) {
    case 1:
      return store<uint8_t>(p, w);
    case 2:
      return store<uint16_t>(p, w);
    case 4:
      return store<uint32_t>(p, w);
    default:
      return store<int64_t>(p, w);
  }
}

Result<Tensor> Tensor::reshaped(std::vector<int64_t> shape) const {
  const auto n = checked_product(shape);
  if (!n || *n != elements_)
    return fail({}, "cannot view " + to_string(dtype_, shape_) + " as " + to_string(dtype_, shape));
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

Result<Tensor> Tensor::cast(DType to) const {
  if (to == dtype_) return *this;
  DLC_TRY(Tensor t, make(to, shape_));
  for (int64_t i = 0; i < elements_; ++i) {
    if (dtype_.is_float())
      t.set_double(i, get_double(i));
    else if (to.is_float())
      t.set_double(i, get_double(i));
    else
      t.set_int(i, get_int(i));
  }
  return t;
}

std::string to_string(DType dtype, std::span<const int64_t> shape) {
  std::string s = to_string(dtype) + "[";
  for (size_t i = 0; i < shape.size(); ++i) s += (i ? "," : "") + std::to_string(shape[i]);
  return s + "]";
}

}  // namespace dlc
