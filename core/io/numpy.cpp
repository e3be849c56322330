#include "dlc/io/numpy.h"

#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include "dlc/base/checked.h"
#include "dlc/io/file.h"

namespace dlc {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeader = 1 << 16;
// What a small archive may unpack to: more, at more than kMaxRatio times its own size, is no data but an attack.
constexpr uint64_t kFreelyUnpacked = uint64_t{128} << 20, kMaxRatio = 100;

std::optional<DType> from_descr(std::string_view d) {
  if (d.size() < 3 || (d[0] != '<' && d[0] != '>' && d[0] != '|' && d[0] != '=')) return std::nullopt;
  const std::string_view t = d.substr(1);
  if (t == "b1") return kBool;
  if (t == "i1") return kS8;
  if (t == "u1") return kU8;
  // As ml_dtypes writes the types that numpy has not: bits, of unsigned integers here.
  if (t == "V1" || t == "f1") return kU8;
  if (t == "V2") return kU16;
  if (d[0] == '|') return std::nullopt;
  if (t == "i2") return kS16;
  if (t == "u2") return kU16;
  if (t == "i4") return kS32;
  if (t == "u4") return kU32;
  if (t == "i8") return kS64;
  if (t == "u8") return kU64;
  if (t == "f2") return kF16;
  if (t == "f4") return kF32;
  if (t == "f8") return kF64;
  return std::nullopt;
}

std::string to_descr(DType t) {
  if (t.is_bool()) return "|b1";
  const DType kept = numpy_type(t);
  const char kind = kept.is_float() ? 'f' : kept.is_signed() ? 'i' : 'u';
  return fmt::format("{}{}{}", kept.bits == 8 ? '|' : '<', kind, kept.bytes());
}

// The header is a Python dict literal with three known keys.
struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

std::optional<std::string_view> value_of(std::string_view dict, std::string_view key) {
  const std::string quoted = fmt::format("'{}'", key);
  size_t at = dict.find(quoted);
  if (at == std::string_view::npos) return std::nullopt;
  at = dict.find(':', at + quoted.size());
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = dict.substr(at + 1);
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return rest;
}

std::optional<Header> parse_header(std::string_view dict) {
  Header h;
  const auto descr = value_of(dict, "descr");
  const auto fortran = value_of(dict, "fortran_order");
  const auto shape = value_of(dict, "shape");
  if (!descr || !fortran || !shape || descr->empty() || descr->front() != '\'') return std::nullopt;
  const size_t end = descr->find('\'', 1);
  if (end == std::string_view::npos) return std::nullopt;
  h.descr = std::string(descr->substr(1, end - 1));
  if (fortran->starts_with("True"))
    h.fortran = true;
  else if (!fortran->starts_with("False"))
    return std::nullopt;
  if (shape->empty() || shape->front() != '(') return std::nullopt;
  std::string_view s = shape->substr(1);
  while (true) {
    while (!s.empty() && (s.front() == ' ' || s.front() == ',')) s.remove_prefix(1);
    if (s.empty()) return std::nullopt;
    if (s.front() == ')') return h;
    int64_t d = 0;
    const auto [p, ec] = std::from_chars(s.data(), s.data() + s.size(), d);
    if (ec != std::errc() || d < 0 || h.shape.size() >= 64) return std::nullopt;
    h.shape.push_back(d);
    s = s.substr(static_cast<size_t>(p - s.data()));
  }
}

// Big-endian elements, in place.
void swap_bytes(Tensor& t) {
  const auto width = static_cast<size_t>(t.dtype().bytes());
  std::byte* p = t.mutable_bytes();
  for (size_t at = 0; at < t.byte_size(); at += width) std::reverse(p + at, p + at + width);
}

// Fortran order is C order of the reversed shape.
Result<Tensor> from_fortran(const Tensor& t, const std::vector<int64_t>& shape) {
  DLC_TRY(Tensor out, Tensor::make(t.dtype(), shape));
  const auto bytes = static_cast<size_t>(t.dtype().bytes());
  std::vector<int64_t> index(shape.size(), 0);
  std::byte* to = out.mutable_bytes();
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t from = 0;
    for (size_t d = shape.size(); d-- > 0;) from = from * shape[d] + index[d];
    std::memcpy(to + static_cast<size_t>(i) * bytes, t.bytes() + static_cast<size_t>(from) * bytes, bytes);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

// Arrays of strings are labels beside the data, no tensors.
bool holds_text(std::span<const std::byte> bytes) {
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 256));
  return start.find("'descr': '<U") != std::string_view::npos || start.find("'descr': '|S") != std::string_view::npos;
}

struct ZipCloser {
  void operator()(zip_t* z) const { zip_discard(z); }
};
using Zip = std::unique_ptr<zip_t, ZipCloser>;

}  // namespace

