// The device asic:cosim, and the replay bundle that it leaves of a difference: a folder with all that reproduces it.
//
//   bundle.json        URI of the device, names of the files, the report
//   executable.bin     what the device loaded
//   input0.npy ...     what it was given
//   program.txt        the instructions
//   wave.fst           the signals around the difference, when there is a model with tracing
//
// `dlc cosim FOLDER` loads the executable on that device again and runs it on those inputs. The folder is written whole
// or not at all; where it cannot be, the counters have `no_bundle`, which says why, and the difference as ever.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "dlc/plugin/backend.h"
#include "plugins/asic/runtime/devices.h"

namespace dlc::asic {

// Whether a bundle has an entry of this name, or a folder of bundles has: another one is somebody's file.
bool is_in_bundle(std::string_view name);

// Runs the RTL and the functional simulator; its results are the RTL's. With `uri.bundle`, a difference is written
// there; with `uri.each` in a folder of its own there, since a model may have several programs that differ.
Result<std::unique_ptr<Executable>> make_cosim(DeviceUri uri, std::shared_ptr<const Loaded> loaded,
                                               std::span<const std::byte> executable);

}  // namespace dlc::asic
