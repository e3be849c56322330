#include "dlc/program/program.h"

namespace dlc {

int Program::find_buffer(std::string_view name) const {
  for (size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].name == name) return static_cast<int>(i);
  return -1;
}

TensorType value_type(const ProgramBuffer& b) { return {b.type.dtype, b.holds.empty() ? b.type.shape : b.holds}; }

const Tensor* Program::weight(std::string_view name) const {
  for (const auto& [n, t] : weights)
    if (n == name) return &t;
  return nullptr;
}

}  // namespace dlc
