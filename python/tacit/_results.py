"""The results of calls."""

from __future__ import annotations

import html
import json
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from . import _native
from ._frames import Frame, Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes


class _Answer(Protocol):
    """Where a result has its contents from: the native module, or the files of a sweep."""

    @property
    def json(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def html(self) -> str | None: ...
    def table(self, name: str) -> Table: ...


class Result:
    """The result of any call: numbers in :attr:`data`, rows in tables, and ``str()`` for reading.

    :attr:`data` is the ``--json`` of the command line, ``str()`` its text. :class:`Run`, :class:`Comparison`, :class:`Figure` and
    :class:`Sweep` add methods.
    """

    #: Name of the main table; empty for a result without tables.
    _main = ""
    _answer: _Answer

    def __init__(self, answer: _Answer, main: str | None = None) -> None:
        self._answer = answer
        if main is not None:
            self._main = main

    @property
    def json(self) -> str:
        """The result as JSON text."""
        return self._answer.json

    @cached_property
    def data(self) -> Any:
        """The result as dictionaries, lists and numbers."""
        return json.loads(self._answer.json)

    def table(self, name: str) -> Frame:
        """The table called ``name``. Raises KeyError if there is none."""
        return Frame(self._answer.table(name))

    @property
    def frame(self) -> Frame:
        """The main table."""
        if not self._main:
            raise AttributeError("this result has no table; `data` has its numbers")
        return self.table(self._main)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """The main table for pyarrow."""
        return self.frame.to_arrow()

    def to_polars(self) -> polars.DataFrame:
        """The main table for Polars."""
        return self.frame.to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """The main table for pandas."""
        return self.frame.to_pandas()

    def __str__(self) -> str:
        return self._answer.text

    def __repr__(self) -> str:
        return self._answer.text

    def _repr_html_(self) -> str:
        return self._answer.html or f"<pre>{html.escape(self._answer.text)}</pre>"


class Run(Result):
    """One run. Its main table has one row: scenario, scheme, seed, and every metric."""

    _main = "runs"

    @property
    def goodput_bps(self) -> float:
        """Payload delivered in order per second of the measured window, all flows, in bits."""
        return float(self.data["goodput_bps"])

    @property
    def digest(self) -> str:
        """Hash of the event trace: equal for equal runs."""
        return str(self.data["digest"])

    @property
    def metrics(self) -> dict[str, float | None]:
        """Every metric by name; None where it has no meaning. :func:`tacit.metrics` describes them."""
        return dict(self.data["metrics"])

    @property
    def warnings(self) -> list[str]:
        """Requests that the results do not contain, and reasons why bytes do not count as goodput."""
        return list(self.data["warnings"])

    @property
    def command(self) -> str:
        """The command that repeats the run."""
        return str(self.data["provenance"]["command"])

    @property
    def flows(self) -> Frame:
        """A row for each flow."""
        return self.table("flows")

    @property
    def stations(self) -> Frame:
        """A row for each station of each channel, the access point first."""
        return self.table("stations")

    @property
    def hops(self) -> Frame:
        """A row for each direction of each link."""
        return self.table("hops")

    @property
    def applications(self) -> Frame:
        """A row for each application that feeds flows."""
        return self.table("applications")

    @property
    def series(self) -> Frame:
        """Samples over time, of each flow: bytes delivered, congestion window, smoothed round-trip time."""
        return self.table("series")

    def plot(self, column: str = "delivered_bytes", ax: Axes | None = None) -> Axes:
        """Draws a column of :attr:`series` over time. Needs matplotlib."""
        from . import plot

        return plot.series(self, column, ax=ax)


class Comparison(Result):
    """Schemes side by side. Its main table has a row for each number of clients and scheme."""

    _main = "rows"

    def __init__(self, answer: _native.Answer, directory: Path | None = None) -> None:
        super().__init__(answer)
        #: Directory of the results and the report; None without one.
        self.directory = directory

    @property
    def rows(self) -> Frame:
        """A row for each number of clients and scheme, means over the seeds."""
        return self.frame

    @property
    def warnings(self) -> list[str]:
        """Requests that the results do not contain, and reasons why bytes do not count as goodput."""
        return list(self.data["warnings"])

    def plot(self, clients: int | None = None, ax: Axes | None = None) -> Axes:
        """Draws goodput with its 95 % intervals, the largest on top. Needs matplotlib."""
        from . import plot

        return plot.goodput(self, clients, ax=ax)

    def plot_airtime(self, clients: int | None = None, ax: Axes | None = None) -> Axes:
        """Draws the shares of the channel's time. Needs matplotlib."""
        from . import plot

        return plot.airtime(self, clients, ax=ax)

    def plot_completion_times(self, clients: int | None = None, ax: Axes | None = None) -> Axes:
        """Draws flow completion times as cumulative shares; kept results have them. Needs matplotlib."""
        from . import plot

        return plot.completion_times(self, clients, ax=ax)


class Figure(Result):
    """A figure or table of a paper, reproduced. Its main table has a row for each claim."""

    _main = "claims"

    def __init__(self, answer: _native.Answer, svg: str | None) -> None:
        super().__init__(answer)
        #: The picture as SVG; None without one.
        self.svg = svg

    @property
    def claims(self) -> Frame:
        """A row for each claim: the paper's value, the measured one, and the verdict."""
        return self.frame

    @property
    def passed(self) -> bool:
        """True if no claim fails. A deviation that the figure's file states is not a failure."""
        return all(claim["verdict"] != "fail" for claim in self.data["claims"])

    @property
    def skipped(self) -> str | None:
        """Reason why it was not made; None if it was."""
        reason = self.data["skipped"]
        return None if reason is None else str(reason)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the picture as SVG."""
        if self.svg is None:
            raise ValueError(f"{self.data['id']} has no picture")
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        picture = "" if self.svg is None else self.svg[self.svg.index("<svg") :]
        return f"{picture}<pre>{html.escape(str(self))}</pre>"
