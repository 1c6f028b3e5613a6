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

pack_deb() {
  local root=$work/deb arch deb
  arch=$(dpkg --print-architecture)
  deb=$out/stretto_${version}_$arch.deb
  "$here/stage.sh" "$build" "$root/usr" system
  mkdir "$root/DEBIAN"
  "$here/deb_control.sh" "$root" "$version" >"$root/DEBIAN/control"
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
