#!/usr/bin/env bash
# scripts/fuzz.sh FOLDER SECONDS [TARGET...]: runs the fuzz targets of a build, so long each, or those named
# (without fuzz_), JOBS at a time (default: one per core), and ends with a line that names those that have
# found something; their inputs are in FOLDER. Exits with 1 if there are any.
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

# Runs a target and prints what it wrote in one piece.
run_target() {
  local status=0 output
  output=$("./fuzz_$1" --seconds "$seconds" --seed "${FUZZ_SEED:-$RANDOM}" 2>&1) || status=$?
  printf '%s\n' "$output"
  return "$status"
}

jobs=${JOBS:-$(nproc)}
[[ $jobs =~ ^[1-9][0-9]*$ ]] || {
  echo "fuzz: JOBS=$jobs: expected a number of targets to run at a time, from 1" >&2
  exit 1
}
started=()  # process IDs, in the order of the targets
trap 'kill $(jobs -rp) 2>/dev/null || true' EXIT
for target in "${targets[@]}"; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
  echo "fuzz: $target, $((${#started[@]} + 1)) of ${#targets[@]}, $seconds s"
  run_target "$target" &
  started+=($!)
done
found=()
for i in "${!targets[@]}"; do wait "${started[i]}" || found+=("${targets[i]}"); done
if [ ${#found[@]} -gt 0 ]; then
  echo "fuzz: found by ${#found[@]} of ${#targets[@]} targets: ${found[*]}"
  exit 1
fi
echo "fuzz: ${#targets[@]} of ${#targets[@]} targets found nothing"
