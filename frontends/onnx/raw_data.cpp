#include "frontends/onnx/raw_data.h"

#include <onnx/onnx.pb.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace dlc::onnx_frontend {

namespace {

// The messages that a tensor may lie in, and the fields that lead to it.
enum class Message { model, training, function, graph, node, attribute, sparse_tensor, tensor };
struct Field {
  Message in;
  int number;
  Message holds;
};
constexpr int kAttributeProtoOfFunction = 11;  // newer than some onnx.proto
constexpr Field kFields[] = {
    {Message::model, onnx::ModelProto::kGraphFieldNumber, Message::graph},
    {Message::model, onnx::ModelProto::kTrainingInfoFieldNumber, Message::training},
    {Message::model, onnx::ModelProto::kFunctionsFieldNumber, Message::function},
    {Message::training, onnx::TrainingInfoProto::kInitializationFieldNumber, Message::graph},
    {Message::training, onnx::TrainingInfoProto::kAlgorithmFieldNumber, Message::graph},
    {Message::function, onnx::FunctionProto::kNodeFieldNumber, Message::node},
    {Message::function, kAttributeProtoOfFunction, Message::attribute},
    {Message::graph, onnx::GraphProto::kNodeFieldNumber, Message::node},
    {Message::graph, onnx::GraphProto::kInitializerFieldNumber, Message::tensor},
    {Message::graph, onnx::GraphProto::kSparseInitializerFieldNumber, Message::sparse_tensor},
    {Message::node, onnx::NodeProto::kAttributeFieldNumber, Message::attribute},
    {Message::attribute, onnx::AttributeProto::kTFieldNumber, Message::tensor},
    {Message::attribute, onnx::AttributeProto::kTensorsFieldNumber, Message::tensor},
    {Message::attribute, onnx::AttributeProto::kGFieldNumber, Message::graph},
    {Message::attribute, onnx::AttributeProto::kGraphsFieldNumber, Message::graph},
    {Message::attribute, onnx::AttributeProto::kSparseTensorFieldNumber, Message::sparse_tensor},
    {Message::attribute, onnx::AttributeProto::kSparseTensorsFieldNumber, Message::sparse_tensor},
    {Message::sparse_tensor, onnx::SparseTensorProto::kValuesFieldNumber, Message::tensor},
    {Message::sparse_tensor, onnx::SparseTensorProto::kIndicesFieldNumber, Message::tensor},
};

using Bytes = std::span<const std::byte>;

// Takes a varint from the front.
std::optional<uint64_t> take_varint(Bytes& b) {
  uint64_t v = 0;
  for (size_t i = 0; i < std::min<size_t>(b.size(), 10); ++i) {
    v |= (std::to_integer<uint64_t>(b[i]) & 0x7f) << (7 * i);
    if ((b[i] & std::byte{0x80}) != std::byte{0}) continue;
    b = b.subspan(i + 1);
    return v;
  }
  return std::nullopt;
}

void append(std::string& out, Bytes b) { out.append(reinterpret_cast<const char*>(b.data()), b.size()); }

void append_field(std::string& out, Bytes tag, const std::string& value) {
  append(out, tag);
  uint64_t n = value.size();
  for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
  out += static_cast<char>(n);
  out += value;
}

class Walk {
 public:
  Walk(Bytes model, int most_nested) : model_(model), most_nested_(most_nested) {}

  // Appends the message `rest`, changed, to `out`.
  bool message(Message m, Bytes rest, int depth, std::string& out) const {
    if (depth > most_nested_) return false;
    while (!rest.empty()) {
      const Bytes field = rest;
      const auto tag = take_varint(rest);
      if (!tag) return false;
      const Bytes tag_bytes = field.first(field.size() - rest.size());
      // A value of fixed size, a varint, or a length before so many bytes. Groups are older than ONNX.
      uint64_t size = 0;
      switch (*tag & 7) {
        case 0:
          if (!take_varint(rest)) return false;
          break;
        case 1:
          size = 8;
          break;
        case 5:
          size = 4;
          break;
        case 2: {
          const auto length = take_varint(rest);
          if (!length) return false;
          size = *length;
          break;
        }
        default:
          return false;
      }
      if (size > rest.size()) return false;
      const Bytes value = rest.first(size);
      rest = rest.subspan(size);

      const auto number = *tag >> 3;
      const Field* sub = (*tag & 7) != 2 ? nullptr : std::ranges::find_if(kFields, [&](const Field& f) {
        return f.in == m && static_cast<uint64_t>(f.number) == number;
      });
      if (m == Message::tensor && *tag == (uint64_t{onnx::TensorProto::kRawDataFieldNumber} << 3 | 2)) {
        append_field(out, tag_bytes, place_of(value));
      } else if (sub != nullptr && sub != std::end(kFields)) {
        std::string changed;
        if (!message(sub->holds, value, depth + 1, changed)) return false;
        append_field(out, tag_bytes, changed);
      } else {
        append(out, field.first(field.size() - rest.size()));
      }
    }
    return true;
  }

 private:
  std::string place_of(Bytes value) const {
    const uint64_t place[2] = {static_cast<uint64_t>(value.data() - model_.data()), value.size()};
    return {reinterpret_cast<const char*>(place), sizeof(place)};
  }

  Bytes model_;
  int most_nested_;
};

}  // namespace

std::optional<std::string> without_raw_data(std::span<const std::byte> model, int most_nested) {
  std::string out;
  if (!Walk(model, most_nested).message(Message::model, model, 0, out)) return std::nullopt;
  return out;
}

std::optional<std::span<const std::byte>> raw_data_at(const std::string& place, std::span<const std::byte> model) {
  uint64_t at[2] = {};
  if (place.size() != sizeof(at)) return std::nullopt;
  std::memcpy(at, place.data(), sizeof(at));
  if (at[0] > model.size() || at[1] > model.size() - at[0]) return std::nullopt;
  return model.subspan(at[0], at[1]);
}

}  // namespace dlc::onnx_frontend
