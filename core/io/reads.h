// Who is told of every file that this process opens for reading, however it came to its name: a reproducer has to hold
// them all (tools/dlc/crash.h). Plugins have a copy of this library of their own and tell nobody.
#pragma once

#include <string>

namespace dlc {

// Called by any thread, with the path as it was opened.
using ReadObserver = void (*)(const std::string& path);
void observe_reads(ReadObserver of_all);  // null: nobody is told

void tell_read(const std::string& path);

}  // namespace dlc
