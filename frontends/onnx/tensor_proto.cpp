#include "frontends/onnx/tensor_proto.h"

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <charconv>
#include <cstring>

#include "dlc/base/checked.h"
#include "frontends/onnx/external_data.h"
#include "frontends/onnx/onnx.h"
#include "frontends/onnx/raw_data.h"

namespace dlc {
namespace onnx_frontend {

namespace {

Result<uint64_t> external_number(const std::string& text, const char* what, const Loc& where) {
  uint64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || end != text.data() + text.size())
    return fail(where, fmt::format("external data has {} '{}', which is not a number", what, text));
  return v;
}

Result<Tensor> external_tensor(const onnx::TensorProto& proto, DType dtype, std::vector<int64_t> shape, uint64_t bytes,
                               const std::string& folder, const Loc& where) {
  std::string location;
  uint64_t offset = 0;
  uint64_t length = bytes;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") {
      DLC_TRY(offset, external_number(entry.value(), "offset", where));
    }
    if (entry.key() == "length") {
      DLC_TRY(length, external_number(entry.value(), "length", where));
    }
  }
  if (length != bytes)
    return fail(where, fmt::format("external data of tensor '{}' has {} bytes, {} needs {}", proto.name(), length,
                                   to_string(dtype, shape), bytes));
  if (bytes == 0) return Tensor::make(dtype, std::move(shape));
  DLC_TRY(auto mapped, map_external(folder, location, offset, length, where));
  return Tensor::wrap(dtype, std::move(shape), mapped.bytes.data(), std::move(mapped.owner));
}

// The typed repeated fields. ONNX keeps the narrow types in int32_data, f16 and bf16 as their bit patterns.
template <class Field>
Result<> copy_field(const Field& field, const onnx::TensorProto& proto, Tensor& t, const Loc& where) {
  if (field.size() != t.elements())
    return fail(where, fmt::format("tensor '{}' is {}, but holds {} elements", proto.name(),
                                   to_string(t.dtype(), t.shape()), field.size()));
  const bool bits = t.dtype() == kF16 || t.dtype() == kBF16;
  auto* half = bits ? reinterpret_cast<uint16_t*>(t.mutable_bytes()) : nullptr;
  for (int i = 0; i < field.size(); ++i) {
    if (bits)
      half[i] = static_cast<uint16_t>(static_cast<int64_t>(field[i]));
    else if (t.dtype().is_float())
      t.set_double(i, static_cast<double>(field[i]));
    else
      t.set_int(i, static_cast<int64_t>(field[i]));
    if (t.dtype().is_int() && t.get_int(i) != static_cast<int64_t>(field[i]))
      return fail(where,
                  fmt::format("element {} of tensor '{}' is {}, which is no {}", i, proto.name(), field[i],
                              to_string(t.dtype())),
                  "the model is damaged; export it again");
  }
  return {};
}

}  // namespace

Result<DType> element_type(int onnx_type, const Loc& where) {
  using P = onnx::TensorProto;
  switch (onnx_type) {
    case P::FLOAT:
      return kF32;
    case P::UINT8:
      return kU8;
    case P::INT8:
      return kS8;
    case P::UINT16:
      return kU16;
    case P::INT16:
      return kS16;
    case P::INT32:
      return kS32;
    case P::INT64:
      return kS64;
    case P::BOOL:
      return kBool;
    case P::FLOAT16:
      return kF16;
    case P::DOUBLE:
      return kF64;
    case P::UINT32:
      return kU32;
    case P::UINT64:
      return kU64;
    case P::BFLOAT16:
      return kBF16;
    default:
      break;
  }
  const std::string name = P::DataType_IsValid(onnx_type) ? P::DataType_Name(static_cast<P::DataType>(onnx_type))
                                                          : std::to_string(onnx_type);
  return fail(where, fmt::format("element type {} is not supported", name),
              "supported: FLOAT, DOUBLE, FLOAT16, BFLOAT16, BOOL, INT8..INT64, UINT8..UINT64");
}

Result<Tensor> to_tensor(const onnx::TensorProto& proto, const std::string& folder, const Loc& where,
                         const MappedFile* model) {
  DLC_TRY(const DType dtype, element_type(proto.data_type(), where));
  std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  const auto n = checked_product(shape);
  const auto bytes = n ? checked_mul(*n, dtype.bytes()) : std::nullopt;
  if (!bytes || *bytes > Tensor::max_bytes())
    return fail(where, fmt::format("tensor '{}' has the impossible size {}", proto.name(), to_string(dtype, shape)));
  if (proto.has_segment()) return fail(where, fmt::format("tensor '{}' is stored in segments", proto.name()));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return external_tensor(proto, dtype, std::move(shape), static_cast<uint64_t>(*bytes), folder, where);

  if (proto.has_raw_data()) {
    const auto data = model != nullptr ? raw_data_at(proto.raw_data(), model->bytes)
                                       : std::optional(std::as_bytes(std::span(proto.raw_data())));
    if (!data) return fail(where, fmt::format("the raw data of tensor '{}' cannot be found", proto.name()));
    if (data->size() != static_cast<size_t>(*bytes))
      return fail(where, fmt::format("tensor '{}' is {} and needs {} bytes, but holds {}", proto.name(),
                                     to_string(dtype, shape), *bytes, data->size()));
    if (model != nullptr && model->owner != nullptr)
      return Tensor::wrap(dtype, std::move(shape), data->data(), model->owner);
    DLC_TRY(Tensor t, Tensor::make(dtype, std::move(shape)));
    if (*bytes > 0) std::memcpy(t.mutable_bytes(), data->data(), data->size());
    return t;
  }
  // The claimed size is believed only if the elements are there: no allocation on the word of a header.
  const int64_t present = std::max({proto.float_data_size(), proto.int32_data_size(), proto.int64_data_size(),
                                    proto.double_data_size(), proto.uint64_data_size()});
  if (present != *n)
    return fail(
        where, fmt::format("tensor '{}' is {}, but holds {} elements", proto.name(), to_string(dtype, shape), present));
  DLC_TRY(Tensor t, Tensor::make(dtype, std::move(shape)));
  if (dtype == kF32)
    DLC_CHECK(copy_field(proto.float_data(), proto, t, where));
  else if (dtype == kF64)
    DLC_CHECK(copy_field(proto.double_data(), proto, t, where));
  else if (dtype == kS64)
    DLC_CHECK(copy_field(proto.int64_data(), proto, t, where));
  else if (dtype == kU64 || dtype == kU32)
    DLC_CHECK(copy_field(proto.uint64_data(), proto, t, where));
  else
    DLC_CHECK(copy_field(proto.int32_data(), proto, t, where));
  return t;
}

}  // namespace onnx_frontend

}  // namespace dlc
