// The executable of the asic plugin: everything a device needs to run one partition, in one piece of bytes.
//
//   0   "DLCASIC1"
//   8   u64 bytes of the header, little-endian
//   16  header, JSON: arch_hash, the hardware description, segments, inputs and outputs with their layouts, layers with
//       predicted cycles, and for every instruction its layer and tile
//       then the instruction words (u32), then the bytes of the segment `weights`
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dlc/hw/description.h"
#include "dlc/map/compile.h"

namespace dlc::asic {

// The text a machine came from, so that the artifact describes its own: with what its `like:` names merged in, and
// with the name of its file alone, the same in every folder.
struct HardwareText {
  std::string text, file, params;
};
Result<HwDescription> read_hardware(const HardwareText& h);

struct Loaded {
  std::shared_ptr<const HwDescription> hw;
  AcceleratorImage image;  // the program decoded from its words
  std::vector<uint32_t> words;
  std::string hardware;  // what --hw was: "asic.yaml,R=8"
};

Result<std::vector<std::byte>> write_container(const HwDescription& hw, const HardwareText& text,
                                               const AcceleratorImage& image);
// Whether these are the bytes of one, by how they begin.
bool is_container(std::span<const std::byte> bytes);
// Trusts nothing: what it returns has sizes that agree, tensors within their segments, layers within the program.
Result<Loaded> read_container(std::span<const std::byte> bytes);
// The layers as JSON, for reports.
std::string layer_report(const HwDescription& hw, const AcceleratorImage& image);

}  // namespace dlc::asic