Result<Tensor> parse_npy(std::span<const std::byte> bytes, const std::string& file) {
  const Loc where{file, 0, 0, {}};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.size() < 10 || !text.starts_with(kMagic)) return fail(where, "is not a .npy array");
  const auto byte_at = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(text[i])); };
  const uint64_t major = byte_at(6);
  if (major < 1 || major > 3) return fail(where, fmt::format(".npy format {} is not known", major));
  const size_t prefix = major == 1 ? 10 : 12;
  if (text.size() < prefix) return fail(where, "the .npy header is truncated");
  uint64_t length = byte_at(8) | byte_at(9) << 8;
  if (major > 1) length |= byte_at(10) << 16 | byte_at(11) << 24;
  if (length > kMaxHeader || length > text.size() - prefix) return fail(where, "the .npy header is truncated");
  const auto header = parse_header(text.substr(prefix, length));
  if (!header) return fail(where, "the .npy header is not understood");
  const auto dtype = from_descr(header->descr);
  if (!dtype) return fail(where, fmt::format("element type '{}' is not supported", header->descr));
  const auto n = checked_product(header->shape);
  const auto size = n ? checked_mul(*n, dtype->bytes()) : std::nullopt;
  const std::span<const std::byte> data = bytes.subspan(prefix + length);
  if (!size || static_cast<uint64_t>(*size) != data.size())
    return fail(where,
                fmt::format("{} does not fit the {} bytes of data", to_string(*dtype, header->shape), data.size()));
  std::vector<int64_t> stored = header->shape;
  if (header->fortran) std::reverse(stored.begin(), stored.end());
  DLC_TRY(Tensor t, Tensor::make(*dtype, stored));
  if (!data.empty()) std::memcpy(t.mutable_bytes(), data.data(), data.size());
  if (header->descr.starts_with('>')) swap_bytes(t);
  if (header->fortran && header->shape.size() > 1) return from_fortran(t, header->shape);
  return t;
}

std::vector<std::byte> to_npy(const Tensor& t) {
  std::string shape;
  for (const int64_t d : t.shape()) shape += fmt::format("{}, ", d);
  if (t.rank() > 1) shape.resize(shape.size() - 2);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", to_descr(t.dtype()), shape);
  header.append((64 - (kMagic.size() + 4 + header.size() + 1) % 64) % 64, ' ');  // data starts at a multiple of 64
  header += '\n';
  std::string all(kMagic);
  all += '\x01';
  all += '\x00';
  all += static_cast<char>(header.size() & 0xff);
  all += static_cast<char>(header.size() >> 8);
  all += header;
  std::vector<std::byte> out(all.size() + t.byte_size());
  std::memcpy(out.data(), all.data(), all.size());
  if (t.byte_size() > 0) std::memcpy(out.data() + all.size(), t.bytes(), t.byte_size());
  return out;
}

DType numpy_type(DType type) {
  const auto width = static_cast<uint8_t>(8 * type.bytes());
  if (type.is_narrow_float() && type != kF16) return {DType::Kind::unsigned_int, width};
  return {type.kind, width};
}

Tensor unpacked(const Tensor& t, DType type) {
  const DType values = numpy_type(type), bits{DType::Kind::unsigned_int, values.bits};
  const bool has_bits = t.dtype() == bits && (type.is_float() || type.bits < 8);
  if (values == type || (t.dtype() != values && !has_bits)) return t;
  bool as_it_is = true;
  for (int64_t i = 0; i < t.elements(); ++i) {
    const int64_t v = t.get_int(i);
    if (has_bits ? v >> type.bits != 0 : wrap_to(type, v) != v) return t;
    as_it_is &= type.is_float() || wrap_to(type, v) == v;
  }
  auto out =
      as_it_is ? Tensor::wrap(type, t.shape(), t.bytes(), std::make_shared<Tensor>(t)) : Tensor::make(type, t.shape());
  if (!out) return t;
  for (int64_t i = 0; !as_it_is && i < t.elements(); ++i) out->set_int(i, t.get_int(i));
  return *std::move(out);
}

