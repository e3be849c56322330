// Which tensors are a kernel's operands and results when its text does not say: by role, in order of declaration.
#pragma once

#include "dlc/kernel/kernel.h"

namespace dlc {

inline std::vector<int> tensors_with(const Kernel& k, std::initializer_list<Role> roles) {
  std::vector<int> r;
  for (size_t i = 0; i < k.tensors.size(); ++i)
    for (Role role : roles)
      if (k.tensors[i].role == role) r.push_back(static_cast<int>(i));
  return r;
}
inline std::vector<int> default_inputs(const Kernel& k) {
  return tensors_with(k, {Role::input, Role::constant, Role::state});
}
inline std::vector<int> default_outputs(const Kernel& k) { return tensors_with(k, {Role::output}); }

}  // namespace dlc
