#include "tools/dlc/addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "dlc/hw/footprint.h"
#include "dlc/program/program.h"

namespace dlc::cli {

namespace {

Json touched(const HwDescription& hw, const Footprint& f, int64_t low, int64_t high) {
  return {{"memory", hw.spaces[static_cast<size_t>(f.space)].name},
          {"access", f.write ? "write" : "read"},
          {"low", low},
          {"high", high}};
}

// Words of a memory on the chip, bytes of a segment.
int64_t unit_of(const HwDescription& hw, int space) {
  return hw.spaces[static_cast<size_t>(space)].segment >= 0 ? 1 : hw.state_of(space).word_bytes();
}

// The kernel of each layer: a layer is a call of the partition's program.
Result<std::vector<std::string>> ops_of(const CompiledPartition& p) {
  DLC_TRY(const Program program, parse_program(p.program, "program"));
  std::vector<std::string> ops;
  for (const Call& c : program.calls) ops.push_back(program.kernels[static_cast<size_t>(c.kernel)].name);
  return ops;
}

// One byte of the machine's memories.
struct Byte {
  int space = -1;
  int64_t at = 0, words = 0;  // words: so many bytes are looked at together
};

Result<Byte> find_byte(const Stream& s, const Place& place) {
  const HwDescription& hw = s.hw();
  uint64_t end = 0;
  const auto bases = segment_bases(hw, s.image(), s.loaded.words.size() * 4, &end);
  const auto sizes = segment_sizes(hw, s.image(), s.loaded.words.size() * 4);
  if (const int space = hw.find_space(place.memory); space >= 0) {
    const int64_t unit = unit_of(hw, space);
    const bool external = hw.spaces[static_cast<size_t>(space)].segment >= 0;
    const int64_t size = external ? static_cast<int64_t>(sizes[static_cast<size_t>(space)]) : hw.state_of(space).words;
    if (place.number >= size)
      return fail({}, fmt::format("{} has {} {}, there is no {}", place.memory, size, external ? "bytes" : "words",
                                  place.number));
    return Byte{space, place.number * unit, unit};
  }
  std::string known;
  for (const HwSpace& space : hw.spaces)
    if (space.segment >= 0) known += (known.empty() ? "" : ", ") + space.name;
  for (const HwState& state : hw.state) {
    if (state.kind == HwState::Kind::counter || state.kind == HwState::Kind::rom) continue;
    known += (known.empty() ? "" : ", ") + state.name;
    if (state.kind != HwState::Kind::external || state.name != place.memory) continue;
    for (size_t i = 0; i < hw.spaces.size(); ++i) {
      const auto base = static_cast<int64_t>(bases[i]);
      if (hw.spaces[i].segment >= 0 && place.number >= base && place.number < base + static_cast<int64_t>(sizes[i]))
        return Byte{static_cast<int>(i), place.number - base, 1};
    }
    return fail({}, fmt::format("no segment of the program has byte 0x{:x} of {}", place.number, place.memory),
                fmt::format("the segments end at 0x{:x}", end));
  }
  return fail({}, fmt::format("{} has no memory {}", hw.name, place.memory), "it has " + known);
}

// The tensor in external memory, as far as the artifact names it.
std::string buffer_at(const Stream& s, const Byte& b) {
  const std::string& space = s.hw().spaces[static_cast<size_t>(b.space)].name;
  for (const auto& [list, what] : {std::pair(&s.image().inputs, "input"), std::pair(&s.image().outputs, "output")})
    for (const AcceleratorIo& io : *list)
      if (io.segment == b.space && b.at >= io.offset && b.at < io.offset + io.bytes)
        return fmt::format("{} {}, byte {}", what, io.name, b.at - io.offset);
  return fmt::format("{}, {} {}", space, b.words == 1 ? "byte" : "word", b.at / b.words);
}

}  // namespace

Result<Place> parse_place(const std::string& text) {
  const size_t colon = text.find(':');
  Place p{colon == std::string::npos ? "" : text.substr(0, colon), 0};
  std::string_view digits = std::string_view(text).substr(colon == std::string::npos ? 0 : colon + 1);
  const int base = digits.starts_with("0x") ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), p.number, base);
  if (error == std::errc::result_out_of_range && end == digits.data() + digits.size())
    return fail({}, fmt::format("'{}' is beyond every memory: a place has at most 63 bits", text));
  if (error != std::errc() || end != digits.data() + digits.size() || p.number < 0)
    return fail({}, fmt::format("'{}' is no place in a program", text),
                "a number is an instruction; acc:12 is a word of a memory, dram:0x1000 a byte of external memory");
  return p;
}

Result<Json> what_is_at(const Stream& s, const CompiledPartition& partition, const Place& place) {
  const HwDescription& hw = s.hw();
  const auto& program = s.image().program;
  DLC_TRY(const Footprints footprints, Footprints::make(hw));
  DLC_TRY(const auto ops, ops_of(partition));
  Json out = Json::object(), list = Json::array();
  const auto add = [&](size_t i, Json touches) {
    const int layer = s.image().layer_of(static_cast<int64_t>(i));
    const AcceleratorLayer none, &l = layer < 0 ? none : s.image().layers[static_cast<size_t>(layer)];
    list.push_back({{"partition", s.partition},
                    {"instruction", i},
                    {"queue", hw.queues[static_cast<size_t>(s.queue_of(i))].name},
                    {"layer", l.name},
                    {"op", layer >= 0 && layer < std::ssize(ops) ? ops[static_cast<size_t>(layer)] : ""},
                    {"tile", s.image().tiles[i]},
                    {"text", disassemble(hw, program[i])},
                    {"touches", std::move(touches)}});
  };
  if (place.memory.empty()) {
    if (place.number >= std::ssize(program))
      return fail({}, fmt::format("the program of partition {} has {} instructions, there is no {}", s.partition,
                                  program.size(), place.number));
    const auto i = static_cast<size_t>(place.number);
    DLC_TRY(const FootprintResult f, footprints.of(program[i]));
    Json touches = Json::array();
    for (const Footprint& a : f.accesses)
      if (!a.bytes.empty()) {
        const int64_t unit = unit_of(hw, a.space);
        touches.push_back(touched(hw, a, a.bytes.front().begin / unit, (a.bytes.back().end - 1) / unit));
      }
    add(i, std::move(touches));
  } else {
    DLC_TRY(const Byte b, find_byte(s, place));
    out["memory"] = hw.spaces[static_cast<size_t>(b.space)].name;
    out["address"] = b.at / b.words;
    out["buffer"] = buffer_at(s, b);
    const ByteSet wanted{{b.at, b.at + b.words}};
    for (size_t i = 0; i < program.size(); ++i) {
      DLC_TRY(const FootprintResult f, footprints.of(program[i]));
      Json touches = Json::array();
      for (const Footprint& a : f.accesses)
        if (a.space == b.space && first_overlap(a.bytes, wanted))
          touches.push_back(touched(hw, a, b.at / b.words, b.at / b.words));
      if (!touches.empty()) add(i, std::move(touches));
    }
  }
  out["instructions"] = std::move(list);
  return out;
}

}  // namespace dlc::cli
