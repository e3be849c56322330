#!/bin/sh
# The RTL is clean under `verilator -Wall`, for every parameter set given:
#   lint.sh TOP RTL_DIR/LIST.f PACKAGE DLC_HW_GEN DESCRIPTION [PARAMS...]      lint.sh nx_top .../nx.f nx_cfg ... asic.yaml R=8 R=16
set -eu
top=$1
list=$2
package=$3
gen=$4
description=$5
shift 5
[ $# -gt 0 ] || set -- ""
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rtl=$(dirname "$list")
files=""
for file in $(cat "$list"); do files="$files $rtl/$file"; done
for params in "$@"; do
  "$gen" "$description${params:+,$params}" sv "$work/$package.svh"
  verilator --lint-only --assert -Wall -DDLC_PROBE --top-module "$top" "$work/$package.svh" "$rtl/../../port/dlc_probe.sv" $files
done
