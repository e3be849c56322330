#include "plugins/asic/runtime/container.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/hw/standalone.h"
#include "core/map/target.h"
#include "dlc/base/checked.h"
#include "dlc/hw/load.h"
#include "plugins/asic/runtime/driver.h"

namespace dlc::asic {

using nlohmann::ordered_json;

namespace {

constexpr char kMagic[] = "DLCASIC1";

ordered_json io_json(const HwDescription& hw, const AcceleratorIo& io) {
  return {{"name", io.name},
          {"dtype", to_string(io.dtype)},
          {"shape", io.shape},
          {"lanes", io.lanes},
          {"segment", hw.spaces[static_cast<size_t>(io.segment)].name},
          {"offset", io.offset},
          {"bytes", io.bytes}};
}

ordered_json layer_json(const AcceleratorLayer& l) {
  return {
      {"name", l.name}, {"first", l.first}, {"end", l.end}, {"macs", l.macs}, {"predicted_cycles", l.predicted_cycles},
      {"plan", l.plan}, {"tile", l.tile}};
}

std::unexpected<Error> broken(std::string what) {
  return fail({}, "the asic executable is damaged: " + std::move(what), "compile the model again");
}

// A map of the header whose keys are read by name, each checked before anything uses it. `where` is its own:
// "inputs[0]".
class Fields {
 public:
  Fields(const ordered_json& json, std::string where) : json_(json), where_(std::move(where)) {}

  std::string name(const char* key) const { return where_.empty() ? key : where_ + "." + key; }

  Result<std::string> text(const char* key) const {
    const ordered_json* j = find(key);
    if (!j || !j->is_string()) return broken(fmt::format("'{}' is no text", name(key)));
    return j->get<std::string>();
  }
  Result<int64_t> number(const char* key, int64_t least, int64_t most) const {
    const ordered_json* j = find(key);
    return integer(j ? *j : ordered_json(), name(key), least, most);
  }
  Result<std::vector<int64_t>> numbers(const char* key, int64_t least, int64_t most) const {
    DLC_TRY(const ordered_json* list, array(key));
    std::vector<int64_t> out;
    for (const ordered_json& j : *list) {
      DLC_TRY(const int64_t n, integer(j, fmt::format("{}[{}]", name(key), out.size()), least, most));
      out.push_back(n);
    }
    return out;
  }
  // read(Fields, element) for each map of a list.
  template <class F>
  Result<> each(const char* key, const F& read) const {
    DLC_TRY(const ordered_json* list, array(key));
    for (size_t i = 0; i < list->size(); ++i) DLC_CHECK(read(Fields((*list)[i], fmt::format("{}[{}]", name(key), i))));
    return {};
  }

 private:
  const ordered_json* find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto it = json_.find(key);
    return it == json_.end() ? nullptr : &*it;
  }
  Result<const ordered_json*> array(const char* key) const {
    const ordered_json* j = find(key);
    if (!j || !j->is_array()) return broken(fmt::format("'{}' is no list", name(key)));
    return j;
  }
  static Result<int64_t> integer(const ordered_json& j, const std::string& name, int64_t least, int64_t most) {
    if (!j.is_number_integer()) return broken(fmt::format("'{}' is no integer", name));
    const bool huge = j.is_number_unsigned() && j.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (huge || j.get<int64_t>() < least || j.get<int64_t>() > most)
      return broken(fmt::format("'{}' is {}, it must be from {} to {}", name, j.dump(), least, most));
    return j.get<int64_t>();
  }

