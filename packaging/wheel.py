#!/usr/bin/env python3
"""Tries wheels where nothing else is.

usage: packaging/wheel.py WHEEL...

A wheel for glibc: in a root that has this Python's standard library and the wheel. A wheel for musl: in a root that has musl
and the wheel, its module is loaded by a program whose functions of Python do nothing, since few machines have a Python of
musl; the workflow of releases tries it in Alpine. The program of each wheel makes a first table.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import roots

#: What an import of the package does, and a comparison by it.
COMPARE = "import tacit; print(tacit.compare(schemes=['stock', 'hack-batch'], clients=1, quick=True))"
#: Parts of the standard library that the package does not import, and that are large.
LARGE = shutil.ignore_patterns("test", "tests", "idlelib", "lib2to3", "tkinter", "ensurepip", "site-packages", "config-*", "__pycache__")
#: Libraries that a module may take from the system: those of manylinux (PEP 600) that it needs, and musl's one.
SYSTEM = {"glibc": {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}, "musl": {"libc.so"}}
#: Loads a library with all symbols resolved. A program that exports Python's names stands in for Python.
LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    void *module = count == 2 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (module == NULL || dlsym(module, "PyInit__native") == NULL) {
        puts(dlerror());
        return 1;
    }
    puts("every symbol is there");
    return 0;
}
"""


def unpack(wheel: Path, to: Path) -> Path:
    """Puts a wheel's packages into `to`, and its program into `to`/bin, which it returns."""
    with zipfile.ZipFile(wheel) as files:
        files.extractall(to)
    (scripts,) = to.glob("*.data/scripts")
    program = to / "bin" / "tacit"
    program.parent.mkdir()
    shutil.move(scripts / "tacit", program)
    program.chmod(0o755)
    return program


def module_of(place: Path, system: str) -> Path:
    """The package's module, which needs no library but those of its system."""
    (module,) = (place / "tacit").glob("_native*.so")
    said = subprocess.run(["readelf", "-d", str(module)], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
    if not needed <= SYSTEM[system]:
        raise SystemExit(f"{module.name} needs {sorted(needed - SYSTEM[system])}, which a system with {system} may lack")
    return module


def try_program(root: Path, program: Path) -> None:
    # A program that is not static brings its libraries.
    for library in roots.libraries(program):
        roots.copy(root, library)
    (root / "tmp").mkdir(exist_ok=True)
    table = roots.run(root, ["/" + str(program.relative_to(root)), "compare", "--quick", "--no-report", "--clients", "1"], {"HOME": "/tmp"})
    print(table.splitlines()[0])


def try_module(root: Path, place: Path) -> None:
    """Imports the package by this machine's Python, copied into the root."""
    # A virtual environment's interpreter is a link to it.
    python = Path(sys.executable).resolve()
    roots.copy(root, python)
    stdlib = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(stdlib, root / stdlib.relative_to("/"), ignore=LARGE, symlinks=True)
    for module in [module_of(place, "glibc"), *(stdlib / "lib-dynload").glob("*.so")]:
        for library in roots.libraries(module):
            roots.copy(root, library)
    environment = {"HOME": "/tmp", "PYTHONPATH": "/" + str(place.relative_to(root)), "PYTHONHOME": str(Path(sys.base_prefix))}
    print(roots.run(root, [str(python), "-c", COMPARE], environment).splitlines()[0])


def try_loading(root: Path, place: Path) -> None:
    """Loads the module under musl, with stand-ins for Python."""
    module = module_of(place, "musl")
    symbols = subprocess.run(["nm", "-D", "--undefined-only", "--format=just-symbols", str(module)], capture_output=True, text=True, check=True)
    names = sorted({name for name in symbols.stdout.split() if re.match(r"_?Py", name)})
    with tempfile.TemporaryDirectory() as made:
        source = Path(made) / "loader.c"
        # Functions and data alike: nothing is called.
        source.write_text(LOADER + "".join(f"char {name}[64];\n" for name in names), encoding="utf-8")
        subprocess.run(["musl-gcc", "-rdynamic", "-w", "-o", str(root / "loader"), str(source)], check=True)
    loader = re.findall(r"interpreter: (/\S+?)\]", subprocess.run(["readelf", "-l", str(root / "loader")], capture_output=True, text=True, check=True).stdout)[0]
    there = root / loader[1:]
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(Path(loader).resolve(), there)
    said = roots.run(root, ["/loader", "/" + str(module.relative_to(root))], {}).strip()
    print(f"loads under musl with {len(names)} stand-ins for Python: {said}")


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for wheel in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            place = root / "wheel"
            program = unpack(wheel, place)
            print(f"{wheel.name}, in an empty root:")
            if "musllinux" in wheel.name:
                try_loading(root, place)
            else:
                try_module(root, place)
            try_program(root, program)


if __name__ == "__main__":
    main()
