#!/usr/bin/env bash
# scripts/lint.sh BUILD_FOLDER [FILE...]: clang-tidy on the files (default: all that the build compiles).
set -euo pipefail
build=$1
shift
if (($#)); then
  files=("$@")
else
  mapfile -t files < <(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" | grep -v "^$PWD/$build/" | sort -u)
fi
echo "clang-tidy on ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2> >(grep -v ' warnings\? generated\.$' >&2)
