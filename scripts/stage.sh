#!/usr/bin/env bash
# scripts/stage.sh BUILD FOLDER own|system|wheel: installs a build into a relocatable FOLDER, with libtorch's
# libraries and headers in lib/stretto/torch. "own" also copies all other shared libraries except glibc's into
# lib/stretto; "system" leaves them to the system's packages. "wheel" is for a folder next to the Python
# package torch, whose libtorch the programs then load: it copies the libraries that manylinux does not
# promise. Licences of copied libraries go to share/doc/stretto.
set -euo pipefail
build=$1 folder=$2 libraries=$3
[[ $libraries =~ ^(own|system|wheel)$ ]] || { echo "stage: \"$libraries\": expected own, system or wheel" >&2; exit 2; }

fail() {
  echo "stage: $*" >&2
  exit 1
}

# libtorch is half a gigabyte: hard links where the file system allows them.
copy() { cp -lL "$1" "$2" 2>/dev/null || cp -L "$1" "$2"; }

rm -rf "$folder"
cmake --install "$build" --prefix "$folder" --strip >/dev/null
private=$folder/lib/stretto doc=$folder/share/doc/stretto
torch=$(readlink "$private/torch")
[[ ! -e $torch/lib/libtorch_cuda.so ]] ||
  fail "$torch is a CUDA build, which loads libraries at run time that ldd does not list; packages are made from CPU builds." \
    "With CUDA, install without a package: cmake --install $build --prefix PREFIX"
loads=$(ldd "$folder/bin/stretto" "$folder/libexec/stretto/stretto-rank")
! grep "not found" <<<"$loads" >&2 || fail "the installed programs do not find the libraries above"
needed=$(sed -n 's/^\t\(\S*\) => \(\/.*\) (0x.*/\1 \2/p' <<<"$loads" | sort -u)

copy_torch() {
  mkdir -p "$private/torch/lib" "$doc/libtorch"
  cp -rlL "$torch/include" "$private/torch" 2>/dev/null || cp -rLT "$torch/include" "$private/torch/include"
  cp -r "$torch"/../torch-*.dist-info/licenses/. "$doc/libtorch" 2>/dev/null || cp "$torch"/LICENSE* "$doc/libtorch" 2>/dev/null ||
    echo "stage: no licence found next to $torch; add libtorch's to share/doc/stretto before distributing this" >&2
}

# Makes programs load FOLDER/../torch/lib. pkg-config cannot refer to it; fmt's headers become files, because
# wheels have no links.
refer_to_package_torch() {
  cat >"$folder/rpath.cmake" <<'CMAKE'
file(RPATH_CHANGE FILE "${FOLDER}/libexec/stretto/stretto-rank"
  OLD_RPATH "$ORIGIN/../../lib/stretto/torch/lib:$ORIGIN/../../lib/stretto"
  NEW_RPATH "$ORIGIN/../../../torch/lib:$ORIGIN/../../lib/stretto")
CMAKE
  cmake -DFOLDER="$folder" -P "$folder/rpath.cmake"
  rm -r "$folder/rpath.cmake" "$folder/lib/pkgconfig"
  local fmt
  fmt=$(readlink "$private/include_first/fmt")
  rm "$private/include_first/fmt"
  cp -rL "$fmt" "$private/include_first/fmt"
}

rm "$private/torch"
if [[ $libraries == wheel ]]; then
  refer_to_package_torch
else
  copy_torch
fi
while read -r name path; do
  case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.*) continue ;;  # glibc is always the system's
  esac
  [[ $libraries != wheel || ! $name =~ ^lib(stdc\+\+|gcc_s)\. ]] || continue
  if [[ $path == */lib/stretto/torch/* ]]; then
    [[ $libraries == wheel ]] || copy "$torch/lib/$(basename "$path")" "$private/torch/lib/$name"
  elif [[ $libraries != system ]]; then
    copy "$path" "$private/$name"
    package=$(dpkg-query -S "$path" "/usr$path" 2>/dev/null | sed -n '1s/:.*//p') || true
    [[ -z $package || ! -e /usr/share/doc/$package/copyright ]] || cp "/usr/share/doc/$package/copyright" "$doc/$package.copyright"
  fi
done <<<"$needed"
