#!/usr/bin/env bash
# Round trips and pages through tacit proxy beside ssh -L and beside no carrier, over a wire between two namespaces, at several MTUs.
# A line of JSON for each measurement, then a table. Needs root, python3, openssh-server and openssh-client.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/latency.sh [--tacit PROGRAM] [--rounds N] [--requests N] [--mtu BYTES]... [--netem "RULE"]

  --tacit     the program that carries [default: target/release/tacit]
  --rounds    rounds, in each of which the ways take turns [default: 3]
  --requests  round trips of each size in a round [default: 500]
  --mtu       MTU of the wire; may be repeated [default: 1500, 9000, 16384]
  --netem     a rule of tc-netem for both directions, such as "delay 10ms loss 1%" [default: none]
USAGE
}

tacit=target/release/tacit rounds=3 requests=500 mtus=() netem=
while [ $# -gt 0 ]; do
    case "$1" in
        --tacit) tacit=$2 ;;
        --rounds) rounds=$2 ;;
        --requests) requests=$2 ;;
        --mtu) mtus+=("$2") ;;
        --netem) netem=$2 ;;
        *)
            usage
            [ "$1" = --help ] || exit 2
            exit 0
            ;;
    esac
    shift 2
done
[ ${#mtus[@]} -gt 0 ] || mtus=(1500 9000 16384)

export PATH=$PATH:/usr/sbin:/sbin
for program in "$tacit" ssh sshd python3 ip; do
    command -v "$program" >/dev/null || { echo "latency.sh: SKIPPED, not installed: $program" >&2 && exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "latency.sh: SKIPPED, needs root" >&2 && exit 1; }
tacit=$(realpath "$(command -v "$tacit")")
measure=$(realpath "$(dirname "$0")")/latency.py

work=$(mktemp -d "${TMPDIR:-/tmp}/latency.XXXXXX")
here=latency-$$-here there=latency-$$-there pids=()
end() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    ip netns delete "$here" 2>/dev/null || true
    ip netns delete "$there" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
chmod 755 "$work"
export XDG_CONFIG_HOME=$work/config

ip netns add "$here"
ip netns add "$there"
ip -n "$here" link add wire type veth peer name wire netns "$there"
for end in "$here 198.51.100.1" "$there 198.51.100.2"; do
    read -r space address <<<"$end"
    ip -n "$space" address add "$address/24" dev wire
    ip -n "$space" link set wire up
    ip -n "$space" link set lo up
    # shellcheck disable=SC2086
    [ -z "$netem" ] || ip netns exec "$space" tc qdisc add dev wire root netem $netem
done

. "$(dirname "$0")/sshd.sh"
prepare_sshd "$work"

# within SPACE COMMAND...: starts a program in a namespace; `end` ends it.
within() {
    local space=$1
    shift
    ip netns exec "$space" "$@" >>"$work/log" 2>&1 &
    pids+=($!)
}

# Waits until something listens at ADDRESS:PORT in SPACE.
listens() {
    for _ in $(seq 100); do
        ip netns exec "$1" python3 -c "import socket; socket.create_connection(('$2', $3), 1).close()" 2>/dev/null && return
        sleep 0.1
    done
    echo "latency.sh: nothing listens at $2:$3" >&2
    cat "$work/log" >&2
    exit 1
}

"$tacit" keys make >/dev/null
within "$there" python3 "$measure" serve 198.51.100.2 7000
within "$there" /usr/sbin/sshd -D -e -f "$work/sshd_config"
listens "$here" 198.51.100.2 7000
listens "$here" 198.51.100.2 22

for mtu in "${mtus[@]}"; do
    for space in "$here" "$there"; do ip -n "$space" link set wire mtu "$mtu"; done
    before=${#pids[@]}
    within "$there" "$tacit" proxy --serve --listen 198.51.100.2:4434 --allow 198.51.100.2:7000
    sleep 0.5
    within "$here" "$tacit" proxy 198.51.100.2:4434 --forward 127.0.0.1:8001=198.51.100.2:7000
    within "$here" ssh -N -L 127.0.0.1:8002:198.51.100.2:7000 -i "$work/keys/user" -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR root@198.51.100.2
    listens "$here" 127.0.0.1 8001
    listens "$here" 127.0.0.1 8002
    ip netns exec "$here" python3 "$measure" ask direct=198.51.100.2:7000 tacit=127.0.0.1:8001 ssh=127.0.0.1:8002 \
        --rounds "$rounds" --requests "$requests" | sed "s/^{/{\"mtu\": $mtu, /" | tee -a "$work/results"
    for pid in "${pids[@]:before}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    pids=("${pids[@]:0:before}")
done

# Medians over the rounds.
python3 - "$work/results" <<'TABLE'
import json, statistics, sys

found, order = {}, []
for line in open(sys.argv[1]):
    line = json.loads(line)
    place = line["mtu"], line["kind"]
    if place not in found:
        order.append(place)
    found.setdefault(place, {}).setdefault(line["way"], []).append((line["p50_ms"], line["p99_ms"]))
print("\n| MTU | | direct, p50, p99, ms | `tacit proxy` | `ssh -L` | over direct, p50, ms | over `ssh -L`, p50 |")
print("|---|---|---|---|---|---|---|")
for place in order:
    ways = {way: [statistics.median(column) for column in zip(*rounds)] for way, rounds in found[place].items()}
    cells = [", ".join(f"{value:.2f}" for value in ways[way]) for way in ("direct", "tacit", "ssh")]
    beyond = ways["tacit"][0] - ways["direct"][0]
    print(f"| {place[0]} | {place[1]} | " + " | ".join(cells) + f" | {beyond:+.2f} | {ways['tacit'][0] / ways['ssh'][0]:.2f} |")
TABLE