Result<NamedTensors> read_npz(const std::string& path) {
  const Loc where{path, 0, 0, {}};
  DLC_TRY(const MappedFile whole, map_file(path));
  if (whole.bytes.empty()) return fail(where, "cannot read as .npz: it is empty");  // libzip would begin an archive
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = zip_source_buffer_create(whole.bytes.data(), whole.bytes.size(), 0, &error);
  Zip zip(source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error));
  if (!zip) {
    if (source != nullptr) zip_source_free(source);
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    return fail(where, fmt::format("cannot read as .npz: {}", text));
  }
  NamedTensors out;
  std::set<std::string> names;
  uint64_t unpacked = 0;
  const zip_int64_t count = zip_get_num_entries(zip.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t st;
    if (zip_stat_index(zip.get(), static_cast<zip_uint64_t>(i), 0, &st) != 0 || !(st.valid & ZIP_STAT_SIZE))
      return fail(where, "the archive is damaged");
    std::string name = st.name;
    if (!name.ends_with(".npy")) return fail(where, fmt::format("entry '{}' is not a .npy array", name));
    if (st.size > static_cast<uint64_t>(Tensor::max_bytes()))
      return fail(where, fmt::format("entry '{}' is too large", name));
    unpacked += st.size;
    if (unpacked > kFreelyUnpacked && unpacked / kMaxRatio > whole.bytes.size())
      return fail(
          where,
          fmt::format("entry '{}' unpacks to {} bytes, the whole archive has {}", name, st.size, whole.bytes.size()),
          "store the arrays without compression (numpy.savez)");
    std::vector<std::byte> bytes;
    std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> f(zip_fopen_index(zip.get(), static_cast<zip_uint64_t>(i), 0),
                                                        zip_fclose);
    if (!f) return fail(where, fmt::format("cannot read entry '{}': {}", name, zip_strerror(zip.get())));
    // Grows with what is really there: the size in the directory is only a claim.
    while (bytes.size() < st.size) {
      const size_t at = bytes.size();
      bytes.resize(at + std::min<uint64_t>(st.size - at, 1 << 20));
      const zip_int64_t n = zip_fread(f.get(), bytes.data() + at, bytes.size() - at);
      if (n <= 0) return fail(where, fmt::format("entry '{}' is truncated or damaged", name));
      bytes.resize(at + static_cast<size_t>(n));
    }
    std::byte beyond{};  // at the end libzip compares the sum that the archive has of the entry
    if (zip_fread(f.get(), &beyond, 1) != 0)
      return fail(where, fmt::format("entry '{}' is damaged: {}", name, zip_file_strerror(f.get())));
    if (holds_text(bytes)) continue;
    DLC_TRY(Tensor t, parse_npy(bytes, path + ":" + name));
    name.resize(name.size() - 4);
    if (!names.insert(name).second) return fail(where, fmt::format("holds '{}' twice", name));
    out.emplace_back(std::move(name), std::move(t));
  }
  return out;
}

Result<std::vector<std::byte>> to_npz(const NamedTensors& tensors) {
  const Loc where;
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* memory = zip_source_buffer_create(nullptr, 0, 0, &error);
  if (memory == nullptr) return fail(where, "out of memory");
  zip_source_keep(memory);
  Zip zip(zip_open_from_source(memory, ZIP_TRUNCATE, &error));
  const auto give_up = [&](const char* what) {
    zip.reset();
    zip_source_free(memory);
    return fail(where, what);
  };
  if (!zip) {
    zip_source_free(memory);
    return fail(where, "cannot make a .npz archive");
  }
  std::vector<std::vector<std::byte>> kept;  // libzip reads the entries when the archive is closed
  for (const auto& [name, t] : tensors) {
    kept.push_back(to_npy(t));
    zip_source_t* s = zip_source_buffer(zip.get(), kept.back().data(), kept.back().size(), 0);
    const zip_int64_t i = s == nullptr ? -1 : zip_file_add(zip.get(), (name + ".npy").c_str(), s, ZIP_FL_ENC_UTF_8);
    if (i < 0) {
      if (s != nullptr) zip_source_free(s);
      return give_up("cannot add an entry (two tensors of one name?)");
    }
    const auto index = static_cast<zip_uint64_t>(i);
    zip_set_file_compression(zip.get(), index, ZIP_CM_STORE, 0);
    zip_file_set_mtime(zip.get(), index, 315532800, 0);  // 1980-01-01: the same tensors give the same bytes
  }
  zip_t* raw = zip.release();
  if (zip_close(raw) != 0) {
    zip_discard(raw);
    zip_source_free(memory);
    return fail(where, "cannot finish the .npz archive");
  }
  std::vector<std::byte> bytes;
  zip_stat_t st;
  const bool ok = zip_source_stat(memory, &st) == 0 && zip_source_open(memory) == 0;
  if (ok) {
    bytes.resize(st.size);
    if (zip_source_read(memory, bytes.data(), bytes.size()) != static_cast<zip_int64_t>(bytes.size())) bytes.clear();
    zip_source_close(memory);
  }
  zip_source_free(memory);
  if (bytes.empty() && !tensors.empty()) return fail(where, "cannot finish the .npz archive");
  return bytes;
}

Result<> write_npz(const std::string& path, const NamedTensors& tensors) {
  DLC_TRY(const std::vector<std::byte> bytes, to_npz(tensors));
  return write_file(path, bytes);
}

Result<NamedTensors> read_tensors(const std::string& path) {
  if (path.ends_with(".npz")) return read_npz(path);
  if (!path.ends_with(".npy"))
    return fail({path, 0, 0, {}}, "the file's type is not known from its name", "use .npz or .npy");
  DLC_TRY(const MappedFile f, map_file(path));
  DLC_TRY(Tensor t, parse_npy(f.bytes, path));
  NamedTensors out;
  out.emplace_back("", std::move(t));
  return out;
}

Result<> write_tensors(const std::string& path, const NamedTensors& tensors) {
  if (path.ends_with(".npz")) return write_npz(path, tensors);
  if (!path.ends_with(".npy"))
    return fail({path, 0, 0, {}}, "the file's type is not known from its name", "use .npz or .npy");
  if (tensors.size() != 1)
    return fail({path, 0, 0, {}}, fmt::format("a .npy file holds one tensor, not {}", tensors.size()), "use .npz");
  return write_file(path, to_npy(tensors[0].second));
}

}  // namespace dlc
