#!/usr/bin/env bash
# The mutation score: plants bugs in RTL, encoder, simulator, checker, tiler and passes, and counts those that tests catch.
#   tools/mutate.sh [--json] [--jobs N] [PART...]      parts and format: tests/mutants/README.md
# Exit status 0: at least 97 % are caught, and each survivor is explained.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset release >/dev/null
cmake --build build --target test_hw test_map test_ir test_passes test_numerics test_asic test_cosim test_cosim_os8 >&2
exec python3 tests/mutants/mutants.py build "$@"
