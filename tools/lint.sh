#!/usr/bin/env bash
# Formatting of every C++ file; with a build folder, also clang-tidy on the .cpp files that the last commit changed.
#   tools/lint.sh [--fix] [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(git ls-files -co --exclude-standard '*.cpp' '*.h')
if [ "${1:-}" = --fix ]; then
  clang-format-19 -i "${files[@]}"
  exit 0
fi
clang-format-19 --dry-run -Werror "${files[@]}"

# libstdc++'s stable_sort uses what C++17 deprecates.
if [ -n "${1:-}" ] && git rev-parse -q --verify HEAD~1 >/dev/null; then
  mapfile -t changed < <(git diff --name-only --diff-filter=d HEAD~1 -- '*.cpp')
  [ "${#changed[@]}" -eq 0 ] || clang-tidy-19 --quiet -p "$1" --extra-arg=-Wno-deprecated-declarations "${changed[@]}"
fi
