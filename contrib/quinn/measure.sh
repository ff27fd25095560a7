#!/bin/sh
# Measures quinn with the patch beside quinn without it, over a simulated link.
#
# contrib/quinn/measure.sh [DIRECTORY [BYTES]] copies the quinn-proto of Cargo.lock from cargo's registry into DIRECTORY
# (a new one below the system's for temporary files), applies the patch, and prints two tables; BYTES limits the
# transfers (10,000,000). `TESTS=1` runs quinn-proto's own tests of ACK frequency first. Builds go to CARGO_TARGET_DIR.
set -eu
repository=$(cd "$(dirname "$0")/../.." && pwd)
here=$repository/contrib/quinn
version=0.11.19
directory=${1:-$(mktemp -d)}
mkdir -p "$directory"
grep -A1 '^name = "quinn-proto"$' "$repository/Cargo.lock" | grep -q "^version = \"$version\"$" || {
    echo "Cargo.lock has another quinn-proto than $version: the patch needs another look" >&2
    exit 1
}
registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
source=$(find "$registry" -maxdepth 2 -type d -name "quinn-proto-$version" | head -n 1)
[ -n "$source" ] || {
    echo "$registry has no quinn-proto-$version: run cargo fetch first" >&2
    exit 1
}
rm -rf "$directory/quinn-proto" "$directory/arm"
cp -R "$source" "$directory/quinn-proto"
patch --quiet -p1 -d "$directory/quinn-proto" <"$here/quinn-proto-$version.patch"
cp -R "$here/arm" "$directory/arm"
cp -R "$repository/crates/network/quinn/tests/two_ends" "$directory/arm/src/two_ends"
sed "s|REPOSITORY|$repository|" "$here/arm/Cargo.toml" >"$directory/arm/Cargo.toml"
cp "$repository/Cargo.lock" "$directory/arm/Cargo.lock"
if [ "${TESTS:-0}" = 1 ]; then
    # An empty table keeps it out of other workspaces.
    printf '\n[workspace]\n' >>"$directory/quinn-proto/Cargo.toml"
    (cd "$directory/quinn-proto" && cargo test --lib -- ack)
fi
cd "$directory/arm"
cargo run --quiet -- "${2:-10000000}"
