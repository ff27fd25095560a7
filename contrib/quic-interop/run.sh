#!/bin/sh
# The simulator of the QUIC interop runner (quic-network-simulator): packets between eth0, the client's side, and eth1, the
# server's, pass through a live hop of tacit. Captures of both sides go to $LOGS, /logs by default.
#
# SCENARIO="wifi [--rate=300Mbps] [--stations=1] [--delay=1ms] [--queue=256]"
# SCENARIO="asymmetric [--down=10Mbps] [--up=300kbps] [--delay=20ms] [--queue=1000]"
#
# --delay is one way, --queue in packets (of the access point, or of each direction), --stations counts the client.
set -eu
export LOGS="${LOGS:-/logs}"
export LEFT="${LEFT:-eth0}"
right=${RIGHT:-eth1}
here=$(cd "$(dirname "$0")" && pwd)

fail() {
    echo "quic-interop: $*" >&2
    exit 2
}

# Options of `tacit shell` for $SCENARIO, one a line.
options() {
    name=$1
    shift
    case $name in
    wifi) echo wlan-11n-300 ;;
    asymmetric) printf '%s\n' lte-slow-uplink --set wired.down.rate=10Mbps --set wired.up.rate=300kbps --set wired.delay=20ms ;;
    *) fail "$name: there are wifi and asymmetric" ;;
    esac
    for word; do
        value=${word#*=}
        case $name:$word in
        wifi:--rate=*) printf '%s\n' --set "wifi.rate=$value" ;;
        wifi:--stations=*) printf '%s\n' --clients "$value" ;;
        wifi:--queue=*) printf '%s\n' --set "wifi.ap-queue=$value packets" ;;
        *:--delay=*) printf '%s\n' --set "wired.delay=$value" ;;
        asymmetric:--down=*) printf '%s\n' --set "wired.down.rate=$value" ;;
        asymmetric:--up=*) printf '%s\n' --set "wired.up.rate=$value" ;;
        asymmetric:--queue=*) printf '%s\n' --set "wired.queue=$value packets" ;;
        *) fail "$word: not a parameter of $name" ;;
        esac
    done
}

# shellcheck disable=SC2086 # The scenario's words.
words=$(options ${SCENARIO:-wifi}) || exit 2
mkdir -p "$LOGS"
# The device loses them when it moves.
LEFT_ADDRESSES=$(ip -o addr show dev "$LEFT" scope global | awk '{ print $4 }')
export LEFT_ADDRESSES
networks=$({ ip -o route show dev "$LEFT" proto kernel; ip -6 -o route show dev "$LEFT" proto kernel; } | awk '!/^fe80/ { print $1 }')
sysctl -qw net.ipv4.ip_forward=1
sysctl -qw net.ipv6.conf.all.forwarding=1 2>/dev/null || true

# Captures have single packets, where ethtool is there.
if command -v ethtool >/dev/null; then
    ethtool -K "$right" tx off gso off gro off >/dev/null
fi
rm -f "$LOGS/hop.json"
tcpdump -q -U -B 32768 --immediate-mode -i "$right" -w "$LOGS/trace_node_right.pcap" 2>/dev/null &
capture=$!
# One line is one word.
IFS='
'
# shellcheck disable=SC2086
set -- $words
unset IFS
before=$(ip -o link | awk -F': ' '{ print $2 }')
tacit shell "$@" --json -- "$here/left.sh" >"$LOGS/hop.json" &
hop=$!
trap 'kill -TERM $hop $capture 2>/dev/null; wait; exit 0' INT TERM
# The hop's device appears here, and its other end with left.sh in a network of its own.
tries=0
until tun=$(ip -o link | awk -F': ' '{ print $2 }' | grep -vxF "$before" | head -n 1) && [ -n "$tun" ] &&
    inside=$(pgrep -n -f "$here/left.sh"); do
    tries=$((tries + 1))
    kill -0 $hop 2>/dev/null || fail "no hop: tacit doctor says why"
    [ $tries -lt 100 ] || fail "no hop after 10 s"
    sleep 0.1
done
ip link set "$LEFT" netns "$inside"
for network in $networks; do
    ip route replace "$network" dev "$tun"
done
# The runner's endpoints begin once this port is open.
if command -v socat >/dev/null; then
    socat TCP-LISTEN:57832,fork,reuseaddr EXEC:true &
fi
echo "quic-interop: ${SCENARIO:-wifi} between $LEFT and $right"
wait $hop || true
kill -TERM $capture 2>/dev/null || true
