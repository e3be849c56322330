// The executable is bytes from a file: whatever they say is an error that names the field, or runs; nothing is trusted.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/unit/asic/support.h"

using namespace dlc;
using namespace dlc::asic;
using nlohmann::ordered_json;

namespace {

struct Made {
  std::vector<std::byte> bytes;
  std::vector<Tensor> inputs;
};

const Made& made() {
  static const Made m = [] {
    LayerBuilder b(machine(8), 2);
    const ValueId x = b.input({1, 8, 6, 6});
    const ValueId y = b.conv(x, 8, 3, 1, 1);
    const Graph g = b.finish({b.conv(b.add(y, y), 8, 3, 1, 1)});
    const AcceleratorImage image = need(compile_for(*machine(8).hw, need(lower_to_program(g))));
    return Made{need(write_container(*machine(8).hw, machine(8).text, image)), b.inputs()};
  }();
  return m;
}

size_t header_bytes(std::span<const std::byte> bytes) {
  uint64_t n = 0;
  std::memcpy(&n, bytes.data() + 8, 8);
  return n;
}

std::vector<std::byte> with_header(const ordered_json& header) {
  const std::string text = header.dump();
  const std::span old(made().bytes);
  const auto rest = old.subspan(16 + header_bytes(old));
  std::vector<std::byte> out(16 + text.size() + rest.size());
  const uint64_t length = text.size();
  std::memcpy(out.data(), old.data(), 8);
  std::memcpy(out.data() + 8, &length, 8);
  std::memcpy(out.data() + 16, text.data(), text.size());
  std::memcpy(out.data() + 16 + text.size(), rest.data(), rest.size());
  return out;
}

// Loads and runs it on the functional simulator; the message of what fails.
std::string run(std::span<const std::byte> bytes) {
  auto loaded = read_container(bytes);
  if (!loaded) return std::string(loaded.error().message());
  const auto shared = std::make_shared<const Loaded>(std::move(*loaded));
  auto port = open_port(need(parse_device_uri("asic:func")), *shared);
  if (!port) return std::string(port.error().message());
  auto driver = Driver::make(shared, std::move(*port));
  if (!driver) return std::string(driver.error().message());
  const auto out = driver->run(made().inputs);
  return out ? "" : std::string(out.error().message());
}

}  // namespace

TEST_CASE("every field of the header is checked, and named") {
  const auto* text = reinterpret_cast<const char*>(made().bytes.data()) + 16;
  const ordered_json good = ordered_json::parse(text, text + header_bytes(made().bytes));
  REQUIRE(run(with_header(good)).empty());
  struct Case {
    const char *at, *value, *named;
  };
  const Case cases[] = {
      {"/layers/0/first", "-5", "layers[0].first"},
      {"/layers/0/end", "1000000000000", "layers[0].end"},
      {"/layers/0/end", "18446744073709551615", "layers[0].end"},
      {"/layers/1/end", "0", "layers[1].end"},
      {"/layers/0/macs", "9223372036854775807", "layers[1].macs"},
      {"/layers/0/predicted_cycles", "1.5", "layers[0].predicted_cycles"},
      {"/layers/0/plan", "7", "layers[0].plan"},
      {"/layers", "{}", "layers"},
      {"/inputs/0/bytes", "1", "inputs[0].bytes"},
      {"/inputs/0/bytes", "1000000", "inputs[0].bytes"},
      {"/inputs/0/lanes", "0", "inputs[0].lanes"},
      {"/inputs/0/lanes", "4611686018427387904", "inputs[0].lanes"},
      {"/inputs/0/offset", "-8", "inputs[0].offset"},
      {"/inputs/0/offset", "1000000000000", "inputs[0].offset"},
      {"/inputs/0/shape", "[1,8,6,-6]", "inputs[0].shape[3]"},
      {"/inputs/0/shape", "[100000000,100000000,100000000]", "inputs[0].shape"},
      {"/inputs/0/shape", "[100000000,100000000,100000000,0]", "inputs[0].shape"},
      {"/inputs/0/segment", "\"acc\"", "inputs[0].segment"},
      {"/inputs/0/segment", "\"dram.code\"", "inputs[0].segment"},
      {"/inputs/0/segment", "\"dram.weights\"", "inputs[0].segment"},
      {"/inputs/0",
       R"({"name":"x","dtype":"s8","shape":[1,8,6,6],"lanes":8,"segment":"dram.arena","offset":1000000,"bytes":288})",
       "inputs[0].offset"},
      {"/inputs", "7", "inputs"},
      {"/inputs/0", "[]", "inputs[0].name"},
      {"/outputs/0/dtype", "\"f64\"", "outputs[0].bytes"},
      {"/outputs/0/dtype", "\"f7\"", "outputs[0].dtype"},
      {"/outputs/0/bytes", "1", "outputs[0].bytes"},
      {"/outputs/0/shape", "[]", "outputs[0].bytes"},
      {"/arena_bytes", "-4096", "arena_bytes"},
      {"/arena_bytes", "1000000000000", "arena_bytes"},
      {"/tiles", "[0]", "tiles"},
      {"/tiles/0", "-1", "tiles[0]"},
      {"/words", "1", "weight_bytes"},
      {"/words", "-1", "words"},
      {"/weight_bytes", "0", "weight_bytes"},
      {"/arch_hash", "\"0x0\"", "arch_hash"},
      {"/hardware", "null", "hardware"},
  };
  for (const Case& c : cases) {
    INFO(c.at << " = " << c.value);
    ordered_json header = good;
    header[ordered_json::json_pointer(c.at)] = ordered_json::parse(c.value);
    const std::string said = run(with_header(header));
    INFO(said);
    CHECK(said.starts_with("the asic executable is damaged: '" + std::string(c.named)));
  }
  ordered_json header = good;  // each within its segment, together more than the machine has
  header["inputs"][0]["offset"] = header["outputs"][0]["offset"] = 4'000'000'000;
  CHECK(run(with_header(header)).starts_with("the asic executable is damaged: its segments take 80000"));
}

