#!/bin/sh
# One verilated model of a machine: build_model.sh TOP RTL/LIST.f CONFIG OUT.so [--trace | --coverage]
#
# TOP is the module with the pins that rtl_model.cpp drives; LIST.f names the sources, beside it. CONFIG is a folder with
# the generated package PACKAGE.svh and its C++ twin PACKAGE.h (`dlc hw emit`, dlc-hw-gen); what is made on the way is left
# there. Environment: RTL (another folder of sources), CXX, CXXFLAGS (-O3), VERILATOR_ROOT, STRICT (set: Verilator's warnings
# are errors, as in the project's own build; another Verilator may know more of them); ccache is used if it is there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$1
list=$2
config=$(cd "$3" && pwd)
out=$4
what=${5:-}
rtl=${RTL:-$(dirname "$list")}
package=$(cd "$config" && ls -- *.svh)
package=${package%.svh}
VERILATOR_ROOT=${VERILATOR_ROOT:-$(verilator --getenv VERILATOR_ROOT)}
flags="-std=c++20 ${CXXFLAGS:--O3} -march=x86-64-v3 -w -fPIC -fvisibility=hidden -DVL_USER_STOP -DVL_USER_FATAL"   # -w: most of it is Verilator's
options="-O3 -DDLC_PROBE --x-assign unique --x-initial unique --assert -Wall"
[ -n "${STRICT:-}" ] || options="$options -Wno-fatal"
runtime="verilated verilated_threads"
libraries="-lpthread"
trace=0
case "$what" in
  --trace) options="$options --trace-fst --trace-structs" trace=1 runtime="$runtime verilated_fst_c" libraries="$libraries -lz" ;;
  --coverage) options="$options --coverage-line" flags="$flags -DVM_COVERAGE=1" runtime="$runtime verilated_cov" ;;
  "") ;;
  *) echo "usage: build_model.sh TOP RTL/LIST.f CONFIG OUT.so [--trace | --coverage]" >&2; exit 2 ;;
esac
flags="$flags -DDLC_RTL_TRACE=$trace"

work=$config/model$what
rm -rf "$work"   # files of an older model must not be joined
mkdir -p "$work"
files=""
for file in $(cat "$list"); do files="$files $rtl/$file"; done
verilator --cc $options --top-module "$top" --prefix Vdlc -Mdir "$work" "$config/$package.svh" "$here/dlc_probe.sv" $files

# How the port calls what is this machine's: its constants, and the probes, one for each queue.
queues=$(sed -n 's/.*\<QUEUES = \([0-9]*\).*/\1/p' "$config/$package.h")
probes=""
i=0
while [ "$i" -lt "$queues" ]; do probes="$probes f($i)"; i=$((i + 1)); done
cat > "$work/dlc_machine.h" <<HEADER
#pragma once
#include "$package.h"
#include "Vdlc.h"
#include "Vdlc___024root.h"
namespace machine = $package::machine;
namespace constants = $package;
#define DLC_PROBES(f)$probes
#define DLC_PROBE(root, i, name) (root).${top}__DOT__core__DOT__probe_##i##__DOT__##name
HEADER

# One translation unit of everything Verilator wrote, so that the list of its files need not be known.
(cd "$work" && for file in Vdlc*.cpp; do echo "#include \"$file\""; done > model.cpp)
cxx="$(command -v ccache || true) ${CXX:-g++}"
objects=""
for source in "$work/model.cpp" "$here/rtl_model.cpp" $(for r in $runtime; do echo "$VERILATOR_ROOT/include/$r.cpp"; done); do
  object=$work/$(basename "$source" .cpp).o
  (cd "$work" && $cxx $flags -I. -I"$config" -I"$here" -isystem "$VERILATOR_ROOT/include" \
      -isystem "$VERILATOR_ROOT/include/vltstd" -c "$source" -o "$object")
  objects="$objects $object"
done
${CXX:-g++} -shared $objects $libraries -o "$work/model.so"
mv "$work/model.so" "$out"
