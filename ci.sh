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
  test      setup, lint, every test, the codecs fuzzed for a minute, the figures in their quick form
  embedded  build the ROHC codec for two microcontrollers without a standard library
  bpf       compile the eBPF programs and compare them with those that are committed
  live      the tests of live hops alone; they need root, elsewhere they say that they are skipped
  figures   every figure in full, with a report in target/figures; writes docs/validation/papers.md and features.md
  peers     TACK beside QUIC and TCP on this machine, over loopback and through a clean hop: speed, processor, requests, memory
  copies    tacit cp beside scp and rsync through live hops: ./ci.sh copies [ARGUMENTS of bench/copies.sh]
  bench     tacit bench and the criterion benchmarks
  swarm     random worlds, many more than the tests run: ./ci.sh swarm [SEEDS [FIRST_SEED]]
  fuzz      fuzz every parser for a while: ./ci.sh fuzz [SECONDS_EACH]
  book      make the book of docs/ in target/book; installs mdBook if it is not there
  package   make a static program, an archive and a Debian package in target/package, and try them in an empty root
  deny      licences, sources and known vulnerabilities of dependencies; installs cargo-deny if it is not there
  msrv      compile with the oldest Rust that Cargo.toml promises
  semver    what changed for users of the ROHC codec since a revision: ./ci.sh semver [REVISION]
USAGE
}

# Debian package and the program that tells it is there.
PACKAGES=(tshark:tshark tcpdump:tcpdump iproute2:ip iperf3:iperf3 nginx-light:nginx curl:curl g++:c++
    pkg-config:pkg-config clang:clang llvm:llvm-strip openssh-server:sshd openssh-client:ssh rsync:rsync chromium:chromium)
# Debian package and the library that pkg-config knows then.
LIBRARIES=(libelf-dev:libelf zlib1g-dev:zlib libbpf-dev:libbpf)

