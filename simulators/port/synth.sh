#!/bin/sh
# A machine as gates: synth.sh TOP RTL/LIST.f PACKAGE.svh CELLS.json [NETLIST.v]
#
# yosys reads the RTL, finds no undriven net and no loop, and maps it to gates of two inputs, multiplexers and flip-flops, module by
# module; every memory stays a dlc_sram. CELLS.json has how many of each (yosys' `stat -json`, for `dlc report --cells`).
# NETLIST.v is the machine with its probes, to be simulated in the place of its RTL beside dlc_sram.sv and dlc_probe.sv.
# Environment: YOSYS, a yosys of 0.55 or later.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$1
list=$2
package=$3
cells=$4
netlist=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$package" "$here/dlc_probe.sv" "$work"
files=$(basename "$package")
for file in $(cat "$list"); do
  cp "$(dirname "$list")/$file" "$work"
  file=$(basename "$file")
  [ "$file" = dlc_sram.sv ] || files="$files $file"
done
probe=""
write=""
if [ -n "$netlist" ]; then
  probe="-DDLC_PROBE"
  # nets of one bit, since a simulator takes a vector whose bits depend on each other for a loop
  write="clean -purge; splitnets; write_verilog -noattr netlist.v"
fi
# run in the folder: a yosys in WebAssembly does not see every path
(cd "$work" && ${YOSYS:-yosys} -q -p "
  read_verilog -sv -lib -DSYNTHESIS dlc_sram.sv dlc_probe.sv
  read_verilog -sv -DSYNTHESIS $probe $files
  setattr -mod -set keep 1 =dlc_probe
  synth -noabc -top $top
  check -assert
  tee -q -o cells.json stat -json
  $write") >&2
cp "$work/cells.json" "$cells"
[ -z "$netlist" ] || cp "$work/netlist.v" "$netlist"
