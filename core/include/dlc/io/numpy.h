// numpy's .npy and .npz files: how tensors come in and go out on the command line.
//
// Formats 1.0, 2.0 and 3.0; written little-endian and in C order, read in any. Types that numpy has not are written as
// integers: of small integers the values (s4: s8), of floats the bits (bf16: u16, f8e5m2: u8). unpacked() takes them
// back, and the bits that ml_dtypes writes. Reference: numpy.lib.format.
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

// The type that a file holds such elements as; numpy has it.
DType numpy_type(DType type);
// A tensor from a file as the type that it is known to have. Another tensor than numpy keeps for that type, or one with
// elements beyond its range, comes back as it is.
Tensor unpacked(const Tensor& t, DType type);

// Entries in the archive's order, without their ".npy". Arrays of strings are passed over.
Result<NamedTensors> read_npz(const std::string& path);
Result<std::vector<std::byte>> to_npz(const NamedTensors& tensors);
Result<> write_npz(const std::string& path, const NamedTensors& tensors);

// By the name's ending: .npz, or .npy with one tensor whose name is empty.
Result<NamedTensors> read_tensors(const std::string& path);
Result<> write_tensors(const std::string& path, const NamedTensors& tensors);

}  // namespace dlc
