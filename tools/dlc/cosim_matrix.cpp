#include "tools/dlc/cosim_matrix.h"

#include <fmt/format.h>

#include <filesystem>

#include "dlc/io/file.h"
#include "dlc/io/pending_folder.h"

namespace dlc::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char *kArtifact = "stream.dlca", *kLibrary = "rtl.so";

enum class Cell { exact, differs, refused };

constexpr const char* kWords[] = {"bit exact", "differs", "refused"};

// What the four say together. A pair that cannot run (another architecture) accuses nobody.
const char* who_broke(Cell green, Cell new_stream, Cell new_rtl, Cell both) {
  if (both == Cell::exact) return "nothing";
  if (green != Cell::exact) return "something else";
  const bool stream = new_stream == Cell::differs, rtl = new_rtl == Cell::differs;
  return stream && rtl ? "both" : stream ? "stream" : rtl ? "RTL" : "neither alone";
}

Result<> copy(const std::string& from, const std::string& to) {
  DLC_TRY(const MappedFile file, map_file(from));
  return write_file(to, file.bytes);
}

}  // namespace

bool is_in_matrix(std::string_view name) { return name == kArtifact || name == kLibrary; }

Result<> add_matrix(const std::string& folder, const MatrixPair& changed, const CosimulatePair& run, Json& result) {
  const MatrixPair green{folder + "/" + kArtifact, folder + "/" + kLibrary};
  Json cells = Json::array();
  const auto add = [&](const char* rtl, const char* stream, const Result<Json>& r) {
    Cell c = Cell::refused;
    if (r) c = field<bool>(*r, "bit_exact") ? Cell::exact : Cell::differs;
    Json j{{"rtl", rtl}, {"stream", stream}, {"result", kWords[static_cast<int>(c)]}};
    if (r && has<int64_t>(*r, "cycles")) j["cycles"] = (*r)["cycles"];
    if (!r) j["why"] = r.error().message();
    if (r && has<std::string>(*r, "stopped")) j["why"] = (*r)["stopped"];
    if (r && r->contains("first_difference"))
      j["why"] = "layer " + field<std::string>((*r)["first_difference"], "layer");
    cells.push_back(std::move(j));
    return c;
  };
  std::error_code error;
  const bool is_first = !fs::exists(green.artifact, error) || !fs::exists(green.library, error);
  if (is_first) {
    result["broke"] = add("new", "new", result) == Cell::exact ? "nothing" : "something else";
  } else {
    const Cell old = add("last green", "last green", run(green));
    const Cell stream = add("last green", "new", run({changed.artifact, green.library}));
    const Cell rtl = add("new", "last green", run({green.artifact, changed.library}));
    result["broke"] = who_broke(old, stream, rtl, add("new", "new", result));
  }
  result["matrix"] = std::move(cells);
  if (!field<bool>(result, "bit_exact")) return {};
  DLC_TRY(PendingFolder pair, PendingFolder::open(folder, is_in_matrix));
  DLC_CHECK(copy(changed.artifact, pair / kArtifact));
  DLC_CHECK(copy(changed.library, pair / kLibrary));
  return pair.replace();
}

std::string matrix_text(const Json& result) {
  std::string text = fmt::format("{:<12} {:<12} {}\n", "RTL", "stream", "result");
  for (const Json& c : objects_in(result, "matrix")) {
    text += fmt::format("{:<12} {:<12} {}", field<std::string>(c, "rtl"), field<std::string>(c, "stream"),
                        field<std::string>(c, "result"));
    if (has<int64_t>(c, "cycles")) text += fmt::format(", {} cycles", field<int64_t>(c, "cycles"));
    if (has<std::string>(c, "why")) text += ": " + field<std::string>(c, "why");
    text += "\n";
  }
  return text + fmt::format("broke: {}\n", field<std::string>(result, "broke"));
}

}  // namespace dlc::cli
