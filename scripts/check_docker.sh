#!/usr/bin/env bash
# scripts/check_docker.sh: builds deploy/Dockerfile and runs the image, without a daemon and without a registry of
# images: buildah runs its steps in a chroot, on Debian from the mirror. Needs root, buildah, mmdebstrap, 15 GB in
# TMPDIR, and for the build in the image 10 minutes on 2 cores or more.
#
# PACKAGE=build/package/stretto-....tar.gz  takes this package in place of the build in the image
# VOLUMES="/opt/wheels /etc/pip.conf"       files and folders of this machine that the build reads, such as a mirror of
#                                           Python wheels
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "check-docker: $*" >&2
  exit 1
}

((EUID == 0)) || fail "buildah needs root to unpack Debian's files; run it as root"
work=$(mktemp -d "${TMPDIR:-/var/tmp}/check-docker.XXXXXX")
container=""
in_store() { buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$@"; }
trap 'in_store rm -a >/dev/null 2>&1; rm -rf --one-file-system "$work"' EXIT

# The base images under the names in the Dockerfile, which has no other source of them here.
mmdebstrap --quiet --variant=minbase bookworm "$work/debian.tar"
container=$(in_store from scratch)
in_store add --quiet "$container" "$work/debian.tar" / >/dev/null
in_store commit --quiet "$container" docker.io/library/debian:12 >/dev/null
in_store tag docker.io/library/debian:12 docker.io/library/debian:12-slim
in_store rm "$container" >/dev/null
rm "$work/debian.tar"

dockerfile=deploy/Dockerfile context=.
if [[ -n ${PACKAGE:-} ]]; then
  [[ -f $PACKAGE ]] || fail "PACKAGE=$PACKAGE: there is no such file; make package writes it"
  context=$work/context dockerfile=$work/Dockerfile
  mkdir -p "$context/build/package"
  cp "$PACKAGE" "$context/build/package/"
  sed -e 's/^RUN apt-get .*/RUN true/' -e 's/make package && //' deploy/Dockerfile >"$dockerfile"
fi
volumes=()
for path in ${VOLUMES:-}; do volumes+=(-v "$path:$path:ro"); done
in_store bud --isolation chroot --format docker --pull-never "${volumes[@]}" -f "$dockerfile" -t stretto-check "$context"

settings=$(in_store inspect --type image --format '{{.Docker.Config.Entrypoint}} {{.Docker.Config.Cmd}} {{.Docker.Config.User}}' stretto-check)
[[ $settings == "[stretto] [--help] 1000" ]] || fail "the image starts with $settings; expected [stretto] [--help] 1000"
container=$(in_store from --pull-never stretto-check)
in_image() { in_store run --isolation chroot "$container" -- "$@"; }
[[ $(in_image id -u) == 1000 ]] || fail "programs of the image do not run as user 1000"
[[ $(in_image pwd) == /job ]] || fail "programs of the image do not start in /job"
in_image stretto --version
in_image stretto --help >/dev/null
in_image stretto doctor -N 2
echo "check-docker: the image of deploy/Dockerfile runs"
