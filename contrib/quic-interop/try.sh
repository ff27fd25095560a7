#!/bin/sh
# Runs a scenario here, without Docker: the containers of the interop runner are network namespaces. Takes root, tacit in PATH and
# tcpdump.
#
# try.sh SCENARIO LOGS CLIENT -- SERVER, each one word of the shell; CLIENT reaches the server at 193.167.100.100.
# try.sh "asymmetric --up=100kbps" /tmp/logs "./client 193.167.100.100:443" -- "./server 0.0.0.0:443"
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 5 ] && [ "$4" = -- ] || {
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
scenario=$1 logs=$2 client=$3 server=$5
name() { echo "tacit-interop-$$-$1"; }
started=
cleanup() {
    for process in $started; do
        kill -TERM "$process" 2>/dev/null || true
    done
    wait
    for end in client sim server; do
        ip netns delete "$(name $end)" 2>/dev/null || true
    done
}
trap cleanup EXIT
for end in client sim server; do
    ip netns add "$(name $end)"
    ip -n "$(name $end)" link set lo up
done
# end, its device in the simulator, and its third byte, as in the runner's docker-compose.yml.
side() {
    ip -n "$(name "$1")" link add eth0 type veth peer name "$2" netns "$(name sim)"
    ip -n "$(name "$1")" addr add "193.167.$3.100/24" dev eth0
    ip -n "$(name "$1")" addr add "fd00:cafe:cafe:$3::100/64" dev eth0 nodad
    ip -n "$(name sim)" addr add "193.167.$3.2/24" dev "$2"
    ip -n "$(name sim)" addr add "fd00:cafe:cafe:$3::2/64" dev "$2" nodad
    # As `ethtool -K eth0 tx off` in the runner's endpoints: captures have single packets.
    ip -n "$(name "$1")" link set eth0 gso_max_segs 1
    ip -n "$(name "$1")" link set eth0 up
    ip -n "$(name sim)" link set "$2" up
    ip -n "$(name "$1")" route add 193.167.0.0/16 via "193.167.$3.2"
    ip -n "$(name "$1")" route add fd00:cafe:cafe::/48 via "fd00:cafe:cafe:$3::2"
}
side client eth0 0
side server eth1 100
mkdir -p "$logs"
SCENARIO=$scenario LOGS=$logs ip netns exec "$(name sim)" "$here/run.sh" &
started="$started $!"
# shellcheck disable=SC2086 # A command line.
ip netns exec "$(name server)" $server &
started="$started $!"
tries=0
until ip netns exec "$(name client)" ping -c 1 -W 1 193.167.100.100 >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 20 ] || {
        echo "try.sh: the hop does not carry a ping" >&2
        exit 1
    }
done
status=0
# shellcheck disable=SC2086
ip netns exec "$(name client)" $client || status=$?
cleanup
exit $status
