// Kernels of records already instantiated, keyed by everything instantiation depends on. A network repeats its layers,
// and the verifier infers every node after every pass: without this, most of compiling would be instantiation.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "dlc/kernel/kernel.h"
#include "dlc/ops/record.h"

namespace dlc::detail {

// The key of an instantiation; nullopt when an attribute is too large to be part of one. Exprs are hash-consed and live
// as long as the process, so their addresses identify them.
std::optional<std::string> instantiation_key(std::string_view op, std::span<const Operand> operands, const Attrs& attrs,
                                             const Ranges& ranges);

class KernelCache {
 public:
  std::shared_ptr<const Kernel> find(const std::string& key) const;
  void insert(const std::string& key, std::shared_ptr<const Kernel> kernel);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const Kernel>> kernels_;
};

}  // namespace dlc::detail
