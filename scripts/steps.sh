#!/usr/bin/env bash
# scripts/steps.sh FOLDER STEP...: runs `make STEP` for one step after the other, whether or not the previous
# ones failed, each with a log in FOLDER, and ends with a table, also when it is interrupted. A step is a target, or a target with
# variables in one argument ("bench QUICK=1"). STEPS="NAME..." runs only these. Exits with 1 if a step failed.
set -uo pipefail
folder=$1
shift
unset MAKEFLAGS MFLAGS MAKEOVERRIDES ONLY  # variables of the outer make belong to it; others arrive through the environment

names=" ${*%% *} "
read -ra chosen <<<"${STEPS:-$names}"
for name in "${chosen[@]}"; do
  [[ $names == *" $name "* ]] || {
    echo "steps: there is no step \"$name\"; expected any of:${names% }" >&2
    exit 1
  }
done

mkdir -p "$folder"
status=0
number=0
table=$(printf '%-24s %9s  %-6s  %s' step minutes result log)
trap 'printf "\n%s\n" "$table"' EXIT
for step in "$@"; do
  read -ra arguments <<<"$step"
  name=${arguments[0]}
  [[ " ${chosen[*]} " == *" $name "* ]] || continue
  log=$folder/$name.log
  echo "--- $((++number)) of ${#chosen[@]}: make $step (log: $log)"
  start=$SECONDS
  if make --no-print-directory "${arguments[@]}" 2>&1 | tee "$log"; then result=passed; else result=FAILED status=1; fi
  took=$((SECONDS - start))
  table+=$(printf '\n%-24s %6d:%02d  %-6s  %s' "$name" $((took / 60)) $((took % 60)) "$result" "$log")
done
exit $status
