#!/usr/bin/env bash
# Compiles the eBPF programs into the directory given, or over the objects that are committed. Takes clang, llvm, libbpf-dev, bpftool
# and a C compiler.
set -euo pipefail
cd "$(dirname "$0")"
out=$(realpath "${1:-.}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Other versions make other code of it.
{
    clang --version | head -n 1 | grep -o 'version [0-9.]*' | sed 's/^/clang /'
    bpftool version | head -n 1
} >"$out/built-with"
compile() {
    # Little-endian by name, and without the directory it was compiled in: the same octets on every machine.
    clang -target bpfel -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -fdebug-compilation-dir=. \
        -fdebug-prefix-map="$PWD"=. -c "$1.bpf.c" -o "$2/$1.bpf.o"
    # Without symbols for debuggers; BTF stays.
    llvm-strip -g "$2/$1.bpf.o"
}
for program in rre flows step; do
    compile "$program" "$out"
done
# The thinner loads without any library: bpftool makes a program of its loading, which light.c takes out of the C header.
compile thin "$work"
bpftool gen skeleton -L "$work/thin.bpf.o" name thin >"$work/thin.h"
cc -w -DSKELETON="\"$work/thin.h\"" light.c -o "$work/light"
"$work/light" "$out"
