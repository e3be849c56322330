#!/usr/bin/env bash
# The one list of what dlc needs from Debian 12: installs what is missing, prints nothing when nothing is.
set -euo pipefail

packages=(
  # build
  g++ cmake ninja-build pkg-config ccache clang-19 libclang-rt-19-dev clang-format-19 clang-tidy-19 git ca-certificates
  # libraries
  llvm-19-dev liblld-19-dev libyaml-cpp-dev libboost-graph-dev libfmt-dev nlohmann-json3-dev libcli11-dev
  libprotobuf-dev protobuf-compiler libonnx-dev libzip-dev libzstd-dev zlib1g-dev libtbb-dev libhwloc-dev libxxhash-dev
  libre2-dev
  # tests, simulation, data
  catch2 verilator python3 python3-numpy python3-venv python3-onnx python3-yaml libonnx-testdata dataset-fashion-mnist
)
# Installed with the others where the archive has it: the test that looks at the page of `dlc report` is skipped without.
optional=(chromium-headless-shell)

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${Status}' "$p" 2>/dev/null)" = "install ok installed" ] || missing+=("$p")
done
if [ "${#missing[@]}" -gt 0 ]; then
  run() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
  echo "installing: ${missing[*]}"
  run apt-get update -qq
  for p in "${optional[@]}"; do
    if apt-cache show "$p" >/dev/null 2>&1; then missing+=("$p"); fi
  done
  run env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
