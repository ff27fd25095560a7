#!/usr/bin/env bash
# `tacit thin` beside CAKE's ACK filter, on a kernel that has CAKE: bench/thin.sh PACKAGE.deb [PROGRAM]
#
# PACKAGE.deb is one of Debian's linux-image packages, PROGRAM the tacit to run [default: target/release/tacit]. Takes what
# guest.sh takes, and iproute2, for ten minutes. A client fetches 1 MB behind uplinks of 20 and 50 kb/s, three times each: 8 Mb/s down, 50 ms
# there and back, a queue of 1000 packets up. Prints the seconds of each fetch.
set -euo pipefail
package=$(realpath "${1:?usage: bench/thin.sh PACKAGE.deb [PROGRAM]}")
program=$(realpath "${2:-$(dirname "$0")/../target/release/tacit}")
# shellcheck source=bench/guest.sh
. "$(dirname "$0")/guest.sh"
guest_begin "$package"
guest_programs ip tc "$program"
strip -o "$guest_root/bin/tacit" "$program"
guest_modules veth tun sch_tbf sch_cake sch_netem
guest_boot 1500 <<'INIT'
# By path: the shell prefers its own ip and tc. Two networks: a client behind a slow uplink, and a server behind the wire, to which the default route leads.
unshare -n sleep 3000 &
client=$!
unshare -n sleep 3000 &
server=$!
sleep 1
at_client() { nsenter -t "$client" -n "$@"; }
at_server() { nsenter -t "$server" -n "$@"; }
/bin/ip link add up0 type veth peer name down0
/bin/ip link set up0 netns "$client"
/bin/ip link set down0 netns "$server"
at_client /bin/ip addr add 10.9.0.2/24 dev up0
at_client /bin/ip link set up0 up
at_client /bin/ip route add default via 10.9.0.1
at_server /bin/ip addr add 10.9.0.1/24 dev down0
at_server /bin/ip link set lo up
at_server /bin/ip addr add 192.0.2.1/32 dev lo
at_server /bin/ip link set down0 up
# Segments stay apart, as at 8 Mb/s on a wire.
at_client /bin/ip link set dev up0 gso_max_segs 1
at_server /bin/ip link set dev down0 gso_max_segs 1
at_server /bin/tc qdisc add dev down0 root handle 1: netem delay 50ms limit 10000
at_server /bin/tc qdisc add dev down0 parent 1: tbf rate 8mbit burst 1600 limit 1500000
mkdir -p /tmp/www
dd if=/dev/zero of=/tmp/www/megabyte bs=1000 count=1000 2>/dev/null
at_server httpd -p 8000 -h /tmp/www
fetch() {
    began=$(cut -d' ' -f1 /proc/uptime)
    at_client wget -q -O - http://192.0.2.1:8000/megabyte | wc -c >/tmp/bytes
    ended=$(cut -d' ' -f1 /proc/uptime)
    echo "RESULT $1: $(cat /tmp/bytes) bytes in $(awk "BEGIN { print $ended - $began }") s"
}
for rate in 20 50; do
    for queue in plain cake; do
        at_client /bin/tc qdisc del dev up0 root 2>/dev/null
        case $queue in
        plain) at_client /bin/tc qdisc add dev up0 root tbf rate "${rate}kbit" burst 1600 limit 1500000 ;;
        cake) at_client /bin/tc qdisc add dev up0 root cake bandwidth "${rate}kbit" ack-filter raw ;;
        esac
        for holder in none thin; do
            if [ "$holder" = thin ]; then
                nsenter -t "$client" -n tacit thin up0 >/tmp/counters 2>/tmp/thin &
                thinner=$!
                sleep 3
            fi
            for _ in 1 2 3; do
                fetch "$rate kb/s, queue $queue, $holder"
                # ACKs that a fetch left in the uplink.
                sleep 8
            done
            if [ "$holder" = thin ]; then
                kill "$thinner"
                wait "$thinner"
                echo "RESULT $(tail -n 1 /tmp/counters)"
            fi
        done
    done
done
INIT
