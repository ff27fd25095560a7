"""Sweeps: many runs over a grid of settings, into Parquet files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from . import _native
from ._calls import AnyPath, _counts
from ._progress import Progress, Told
from ._scenario import ScenarioLike, Settings, Value, parts, written

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from distributed import Client

Grid = Mapping[str, Sequence[Value]]


class Sweep:
    """A sweep that is whole: a row for each run, in Parquet files below :attr:`runs_directory`."""

    def __init__(self, directory: Path, runs: int, reused: int, files: int) -> None:
        #: Where it is kept.
        self.directory = directory
        #: How many runs it has.
        self.runs = runs
        #: How many of them were there already.
        self.reused = reused
        #: How many files.
        self.files = files

    @property
    def runs_directory(self) -> Path:
        """The Parquet files are below it, in a folder for each place and scheme."""
        return self.directory / "runs"

    def _paths(self) -> list[Path]:
        return sorted(self.runs_directory.glob("*/*.parquet"))

    def to_polars(self) -> polars.DataFrame:
        """All runs as a Polars frame. ``polars.scan_parquet(sweep.runs_directory / "*/*.parquet")`` reads lazily."""
        import polars

        return polars.read_parquet(self._paths())

    def to_arrow(self) -> pyarrow.Table:
        """All runs as a pyarrow table. Needs pyarrow."""
        import pyarrow.dataset

        return pyarrow.dataset.dataset(self._paths(), format="parquet").to_table()

    def to_pandas(self) -> pandas.DataFrame:
        """All runs as a pandas frame. Needs pyarrow too."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return f"<tacit.Sweep of {self.runs} runs in {self.files} files, {self.reused} there already: {self.directory}>"


def sweep(
    scenario: ScenarioLike = _native.DEFAULT_SCENARIO,
    grid: Optional[Grid] = None,
    settings: Optional[Settings] = None,
    *,
    schemes: Sequence[str] = (),
    clients: int | Sequence[int] = (),
    seeds: int | None = None,
    directory: AnyPath = "tacit-sweep",
    client: Optional[Client] = None,
    cache: bool = True,
    progress: Told = None,
) -> Sweep:
    """Makes every run of a grid: values of settings, schemes, numbers of clients, seeds.

    ``grid`` maps settings to values: ``{"wifi.distance": ["5 m", "20 m"]}``. No ``schemes`` are the scenario as written.

    Runs are made in batches of at most 64 that differ in clients and seed alone, each a Parquet file that appears when it is whole.
    A sweep that was stopped, even killed, goes on with the files that are missing; a ``directory`` holds one sweep.

    With a ``client`` of Dask (``dask.distributed.Client``) its workers make the batches, and send them back as files: they need
    this very build of tacit, and no files of yours. Otherwise all cores of this machine do.
    """
    source, set_ = parts(scenario, settings)
    # The last key changes first, as on the command line.
    lists = [[f"{key}={written(value)}" for value in values] for key, values in (grid or {}).items()]
    native = _native.Sweep(
        source,
        set_,
        list(itertools.product(*lists)),
        schemes=list(schemes),
        clients=_counts(clients),
        seeds=seeds,
        directory=fspath(directory),
    )
    return complete(native, Path(directory), client, cache, progress)


def complete(
    native: _native.Sweep, directory: Path, client: Optional[Client], cache: bool, progress: Told
) -> Sweep:
    """Makes what is missing of a sweep."""
    with Progress(progress) as told:
        if client is None:
            swept: Any = json.loads(native.complete(cache, told).json)
            return Sweep(directory, swept["runs"], swept["reused"], swept["files"])
        from .dask import distribute

        _, reused = native.missing()
        distribute(native, client, told)
    return Sweep(directory, native.runs, reused, native.files)
