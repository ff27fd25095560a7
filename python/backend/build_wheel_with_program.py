"""Builds a wheel with the Python module and the program `tacit`.

maturin makes either a module or a program of a wheel. This backend compiles the program first, puts it where maturin takes
the wheel's data from, and leaves the rest to maturin.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import (  # noqa: F401: the frontend asks for them
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "python" / "tacit.data" / "scripts"
#: A program that was compiled before, such as a static one; the build takes it instead of compiling one.
PROGRAM = "TACIT_PROGRAM"

# maturin asks for it before anything is built.
SCRIPTS.mkdir(parents=True, exist_ok=True)


def _bring_program() -> None:
    program = os.environ.get(PROGRAM)
    if program is None:
        if not (ROOT / "crates" / "cli").is_dir():
            raise SystemExit("tacit: no sources of the program here: build wheels from a checkout of the repository")
        subprocess.run(["cargo", "build", "--release", "--locked", "--package", "tacit"], cwd=ROOT, check=True)
        target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        program = str(target / "release" / "tacit")
    brought = SCRIPTS / "tacit"
    shutil.copy2(program, brought)
    if shutil.which("strip"):
        subprocess.run(["strip", str(brought)], check=True)


def build_wheel(
    wheel_directory: str, config_settings: "dict[str, Any] | None" = None, metadata_directory: "str | None" = None
) -> str:
    _bring_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: "dict[str, Any] | None" = None, metadata_directory: "str | None" = None
) -> str:
    _bring_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: "dict[str, Any] | None" = None) -> str:
    raise SystemExit("tacit: there is no source distribution; build wheels from a checkout of the repository")