TEST_CASE("a header with any byte changed is refused or runs") {
  const std::string_view text(reinterpret_cast<const char*>(made().bytes.data()) + 16, header_bytes(made().bytes));
  // The description before it is as long as all the rest many times over, and guarded by its hash.
  const size_t begin = text.find("\"words\":");
  REQUIRE(begin != std::string_view::npos);
  std::mt19937_64 random(11);
  const std::string digits = "0123456789-\"[]{},.:eE";
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    auto bytes = made().bytes;
    const size_t at = 16 + begin + random() % (text.size() - begin);
    const char to = i % 2 == 0 ? digits[random() % digits.size()] : static_cast<char>(random() % 256);
    INFO("byte " << at << " becomes " << static_cast<int>(to));
    bytes[at] = static_cast<std::byte>(to);
    refused += !run(bytes).empty();
  }
  CHECK(refused > 50);
}

TEST_CASE("the executable holds its whole description, whatever folder it came from") {
  namespace fs = std::filesystem;
  const auto compiled = [](const fs::path& folder) {
    fs::remove_all(folder);
    fs::create_directories(folder);
    fs::copy_file(std::string(DLC_SOURCE_DIR) + "/hwdesc/asic.yaml", folder / "base.yaml");
    const std::string file = (folder / "own.yaml").string();
    HardwareText text{"dlc_hw: 1\nname: own\nlike: base.yaml\nparams: {IN_W: 4096}\n", file, "R=8"};
    const HwDescription hw = need(read_hardware(text));
    LayerBuilder b(machine(8), 2);
    const ValueId x = b.input({1, 8, 6, 6});
    const Graph g = b.finish({b.conv(x, 8, 3, 1, 1)});
    auto bytes = need(write_container(hw, text, need(compile_for(hw, need(lower_to_program(g))))));
    fs::remove_all(folder);
    const Loaded loaded = need(read_container(bytes));  // there is no file left
    CHECK(loaded.hw->name == "own");
    CHECK(loaded.hw->arch_hash == hw.arch_hash);
    CHECK(loaded.hw->arch_hash != machine(8).hw->arch_hash);
    CHECK(loaded.hardware == "own.yaml,R=8");
    const auto shared = std::make_shared<const Loaded>(loaded);
    Driver d = need(Driver::make(shared, need(open_port(need(parse_device_uri("asic:func")), *shared))));
    need(d.run(b.inputs()));
    return bytes;
  };
  const fs::path folder = fs::temp_directory_path() / fmt::format("dlc_container_{}", getpid());
  CHECK(compiled(folder / "a") == compiled(folder / "another one"));
  fs::remove_all(folder);

  const auto* text = reinterpret_cast<const char*>(made().bytes.data()) + 16;
  ordered_json header = ordered_json::parse(text, text + header_bytes(made().bytes));
  header["hardware"] = "dlc_hw: 1\nname: own\nlike: /etc/passwd\n";
  CHECK(run(with_header(header)).find("'like' names another file") != std::string::npos);
}
