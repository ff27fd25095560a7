#!/usr/bin/env bash
# Round trips and pages through tacit proxy beside ssh -L and beside no carrier, over a wire between two namespaces or a live hop, at
# several MTUs. A line of JSON for each measurement, then a table. Needs root, python3, openssh-server and openssh-client.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/latency.sh [--tacit PROGRAM] [--shell PROGRAM] [--rounds N] [--requests N] [--mtu BYTES]...
                        [--hop "SCENARIO [KEY=VALUE]…" | --netem "RULE"]

  --tacit     the program that carries [default: target/release/tacit]
  --shell     the one that makes the hop [default: that of --tacit]
  --rounds    rounds, in each of which the ways take turns [default: 3]
  --requests  round trips of each size in a round [default: 500]
  --mtu       MTU of the wire; may be repeated [default: 1500, 9000, 16384]
  --hop       a live hop in place of the wire, such as "wired-10 wired.rate=200Mbps wired.delay=10ms wired.loss=1%"
  --netem     a rule of tc-netem for both directions, such as "delay 10ms loss 1%" [default: none]
USAGE
}

tacit=target/release/tacit shell= rounds=3 requests=500 mtus=() hop= netem=
while [ $# -gt 0 ]; do
    case "$1" in
        --tacit) tacit=$2 ;;
        --shell) shell=$2 ;;
        --hop) hop=$2 ;;
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
for program in "$tacit" ssh sshd python3 ip nsenter; do
    command -v "$program" >/dev/null || { echo "latency.sh: SKIPPED, not installed: $program" >&2 && exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "latency.sh: SKIPPED, needs root" >&2 && exit 1; }
tacit=$(realpath "$(command -v "$tacit")")
[ -n "$shell" ] || shell=$tacit
measure=$(realpath "$(dirname "$0")")/latency.py

work=$(mktemp -d "${TMPDIR:-/tmp}/latency.XXXXXX")
pids=() names=()
end() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    for name in "${names[@]}"; do ip netns delete "$name" 2>/dev/null || true; done
    rm -rf "$work"
}
trap end EXIT
chmod 755 "$work"
export XDG_CONFIG_HOME=$work/config

# Two namespaces, by the files that name them, with a device in each, and the server's address.
wire() {
    names=("latency-$$-here" "latency-$$-there")
    here=/run/netns/${names[0]} there=/run/netns/${names[1]} server=198.51.100.2
    for name in "${names[@]}"; do ip netns add "$name"; done
    ip -n "${names[0]}" link add wire type veth peer name wire netns "${names[1]}"
    for end in "${names[0]} 198.51.100.1" "${names[1]} $server"; do
        read -r name address <<<"$end"
        ip -n "$name" address add "$address/24" dev wire
        ip -n "$name" link set wire up
        ip -n "$name" link set lo up
        # shellcheck disable=SC2086
        [ -z "$netem" ] || ip netns exec "$name" tc qdisc add dev wire root netem $netem
    done
}

# The same, with the hop of `tacit shell` between them. Its programs see other process numbers, so they tell their namespaces.
hop() {
    local words=() scenario settings setting
    read -r scenario settings <<<"$hop"
    for setting in $settings; do words+=(--set "$setting"); done
    # shellcheck disable=SC2016
    local stay='readlink /proc/self/ns/net >"$1" && while [ ! -e "$1.end" ]; do sleep 0.2; done'
    "$shell" shell "$scenario" "${words[@]}" --json -- sh -c "$stay" stay "$work/here" \
        --server -- sh -c "$stay" stay "$work/there" >"$work/hop.json" 2>>"$work/log" &
    pids+=($!)
    here=$(namespace here) there=$(namespace there) server=198.18.0.1
}

# Prints the file of the namespace that a program of the hop has told.
namespace() {
    local of found
    for _ in $(seq 100); do
        [ ! -s "$work/$1" ] || break
        sleep 0.1
    done
    [ -s "$work/$1" ] || { cat "$work/log" >&2 && exit 1; }
    of=$(cat "$work/$1")
    for found in /proc/[0-9]*/ns/net; do
        [ "$(readlink "$found" 2>/dev/null)" != "$of" ] || { echo "$found" && return; }
    done
    exit 1
}

if [ -n "$hop" ]; then hop; else wire; fi

. "$(dirname "$0")/sshd.sh"
prepare_sshd "$work"

# within SPACE COMMAND...: starts a program in a namespace; `end` ends it.
within() {
    local space=$1
    shift
    nsenter --net="$space" "$@" >>"$work/log" 2>&1 &
    pids+=($!)
}

# Waits until something listens at ADDRESS:PORT in SPACE.
listens() {
    for _ in $(seq 100); do
        nsenter --net="$1" python3 -c "import socket; socket.create_connection(('$2', $3), 1).close()" 2>/dev/null && return
        sleep 0.1
    done
    echo "latency.sh: nothing listens at $2:$3" >&2
    cat "$work/log" >&2
    exit 1
}

"$tacit" keys make >/dev/null
within "$there" python3 "$measure" serve "$server" 7000
within "$there" /usr/sbin/sshd -D -e -f "$work/sshd_config"
listens "$here" "$server" 7000
listens "$here" "$server" 22

for mtu in "${mtus[@]}"; do
    for space in "$here" "$there"; do
        device=$(nsenter --net="$space" ip -o link | awk -F': ' '$2 != "lo" { split($2, name, "@"); print name[1]; exit }')
        nsenter --net="$space" ip link set "$device" mtu "$mtu"
    done
    before=${#pids[@]}
    within "$there" "$tacit" proxy --serve --listen "$server:4434" --allow "$server:7000"
    sleep 0.5
    within "$here" "$tacit" proxy "$server:4434" --forward "127.0.0.1:8001=$server:7000"
    within "$here" ssh -N -L "127.0.0.1:8002:$server:7000" -i "$work/keys/user" -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "root@$server"
    listens "$here" 127.0.0.1 8001
    listens "$here" 127.0.0.1 8002
    nsenter --net="$here" python3 "$measure" ask "direct=$server:7000" tacit=127.0.0.1:8001 ssh=127.0.0.1:8002 \
        --rounds "$rounds" --requests "$requests" | sed "s/^{/{\"mtu\": $mtu, /" | tee -a "$work/results"
    for pid in "${pids[@]:before}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    pids=("${pids[@]:0:before}")
done

if [ -n "$hop" ]; then
    touch "$work/here.end"
    wait "${pids[0]}" 2>/dev/null || true
    echo "hop: $hop; valid: $(grep -o '"valid": *[a-z]*' "$work/hop.json" | grep -o '[a-z]*$' || echo unknown)"
fi

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
