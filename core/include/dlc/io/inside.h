// Files that a document names relative to itself, confined to a folder.
//
//   DLC_TRY(const MappedFile f, map_inside("hwdesc", "asic.recipes", "recipes", hw.place("recipes")));
//
// Nothing leads out: an absolute path, a `..`, a symbolic link anywhere below the folder and what is no regular file
// are refused. The path is walked one folder at a time, so that what was checked is what is opened.
#pragma once

#include <string>
#include <string_view>

#include "dlc/base/diag.h"
#include "dlc/io/fd.h"
#include "dlc/io/file.h"

namespace dlc {

// `what` ("recipes", "external data") and `where`, the place that names the file, are for the messages.
Result<Fd> open_inside(const std::string& folder, const std::string& location, std::string_view what, const Loc& where);
Result<MappedFile> map_inside(const std::string& folder, const std::string& location, std::string_view what,
                              const Loc& where);
// What can be said of the path alone, before there is a folder.
Result<> check_inside(std::string_view location, std::string_view what, const Loc& where);

}  // namespace dlc
