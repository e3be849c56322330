#!/bin/sh
# One verilated model of the accelerator: build_model.sh CONFIG OUT.so [--trace | --coverage]
#
# CONFIG is a folder with nx_cfg.svh and nx_cfg.h, written from the description (`dlc hw emit`, dlc-hw-gen); what is made on
# the way is left there. Environment: RTL (sources, here rtl/), CXX, CXXFLAGS (-O3), VERILATOR_ROOT, STRICT (set: Verilator's
# warnings are errors, as in the project's own build; another Verilator may know more of them); ccache is used if it is there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
config=$(cd "$1" && pwd)
out=$2
what=${3:-}
rtl=${RTL:-$here/rtl}
VERILATOR_ROOT=${VERILATOR_ROOT:-$(verilator --getenv VERILATOR_ROOT)}
flags="-std=c++20 ${CXXFLAGS:--O3} -march=x86-64-v3 -w -fPIC -fvisibility=hidden -DVL_USER_STOP -DVL_USER_FATAL"   # -w: most of it is Verilator's
options="-O3 --x-assign unique --x-initial unique --assert -Wall"
[ -n "${STRICT:-}" ] || options="$options -Wno-fatal"
runtime="verilated verilated_threads"
libraries="-lpthread"
trace=0
case "$what" in
  --trace) options="$options --trace-fst --trace-structs" trace=1 runtime="$runtime verilated_fst_c" libraries="$libraries -lz" ;;
  --coverage) options="$options --coverage-line" flags="$flags -DVM_COVERAGE=1" runtime="$runtime verilated_cov" ;;
  "") ;;
  *) echo "usage: build_model.sh CONFIG OUT.so [--trace | --coverage]" >&2; exit 2 ;;
esac
flags="$flags -DDLC_RTL_TRACE=$trace"

work=$config/model$what
rm -rf "$work"   # files of an older model must not be joined
mkdir -p "$work"
files=""
for file in $(cat "$rtl/nx.f"); do files="$files $rtl/$file"; done
verilator --cc $options --top-module nx_top --prefix Vnx -Mdir "$work" "$here/port/probe.vlt" "$config/nx_cfg.svh" $files

# One translation unit of everything Verilator wrote, so that the list of its files need not be known.
(cd "$work" && for file in Vnx*.cpp; do echo "#include \"$file\""; done > model.cpp)
cxx="$(command -v ccache || true) ${CXX:-g++}"
objects=""
for source in "$work/model.cpp" "$here/port/rtl_model.cpp" $(for r in $runtime; do echo "$VERILATOR_ROOT/include/$r.cpp"; done); do
  object=$work/$(basename "$source" .cpp).o
  (cd "$work" && $cxx $flags -I. -I"$config" -I"$here/port" -isystem "$VERILATOR_ROOT/include" \
      -isystem "$VERILATOR_ROOT/include/vltstd" -c "$source" -o "$object")
  objects="$objects $object"
done
${CXX:-g++} -shared $objects $libraries -o "$work/model.so"
mv "$work/model.so" "$out"
