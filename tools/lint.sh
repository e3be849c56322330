#!/usr/bin/env bash
# Formatting of every C++ file, and clang-tidy on the files that changed since the last commit on main.
#   tools/lint.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t files < <(git ls-files -co --exclude-standard '*.cpp' '*.h')
if [ "${1:-}" = --fix ]; then
  clang-format-19 -i "${files[@]}"
else
  clang-format-19 --dry-run -Werror "${files[@]}"
fi
