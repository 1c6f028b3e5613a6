#!/usr/bin/env bash
# scripts/stage.sh BUILD FOLDER own|system: installs a build so that FOLDER can be moved to any place or machine:
# libtorch's libraries and headers as files in lib/stretto/torch and, with "own", all other shared libraries but glibc's
# in lib/stretto. "system" leaves those to the packages of the system. The libraries' licences go to share/doc/stretto.
set -euo pipefail
build=$1 folder=$2 libraries=$3
[[ $libraries == own || $libraries == system ]] || { echo "stage: own or system, not \"$libraries\"" >&2; exit 2; }

fail() {
  echo "stage: $*" >&2
  exit 1
}

# Half a gigabyte of libtorch: linked where the file system allows it.
copy() { cp -lL "$1" "$2" 2>/dev/null || cp -L "$1" "$2"; }

rm -rf "$folder"
cmake --install "$build" --prefix "$folder" --strip >/dev/null
private=$folder/lib/stretto doc=$folder/share/doc/stretto
torch=$(readlink "$private/torch")
[[ ! -e $torch/lib/libtorch_cuda.so ]] ||
  fail "$torch is a CUDA build, which loads more libraries than can be told from it; packages are made of CPU builds." \
    "For CUDA, install beside the libtorch: cmake --install $build --prefix PREFIX"
loads=$(ldd "$folder/bin/stretto" "$folder/libexec/stretto/stretto-rank")
! grep "not found" <<<"$loads" >&2 || fail "the installed programs do not find these libraries"
needed=$(sed -n 's/^\t\(\S*\) => \(\/.*\) (0x.*/\1 \2/p' <<<"$loads" | sort -u)

rm "$private/torch"
mkdir -p "$private/torch/lib" "$doc/libtorch"
cp -rlL "$torch/include" "$private/torch" 2>/dev/null || cp -rLT "$torch/include" "$private/torch/include"
cp -r "$torch"/../torch-*.dist-info/licenses/. "$doc/libtorch" 2>/dev/null || cp "$torch"/LICENSE* "$doc/libtorch" 2>/dev/null ||
  echo "stage: $torch has no licence beside it; put libtorch's into share/doc/stretto before handing this on" >&2
while read -r name path; do
  case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.*) continue ;;  # glibc is the machine's own
  esac
  if [[ $path == */lib/stretto/torch/* ]]; then
    copy "$torch/lib/$(basename "$path")" "$private/torch/lib/$name"
  elif [[ $libraries == own ]]; then
    copy "$path" "$private/$name"
    package=$(dpkg-query -S "$path" "/usr$path" 2>/dev/null | sed -n '1s/:.*//p') || true
    [[ -z $package || ! -e /usr/share/doc/$package/copyright ]] || cp "/usr/share/doc/$package/copyright" "$doc/$package.copyright"
  fi
done <<<"$needed"
