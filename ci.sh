#!/usr/bin/env bash
# One door for laptop and CI: the same lines run in both.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'USAGE'
usage: ./ci.sh COMMAND

  setup     install what the tests need (Debian packages, when root)
  fmt       rewrite the sources in the project's format
  lint      format check and clippy, warnings are errors
  test      setup, lint, every test, the figures in their quick form
  live      the tests of live hops alone; they need root, elsewhere they say that they are skipped
  figures   every figure in full, with a report in target/figures
  bench     tacit bench and the criterion benchmarks
  swarm     random worlds, many more than the tests run: ./ci.sh swarm [SEEDS]
  fuzz      fuzz every parser for a while: ./ci.sh fuzz [SECONDS_EACH]
USAGE
}

# Debian package and the program that tells it is there.
PACKAGES=(tshark:tshark tcpdump:tcpdump iproute2:ip iperf3:iperf3 nginx-light:nginx curl:curl)

setup() {
    local missing=()
    for entry in "${PACKAGES[@]}"; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${entry#*:}" >/dev/null || missing+=("${entry%%:*}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "ci.sh: not installed: ${missing[*]}; the tests that need them are skipped and say so" >&2
        return 0
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # Run level 1: nginx is for tests, not a service that starts here.
    RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

lint() {
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --quiet -- -D warnings
}

test_all() {
    setup
    lint
    cargo test --workspace --no-fail-fast --quiet
    # Release gives the same digests as debug, and is what users run.
    cargo test --release --quiet -p tacit-sim --test determinism
    cargo run --release --quiet -- figure --all --quick
}

fuzz() {
    local seconds=${1:-60}
    command -v cargo-fuzz >/dev/null || cargo install --quiet cargo-fuzz
    (cd fuzz && cargo +nightly fuzz list) | while read -r target; do
        echo "fuzzing $target for ${seconds} s"
        (cd fuzz && cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -rss_limit_mb=2048)
    done
}

case "${1:-}" in
    setup) setup ;;
    fmt) cargo fmt --all ;;
    lint) lint ;;
    test) test_all ;;
    live)
        setup
        cargo test -p tacit --test live
        ;;
    figures) cargo run --release -- figure --all --report target/figures ;;
    bench)
        cargo run --release -- bench
        cargo bench --workspace
        ;;
    swarm) TACIT_SWARM_SEEDS=${2:-5000} cargo test --release -p tacit-sim --test swarm ;;
    fuzz) fuzz "${2:-}" ;;
    *)
        usage
        [ "${1:-}" = help ] || exit 2
        ;;
esac
