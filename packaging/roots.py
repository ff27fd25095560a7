"""Empty roots: a directory that a program has for all it needs, so that what is missing on others' machines is missing here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path


def run(root: Path, command: list[str], environment: dict[str, str]) -> str:
    """What a command prints that sees nothing but `root`, and ends well there."""
    enter = ["chroot", str(root)] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot", str(root)]
    # chroot itself is found on this machine's PATH.
    path = environment.get("PATH", "/usr/bin") + ":" + os.environ["PATH"]
    said = subprocess.run([*enter, *command], env={**environment, "PATH": path}, capture_output=True, text=True, check=False)
    if said.returncode:
        raise SystemExit(f"in an empty root: {' '.join(command)} ends with {said.returncode}: {said.stdout}{said.stderr}")
    return said.stdout


def libraries(program: Path) -> list[Path]:
    """The shared libraries, and the loader, that a program or library of this machine needs."""
    said = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [Path(path) for path in re.findall(r"(?:=> |^\t)(/\S+) \(0x", said, re.MULTILINE)]


def copy(root: Path, file: Path) -> None:
    """A file of this machine, with the libraries that it needs, at its own place in `root`."""
    for needed in [file, *libraries(file)]:
        there = root / needed.relative_to("/")
        if not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(needed, there)