  const ordered_json& json_;
  std::string where_;
};

// Bytes that the machine can reach in a segment of its external memory.
int64_t reach(const HwDescription& hw, int space) {
  const HwState& s = hw.state_of(space);
  return checked_mul(s.words, s.word_bytes()).value_or(INT64_MAX);
}

// What the tensor takes in its layout; nothing when that is more than `most`.
std::optional<int64_t> layout_bytes(const AcceleratorIo& io, int64_t most) {
  TensorType type{io.dtype, {}};
  std::vector<int64_t> counted{io.lanes, io.dtype.bytes()};
  for (const int64_t n : io.shape) {
    type.shape.emplace_back(n);
    counted.push_back(std::max<int64_t>(n, 1));  // a dim of 0 must not hide how large the others are
  }
  if (const auto n = checked_product(counted); !n || *n > checked_mul(most, io.lanes).value_or(INT64_MAX))
    return std::nullopt;
  return map::Layout::of(type, io.lanes).bytes();
}

Result<AcceleratorIo> read_io(const HwDescription& hw, const AcceleratorImage& image, const Fields& f) {
  AcceleratorIo io;
  DLC_TRY(io.name, f.text("name"));
  DLC_TRY(const std::string dtype, f.text("dtype"));
  const auto type = parse_dtype(dtype);
  if (!type) return broken(fmt::format("'{}' is '{}', which is no dtype", f.name("dtype"), dtype));
  io.dtype = *type;
  DLC_TRY(const std::string segment, f.text("segment"));
  io.segment = hw.find_space(segment);
  if (io.segment < 0 || hw.spaces[static_cast<size_t>(io.segment)].segment < 0 || segment.ends_with(".code") ||
      segment.ends_with(".weights"))
    return broken(fmt::format("'{}' is '{}', which is no segment for tensors", f.name("segment"), segment));
  const int64_t room = segment.ends_with(".arena") ? image.arena_bytes : reach(hw, io.segment);
  DLC_TRY(io.shape, f.numbers("shape", 0, room));
  DLC_TRY(io.lanes, f.number("lanes", 1, room));
  DLC_TRY(io.offset, f.number("offset", 0, room));
  const auto bytes = layout_bytes(io, room - io.offset);
  if (!bytes || *bytes > room - io.offset)
    return broken(fmt::format("'{}' at {} reaches past the {} bytes of {}", f.name("shape"), io.offset, room, segment));
  DLC_TRY(io.bytes, f.number("bytes", *bytes, *bytes));
  return io;
}

// `macs` counts those of the layers before.
Result<AcceleratorLayer> read_layer(int64_t instructions, int64_t& macs, const Fields& f) {
  AcceleratorLayer l;
  DLC_TRY(l.name, f.text("name"));
  DLC_TRY(l.first, f.number("first", 0, instructions));
  DLC_TRY(l.end, f.number("end", l.first, instructions));
  DLC_TRY(l.macs, f.number("macs", 0, INT64_MAX - macs));
  DLC_TRY(l.predicted_cycles, f.number("predicted_cycles", 0, INT64_MAX));
  DLC_TRY(l.plan, f.text("plan"));
  DLC_TRY(l.tile, f.text("tile"));
  macs += l.macs;
  return l;
}

// Everything of the header that lies beside the machine and the program.
Result<> read_image(const HwDescription& hw, const Fields& f, AcceleratorImage& image) {
  int64_t arena = 0, macs = 0;
  for (size_t s = 0; s < hw.spaces.size(); ++s)
    if (hw.spaces[s].segment >= 0 && hw.spaces[s].name.ends_with(".arena")) arena = reach(hw, static_cast<int>(s));
  DLC_TRY(image.arena_bytes, f.number("arena_bytes", 0, arena));
  const auto tensors = [&](std::vector<AcceleratorIo>& to) {
    return [&](const Fields& one) -> Result<> {
      DLC_TRY(AcceleratorIo io, read_io(hw, image, one));
      to.push_back(std::move(io));
      return {};
    };
  };
  DLC_CHECK(f.each("inputs", tensors(image.inputs)));
  DLC_CHECK(f.each("outputs", tensors(image.outputs)));
  const int64_t n = std::ssize(image.program);
  DLC_CHECK(f.each("layers", [&](const Fields& one) -> Result<> {
    DLC_TRY(AcceleratorLayer layer, read_layer(n, macs, one));
    image.layers.push_back(std::move(layer));
    return {};
  }));
  DLC_TRY(const std::vector<int64_t> tiles, f.numbers("tiles", 0, INT32_MAX));
  if (std::ssize(tiles) != n)
    return broken(fmt::format("'tiles' has {} elements, the program {} instructions", tiles.size(), n));
  image.tiles.assign(tiles.begin(), tiles.end());
  return {};
}

}  // namespace

Result<HwDescription> read_hardware(const HardwareText& h) {
  HwOverrides overrides;
  if (!h.params.empty()) {
    DLC_TRY(HwArgument arg, parse_hw_argument("hw," + h.params));
    overrides = std::move(arg.params);
  }
  return parse_hw(h.text, h.file, overrides);
}

std::string layer_report(const HwDescription& hw, const AcceleratorImage& image) {
  ordered_json layers = ordered_json::array();
  for (const AcceleratorLayer& l : image.layers) layers.push_back(layer_json(l));
  return ordered_json{{"arch_hash", hash_text(hw.arch_hash)},
                      {"instructions", image.program.size()},
                      {"stream_bytes", static_cast<int64_t>(image.program.size()) * hw.isa.word_bits / 8},
                      {"weight_bytes", image.weights.size()},
                      {"arena_bytes", image.arena_bytes},
                      {"layers", layers}}
      .dump();
}

