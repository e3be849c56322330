#include <algorithm>

#include "core/map/target.h"
#include "dlc/base/checked.h"

namespace dlc::map {

Layout Layout::of(const TensorType& type, int64_t lanes) {
  Layout l;
  for (const Expr& e : type.shape) l.shape.push_back(e.constant().value_or(1));
  l.blocked = blocked_dim(l.shape.size());
  l.lanes = lanes;
  l.element_bytes = type.dtype.bytes();
  return l;
}

std::vector<int64_t> Layout::words() const {
  std::vector<int64_t> w = shape;
  if (blocked >= 0) w[static_cast<size_t>(blocked)] = ceil_div(w[static_cast<size_t>(blocked)], lanes);
  return w;
}

int64_t Layout::bytes() const {
  int64_t n = lanes * element_bytes;
  for (const int64_t w : words()) n *= w;
  return n;
}

namespace {

// Calls f(element in row-major order, byte offset in the layout).
template <class F>
void for_each_element(const Layout& l, const F& f) {
  const auto words = l.words();
  std::vector<int64_t> strides(words.size(), l.lanes);
  for (size_t d = words.size(); d-- > 1;) strides[d - 1] = strides[d] * words[d];
  std::vector<int64_t> at(l.shape.size(), 0);
  if (std::ranges::find(l.shape, 0) != l.shape.end()) return;
  for (int64_t element = 0;; ++element) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d)
      offset += static_cast<int>(d) == l.blocked ? at[d] / l.lanes * strides[d] + at[d] % l.lanes : at[d] * strides[d];
    f(element, offset * l.element_bytes);
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == l.shape[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

}  // namespace

void pack(const Layout& layout, const Tensor& from, std::byte* to) {
  std::fill_n(to, layout.bytes(), std::byte{0});
  const auto n = static_cast<size_t>(layout.element_bytes);
  for_each_element(layout, [&](int64_t element, int64_t offset) {
    std::copy_n(from.bytes() + static_cast<size_t>(element) * n, n, to + offset);
  });
}

void unpack(const Layout& layout, const std::byte* from, Tensor& to) {
  const auto n = static_cast<size_t>(layout.element_bytes);
  std::byte* out = to.mutable_bytes();
  for_each_element(layout, [&](int64_t element, int64_t offset) {
    std::copy_n(from + offset, n, out + static_cast<size_t>(element) * n);
  });
}

}  // namespace dlc::map
