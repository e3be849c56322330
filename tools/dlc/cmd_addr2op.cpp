// dlc addr2op: which op, layer, tile and buffer an instruction or an address belongs to.
#include <fmt/format.h>

#include <optional>

#include "tools/dlc/addresses.h"

namespace dlc::cli {

namespace {

constexpr size_t kMostLines = 20;

struct Options {
  std::string file, place;
  std::optional<uint64_t> partition;  // none: all of them
};

std::string text_of(const Json& found) {
  std::string text;
  if (found.contains("memory"))
    text += fmt::format("{}:{}: {}\n", field<std::string>(found, "memory"), field<int64_t>(found, "address"),
                        field<std::string>(found, "buffer"));
  const Json list = objects_in(found, "instructions");
  for (size_t i = 0; i < std::min(list.size(), kMostLines); ++i) {
    const Json& n = list[i];
    text += fmt::format("instruction {} of queue {}: layer {} ({}), tile {}, partition {}\n  {}\n",
                        field<int64_t>(n, "instruction"), field<std::string>(n, "queue"),
                        field<std::string>(n, "layer"), field<std::string>(n, "op"), field<int64_t>(n, "tile"),
                        field<int64_t>(n, "partition"), field<std::string>(n, "text"));
    for (const Json& t : objects_in(n, "touches"))
      text += fmt::format("  {}s {}:{} to {}\n", field<std::string>(t, "access"), field<std::string>(t, "memory"),
                          field<int64_t>(t, "low"), field<int64_t>(t, "high"));
  }
  if (list.empty()) text += "no instruction touches it\n";
  if (list.size() > kMostLines) text += fmt::format("and {} more; --json has all\n", list.size() - kMostLines);
  return text;
}

Result<int> addr2op(const Options& o, Context& cx) {
  DLC_TRY(const Place place, parse_place(o.place));
  DLC_TRY(const CompiledModel model, CompiledModel::read(o.file));
  DLC_TRY(const auto streams, need_streams(model, o.file, "an address"));
  Json found = Json::array();
  std::string text;
  Error none({o.file, 0, 0, {}}, fmt::format("partition {} has no instructions", o.partition.value_or(0)));
  for (const Stream& s : streams) {
    if (o.partition && *o.partition != s.partition) continue;
    auto one = of_file(what_is_at(s, model.partitions[s.partition], place), o.file);
    if (!one) {  // another partition may have it
      none = std::move(one).error();
      continue;
    }
    text += text_of(*one);
    found.push_back(std::move(*one));
  }
  if (found.empty()) return std::unexpected(std::move(none));
  cx.print({{"model", o.file}, {"place", o.place}, {"found", found}}, text);
  return kOk;
}

}  // namespace

void add_addr2op(CLI::App& app, Context& cx) {
  auto o = std::make_shared<Options>();
  CLI::App* sub =
      add_command(app, cx, "addr2op", "Say which op, layer, tile and buffer an address or instruction is of");
  sub->add_option("model", o->file, "A compiled model (.dlca)")->required()->check(file_name());
  sub->add_option("place", o->place, "The number of an instruction; acc:12; dram:0x1000; dram.arena:0x40")->required();
  sub->add_option("--partition", o->partition, "Of a model with several instruction streams: only this one")
      ->check(CLI::NonNegativeNumber);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return addr2op(*o, cx); }; });
}

}  // namespace dlc::cli
