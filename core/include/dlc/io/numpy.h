// numpy's .npy and .npz files: how tensors come in and go out on the command line.
//
// Formats 1.0, 2.0 and 3.0, little-endian, C order (Fortran order is transposed on reading). bf16 has no numpy type: it
// is written as u16 bit patterns. Reference: numpy.lib.format.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dlc/base/diag.h"
#include "dlc/base/tensor.h"

namespace dlc {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& file);
std::vector<std::byte> to_npy(const Tensor& t);

// Entries in the archive's order, without their ".npy". Arrays of strings are passed over.
Result<NamedTensors> read_npz(const std::string& path);
Result<> write_npz(const std::string& path, const NamedTensors& tensors);

// By the name's ending: .npz, or .npy with one tensor whose name is empty.
Result<NamedTensors> read_tensors(const std::string& path);
Result<> write_tensors(const std::string& path, const NamedTensors& tensors);

}  // namespace dlc
