#!/usr/bin/env bash
# tacit cp beside scp and rsync over ssh, through live hops: one large file and many small ones, fetched from the far side.
# A line of JSON for each copy, then a table of medians. Needs root, openssh-server, openssh-client and rsync.
set -euo pipefail

usage() {
    cat <<'USAGE'
usage: bench/copies.sh [--tacit PROGRAM] [--shell PROGRAM] [--rounds N] [--bytes N] [--files N] [--hop "SCENARIO [KEY=VALUE]…"]… [--tool NAME]…

  --tacit   the program that copies [default: target/release/tacit]
  --shell   the one that makes the hop [default: that of --tacit]
  --rounds  copies of each kind by each tool, in turns, of which the median counts [default: 3]
  --bytes  length of the large file; 0: none [default: 1000000000]
  --files   how many small files of 1 to 8191 bytes, 100 in a directory; 0: none [default: 20000]
  --hop     a scenario and its settings; may be repeated [default: wlan-11n-300, wlan-11ac-866, and wlan-11n-300
            with a round trip of 80 ms and 0.1 % of the packets lost]
  --tool    tack-cp, scp or rsync; may be repeated [default: all]
USAGE
}

tacit=target/release/tacit rounds=3 bytes=1000000000 files=20000 hops=() tools=() shell=
while [ $# -gt 0 ]; do
    case "$1" in
        --tacit) tacit=$2 ;;
        --shell) shell=$2 ;;
        --rounds) rounds=$2 ;;
        --bytes) bytes=$2 ;;
        --files) files=$2 ;;
        --hop) hops+=("$2") ;;
        --tool) tools+=("$2") ;;
        *)
            usage
            [ "$1" = --help ] || exit 2
            exit 0
            ;;
    esac
    shift 2
done
[ ${#hops[@]} -gt 0 ] || hops=(wlan-11n-300 wlan-11ac-866 "wlan-11n-300 wired.delay=40ms wired.loss=0.1%")
[ ${#tools[@]} -gt 0 ] || tools=(tack-cp scp rsync)

export PATH=$PATH:/usr/sbin:/sbin
for program in "$tacit" ssh sshd scp rsync; do
    command -v "$program" >/dev/null || { echo "copies.sh: SKIPPED, not installed: $program" >&2 && exit 1; }
done
tacit=$(realpath "$(command -v "$tacit")")
[ -n "$shell" ] || shell=$tacit
[ "$(id -u)" = 0 ] || { echo "copies.sh: SKIPPED, needs root" >&2 && exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/copies.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/source"

# Contents that no compression makes shorter.
[ "$bytes" = 0 ] || head -c "$bytes" /dev/urandom >"$work/source/large"
if [ "$files" != 0 ]; then
    # A length of its own for each, the same in every run.
    perl -e 'my ($to, $files) = @ARGV;
        mkdir $to;
        for my $number (0 .. $files - 1) {
            my $directory = "$to/d" . int($number / 100);
            mkdir $directory unless $number % 100;
            open my $file, ">", "$directory/f$number" or die $!;
            print $file map { chr rand 256 } 1 .. 1 + ($number * 7919) % 8191;
        }' "$work/source/small" "$files"
fi

. "$(dirname "$0")/sshd.sh"
prepare_sshd "$work"
cat >"$work/ssh_config" <<SSH
Host *
    User root
    IdentityFile $work/keys/user
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
SSH

# The client's side: waits for the server, copies once, says how long that took, and compares.
cat >"$work/client.sh" <<'CLIENT'
set -eu
work=$1 tacit=$2 tool=$3 what=$4
ready() {
    case $tool in
        tack-cp) "$tacit" cp -q "tack://$TACIT_PEER/ready" "$work/" 2>"$work/not-ready" ;;
        *) ssh -F "$work/ssh_config" "$TACIT_PEER" true 2>"$work/not-ready" ;;
    esac
}
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    ready && break
    [ "$attempt" != 10 ] || { cat "$work/not-ready" >&2 && exit 1; }
    sleep 0.2
done
began=$(date +%s%N)
case $tool in
    tack-cp) "$tacit" cp -q "tack://$TACIT_PEER/$what" "$work/there/" >&2 ;;
    scp) scp -q -p -r -F "$work/ssh_config" "$TACIT_PEER:$work/source/$what" "$work/there/" >&2 ;;
    rsync) rsync -a -e "ssh -F $work/ssh_config" "$TACIT_PEER:$work/source/$what" "$work/there/" >&2 ;;
esac
ended=$(date +%s%N)
diff -r "$work/source/$what" "$work/there/$what" >&2
echo $((ended - began)) >"$work/duration_ns"
CLIENT

copy() { # hop tool what
    local words=() scenario settings setting server
    read -r scenario settings <<<"$1"
    for setting in $settings; do words+=(--set "$setting"); done
    case $2 in
        tack-cp) server=("$tacit" serve -q "$work/source" --listen 0.0.0.0:4433) ;;
        *) server=(/usr/sbin/sshd -D -f "$work/sshd_config") ;;
    esac
    rm -rf "$work/there" && mkdir "$work/there"
    sync
    XDG_CONFIG_HOME=$work/keys "$shell" shell "$scenario" "${words[@]}" --json -- bash "$work/client.sh" "$work" "$tacit" "$2" "$3" \
        --server -- "${server[@]}" >"$work/hop.json" 2>"$work/said" || { cat "$work/said" >&2 && return 1; }
    local valid
    valid=$(grep -o '"valid": *[a-z]*' "$work/hop.json" | grep -o '[a-z]*$' || true)
    echo "{\"hop\":\"$1\",\"what\":\"$3\",\"tool\":\"$2\",\"duration_s\":$(awk -v ns="$(cat "$work/duration_ns")" 'BEGIN { printf "%.3f", ns / 1e9 }'),\"valid\":${valid:-null}}"
}

echo ready >"$work/source/ready"
whats=()
[ "$bytes" = 0 ] || whats+=(large)
[ "$files" = 0 ] || whats+=(small)
for hop in "${hops[@]}"; do
    for what in "${whats[@]}"; do
        for _ in $(seq "$rounds"); do
            for tool in "${tools[@]}"; do copy "$hop" "$tool" "$what"; done
        done
    done
done | tee "$work/copies"

echo
echo "medians of $rounds in seconds; large: $bytes bytes, small: $files files"
sed 's/^{"hop":"\([^"]*\)","what":"\([^"]*\)","tool":"\([^"]*\)","duration_s":\([0-9.]*\).*/\1|\2|\3|\4/' "$work/copies" |
    sort -t'|' -k1,1 -k2,2 -k3,3 -k4,4n | awk -F'|' '
        function flush() { if (count) printf "%-50s %-6s %-8s %9.2f\n", hop, what, tool, count % 2 ? all[(count + 1) / 2] : (all[count / 2] + all[count / 2 + 1]) / 2 }
        { if ($1 FS $2 FS $3 != key) { flush(); key = $1 FS $2 FS $3; count = 0 } hop = $1; what = $2; tool = $3; all[++count] = $4 }
        END { flush() }'
