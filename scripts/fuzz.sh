#!/usr/bin/env bash
# scripts/fuzz.sh FOLDER SECONDS [TARGET...]: runs the fuzz targets of a build one after another, so long
# each, or those named (without fuzz_). Ends with 1 where one of them has found something; its input is in
# FOLDER.
set -euo pipefail
cd "$1"
seconds=$2
shift 2

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for path in fuzz_*; do
    [ -x "$path" ] && [ ! -d "$path" ] && targets+=("${path#fuzz_}")
  done
fi
status=0
for target in "${targets[@]}"; do
  "./fuzz_$target" --seconds "$seconds" --seed "${FUZZ_SEED:-$RANDOM}" || status=1
done
exit $status
