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

// Types that the standard has and some distribution's onnx.proto has not yet, by their numbers in the standard.
struct Newer {
  int number;
  std::string_view name;
  DType type;
};
constexpr Newer kNewer[] = {
    {17, "FLOAT8E4M3FN", kF8E4M3FN},
    {18, "FLOAT8E4M3FNUZ", kF8E4M3FNUZ},
    {19, "FLOAT8E5M2", kF8E5M2},
    {20, "FLOAT8E5M2FNUZ", kF8E5M2FNUZ},
    {21, "UINT4", {DType::Kind::unsigned_int, 4}},
    {22, "INT4", {DType::Kind::signed_int, 4}},
    {23, "FLOAT4E2M1", kF4E2M1},
    {24, "FLOAT8E8M0", kF8E8M0},
    {25, "UINT2", {DType::Kind::unsigned_int, 2}},
    {26, "INT2", {DType::Kind::signed_int, 2}},
};

// Elements of less than a byte lie packed in bytes, the first in the lowest bits.
bool is_packed(DType t) { return t.bits < 8; }
int64_t stored_bytes(DType t, int64_t elements) {
  const int in_byte = 8 / t.bits;
  return is_packed(t) ? elements / in_byte + (elements % in_byte != 0) : elements * t.bytes();
}

bool is_byte(int64_t v) { return v >= 0 && v <= 255; }

Result<Tensor> unpacked(std::span<const std::byte> data, DType dtype, std::vector<int64_t> shape) {
  DLC_TRY(Tensor t, Tensor::make(dtype, std::move(shape)));
  const auto elements = t.as_mutable<uint8_t>();
  const size_t in_byte = 8 / dtype.bits;
  const unsigned mask = (1u << dtype.bits) - 1;
  for (size_t i = 0; i < elements.size(); ++i) {
    const unsigned bits = std::to_integer<unsigned>(data[i / in_byte]) >> (i % in_byte * dtype.bits) & mask;
    elements[i] = static_cast<uint8_t>(dtype.is_int() ? wrap_to(dtype, bits) : bits);
  }
  return t;
}

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
  if (is_packed(dtype)) return unpacked(mapped.bytes, dtype, std::move(shape));
  return Tensor::wrap(dtype, std::move(shape), mapped.bytes.data(), std::move(mapped.owner));
}

// The typed repeated fields. ONNX keeps the narrow types in int32_data: floats as their bits, packed elements as the
// bytes that they lie in.
template <class Field>
Result<> copy_field(const Field& field, const onnx::TensorProto& proto, Tensor& t, const Loc& where) {
  if (field.size() != t.elements())
    return fail(where, fmt::format("tensor '{}' is {}, but holds {} elements", proto.name(),
                                   to_string(t.dtype(), t.shape()), field.size()));
  const auto set = [&](int i) {
    const auto v = static_cast<int64_t>(field[i]);
    if (!t.dtype().is_narrow_float()) return t.set_int(i, v);
    if (t.dtype().bytes() == 1)
      t.as_mutable<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(v);
    else
      t.as_mutable<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(v);
  };
  for (int i = 0; i < field.size(); ++i) {
    if (t.dtype() == kF32 || t.dtype() == kF64)
      t.set_double(i, static_cast<double>(field[i]));
    else
      set(i);
    const bool is_code = t.dtype().is_narrow_float() && t.dtype().bytes() == 1;
    if (is_code ? !is_byte(static_cast<int64_t>(field[i]))
                : t.dtype().is_int() && t.get_int(i) != static_cast<int64_t>(field[i]))
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
  for (const Newer& n : kNewer)
    if (n.number == onnx_type) return n.type;
  const std::string name = P::DataType_IsValid(onnx_type) ? P::DataType_Name(static_cast<P::DataType>(onnx_type))
                                                          : std::to_string(onnx_type);
  return fail(where, fmt::format("element type {} is not supported", name),
              "supported: FLOAT, DOUBLE, FLOAT16, BFLOAT16, FLOAT8*, FLOAT4E2M1, BOOL, INT2..INT64, UINT2..UINT64");
}

Result<Tensor> to_tensor(const onnx::TensorProto& proto, const std::string& folder, const Loc& where,
                         const MappedFile* model) {
  DLC_TRY(const DType dtype, element_type(proto.data_type(), where));
  std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  const auto n = checked_product(shape);
  const auto in_memory = n ? checked_mul(*n, dtype.bytes()) : std::nullopt;
  if (!in_memory || *in_memory > Tensor::max_bytes())
    return fail(where, fmt::format("tensor '{}' has the impossible size {}", proto.name(), to_string(dtype, shape)));
  const int64_t bytes = stored_bytes(dtype, *n);
  if (proto.has_segment()) return fail(where, fmt::format("tensor '{}' is stored in segments", proto.name()));
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return external_tensor(proto, dtype, std::move(shape), static_cast<uint64_t>(bytes), folder, where);

  if (proto.has_raw_data()) {
    const auto data = model != nullptr ? raw_data_at(proto.raw_data(), model->bytes)
                                       : std::optional(std::as_bytes(std::span(proto.raw_data())));
    if (!data) return fail(where, fmt::format("the raw data of tensor '{}' cannot be found", proto.name()));
    if (data->size() != static_cast<size_t>(bytes))
      return fail(where, fmt::format("tensor '{}' is {} and needs {} bytes, but holds {}", proto.name(),
                                     to_string(dtype, shape), bytes, data->size()));
    if (is_packed(dtype)) return unpacked(*data, dtype, std::move(shape));
    if (model != nullptr && model->owner != nullptr)
      return Tensor::wrap(dtype, std::move(shape), data->data(), model->owner);
    DLC_TRY(Tensor t, Tensor::make(dtype, std::move(shape)));
    if (bytes > 0) std::memcpy(t.mutable_bytes(), data->data(), data->size());
    return t;
  }
  // The claimed size is believed only if the elements are there: no allocation on the word of a header.
  const bool packed = is_packed(dtype);
  const int64_t present = std::max({proto.float_data_size(), proto.int32_data_size(), proto.int64_data_size(),
                                    proto.double_data_size(), proto.uint64_data_size()});
  if (present != (packed ? bytes : *n) || (packed && proto.int32_data_size() != present))
    return fail(where, fmt::format("tensor '{}' is {}, but holds {} {}", proto.name(), to_string(dtype, shape), present,
                                   packed ? "packed bytes" : "elements"));
  if (packed) {
    std::vector<std::byte> data;
    for (const int32_t byte : proto.int32_data()) {
      if (!is_byte(byte))
        return fail(where, fmt::format("tensor '{}' holds {}, which is no packed byte", proto.name(), byte),
                    "the model is damaged; export it again");
      data.push_back(static_cast<std::byte>(byte));
    }
    return unpacked(data, dtype, std::move(shape));
  }
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
