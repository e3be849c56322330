// A program on a device: loaded once, run many times.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dlc/plugin/backend.h"
#include "plugins/cuda/container.h"
#include "plugins/cuda/runtime/gpu.h"

namespace dlc::cuda {

// `image`: the module that the device loads.
Result<std::unique_ptr<Executable>> make_executable(std::shared_ptr<Gpu> gpu, Unpacked code,
                                                    const std::vector<std::byte>& image,
                                                    std::vector<std::pair<std::string, Tensor>> weights);

}  // namespace dlc::cuda
