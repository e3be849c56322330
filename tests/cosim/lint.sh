#!/bin/sh
# The RTL has no warning under `verilator -Wall`, at every size that the description is given here.
# usage: lint.sh SIMULATORS_ASIC dlc-hw-gen asic.yaml R...
set -e
asic=$1
generator=$2
description=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files=""
for file in $(cat "$asic/rtl/nx.f"); do files="$files $asic/rtl/$file"; done
for r in "$@"; do
  "$generator" "$description,R=$r" sv "$work/nx_cfg.svh"
  verilator --lint-only -Wall --assert --top-module nx_top "$asic/port/probe.vlt" "$work/nx_cfg.svh" $files
  echo "R=$r: no warning"
done
