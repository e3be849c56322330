#!/usr/bin/env bash
# ONNX's node tests of release 1.22, which no Debian package has: the wheel of PyPI does.
#   onnx_1.22.sh fetch DIR            gets them into DIR, unless they are there
#   onnx_1.22.sh run DIR DLC ARGS…    dlc conform over them
# Without network there are none, and both say so and are skipped (77).
set -euo pipefail
dir=$2 data=$2/onnx/backend/test/data/node
case "$1" in
  fetch)
    [ -d "$data" ] && exit 0
    mkdir -p "$dir"
    python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" download --quiet --no-deps --only-binary :all: --dest "$dir" onnx==1.22.0 ||
      { echo "skipped: onnx 1.22.0 cannot be had from PyPI"; exit 77; }
    python3 -m zipfile -e "$dir"/onnx-1.22.0-*.whl "$dir/part"
    mv "$dir/part/onnx" "$dir/onnx"
    ;;
  run)
    [ -d "$dir/onnx" ] || { echo "skipped: the tests of onnx 1.22.0 are not in $dir"; exit 77; }
    "$3" conform --suite "$data" "${@:4}"
    ;;
  *) echo "usage: onnx_1.22.sh fetch DIR | run DIR DLC ARGS" >&2; exit 2 ;;
esac
