#!/usr/bin/env bash
# scripts/deb_control.sh ROOT VERSION: prints the control file of a .deb of the tree ROOT, in which the package's
# /usr is. Its dependencies are the packages of this system whose libraries the programs load.
set -euo pipefail
root=$1 version=$2

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

depends=$(dependencies "$root/usr/bin/stretto" "$root/usr/libexec/stretto/stretto-rank")
cat <<END
Package: stretto
Version: $version
Architecture: $(dpkg --print-architecture)
Section: science
Priority: optional
Maintainer: The stretto authors <stretto@localhost>
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: $depends
Recommends: libcurl4t64 | libcurl4
Suggests: openmpi-bin, g++, cmake, pkg-config, libfmt-dev, libyaml-cpp-dev, nlohmann-json3-dev, libxxhash-dev, libutf8proc-dev, libpcre2-dev, libhwy-dev, zlib1g-dev, libzstd-dev, libssl-dev
Description: distributed training of language models in C++
 The program stretto, its library, headers, CMake package and pkg-config file,
 with a private libtorch. Open MPI is needed for training.backend: mpi, the
 other suggested packages to build programs with the library.
END
