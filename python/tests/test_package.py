"""The package as it is installed: its types, its program, its examples."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tacit

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(f"tacit.{module.name}" for module in pkgutil.iter_modules(tacit.__path__))


def test_stubs_say_what_the_module_has(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # Elsewhere, or stubtest takes the sources for the package that is installed.
    found = subprocess.run([sys.executable, "-m", "mypy.stubtest", "tacit._native"], capture_output=True, cwd=tmp_path, check=False)
    assert found.returncode == 0, found.stdout.decode() + found.stderr.decode()


def test_everything_has_its_type() -> None:
    pytest.importorskip("mypy")
    found = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"], capture_output=True, cwd=ROOT, check=False)
    assert found.returncode == 0, found.stdout.decode() + found.stderr.decode()


@pytest.mark.parametrize("name", ["tacit", *MODULES])
def test_examples_in_docstrings_are_true(name: str) -> None:
    if name == "tacit.plot" or name == "tacit.dask":
        pytest.importorskip("matplotlib" if name == "tacit.plot" else "distributed")
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0


def test_what_is_public_is_described() -> None:
    for name in tacit.__all__:
        thing = getattr(tacit, name)
        assert isinstance(thing, str) or thing.__doc__, name


@pytest.mark.parametrize("page", ["docs/use/python.md", "docs/tutorials/python.md", "docs/howto/scheduler.md", "python/README.md", "README.md"])
def test_examples_in_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other, as a reader types them; where an example prints something, its page shows it."""
    text = (ROOT / page).read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if page != "README.md":
        assert examples
    if any("plot" in example for example in examples):
        pytest.importorskip("matplotlib").use("Agg")
    for needed in ("polars", "pandas", "pyarrow", "distributed", "gymnasium"):
        if any(needed in example for example in examples):
            pytest.importorskip(needed)
    # Processes of an example's cluster import it again: they are not to run it again.
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for number, example in enumerate(examples, 1):
        exec(compile(example, f"{page}, example {number}", "exec"), names)


def test_the_program_comes_with_it() -> None:
    program = Path(sys.executable).with_name("tacit")
    if not program.exists():
        pytest.skip(f"{program} is not there: the package was not installed from a wheel")
    said = subprocess.run([program, "--version"], capture_output=True, check=True).stdout.decode()
    assert said == f"tacit {tacit.VERSION}\n" and tacit.VERSION.startswith(tacit.__version__)
