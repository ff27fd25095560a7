#!/usr/bin/env bash
# Sets up `tacit` in a job of CI. action.yml runs it on GitHub; other systems may call it from a checkout of the repository.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)

usage() {
    cat <<'USAGE'
usage: contrib/ci/setup.sh COMMAND

  install DIRECTORY [VERSION]  put the program into DIRECTORY: from the release VERSION, such as v0.3.0, or compiled from
                               this checkout. One that is there already stays.
  key [VERSION]                print what a cache of that directory depends on
  hops                         allow live hops to users without root, on a machine that is thrown away: /dev/net/tun,
                               iproute2 and user namespaces. Uses sudo where it is not root.
USAGE
    exit 2
}

# Where releases are, such as a mirror.
releases=${TACIT_RELEASES:-https://github.com/tacit-net/tacit/releases/download}

target() {
    echo "$(uname -m)-unknown-linux-musl"
}

key() {
    if [ -n "$1" ]; then
        echo "$(target)-$1"
    else
        echo "$(target)-$(cd "$source" && find Cargo.lock Cargo.toml rust-toolchain.toml bpf crates figures scenarios -type f -print0 | sort -z |
            xargs -0 sha256sum | sha256sum | cut -c 1-16)"
    fi
}

install_program() {
    local directory=$1 version=$2
    if [ -x "$directory/tacit" ]; then
        echo "setup.sh: $("$directory/tacit" --version) is in $directory"
        return
    fi
    mkdir -p "$directory"
    if [ -n "$version" ]; then
        from_release "$directory" "$version"
    else
        # The half with the simulator has the live hops, and compiles in half the time.
        cargo build --release --locked --manifest-path "$source/Cargo.toml" -p tacit --no-default-features --features simulator
        install -m 755 "${CARGO_TARGET_DIR:-$source/target}/release/tacit" "$directory/tacit"
    fi
    "$directory/tacit" --version
}

from_release() {
    local directory=$1 version=$2 archive made
    archive=tacit-${version#v}-$(target).tar.gz
    made=$(mktemp -d)
    curl --fail --silent --show-error --location --retry 3 --output "$made/#1" "$releases/$version/{$archive,SHA256SUMS}"
    if ! (cd "$made" && grep -F "  $archive" SHA256SUMS | sha256sum --check --quiet --strict); then
        echo "setup.sh: $archive is not the file that SHA256SUMS of $version names" >&2
        rm -r "$made"
        return 1
    fi
    tar -C "$made" -xzf "$made/$archive" bin/tacit
    install -m 755 "$made/bin/tacit" "$directory/tacit"
    rm -r "$made"
}

hops() {
    local root=()
    [ "$(id -u)" = 0 ] || root=(sudo)
    if ! PATH=$PATH:/usr/sbin:/sbin command -v ip >/dev/null; then
        "${root[@]}" apt-get update -qq
        "${root[@]}" apt-get install -y -qq --no-install-recommends iproute2
    fi
    [ -e /dev/net/tun ] || "${root[@]}" modprobe tun || true
    [ -w /dev/net/tun ] || "${root[@]}" chmod 666 /dev/net/tun || true
    # Ubuntu from 23.10 on.
    local limit=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
    if [ -e "$limit" ] && [ "$(cat "$limit")" != 0 ]; then
        "${root[@]}" sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
    fi
}

case "${1:-}" in
    install)
        [ -n "${2:-}" ] || usage
        install_program "$2" "${3:-}"
        ;;
    key) key "${2:-}" ;;
    hops) hops ;;
    *) usage ;;
esac
