#!/usr/bin/env bash
# libFuzzer on the readers of files from outside, with AddressSanitizer: no crash, leak, hang over 5 s or allocation over 1 GiB.
#   tools/fuzz.sh [--minutes N] [--jobs N] [TARGET...]     default: 1 minute each of all targets
# A finding is left in build-fuzz/findings/TARGET. Mend its cause and move it to tests/fuzz/corpus/TARGET, which every
# build replays. What the fuzzer learnt stays in build-fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=1 jobs=1 targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --minutes) minutes=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    -*) echo "usage: tools/fuzz.sh [--minutes N] [--jobs N] [TARGET...]" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)

cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19 -DDLC_FUZZ=ON >/dev/null
cmake --build build-fuzz -j "$jobs" --target "${targets[@]/#/fuzz_}"

failed=()
for t in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$t" "build-fuzz/findings/$t"
  echo "== $t, $minutes min"
  "build-fuzz/bin/fuzz_$t" -max_total_time=$((minutes * 60)) -timeout=5 -rss_limit_mb=2048 -malloc_limit_mb=1024 \
    -max_len=32768 -print_final_stats=1 -verbosity=0 -artifact_prefix="build-fuzz/findings/$t/" \
    "build-fuzz/corpus/$t" "tests/fuzz/corpus/$t" 2>&1 | tail -60 || failed+=("$t")
done
[ "${#failed[@]}" -eq 0 ] || { echo "findings: ${failed[*]}"; exit 1; }
