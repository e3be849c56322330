// What the cuda plugin's "executable" holds: the program's text, the launches of its kernels, their CUDA text, and what
// was made of that for machines.
//
//   dlc.cuda 1 {"target": "sm_90a", "program": 5120, "text": 81920, "kernels": [...], "images": [...]}
//   dlc.program 1 ...
//   #include "dlc_dev.h" ...
//   (cubins, PTX)
//
// Constants are not in it: they come beside it under the names of the program's buffers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "dlc/program/program.h"
#include "plugins/cuda/codegen/codegen.h"

namespace dlc::cuda {

// A module for one target: "sm_90a" is a cubin, "compute_80" PTX.
struct Image {
  std::string target;
  std::vector<std::byte> bytes;
};

struct Unpacked {
  Program program;  // without weights
  std::string target;
  Module module;
  std::vector<Image> images;
};

std::vector<std::byte> pack(const Program& program, const std::string& target, const Module& module,
                            const std::vector<Image>& images);
Result<Unpacked> unpack(std::span<const std::byte> executable);

}  // namespace dlc::cuda
