#include "plugins/asic/runtime/container.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "dlc/hw/load.h"

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

Result<AcceleratorIo> read_io(const HwDescription& hw, const ordered_json& j) {
  AcceleratorIo io;
  io.name = j.at("name").get<std::string>();
  const auto dtype = parse_dtype(j.at("dtype").get<std::string>());
  if (!dtype) return fail({}, "the executable has a tensor of an unknown dtype");
  io.dtype = *dtype;
  io.shape = j.at("shape").get<std::vector<int64_t>>();
  io.lanes = j.at("lanes").get<int64_t>();
  io.segment = hw.find_space(j.at("segment").get<std::string>());
  io.offset = j.at("offset").get<int64_t>();
  io.bytes = j.at("bytes").get<int64_t>();
  if (io.segment < 0 || io.lanes < 1 || io.offset < 0 || io.bytes < 0)
    return fail({}, "the executable places " + io.name + " nowhere");
  return io;
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
  DLC_TRY(const std::vector<uint32_t> words, encode_program(hw, image.program));
  ordered_json inputs = ordered_json::array(), outputs = ordered_json::array(), layers = ordered_json::array();
  for (const AcceleratorIo& io : image.inputs) inputs.push_back(io_json(hw, io));
  for (const AcceleratorIo& io : image.outputs) outputs.push_back(io_json(hw, io));
  for (const AcceleratorLayer& l : image.layers) layers.push_back(layer_json(l));
  const ordered_json header{{"arch_hash", hash_text(hw.arch_hash)},
                            {"name", hw.name},
                            {"hardware", text.text},
                            {"hardware_file", text.file},
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

Result<Loaded> read_container(std::span<const std::byte> bytes) {
  const auto broken = [](const char* what) { return fail({}, std::string("the asic executable is damaged: ") + what); };
  uint64_t length = 0;
  if (bytes.size() < 16 || std::memcmp(bytes.data(), kMagic, 8) != 0) return broken("no header");
  std::memcpy(&length, bytes.data() + 8, 8);
  if (length > bytes.size() - 16) return broken("the header is cut off");
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 16;
  const ordered_json h = ordered_json::parse(text, text + length, nullptr, false);
  if (!h.is_object()) return broken("the header is no JSON");
  Loaded out;
  try {
    DLC_TRY(HwDescription hw,
            read_hardware({h.at("hardware").get<std::string>(), h.at("hardware_file").get<std::string>(),
                           h.at("hardware_params").get<std::string>()}));
    if (hash_text(hw.arch_hash) != h.at("arch_hash").get<std::string>())
      return fail({}, fmt::format("the executable is for the architecture {}, its description is {}",
                                  h.at("arch_hash").get<std::string>(), hash_text(hw.arch_hash)));
    out.hw = std::make_shared<HwDescription>(std::move(hw));
    out.hardware = h.at("hardware_file").get<std::string>();
    if (const auto params = h.at("hardware_params").get<std::string>(); !params.empty()) out.hardware += "," + params;
    const auto words = h.at("words").get<uint64_t>(), weights = h.at("weight_bytes").get<uint64_t>();
    const uint64_t rest = bytes.size() - 16 - length;
    if (words > rest / 4 || weights != rest - words * 4) return broken("its size is wrong");
    const std::byte* at = bytes.data() + 16 + length;
    out.words.resize(words);
    std::memcpy(out.words.data(), at, words * 4);
    out.image.weights.assign(at + words * 4, at + words * 4 + weights);
    out.image.arena_bytes = h.at("arena_bytes").get<int64_t>();
    for (const ordered_json& j : h.at("inputs")) {
      DLC_TRY(AcceleratorIo io, read_io(*out.hw, j));
      out.image.inputs.push_back(std::move(io));
    }
    for (const ordered_json& j : h.at("outputs")) {
      DLC_TRY(AcceleratorIo io, read_io(*out.hw, j));
      out.image.outputs.push_back(std::move(io));
    }
    for (const ordered_json& j : h.at("layers"))
      out.image.layers.push_back({j.at("name").get<std::string>(), j.at("first").get<int64_t>(),
                                  j.at("end").get<int64_t>(), j.at("macs").get<int64_t>(),
                                  j.at("predicted_cycles").get<int64_t>(), j.at("plan").get<std::string>(),
                                  j.at("tile").get<std::string>()});
    out.image.tiles = h.at("tiles").get<std::vector<int32_t>>();
  } catch (const nlohmann::json::exception&) {
    return broken("a key of the header is missing");
  }
  DLC_TRY(out.image.program, decode_program(*out.hw, out.words));
  return out;
}

}  // namespace dlc::asic
