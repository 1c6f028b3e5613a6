#!/usr/bin/env bash
# scripts/package.sh BUILD FOLDER: packs a build into FOLDER, as stretto-VERSION-linux-MACHINE.tar.gz, which brings all its
# libraries and runs wherever it is unpacked, and, where dpkg-deb is at hand, as stretto_VERSION_ARCH.deb, which brings
# libtorch and takes the rest from the distribution's packages.
set -euo pipefail
build=$1 out=$2
here=$(dirname "$0")
version=$("$build/bin/stretto" --version)
mkdir -p "$out"
work=$(mktemp -d "$out/work.XXXXXX")  # beside libtorch's files, if possible, so that staging can link them
trap 'rm -rf "$work"' EXIT

tell() { echo "package: $1 ($(du -h "$1" | cut -f1), unpacked $(du -shL "$2" | cut -f1))"; }

pack_tar() {
  local name=stretto-$version-linux-$(uname -m)
  "$here/stage.sh" "$build" "$work/$name" own
  tar -C "$work" --owner=0 --group=0 --sort=name -czf "$work/tar.gz" "$name"
  mv "$work/tar.gz" "$out/$name.tar.gz"
  tell "$out/$name.tar.gz" "$work/$name"
}

# "libfmt9 (>= 9.1.0+ds1), ...": the packages that own the libraries the programs load, in this machine's versions.
dependencies() {
  local name path package
  ldd "$@" | sed -n 's/^\t\(\S*\) => \(\/.*\) (0x.*/\1 \2/p' | sort -u | while read -r name path; do
    [[ $path != */lib/stretto/* ]] || continue
    package=$(dpkg-query -S "$path" "/usr$path" 2>/dev/null | sed -n '1s/:.*//p') || true
    [[ -n $package ]] || { echo "package: no package of this system owns $path" >&2; return 1; }
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
Suggests: g++, cmake, pkg-config, libfmt-dev, libspdlog-dev, libyaml-cpp-dev, nlohmann-json3-dev, libxxhash-dev, libutf8proc-dev, libhwy-dev, libssl-dev
Description: distributed training of language models in C++
 The program stretto, its library, headers, CMake package and pkg-config file,
 with a libtorch of its own. The suggested packages are those that programs
 of your own need to be built with it.
END
  dpkg-deb --root-owner-group -Zzstd -z9 --build "$root" "$work/deb.deb" >/dev/null
  mv "$work/deb.deb" "$deb"
  tell "$deb" "$root/usr"
}

pack_tar
if command -v dpkg-deb >/dev/null; then
  pack_deb
else
  echo "package: no .deb is made: there is no dpkg-deb on this system"
fi
