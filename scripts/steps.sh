#!/usr/bin/env bash
# scripts/steps.sh FOLDER STEP...: runs `make STEP` for one step after the other, whether or not the previous
# ones failed, each with a log in FOLDER, and ends with a table, also when it is interrupted. A step is a
# target, or a target with variables in one argument ("bench QUICK=1"). A step that passed before on the same
# commit, without changes, is not run again, unless FRESH=1: an interrupted table is continued.
# STEPS="NAME..." runs only these. Exits with 1 if a step failed.
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

# Prints the commit if the tree equals it.
clean_commit() { [[ -z $(git status --porcelain 2>&1) ]] && git rev-parse HEAD; }

mkdir -p "$folder"
status=0
number=0
table=$(printf '%-24s %9s  %-13s  %s' step minutes result log)
trap 'printf "\n%s\n" "$table"' EXIT
for step in "$@"; do
  read -ra arguments <<<"$step"
  name=${arguments[0]}
  [[ " ${chosen[*]} " == *" $name "* ]] || continue
  log=$folder/$name.log passed=$folder/$name.passed  # a line "COMMIT STEP" and the seconds that it took
  commit=$(clean_commit)
  echo "--- $((++number)) of ${#chosen[@]}: make $step (log: $log)"
  if [[ $commit && ${FRESH:-0} != 1 && $(head -n 1 "$passed" 2>/dev/null) == "$commit $step" ]]; then
    result="passed before" took=$(tail -n 1 "$passed")
    echo "passed before on this commit; FRESH=1 runs it again"
  else
    rm -f "$passed"
    start=$SECONDS
    if make --no-print-directory "${arguments[@]}" 2>&1 | tee "$log"; then result=passed; else result=FAILED status=1; fi
    took=$((SECONDS - start))
    [[ $result != passed || -z $commit || $(clean_commit) != "$commit" ]] || printf '%s\n' "$commit $step" "$took" >"$passed"
  fi
  table+=$(printf '\n%-24s %6d:%02d  %-13s  %s' "$name" $((took / 60)) $((took % 60)) "$result" "$log")
done
exit $status
