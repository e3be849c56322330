// The segments of a program in the machine's external memory.
#include <algorithm>

#include "dlc/map/compile.h"

namespace dlc {

namespace {
constexpr uint64_t kPage = 4096;
}

std::vector<uint64_t> segment_sizes(const HwDescription& hw, const AcceleratorImage& image, size_t code_bytes) {
  std::vector<uint64_t> size(hw.spaces.size(), 0);
  for (size_t s = 0; s < hw.spaces.size(); ++s) {
    if (hw.spaces[s].segment < 0) continue;
    const std::string& name = hw.spaces[s].name;
    if (name.ends_with(".code")) size[s] = code_bytes;
    if (name.ends_with(".weights")) size[s] = image.weights.size();
    if (name.ends_with(".arena")) size[s] = static_cast<uint64_t>(image.arena_bytes);
  }
  for (const auto* list : {&image.inputs, &image.outputs})
    for (const AcceleratorIo& io : *list) {
      uint64_t& most = size[static_cast<size_t>(io.segment)];
      most = std::max(most, static_cast<uint64_t>(io.offset + io.bytes));
    }
  return size;
}

std::vector<uint64_t> segment_bases(const HwDescription& hw, const AcceleratorImage& image, size_t code_bytes,
                                    uint64_t* end) {
  const std::vector<uint64_t> size = segment_sizes(hw, image, code_bytes);
  std::vector<uint64_t> base(hw.spaces.size(), 0);
  uint64_t at = 0;
  for (size_t s = 0; s < hw.spaces.size(); ++s) {
    if (hw.spaces[s].segment < 0) continue;
    base[s] = at;
    at += (size[s] + kPage - 1) / kPage * kPage;
  }
  *end = at;
  return base;
}

}  // namespace dlc
