#!/usr/bin/env bash
# Installs what is missing, builds, runs every test; the last lines are ctest's own summary.
#   tools/test.sh            the tests of every change
#   tools/test.sh --full     also the sanitizer build and the long suites
set -euo pipefail
cd "$(dirname "$0")/.."

full=0
for arg in "$@"; do
  case "$arg" in
    --full) full=1 ;;
    *) echo "usage: tools/test.sh [--full]" >&2; exit 2 ;;
  esac
done

tools/deps.sh
tools/lint.sh
cmake --preset release >/dev/null
cmake --build --preset release
tools/lint.sh build
if [ "$full" = 1 ]; then
  cmake --preset sanitize >/dev/null
  cmake --build --preset sanitize
  # gcc 12's LeakSanitizer takes ranges of thread-local storage from libraries that dlopen() loaded, and now and then a wrong one.
  ASAN_OPTIONS=intercept_tls_get_addr=0 \
  ctest --test-dir build-sanitize --output-on-failure -j "$(nproc)" -LE "bench|models|full"
fi
ctest --test-dir build --output-on-failure -j "$(nproc)" $([ "$full" = 1 ] || echo -LE "full")
