#!/usr/bin/env bash
# scripts/lint.sh BUILD_FOLDER [FILE...]: clang-tidy on the files (default: all that the build compiles; a unity build needs a
# third of the time, because libtorch's headers are read once per target). JOBS=n at a time, default: all cores.
set -euo pipefail
tidy=${STRETTO_DEPS:-.deps}/venv/bin/clang-tidy
build=$1
shift
if (($#)); then
  files=("$@")
else
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" |
    grep -v -e "^$PWD/$build/.*/cmake_pch" | sort -u)
fi
echo "clang-tidy on ${#files[@]} files"
# In a unity build our sources are included files: they are reported by the header filter.
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "$tidy" --quiet -p "$build" \
  --checks=-bugprone-suspicious-include --extra-arg=-Wno-deprecated-declarations --extra-arg=-Wno-unused-result --header-filter="^$PWD/(stretto|tests|examples|bench)/" 2> >(grep -v ' warnings\? generated\.$' >&2)
