#!/usr/bin/env bash
# The main job on a fresh Debian 12 machine: installs what is missing, builds, and runs the project's own Fashion-MNIST
# network on the CPU, on the accelerator's functional simulator and on its RTL.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/deps.sh
cmake --preset release >/dev/null
cmake --build --preset release --target dlc dlc_plugin_cpu dlc_plugin_asic dlc_nx16_16x16   # tools/test.sh builds the rest

dlc=build/bin/dlc
model=tests/models/fashion_mnist
out=build/demo
mkdir -p "$out"
images() { /usr/bin/python3 "$model/images.py" "$@"; }   # the python that tools/deps.sh gave numpy

echo
echo "== float network on this CPU: 10,000 test images, one at a time (onnxruntime has 90.21 % right)"
images export 10000 "$out/images.npz"
"$dlc" --hw=native "$model/fashion_float.onnx" -o "$out/float.dlca"
"$dlc" run "$out/float.dlca" --device cpu: --each --input "$out/images.npz" --output "$out/float.npz" >/dev/null
images score "$out/float.npz"

echo
echo "== int8 network on the accelerator's functional simulator: 1,000 test images"
images export 1000 "$out/images.npz"
"$dlc" --hw=hwdesc/asic.yaml --dim N=1 "$model/fashion_int8.onnx" -o "$out/int8.dlca"
"$dlc" run "$out/int8.dlca" --device asic:func --each --input "$out/images.npz" --output "$out/int8.npz" >/dev/null
images score "$out/int8.npz"

echo
echo "== the same instruction stream on the RTL in Verilator: 10 test images; cycles of each layer of one image"
images export 10 "$out/images.npz"
"$dlc" run "$out/int8.dlca" --device asic:rtl --each --input "$out/images.npz" --output "$out/rtl.npz"
images score "$out/rtl.npz"

echo
echo "== RTL beside the functional simulator: every write of every queue compared"
"$dlc" cosim "$out/int8.dlca"

echo
echo "The compiler is $dlc, what it wrote is in $out; README.md shows its commands. tools/test.sh runs the tests."
