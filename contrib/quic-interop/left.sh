#!/bin/sh
# The client's side of run.sh's hop, in a network of its own: waits for the device $LEFT, and forwards between it and the hop.
set -eu
sysctl -qw net.ipv4.ip_forward=1
sysctl -qw net.ipv6.conf.all.forwarding=1 2>/dev/null || true
until ip link show dev "$LEFT" >/dev/null 2>&1; do
    sleep 0.1
done
# Captures have single packets, where ethtool is there.
if command -v ethtool >/dev/null; then
    ethtool -K "$LEFT" tx off gso off gro off >/dev/null
fi
ip link set dev "$LEFT" up
for address in $LEFT_ADDRESSES; do
    case $address in
    *:*) ip addr add "$address" dev "$LEFT" nodad ;;
    *) ip addr add "$address" dev "$LEFT" ;;
    esac
done
tcpdump -q -U -B 32768 --immediate-mode -i "$LEFT" -w "$LOGS/trace_node_left.pcap" 2>/dev/null &
capture=$!
if command -v socat >/dev/null; then
    socat TCP-LISTEN:57832,fork,reuseaddr EXEC:true &
fi
trap 'kill -TERM $capture; wait $capture; exit 0' INT TERM
wait $capture