Result<std::vector<std::byte>> write_container(const HwDescription& hw, const HardwareText& text,
                                               const AcceleratorImage& image) {
  DLC_TRY(const std::string description, standalone_hw(text.text, text.file));
  DLC_TRY(const std::vector<uint32_t> words, encode_program(hw, image.program));
  ordered_json inputs = ordered_json::array(), outputs = ordered_json::array(), layers = ordered_json::array();
  for (const AcceleratorIo& io : image.inputs) inputs.push_back(io_json(hw, io));
  for (const AcceleratorIo& io : image.outputs) outputs.push_back(io_json(hw, io));
  for (const AcceleratorLayer& l : image.layers) layers.push_back(layer_json(l));
  const ordered_json header{{"arch_hash", hash_text(hw.arch_hash)},
                            {"name", hw.name},
                            {"hardware", description},
                            {"hardware_file", std::filesystem::path(text.file).filename().string()},
                            {"hardware_params", text.params},
                            {"words", words.size()},
                            {"weight_bytes", image.weights.size()},
                            {"arena_bytes", image.arena_bytes},
                            {"inputs", inputs},
                            {"outputs", outputs},
                            {"layers", layers},
                            {"tiles", image.tiles}};
  const std::string json = header.dump();
  std::vector<std::byte> out(16 + json.size() + words.size() * 4 + image.weights.size());
  const uint64_t length = json.size();
  std::byte* at = out.data();
  std::memcpy(at, kMagic, 8);
  std::memcpy(at + 8, &length, 8);
  std::memcpy(at + 16, json.data(), json.size());
  at += 16 + json.size();
  std::memcpy(at, words.data(), words.size() * 4);
  if (!image.weights.empty()) std::memcpy(at + words.size() * 4, image.weights.data(), image.weights.size());
  return out;
}

bool is_container(std::span<const std::byte> bytes) {
  return bytes.size() >= 16 && std::memcmp(bytes.data(), kMagic, 8) == 0;
}

Result<Loaded> read_container(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  if (!is_container(bytes)) return broken("it has no header");
  std::memcpy(&length, bytes.data() + 8, 8);
  if (length > bytes.size() - 16) return broken("the header is cut off");
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 16;
  const ordered_json json = ordered_json::parse(text, text + length, nullptr, false);
  if (!json.is_object()) return broken("the header is no JSON");
  const Fields header(json, "");
  HardwareText hardware;
  DLC_TRY(hardware.text, header.text("hardware"));
  DLC_TRY(hardware.file, header.text("hardware_file"));
  DLC_TRY(hardware.params, header.text("hardware_params"));
  DLC_CHECK(check_standalone(hardware.text, hardware.file));
  DLC_TRY(HwDescription hw, read_hardware(hardware));
  DLC_TRY(const std::string hash, header.text("arch_hash"));
  if (hash_text(hw.arch_hash) != hash)
    return broken(fmt::format("'arch_hash' is {}, that of its description is {}", hash, hash_text(hw.arch_hash)));
  Loaded out;
  out.hardware = hardware.file + (hardware.params.empty() ? "" : "," + hardware.params);
  const auto rest = static_cast<int64_t>(bytes.size() - 16 - length);
  DLC_TRY(const int64_t words, header.number("words", 0, rest / 4));
  DLC_TRY(const int64_t weights, header.number("weight_bytes", rest - words * 4, rest - words * 4));
  const std::byte* at = bytes.data() + 16 + length;
  out.words.resize(static_cast<size_t>(words));
  if (words > 0) std::memcpy(out.words.data(), at, static_cast<size_t>(words) * 4);
  out.image.weights.assign(at + words * 4, at + words * 4 + weights);
  DLC_TRY(out.image.program, decode_program(hw, out.words));
  DLC_CHECK(read_image(hw, header, out.image));
  uint64_t memory = 0;
  segment_bases(hw, out.image, out.words.size() * 4, &memory);
  for (size_t i = 0; i < hw.spaces.size(); ++i)
    if (hw.spaces[i].segment >= 0 && memory > static_cast<uint64_t>(reach(hw, static_cast<int>(i))))
      return broken(fmt::format("its segments take {} bytes together, more than the machine's memory", memory));
  out.hw = std::make_shared<HwDescription>(std::move(hw));
  return out;
}

}  // namespace dlc::asic
