"""Builds a wheel with the Python module and the program `tacit`.

maturin makes either a module or a program of a wheel. This backend compiles the program first, puts it where maturin takes
the wheel's data from, and leaves the rest to maturin. Both are targets of one package, with the same features and profile,
so cargo compiles what they share once.
"""

import os
import shlex
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


def _value(arguments: "list[str]", name: str, default: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments else default


def _compile(arguments: "list[str]") -> Path:
    """The program, with the profile and for the target of these arguments."""
    if not (ROOT / "crates" / "surface" / "cli").is_dir():
        raise SystemExit("tacit: no sources of the program here: build wheels from a checkout of the repository")
    profile, triple = _value(arguments, "--profile", "release"), _value(arguments, "--target", "")
    command = ["cargo", "build", "--locked", "--package", "tacit-python", "--features", "program", "--bin", "tacit-of-wheel"]
    command += ["--profile", profile, *(["--target", triple] if triple else [])]
    # As maturin has it: nothing is linked with Python, and the program uses none.
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYO3_BUILD_EXTENSION_MODULE": "1"}, check=True)
    made = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / triple
    return made / ("debug" if profile == "dev" else profile) / "tacit-of-wheel"


def _bring_program(config_settings: "dict[str, Any] | None") -> "dict[str, Any]":
    """Puts the program among the wheel's data; the settings with which maturin makes the rest."""
    arguments = list(maturin.get_maturin_pep517_args(config_settings))
    program = os.environ.get(PROGRAM)
    if program is None:
        program = str(_compile(arguments))
        arguments += ["--features", "program"]
    brought = SCRIPTS / "tacit"
    shutil.copy2(program, brought)
    if shutil.which("strip"):
        subprocess.run(["strip", str(brought)], check=True)
    return {"build-args": shlex.join(arguments)}


def build_wheel(
    wheel_directory: str, config_settings: "dict[str, Any] | None" = None, metadata_directory: "str | None" = None
) -> str:
    return str(maturin.build_wheel(wheel_directory, _bring_program(config_settings), metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: "dict[str, Any] | None" = None, metadata_directory: "str | None" = None
) -> str:
    return str(maturin.build_editable(wheel_directory, _bring_program(config_settings), metadata_directory))


def build_sdist(sdist_directory: str, config_settings: "dict[str, Any] | None" = None) -> str:
    raise SystemExit("tacit: there is no source distribution; build wheels from a checkout of the repository")
