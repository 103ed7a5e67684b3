#!/usr/bin/env bash
# A cluster on one machine: hosts that are network namespaces, joined by a switch that is one, too. Needs root.
# usage: scripts/cluster.sh [--name NAME] COMMAND
#   up N [apart]         makes the hosts node1 to nodeN; apart: each has processors of its own, as machines have
#   run COMMAND...       runs a command on node1, from where mpirun and `orthant --hosts` reach the others
#   enter HOST COMMAND...  runs a command on a host
#   limit HOST [RATE]    what the host sends is limited to a rate such as 1gbit; without a rate, no longer
#   unplug HOST          takes its link down; `plug HOST` takes it up again
#   kill HOST            kills all processes of the host
#   down                 kills all processes of the hosts and removes them
# Clusters with different names (ORTHANT_CLUSTER, or `orthant`) know nothing of each other.
set -euo pipefail

self=$(readlink -f "${BASH_SOURCE[0]}")
name=${ORTHANT_CLUSTER:-orthant}
network=10.77.0

fail() {
  echo "cluster: $2" >&2
  exit "$1"
}

usage() {
  sed -n '3,/^set/s/^# \{0,1\}//p' "$self" >&2
  exit 64
}

if [[ ${1:-} == --name ]]; then
  (($# > 1)) || usage
  name=$2
  shift 2
fi
[[ $name =~ ^[a-z][a-z0-9-]{0,39}$ ]] || fail 64 "the name '$name' is none; use up to 40 small letters, digits and dashes"
state=/run/orthant-cluster/$name
switch=$name-switch

check_machine() {
  ((EUID == 0)) || fail 77 "only root can make hosts of network namespaces; run this as root"
  for program in ip tc unshare nsenter; do
    command -v "$program" >/dev/null || fail 77 "the program '$program' is missing; on Debian: apt-get install iproute2 util-linux"
  done
  unshare --net --uts --mount true 2>/dev/null || fail 77 "this system does not let root make namespaces; in a container, start it with --privileged"
}

check_host() { [[ -e /run/netns/$name-$1 ]] || fail 66 "there is no host '$1'; start with: cluster.sh up 2"; }

make_host() {
  local host=node$1
  ip netns add "$name-$host"
  ip link add "port$1" netns "$switch" type veth peer name eth0 netns "$name-$host"
  ip -n "$switch" link set "port$1" master bridge0 up
  ip -n "$name-$host" address add "$network.$1/24" dev eth0
  ip -n "$name-$host" link set eth0 up
  ip -n "$name-$host" link set lo up
}

# Without this, hosts whose ranks take their first processors take the same ones.
share_processors() {
  local processors number
  read -ra processors <<<"$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | sed 's/^[0-9]*$/&-&/; s/-/ /' | xargs -L1 seq | xargs)"
  for number in $(seq "$1"); do
    local first=$((${#processors[@]} * (number - 1) / $1)) end=$((${#processors[@]} * number / $1))
    local mine=("${processors[@]:first:end-first}")
    (IFS=,; echo "${mine[*]}") >"$state/processors.node$number"
  done
}

up() {
  [[ $1 =~ ^[0-9]+$ ]] && (($1 >= 1 && $1 <= 200)) || fail 64 "'$1' hosts are not possible; use 1 to 200"
  check_machine
  [[ ! -e $state ]] || fail 74 "the cluster '$name' exists; remove it with: cluster.sh --name $name down"
  [[ -z ${2:-} ]] || (($(nproc) >= $1)) || fail 71 "$1 hosts cannot have processors of their own: there are $(nproc)"
  mkdir -p "$state"
  trap 'remove; fail 71 "the cluster could not be made"' ERR
  echo "127.0.0.1 localhost" >"$state/hosts"
  for number in $(seq "$1"); do echo "$network.$number node$number" >>"$state/hosts"; done
  ip netns add "$switch"
  ip -n "$switch" link add bridge0 type bridge
  ip -n "$switch" link set bridge0 up
  for number in $(seq "$1"); do make_host "$number"; done
  [[ -z ${2:-} ]] || share_processors "$1"
  trap - ERR
}

namespaces() { ip netns list | awk -v prefix="$name-" 'index($1, prefix) == 1 && substr($1, length(prefix) + 1) ~ /^(switch|node[0-9]+)$/ { print $1 }'; }

# Processes that are started while others are killed are killed in the next round.
kill_all() {
  local pids
  for _ in 1 2 3 4 5; do
    pids=$(ip netns pids "$1")
    [[ -n $pids ]] || return 0
    # shellcheck disable=SC2086
    kill -KILL $pids 2>/dev/null || true
    sleep 0.05
  done
}

remove() {
  local namespace
  for namespace in $(namespaces); do
    kill_all "$namespace"
    ip netns delete "$namespace"
  done
  rm -rf "$state"
}

# Replaces this process by a shell command on a host, whose name, table of addresses and shared memory are its own.
enter() {
  local host=$1
  shift
  [[ ! -e $state/processors.$host ]] || taskset -cp "$(<"$state/processors.$host")" $$ >/dev/null
  # shellcheck disable=SC2016
  exec nsenter --net="/run/netns/$name-$host" unshare --uts --mount --propagation private bash -c '
    hostname "$1"
    mount --bind "$2" /etc/hosts
    mount -t tmpfs tmpfs /dev/shm
    cd "$3"
    exec bash -c "$4"' _ "$host" "$state/hosts" "$PWD" "$*"
}

# The words of a command for a shell.
quoted() { printf '%q ' "$@"; }

run() {
  check_host node1
  export OMPI_MCA_plm_rsh_agent="$self --name $name agent"
  export OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  enter node1 "exec $(quoted "$@")"
}

# Called as ssh would be: options, a host, and the words of a shell command.
agent() {
  while [[ ${1:-} == -* ]]; do shift; done
  local host=$1
  shift
  [[ -e /run/netns/$name-$host ]] || fail 255 "could not resolve hostname $host"
  ip -n "$name-$host" link show eth0 | grep -q 'state UP' || fail 255 "connect to host $host: no route to host"
  enter "$host" "$@"
}

limit() {
  check_host "$1"
  ip netns exec "$name-$1" tc qdisc delete dev eth0 root 2>/dev/null || true
  [[ -z ${2:-} ]] || ip netns exec "$name-$1" tc qdisc add dev eth0 root tbf rate "$2" burst 256kb latency 50ms
}

command=${1:-}
(($# == 0)) || shift
case $command:$# in
  up:1) up "$1" ;;
  up:2)
    [[ $2 == apart ]] || usage
    up "$1" apart
    ;;
  down:0) remove ;;
  limit:1 | limit:2) limit "$@" ;;
  unplug:1 | plug:1)
    check_host "$1"
    ip -n "$name-$1" link set eth0 "$([[ $command == plug ]] && echo up || echo down)"
    ;;
  kill:1)
    check_host "$1"
    kill_all "$name-$1"
    ;;
  run:[1-9]*) run "$@" ;;
  enter:[2-9]* | enter:1[0-9]*)
    check_host "$1"
    host=$1
    shift
    enter "$host" "exec $(quoted "$@")"
    ;;
  agent:[2-9]* | agent:1[0-9]*) agent "$@" ;;
  *) usage ;;
esac
