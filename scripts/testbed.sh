#!/usr/bin/env bash
# testbed.sh COMMAND...: runs each shell COMMAND on a host of its own, all at the same time, and ends with the
# exit code of the first in the list that failed, or 0. A host is a set of Linux namespaces: its own network,
# host name, process ids, IPC and /dev/shm. Host i, counted from 0, is named host<i> and has the addresses
# 10.77.0.<i + 1> and fd77::<i + 1> on an Ethernet that connects these hosts and nothing else (`ip link set
# eth0 down` disconnects one). Each host resolves the names of all; its own name means 127.0.1.1, as on
# Debian. All see the same files outside of /dev/shm. When the last COMMAND has ended, no process and no
# device remains. Without COMMANDs: ends with 0 where such hosts can be made, else with 77 and the reason on
# standard error.
#
#   scripts/testbed.sh 'getent hosts host1' 'ip addr'
set -euo pipefail

skip() {
  echo "$*" >&2
  exit 77
}

if [[ -z ${STRETTO_TEST_NETWORK:-} ]]; then
  command -v ip >/dev/null || skip "hosts cannot be made: the program ip (package iproute2) is missing"
  for flags in --net "--net --user --map-root-user"; do
    # shellcheck disable=SC2086
    if unshare $flags sh -c 'ip link add one type veth peer name two && ip link add ethernet type bridge' 2>/dev/null; then
      STRETTO_TEST_NETWORK=1 exec unshare $flags "$0" "$@"
    fi
  done
  skip "hosts cannot be made: this system permits no network namespaces with veth devices and bridges"
fi

(($#)) || exit 0
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
ip link add ethernet type bridge
ip link set ethernet up
here=$(readlink /proc/self/ns/net)
host=0
for command in "$@"; do
  {
    echo "127.0.0.1 localhost"
    echo "::1 localhost"
    for ((other = 0; other < $#; ++other)); do
      ((other == host)) && echo "127.0.1.1 host$other" || echo "10.77.0.$((other + 1)) host$other"
    done
  } > "$folder/names$host"
  unshare --net --uts --ipc --pid --fork --kill-child --mount-proc sh -c '
    while ! [ -e "$1/ready" ]; do sleep 0.01; done
    hostname "host$2"
    mount -t tmpfs tmpfs /dev/shm
    mount --bind "$1/names$2" /etc/hosts
    exec sh -c "$3"' sh "$folder" "$host" "$command" &
  pids[host]=$!
  while [[ $(readlink "/proc/$!/ns/net") == "$here" ]]; do sleep 0.01; done
  ip link add "port$host" type veth peer name eth0 netns "$!"
  ip link set "port$host" master ethernet up
  nsenter --target "$!" --net sh -c "ip link set lo up; ip addr add 10.77.0.$((host + 1))/24 dev eth0;
    ip addr add fd77::$((host + 1))/64 dev eth0 nodad 2>/dev/null; ip link set eth0 up"
  host=$((host + 1))
done
touch "$folder/ready"
status=0
for pid in "${pids[@]}"; do
  wait "$pid" || status=$((status ? status : $?))
done
exit "$status"
