// A folder that is written whole or not at all: under another name beside its target, and then put in its place.
//
//   DLC_TRY(PendingFolder f, PendingFolder::open("vectors", is_vectors_entry));
//   DLC_CHECK(write_file(f / "memory.hex", text));
//   DLC_CHECK(f.replace());  // before this, what was in vectors is there; afterwards nothing of it
//
// A folder that is there is replaced with all that it holds, so it must hold nothing but what `own` says that such a
// folder has: a folder of somebody's files that has been named by mistake is refused.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "dlc/base/diag.h"
#include "dlc/io/fd.h"

namespace dlc {

using OwnEntry = std::function<bool(std::string_view name)>;

// Without replace() it vanishes again. It is held alone: processes that write one target wait for each other. What a
// killed one leaves beside its target is taken by the next.
class PendingFolder {
 public:
  static Result<PendingFolder> open(const std::string& path, const OwnEntry& own);
  // Whether open() could do it: asked before long work.
  static Result<> check(const std::string& path, const OwnEntry& own);

  PendingFolder(PendingFolder&& other) noexcept;
  PendingFolder& operator=(PendingFolder&&) = delete;
  ~PendingFolder();

  std::string operator/(const std::string& name) const { return temporary_ + "/" + name; }
  // One rename, where the file system can exchange two names; otherwise the old folder is away for a moment.
  Result<> replace();

 private:
  PendingFolder(std::string path, std::string target);
  Result<> lock();

  std::string path_, target_, temporary_;  // as it was given; behind links; beside it
  Fd fd_{-1};
};

}  // namespace dlc
