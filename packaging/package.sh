#!/usr/bin/env bash
# usage: packaging/package.sh PROGRAM TARGET
# Makes an archive and a Debian package of a static program in target/package, and tries them in an empty root.
set -euo pipefail
cd "$(dirname "$0")/.."

program=$1
target=$2
out=$PWD/target/package
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

if ldd "$program" 2>&1 | grep -qv 'statically linked\|not a dynamic executable'; then
    echo "package.sh: $program is not static" >&2
    exit 1
fi

rm -rf "$out"
tree=$out/tree
install -D -m 755 "$program" "$tree/usr/bin/tacit"
mkdir -p "$tree/usr/share/man/man1"
"$program" man --dir "$tree/usr/share/man/man1" >/dev/null
gzip -9n "$tree"/usr/share/man/man1/*
for shell in bash:bash-completion/completions/tacit zsh:zsh/vendor-completions/_tacit fish:fish/vendor_completions.d/tacit.fish; do
    file=$tree/usr/share/${shell#*:}
    mkdir -p "$(dirname "$file")"
    "$program" completions "${shell%%:*}" >"$file"
done
for unit in tacit-serve.service tacit-rre@.service; do
    install -D -m 644 "packaging/systemd/$unit" "$tree/usr/lib/systemd/system/$unit"
done
doc=$tree/usr/share/doc/tacit
install -D -m 644 packaging/systemd/serve.toml "$doc/examples/serve.toml"
install -D -m 644 packaging/debian/copyright "$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
# Its components, by name, version and licence.
packaging/sbom.py "$target" >"$out/tacit-$version-$target.cdx.json"
gzip -9nc "$out/tacit-$version-$target.cdx.json" >"$doc/sbom.cdx.json.gz"

tar -C "$tree/usr" --owner=0 --group=0 --sort=name --mtime=@0 -czf "$out/tacit-$version-$target.tar.gz" bin share

architecture=$(dpkg --print-architecture 2>/dev/null || echo amd64)
mkdir "$tree/DEBIAN"
sed "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@KIB@/$(du -sk "$tree/usr" | cut -f 1)/" \
    packaging/debian/control.in >"$tree/DEBIAN/control"
deb=$out/tacit_${version}_$architecture.deb
dpkg-deb --build --root-owner-group -Zxz "$tree" "$deb" >/dev/null
if command -v lintian >/dev/null; then
    lintian --fail-on error "$deb"
fi
(cd "$out" && sha256sum -- *.deb *.tar.gz >SHA256SUMS)

# As on a machine that has nothing: the package's files alone, and no compiler.
root=$out/root
dpkg-deb --extract "$deb" "$root"
mkdir "$root/tmp"
enter=(chroot "$root")
[ "$(id -u)" = 0 ] || enter=(unshare --map-root-user chroot "$root")
began=$(date +%s%N)
HOME=/tmp "${enter[@]}" /usr/bin/tacit compare --quick --no-report >"$out/first-table.txt"
took=$((($(date +%s%N) - began) / 1000000))
grep -q 'hack-batch' "$out/first-table.txt"
"${enter[@]}" /usr/bin/tacit --version
echo "first table in an empty root: $took ms"
# The archive, likewise.
rm -r "${root:?}/usr"
tar -C "$root" -xzf "$out/tacit-$version-$target.tar.gz"
"${enter[@]}" /bin/tacit --version
rm -r "$root" "$tree"
ls -l "$out"
