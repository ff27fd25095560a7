"""The notebooks run from the first cell to the last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient", reason="SKIPPED: no nbclient, which runs notebooks")
nbformat = pytest.importorskip("nbformat", reason="SKIPPED: no nbformat, which reads notebooks")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    for needed in ("gymnasium", "ipykernel", "matplotlib", "pyarrow"):
        pytest.importorskip(needed, reason=f"SKIPPED: no {needed}, which the notebook needs")
    notebook: Any = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without outputs"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS
