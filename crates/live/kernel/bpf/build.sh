#!/usr/bin/env bash
# Compiles the eBPF programs into the directory given, or over the objects that are committed. Takes clang, llvm and libbpf-dev.
set -euo pipefail
cd "$(dirname "$0")"
out=$(realpath "${1:-.}")
# Other versions make other code of it.
clang --version | head -n 1 | grep -o 'version [0-9.]*' | sed 's/^/clang /' >"$out/built-with"
for program in rre flows step thin; do
    # Little-endian by name, and without the directory it was compiled in: the same octets on every machine.
    clang -target bpfel -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -fdebug-compilation-dir=. \
        -fdebug-prefix-map="$PWD"=. -c "$program.bpf.c" -o "$out/$program.bpf.o"
    # Without symbols for debuggers; BTF stays.
    llvm-strip -g "$out/$program.bpf.o"
done