setup() {
    local missing=()
    for entry in "${PACKAGES[@]}"; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${entry#*:}" >/dev/null || missing+=("${entry%%:*}")
    done
    for entry in "${LIBRARIES[@]}"; do
        pkg-config --exists "${entry#*:}" 2>/dev/null || missing+=("${entry%%:*}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "ci.sh: not installed: ${missing[*]}; the tests that need them are skipped and say so" >&2
        return 0
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # Run level 1: nginx and sshd are for tests, not services that start here.
    RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# `tacit rre` is built where the libraries that load eBPF are there.
features() {
    if pkg-config --exists libelf zlib 2>/dev/null; then
        echo "--features=tacit/rre"
    else
        echo "ci.sh: no libelf-dev, zlib1g-dev or pkg-config: BUILT AND TESTED WITHOUT tacit rre" >&2
    fi
}

# The eBPF programs that users get were compiled from these sources.
bpf() {
    if ! command -v clang >/dev/null || ! command -v llvm-strip >/dev/null || ! pkg-config --exists libbpf; then
        echo "ci.sh: no clang, llvm or libbpf-dev: THE eBPF PROGRAMS WERE NOT COMPILED" >&2
        return 0
    fi
    local built
    built=$(mktemp -d)
    bpf/build.sh "$built"
    if ! cmp -s "$built/built-with" bpf/built-with; then
        echo "ci.sh: clang $(cat "$built/built-with"), not $(cat bpf/built-with): eBPF PROGRAMS COMPILED, NOT COMPARED" >&2
    else
        local program
        for program in rre flows step; do
            cmp "$built/$program.bpf.o" "bpf/$program.bpf.o" ||
                { echo "ci.sh: bpf/$program.bpf.o is not what its source gives: run bpf/build.sh" >&2 && return 1; }
        done
        echo "eBPF programs: compiled again, the same octets"
    fi
    rm -r "$built"
}

lint() {
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --quiet $(features) -- -D warnings
    # What the README builds first.
    cargo clippy -p tacit --no-default-features --quiet -- -D warnings
    # libFuzzer refuses a target without its folder, at the very end of a test run.
    local target
    for target in fuzz/fuzz_targets/*.rs; do
        target=$(basename "$target" .rs)
        [ -d "fuzz/corpus/$target" ] || { echo "ci.sh: no seed is committed in fuzz/corpus/$target" >&2 && return 1; }
    done
}

# The codec is for small machines, too: without a standard library, and on Cortex-M0 without 64-bit atomics.
embedded() {
    local target
    for target in thumbv7em-none-eabi thumbv6m-none-eabi; do
        if ! rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d &&
            ! rustup target add "$target" >/dev/null 2>&1; then
            echo "ci.sh: no standard library for $target: THE CODEC WAS NOT BUILT FOR IT" >&2
            continue
        fi
        cargo clippy --quiet -p tacit-rohc --target "$target" -- -D warnings
        cargo clippy --quiet -p tacit-rohc --target "$target" --no-default-features -- -D warnings
    done
}

# The unit of `tacit serve` is one that systemd takes; the program itself need not be installed.
units() {
    if ! command -v systemd-analyze >/dev/null; then
        echo "ci.sh: no systemd-analyze: THE SYSTEMD UNIT WAS NOT VERIFIED" >&2
        return 0
    fi
    local made unit
    made=$(mktemp -d)
    for unit in packaging/systemd/*.service; do
        sed 's#/usr/bin/tacit#/bin/true#' "$unit" >"$made/$(basename "$unit")"
        systemd-analyze verify "$made/$(basename "$unit")"
    done
    rm -r "$made"
}

# The test harness counts a test that has no verdict on this machine as passed: live tests say themselves how they came
# out, in a file.
with_live_tally() {
    local failed=0 skipped ran
    TACIT_LIVE_TALLY=$(mktemp)
    export TACIT_LIVE_TALLY
    "$@" || failed=1
    skipped=$(grep -c '^SKIPPED ' "$TACIT_LIVE_TALLY" || true)
    # Those that found out on the way had begun.
    ran=$(sed -n 's/^ran //p' "$TACIT_LIVE_TALLY" | sort -u |
        grep -cvxFf <(sed -n 's/^SKIPPED \([^ ]*\): .*/\1/p' "$TACIT_LIVE_TALLY") || true)
    echo "live tests: $ran had a verdict, $skipped SKIPPED on this machine"
    grep '^SKIPPED ' "$TACIT_LIVE_TALLY" || true
    rm "$TACIT_LIVE_TALLY"
    return $failed
}

test_all() {
    setup
    lint
    embedded
    units
    bpf
    # tacit-peers is compiled by `lint`; its own tests are `peers`': two more QUIC stacks take minutes to make.
    with_live_tally cargo test --workspace --exclude tacit-peers --no-fail-fast --quiet $(features)
    # Release gives the same digests as debug, and is what users run.
    cargo test --release --quiet -p tacit-sim --test determinism
    # The audit, TACK's keys and what runs over them are left to `fuzz`: building them with coverage takes longer than fuzzing the codecs.
    fuzz 12 "${CODECS[@]}" trace http http_answers
    # Figures of transfers say that they are skipped where tacit-peers is not built: single runs of eight programs on a busy machine
    # would be noise. `figures` makes them.
    cargo run --release --quiet -- figure --all --quick
}

# What libFuzzer needs to see which branches an input takes; the stable compiler can do that. No sanitizer: there
# is no unsafe code to watch. Overflow and debug assertions are what may fail, beside the targets' own.
COVERAGE=(
    --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks
)

CODECS=(rohc_decompress rohc_roundtrip hack_decompress hack_roundtrip tack_decode fwp_shim)

# fuzz SECONDS_EACH TARGET...: coverage-guided, from the committed corpora, no target beyond 512 MB.
fuzz() {
    local seconds=$1
    shift
    if ! command -v c++ >/dev/null; then
        echo "ci.sh: no C++ compiler for libFuzzer: NOTHING WAS FUZZED" >&2
        return 0
    fi
    local host dir found target features=()
    host=$(rustc -vV | sed -n 's/^host: //p')
    dir=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
    for target in audit http trace; do
        [[ " $* " != *" $target "* ]] || features+=(--features "$target")
    done
    [[ " $* " != *" http_answers "* ]] || features+=(--features http)
    [[ " $* " != *" tack_hub "* ]] || features+=(--features tack)
    [[ " $* " != *" copy_messages "* && " $* " != *" proxy_requests "* ]] || features+=(--features apps)
    # With --target the flags do not reach build scripts.
    RUSTFLAGS="${COVERAGE[*]}" cargo build --quiet --release --manifest-path fuzz/Cargo.toml "${features[@]}" \
        "${@/#/--bin=}" --target-dir "$dir" --target "$host"
    found=$(mktemp -d)
    for target in "$@"; do
        mkdir -p "$found/$target" "fuzz/artifacts/$target"
        # New inputs go to the first directory; the committed ones are only read.
        if ! "$dir/$host/release/$target" -max_total_time="$seconds" -rss_limit_mb=512 -timeout=10 \
            -artifact_prefix="fuzz/artifacts/$target/" "$found/$target" "fuzz/corpus/$target" \
            >"$found/$target.log" 2>&1; then
            tail -n 40 "$found/$target.log" >&2
            echo "ci.sh: $target failed; the input is in fuzz/artifacts/$target" >&2
            return 1
        fi
        echo "fuzzed $target: $(grep '^Done' "$found/$target.log"), corpus of $(find "fuzz/corpus/$target" -type f | wc -l)," \
            "$(find "$found/$target" -type f | wc -l) new paths"
    done
    rm -r "$found"
}

# What the book's pages link to outside of docs/ is read in the repository; mdBook calls a README's page index.
book() {
    if ! command -v mdbook >/dev/null; then
        echo "ci.sh: no mdbook: installing it takes some minutes" >&2
        cargo install mdbook --locked --quiet
    fi
    mdbook build
    find target/book -name '*.html' -exec sed -i -E \
        's#href="(\.\./)+((crates|packaging|figures)/[^"]*|(README|CONTRIBUTING|CHANGELOG)\.[^"]*)"#href="https://github.com/tacit-net/tacit/blob/main/\2"#g
        s#(blob/main/(README|CONTRIBUTING|CHANGELOG))\.html#\1.md#g
        s#href="([^":]*)README\.html#href="\1index.html#g' {} +
    echo "the book: target/book/index.html"
}

# tool PROGRAM PACKAGE: a tool of cargo's, installed if it is not there.
tool() {
    PATH=$PATH:$PWD/target/tools/bin
    if ! command -v "$1" >/dev/null; then
        echo "ci.sh: no $1: installing it takes some minutes" >&2
        cargo install "$1" --locked --quiet --root target/tools
    fi
}

package() {
    tool cargo-sbom
    packaging/package.sh
}

# The list of vulnerabilities is on the network; licences and sources are here.
deny() {
    tool cargo-deny
    cargo-deny --log-level error check licenses bans sources
    echo "licences, bans and sources: as deny.toml says"
    if cargo-deny --log-level error fetch >/dev/null 2>&1; then
        cargo-deny --log-level error check advisories
        echo "advisories: none"
    else
        echo "ci.sh: the advisory database is out of reach: KNOWN VULNERABILITIES WERE NOT LOOKED FOR" >&2
    fi
}

msrv() {
    local version
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    rustup toolchain install "$version" --profile minimal --no-self-update >/dev/null
    CARGO_TARGET_DIR=target/msrv cargo "+$version" check --workspace --exclude tacit-peers --quiet $(features)
    echo "Rust $version compiles all that users get"
}

# A codec that others link: its interface is the one that is promised.
semver() {
    tool cargo-semver-checks
    cargo-semver-checks semver-checks -p tacit-rohc --baseline-rev "${1:-HEAD~1}"
}

case "${1:-}" in
    setup) setup ;;
    package) package ;;
    deny) deny ;;
    msrv) msrv ;;
    semver) semver "${@:2}" ;;
    book) book ;;
    fmt) cargo fmt --all ;;
    lint) lint ;;
    embedded) embedded ;;
    bpf) bpf ;;
    test) test_all ;;
    live)
        setup
        with_live_tally cargo test -p tacit --test live $(features)
        ;;
    figures)
        cargo build --release --quiet -p tacit-peers
        cargo run --release -- figure --all --report target/figures --summary docs/validation/papers.md
        # It tells how many claims were met, too.
        TACIT_WRITE_DOCS=1 cargo test --quiet -p tacit --test docs the_page
        ;;
    bench)
        cargo run --release -- bench
        cargo bench --workspace
        ;;
    peers)
        cargo test --quiet -p tacit-peers
        cargo build --release --quiet -p tacit -p tacit-peers
        echo "loopback:"
        target/release/tacit-peers compare
        echo "through tacit shell wlan-11n-300:"
        target/release/tacit-peers compare --through wlan-11n-300 --requests 1000
        ;;
    copies)
        setup
        cargo build --release --quiet -p tacit
        bench/copies.sh "${@:2}"
        ;;
    swarm)
        TACIT_SWARM_SEEDS=${2:-5000} TACIT_SWARM_FIRST=${3:-0} \
            cargo test --release -p tacit-sim --test swarm --test swarm_links
        ;;
    fuzz) fuzz "${2:-60}" "${CODECS[@]}" trace http http_answers audit tack_hub copy_messages proxy_requests ;;
    *)
        usage
        [ "${1:-}" = help ] || exit 2
        ;;
esac
