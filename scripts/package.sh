#!/usr/bin/env bash
# scripts/package.sh BUILD FOLDER: writes packages of a build to FOLDER: stretto-VERSION-linux-MACHINE.tar.gz,
# which contains all libraries and is relocatable, and, if dpkg-deb is installed, stretto_VERSION_ARCH.deb,
# which contains libtorch and depends on the distribution's packages for the rest.
set -euo pipefail
build=$1 out=$2
here=$(dirname "$0")
version=$("$build/bin/stretto" --version)
mkdir -p "$out"
work=$(mktemp -d "$out/work.XXXXXX")  # on the file system of libtorch if possible, for hard links
trap 'rm -rf "$work"' EXIT

report() { echo "package: $1 ($(du -h "$1" | cut -f1), unpacked $(du -shL "$2" | cut -f1))"; }

pack_tar() {
  local name=stretto-$version-linux-$(uname -m)
  "$here/stage.sh" "$build" "$work/$name" own
  tar -C "$work" --owner=0 --group=0 --sort=name -czf "$work/tar.gz" "$name"
  mv "$work/tar.gz" "$out/$name.tar.gz"
  report "$out/$name.tar.gz" "$work/$name"
}

# "libfmt9 (>= 9.1.0+ds1), ...": the packages of the libraries that the programs load, in the installed
# versions.
dependencies() {
  local name path package
  ldd "$@" | sed -n 's/^\t\(\S*\) => \(\/.*\) (0x.*/\1 \2/p' | sort -u | while read -r name path; do
    [[ $path != */lib/stretto/* ]] || continue
    package=$(dpkg-query -S "$path" "/usr$path" 2>/dev/null | sed -n '1s/:.*//p') || true
    [[ -n $package ]] || { echo "package: $path belongs to no package of this system" >&2; return 1; }
    dpkg-query -W -f='${Package} (>= ${Version})\n' "$package" | sed 's/-[^-]*)$/)/'
  done | sort -u | paste -sd, | sed 's/,/, /g'
}

pack_deb() {
  local root=$work/deb arch deb
  arch=$(dpkg --print-architecture)
  deb=$out/stretto_${version}_$arch.deb
  "$here/stage.sh" "$build" "$root/usr" system
  mkdir "$root/DEBIAN"
  local depends
  depends=$(dependencies "$root/usr/bin/stretto" "$root/usr/libexec/stretto/stretto-rank")
  cat >"$root/DEBIAN/control" <<END
Package: stretto
Version: $version
Architecture: $arch
Section: science
Priority: optional
Maintainer: The stretto authors <stretto@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: $depends
Recommends: libcurl4t64 | libcurl4
Suggests: openmpi-bin, g++, cmake, pkg-config, libfmt-dev, libyaml-cpp-dev, nlohmann-json3-dev, libxxhash-dev, libutf8proc-dev, libpcre2-dev, libhwy-dev, zlib1g-dev, libzstd-dev, libssl-dev
Description: distributed training of language models in C++
 The program stretto, its library, headers, CMake package and pkg-config file,
 with a private libtorch. The suggested packages are needed to build
 programs with it.
END
  dpkg-deb --root-owner-group -Zzstd -z9 --build "$root" "$work/deb.deb" >/dev/null
  mv "$work/deb.deb" "$deb"
  report "$deb" "$root/usr"
}

pack_tar
if command -v dpkg-deb >/dev/null; then
  pack_deb
else
  echo "package: no .deb was made, because dpkg-deb is not installed"
fi
