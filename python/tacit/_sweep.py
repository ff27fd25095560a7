"""Sweeps: many runs over a grid of settings, into Parquet files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from . import _native
from ._errors import checked_seeds, refusal
from ._frames import Cell
from ._progress import Progress, Told
from ._results import Result
from ._scenario import AnyPath, ScenarioLike, Settings, Value, counts, parts, written
from ._workers import distribute
from .experiments import SchemeLike, schemes_of

if TYPE_CHECKING:
    import polars
    import pyarrow
    from distributed import Client
    from matplotlib.axes import Axes

Grid = Mapping[str, Sequence[Value]]


class _ParquetTable:
    """Parquet files as a table of the native module. Needs pyarrow."""

    def __init__(self, paths: list[Path]) -> None:
        import pyarrow.dataset

        self._table: pyarrow.Table = pyarrow.dataset.dataset(paths, format="parquet").to_table()

    @property
    def columns(self) -> list[str]:
        return list(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def column(self, name: str) -> list[Cell]:
        values: list[Cell] = self._table.column(name).to_pylist()
        return values

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class _SweepAnswer:
    """The counts of a sweep, and its table."""

    html = None

    def __init__(self, directory: Path, counts: dict[str, int]) -> None:
        self._directory = directory
        self.json = json.dumps({"directory": str(directory), **counts})
        self.text = "{runs} runs in {files} files, {reused} there already".format(**counts) + f": {directory}"

    def paths(self) -> list[Path]:
        return sorted((self._directory / "runs").glob("*/*.parquet"))

    def table(self, name: str) -> _ParquetTable:
        if name != "runs":
            raise KeyError(name)
        return _ParquetTable(self.paths())


class Sweep(Result):
    """A completed sweep. Its main table has a row for each run, from Parquet files below :attr:`runs_directory`."""

    _main = "runs"
    _answer: _SweepAnswer

    def __init__(self, directory: Path, runs: int, reused: int, files: int) -> None:
        super().__init__(_SweepAnswer(directory, {"runs": runs, "reused": reused, "files": files}))
        #: The sweep's directory.
        self.directory = directory
        #: Number of runs.
        self.runs = runs
        #: Number of runs that an earlier call made.
        self.reused = reused
        #: Number of Parquet files.
        self.files = files

    @property
    def runs_directory(self) -> Path:
        """The Parquet files are below it, in a folder for each place and scheme."""
        return self.directory / "runs"

    @staticmethod
    def is_kept_in(directory: Path) -> bool:
        """True if ``directory`` holds a sweep."""
        return (directory / "sweep.json").is_file()

    def _paths(self) -> list[Path]:
        return self._answer.paths()

    def to_polars(self) -> polars.DataFrame:
        """All runs for Polars, without pyarrow. ``polars.scan_parquet(sweep.runs_directory / "*/*.parquet")`` reads lazily."""
        import polars

        return polars.read_parquet(self._paths())

    def plot(self, x: str, y: str = "goodput_bps", by: str | list[str] | None = None, ax: Axes | None = None) -> Axes:
        """Draws means of ``y`` over ``x``, as :func:`tacit.plot.curves` does. Needs matplotlib and pyarrow."""
        from . import plot

        return plot.curves(self, x, y, by, ax=ax)


def sweep(
    scenario: ScenarioLike = _native.DEFAULT_SCENARIO,
    grid: Optional[Grid] = None,
    settings: Optional[Settings] = None,
    *,
    schemes: Sequence[SchemeLike] = (),
    clients: int | Sequence[int] = (),
    seeds: int | None = None,
    directory: AnyPath = "tacit-sweep",
    client: Optional[Client] = None,
    cache: bool = True,
    progress: Told = None,
) -> Sweep:
    """Makes every run of a grid: values of settings, schemes, numbers of clients, seeds.

    ``grid`` maps settings to values: ``{"wifi.distance": ["5 m", "20 m"]}``. No ``schemes`` are the scenario as written; classes of
    your own are schemes, too, see :class:`tacit.OwnScheme`. A sweep with them begins anew: it needs a ``directory`` without runs, and no
    ``client``, whose workers do not have them.

    Runs are made in batches of at most 64 that differ in clients and seed alone. Each batch is a record and a Parquet file, which
    appear when they are complete. A stopped or killed sweep resumes with the missing files. A ``directory`` holds one sweep.

    With a Dask ``client`` (``dask.distributed.Client``), its workers make the batches and return their records. They need the same
    build of tacit and none of your files. Without one, all cores of this machine make them.
    """
    source, set_ = parts(scenario, settings)
    # The last key changes first, as on the command line.
    lists = [[f"{key}={written(value)}" for value in values] for key, values in (grid or {}).items()]
    names, own = schemes_of(schemes)
    if own and client is not None:
        raise refusal("client", f"workers of Dask do not have {own[0].name}", "schemes by name")
    if own and any((Path(directory) / "runs").glob("*/*")):
        raise refusal("directory", f"{fspath(directory)} has runs already", f"an empty one: nothing tells runs of two {own[0].name} apart")
    native = _native.Sweep(
        source,
        set_,
        list(itertools.product(*lists)),
        schemes=names,
        own=own,
        clients=counts(clients),
        seeds=checked_seeds(seeds),
        directory=fspath(directory),
    )
    return complete(native, Path(directory), client, cache, progress)


def load_sweep(directory: Path) -> Sweep:
    """Loads the runs of a sweep that are in ``directory``."""
    answer = _SweepAnswer(directory, {"runs": 0, "reused": 0, "files": 0})
    runs = len(answer.table("runs"))
    return Sweep(directory, runs, runs, len(answer.paths()))


def complete(
    native: _native.Sweep, directory: Path, client: Optional[Client], cache: bool, progress: Told
) -> Sweep:
    """Makes the missing runs of a sweep."""
    with Progress(progress) as told:
        if client is None:
            swept: Any = json.loads(native.complete(cache, told).json)
            return Sweep(directory, swept["runs"], swept["reused"], swept["files"])
        _, reused = native.missing()
        distribute(native, client, told)
    return Sweep(directory, native.runs, reused, native.files)
