#include "tools/dlc/timeline.h"

#include <algorithm>

namespace dlc::cli {

namespace {

constexpr int kProcess = 1, kLayerTrack = 1, kTracksOfQueue = 16;

int track_of(int queue, int lane) { return kLayerTrack + 1 + queue * kTracksOfQueue + lane; }

Json name_of(const char* what, int track, const std::string& name) {
  return {{"ph", "M"}, {"pid", kProcess}, {"tid", track}, {"name", what}, {"args", {{"name", name}}}};
}

Json slice(int track, int64_t begin, int64_t end, const std::string& name, const std::string& category, Json args) {
  return {{"ph", "X"},
          {"pid", kProcess},
          {"tid", track},
          {"ts", begin},
          {"dur", std::max<int64_t>(end - begin, 0)},
          {"name", name},
          {"cat", category},
          {"args", std::move(args)}};
}

}  // namespace

std::vector<int> lanes_of(const Stream& s) {
  std::vector<int> lanes(s.image().program.size());
  std::vector<std::vector<int64_t>> free(s.hw().queues.size());  // per queue and lane: from when on
  for (size_t i = 0; i < lanes.size(); ++i) {
    const int q = s.queue_of(i);
    if (q < 0) continue;
    auto& of_queue = free[static_cast<size_t>(q)];
    const InstructionTime& t = s.times()[i];
    const auto lane = std::ranges::find_if(of_queue, [&](int64_t from) { return from <= t.start; });
    lanes[i] = static_cast<int>(lane - of_queue.begin());
    if (lane == of_queue.end())
      of_queue.push_back(t.retire);
    else
      *lane = t.retire;
  }
  return lanes;
}

Json timeline(std::span<const Stream> streams) {
  Json events = Json::array(), tracks = Json::array();
  int64_t begin = 0;  // of the stream, behind those before it
  bool measured = true;
  std::vector<int> lanes_seen;  // per queue
  for (const Stream& s : streams) {
    measured = measured && s.is_measured();
    lanes_seen.resize(std::max(lanes_seen.size(), s.hw().queues.size()), 0);
    const std::vector<int64_t> cycles = layer_cycles(s.hw(), s.image(), s.times(), s.cycles());
    int64_t at = begin;
    for (size_t l = 0; l < cycles.size(); ++l) {
      const AcceleratorLayer& layer = s.image().layers[l];
      events.push_back(
          slice(kLayerTrack, at, at + cycles[l], layer.name, "layer",
                {{"partition", s.partition}, {"macs", layer.macs}, {"plan", layer.plan}, {"tile", layer.tile}}));
      at += cycles[l];
    }
    const std::vector<int> lanes = lanes_of(s);
    for (size_t i = 0; i < lanes.size(); ++i) {
      const int q = s.queue_of(i);
      if (q < 0) continue;
      const InstructionTime& t = s.times()[i];
      int& seen = lanes_seen[static_cast<size_t>(q)];
      seen = std::max(seen, lanes[i] + 1);
      const std::string text = disassemble(s.hw(), s.image().program[i]), layer = s.layer(i);
      events.push_back(
          slice(track_of(q, lanes[i]), begin + t.start, begin + t.retire,
                layer.empty() ? text.substr(0, text.find(' ')) : layer, s.hw().queues[static_cast<size_t>(q)].name,
                {{"partition", s.partition}, {"instruction", i}, {"tile", s.image().tiles[i]}, {"text", text}}));
    }
    begin += s.cycles();
  }
  if (streams.empty()) return {{"traceEvents", events}};
  const HwDescription& hw = streams[0].hw();
  tracks.push_back(name_of("process_name", 0, hw.name + (measured ? ", measured cycles" : ", predicted cycles")));
  tracks.push_back(name_of("thread_name", kLayerTrack, "layers"));
  for (size_t q = 0; q < lanes_seen.size(); ++q)
    for (int lane = 0; lane < lanes_seen[q]; ++lane)
      tracks.push_back(name_of("thread_name", track_of(static_cast<int>(q), lane), hw.queues[q].name));
  tracks.insert(tracks.end(), events.begin(), events.end());
  return {{"traceEvents", std::move(tracks)}, {"displayTimeUnit", "ms"}};
}

}  // namespace dlc::cli
