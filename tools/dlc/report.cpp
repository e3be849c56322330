#include "tools/dlc/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/ops/embedded.h"
#include "dlc/io/file.h"
#include "tools/dlc/call_graph.h"
#include "tools/dlc/memory_map.h"
#include "tools/dlc/timeline.h"

namespace dlc::detail {
extern const EmbeddedFile kReportFiles[];
}

namespace dlc::cli {

namespace {

double utilization(int64_t macs, int64_t cycles, int64_t array) {
  return cycles > 0 ? static_cast<double>(macs) / (static_cast<double>(cycles) * static_cast<double>(array)) : 0.0;
}

Json machine(const HwDescription& hw) {
  Json params = Json::object(), queues = Json::array();
  for (const HwParam& p : hw.params) params[p.name] = p.value;
  for (const HwQueue& q : hw.queues) queues.push_back(q.name);
  Json out{{"name", hw.name},  {"arch_hash", hash_text(hw.arch_hash)}, {"params", params},
           {"queues", queues}, {"array_queue", array_of(hw).queue},    {"macs_per_cycle", array_of(hw).macs_per_cycle}};
  if (const auto clock = hw.clocks.find("base"); clock != hw.clocks.end()) out["hertz"] = clock->second;
  return out;
}

// The layers of all streams, one stream behind the other: times are from the start of the first.
Json layers(std::span<const Stream> streams) {
  Json list = Json::array();
  int64_t begin = 0;
  for (const Stream& s : streams) {
    const int64_t array = array_of(s.hw()).macs_per_cycle;
    const auto shown = layer_cycles(s.hw(), s.image(), s.times(), s.cycles());
    int64_t at = begin;
    for (size_t l = 0; l < s.image().layers.size(); ++l) {
      const AcceleratorLayer& layer = s.image().layers[l];
      Json j{{"name", layer.name},
             {"partition", s.partition},
             {"plan", layer.plan},
             {"tile", layer.tile},
             {"macs", layer.macs},
             {"instructions", layer.end - layer.first},
             {"begin", at},
             {"end", at + shown[l]},
             {"predicted_cycles", layer.predicted_cycles},
             {"utilization", utilization(layer.macs, shown[l], array)}};
      if (s.is_measured()) j["measured_cycles"] = shown[l];
      at += shown[l];
      list.push_back(std::move(j));
    }
    begin += s.cycles();
  }
  return list;
}

// Columns: of every instruction its queue, the queue's track, layer (-1: none), tile, start and retire.
Json instructions(std::span<const Stream> streams) {
  Json queue = Json::array(), lane = Json::array(), layer = Json::array(), tile = Json::array(), start = Json::array(),
       retire = Json::array();
  int64_t begin = 0, first_layer = 0;
  for (const Stream& s : streams) {
    const std::vector<int> lanes = lanes_of(s);
    for (size_t i = 0; i < lanes.size(); ++i) {
      const int l = s.image().layer_of(static_cast<int64_t>(i));
      queue.push_back(s.queue_of(i));
      lane.push_back(lanes[i]);
      layer.push_back(l < 0 ? -1 : first_layer + l);
      tile.push_back(s.image().tiles[i]);
      start.push_back(begin + s.times()[i].start);
      retire.push_back(begin + s.times()[i].retire);
    }
    begin += s.cycles();
    first_layer += std::ssize(s.image().layers);
  }
  return {{"queue", queue}, {"lane", lane}, {"layer", layer}, {"tile", tile}, {"start", start}, {"retire", retire}};
}

// Of every memory its regions as [low word, high word, begin, end, instruction], in the order of the machine's spaces.
Result<Json> memories(std::span<const Stream> streams) {
  std::map<int, MemoryMap> all;
  int64_t begin = 0;
  size_t first = 0;
  for (const Stream& s : streams) {
    DLC_TRY(const auto maps, memory_maps(s));
    for (const MemoryMap& m : maps) {
      MemoryMap& to = all.try_emplace(s.hw().find_space(m.name), MemoryMap{m.name, 0, m.word_bytes, {}}).first->second;
      to.words = std::max(to.words, m.words);
      for (MemoryRegion r : m.regions) {
        r.begin += begin;
        r.end += begin;
        r.instruction += first;
        to.regions.push_back(r);
      }
    }
    begin += s.cycles();
    first += s.image().program.size();
  }
  Json list = Json::array();
  for (const auto& [space, m] : all) {
    Json regions = Json::array();
    int64_t highest = 0;
    for (const MemoryRegion& r : m.regions) {
      regions.push_back({r.low, r.high, r.begin, r.end, r.instruction});
      highest = std::max(highest, r.high);
    }
    list.push_back({{"name", m.name},
                    {"words", m.words},
                    {"word_bytes", m.word_bytes},
                    {"used_words", highest},
                    {"regions", regions}});
  }
  return list;
}

// `layer` is an index into layers[]: a stream has one of each call.
Result<Json> graph(const CompiledModel& model, std::span<const Stream> streams) {
  DLC_TRY(const CallGraph g, call_graph(model));
  Json nodes = Json::array(), edges = Json::array();
  for (const CallNode& n : g.nodes) {
    Json j{{"name", n.name}, {"kernel", n.kernel}, {"device", n.device}};
    int64_t first = 0;
    for (const Stream& s : streams) {
      if (n.partition == static_cast<int>(s.partition) && n.call < std::ssize(s.image().layers))
        j["layer"] = first + n.call;
      first += std::ssize(s.image().layers);
    }
    nodes.push_back(std::move(j));
  }
  for (const auto& [from, to] : g.edges) edges.push_back({from, to});
  return Json{{"nodes", nodes}, {"edges", edges}};
}

Json totals(std::span<const Stream> streams) {
  int64_t predicted = 0, shown = 0, macs = 0, count = 0, stream_bytes = 0, weights = 0, arena = 0;
  bool measured = !streams.empty();
  for (const Stream& s : streams) {
    predicted += s.predicted_cycles;
    shown += s.cycles();
    measured = measured && s.is_measured();
    for (const AcceleratorLayer& l : s.image().layers) macs += l.macs;
    count += std::ssize(s.image().program);
    stream_bytes += std::ssize(s.loaded.words) * 4;
    weights += std::ssize(s.image().weights);
    arena = std::max(arena, s.image().arena_bytes);
  }
  Json out{{"predicted_cycles", predicted}, {"macs", macs},
           {"instructions", count},         {"stream_bytes", stream_bytes},
           {"weight_bytes", weights},       {"arena_bytes", arena}};
  if (measured) out["measured_cycles"] = shown;
  if (!streams.empty()) out["mac_utilization"] = utilization(macs, shown, array_of(streams[0].hw()).macs_per_cycle);
  return out;
}

// Nodes that the machine does not take, with the reason.
Json on_host(const CompiledModel& model) {
  Json list = Json::array();
  for (const Json& n : objects_in(object_of(model.explanation), "nodes"))
    if (field<std::string>(n, "device") == "host" && field<std::string>(n, "rule") != "folded")
      list.push_back({{"node", field<std::string>(n, "node")},
                      {"op", field<std::string>(n, "op")},
                      {"why", field<std::string>(n, "why")}});
  return list;
}

std::string_view page_file(std::string_view name) {
  for (const detail::EmbeddedFile* f = detail::kReportFiles; f->name != nullptr; ++f)
    if (std::string_view(f->name).ends_with(name)) return f->text;
  return {};
}

}  // namespace

Result<Cells> read_cells(const std::string& argument) {
  const size_t equals = argument.find('=');
  const std::string file = equals == std::string::npos ? argument : argument.substr(equals + 1);
  DLC_TRY(const MappedFile mapped, map_file(file));
  const Json design = object_of(mapped.text()).value("design", Json::object());
  if (!has<int64_t>(design, "num_cells") || !design.value("num_cells_by_type", Json()).is_object())
    return fail({file, 0, 0, {}}, "has no design.num_cells and design.num_cells_by_type",
                "write it with yosys: tee -o cells.json stat -json");
  Cells c{equals == std::string::npos ? std::filesystem::path(file).stem().string() : argument.substr(0, equals),
          field<int64_t>(design, "num_cells"), Json::object()};
  const auto count = [&](const std::string& what, const Json& n) -> Result<> {
    if (n.is_number_unsigned() || (n.is_number_integer() && n.get<int64_t>() >= 0)) return {};
    return fail({file, 0, 0, {}}, fmt::format("{} is {}, which is no number of cells", what, n.dump()),
                "write it with yosys: tee -o cells.json stat -json");
  };
  DLC_CHECK(count("design.num_cells", design["num_cells"]));
  for (const auto& type : design["num_cells_by_type"].items()) {
    DLC_CHECK(count(fmt::format("design.num_cells_by_type '{}'", type.key()), type.value()));
    c.by_type[type.key()] = type.value();
  }
  return c;
}

Result<Json> report_data(const CompiledModel& model, std::span<const Stream> streams, const Json& result,
                         std::span<const Cells> cells) {
  Json data{{"model", model.name}, {"hardware", model.hardware_name}, {"totals", totals(streams)}};
  if (has<std::string>(result, "device")) data["device"] = result["device"];
  if (has<bool>(result, "bit_exact")) data["bit_exact"] = result["bit_exact"];
  if (!streams.empty()) {
    data["machine"] = machine(streams[0].hw());
    data["layers"] = layers(streams);
    data["instructions"] = instructions(streams);
    DLC_TRY(data["memories"], memories(streams));
  } else {
    data["layers"] = objects_in(result, "layers");
  }
  DLC_TRY(data["graph"], graph(model, streams));
  data["on_host"] = on_host(model);
  data["cells"] = Json::array();
  for (const Cells& c : cells)
    data["cells"].push_back({{"configuration", c.configuration}, {"total", c.total}, {"by_type", c.by_type}});
  return data;
}

std::string report_page(const Json& data) {
  std::string page(page_file("/page.html"));
  const auto put = [&](std::string_view mark, std::string_view text) {
    if (const size_t at = page.find(mark); at != std::string::npos) page.replace(at, mark.size(), text);
  };
  put("{{style}}", page_file("/style.css"));
  std::string script;
  for (const char* file : {"/common.js", "/layers.js", "/timeline.js", "/graph.js", "/page.js"})
    script += page_file(file);
  put("{{script}}", script);
  // In a script element a "<" could begin its end: written as an escape of JSON, it cannot.
  std::string json;
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace))
    json += c == '<' ? "\\u003c" : std::string(1, c);
  put("{{data}}", json);
  return page;
}

}  // namespace dlc::cli
