// Weights stay where their file is mapped: protobuf is given a copy of the model's message without them.
//
//   initializer { dims: 768 raw_data: <3072 bytes> }   ->   initializer { dims: 768 raw_data: <offset, size> }
//
// In such a message the raw_data of every tensor, wherever in the model it is, is a place in the original, never data.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace dlc::onnx_frontend {

// `model` is a serialized ModelProto. Empty when it is not well formed or nests messages deeper than `most_nested`;
// what is not well formed inside the other fields is left for protobuf to find.
std::optional<std::string> without_raw_data(std::span<const std::byte> model, int most_nested);

// What `place`, the raw_data of a tensor parsed from without_raw_data(model), stands for. Empty: it is no place.
std::optional<std::span<const std::byte>> raw_data_at(const std::string& place, std::span<const std::byte> model);

}  // namespace dlc::onnx_frontend
