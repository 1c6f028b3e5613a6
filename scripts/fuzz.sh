#!/usr/bin/env bash
# scripts/fuzz.sh FOLDER SECONDS [TARGET...]: runs the fuzz targets of a build one after another, so long
# each, or those named (without fuzz_), and ends with a line that names those that have found something; their
# inputs are in FOLDER. Exits with 1 if there are any.
set -euo pipefail
cd "$1"
seconds=$2
shift 2

known=()
for path in fuzz_*; do
  [ -x "$path" ] && [ ! -d "$path" ] && known+=("${path#fuzz_}")
done
targets=("$@")
[ $# -gt 0 ] || targets=("${known[@]}")
for target in "${targets[@]}"; do
  [[ " ${known[*]} " == *" $target "* ]] || {
    echo "fuzz: there is no target \"$target\"; expected any of: ${known[*]}" >&2
    exit 1
  }
done

found=()
number=0
for target in "${targets[@]}"; do
  echo "fuzz: $target, $((++number)) of ${#targets[@]}, $seconds s"
  "./fuzz_$target" --seconds "$seconds" --seed "${FUZZ_SEED:-$RANDOM}" || found+=("$target")
done
if [ ${#found[@]} -gt 0 ]; then
  echo "fuzz: found by ${#found[@]} of ${#targets[@]} targets: ${found[*]}"
  exit 1
fi
echo "fuzz: ${#targets[@]} of ${#targets[@]} targets found nothing"
