"""What calls give back."""

from __future__ import annotations

import html
import json
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._frames import Frame

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes


class Result:
    """A result: ``str()`` is what the command line prints, :attr:`data` what it prints with ``--json``."""

    #: The table that stands for the whole.
    _main = ""

    def __init__(self, answer: _native.Answer) -> None:
        self._answer = answer

    @property
    def json(self) -> str:
        """As JSON."""
        return self._answer.json

    @cached_property
    def data(self) -> Any:
        """What its JSON says."""
        return json.loads(self._answer.json)

    def _frame(self, name: str) -> Frame:
        return Frame(self._answer.table(name))

    @property
    def frame(self) -> Frame:
        """Its main table."""
        return self._frame(self._main)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """Its main table for pyarrow."""
        return self.frame.to_arrow()

    def to_polars(self) -> polars.DataFrame:
        """Its main table for Polars."""
        return self.frame.to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """Its main table for pandas."""
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
        """Every metric by name; None where it has no meaning. :func:`tacit.metrics` says what they are."""
        return dict(self.data["metrics"])

    @property
    def warnings(self) -> list[str]:
        """What was asked for and is not in the results, and what keeps octets out of the goodput."""
        return list(self.data["warnings"])

    @property
    def command(self) -> str:
        """The command that makes the run again."""
        return str(self.data["provenance"]["command"])

    @property
    def flows(self) -> Frame:
        """A row for each flow."""
        return self._frame("flows")

    @property
    def stations(self) -> Frame:
        """A row for each station of each channel, the access point first."""
        return self._frame("stations")

    @property
    def hops(self) -> Frame:
        """A row for each direction of each link."""
        return self._frame("hops")

    @property
    def applications(self) -> Frame:
        """A row for each program that feeds flows."""
        return self._frame("applications")

    @property
    def series(self) -> Frame:
        """Samples over time, of each flow: octets delivered, congestion window, smoothed round-trip time."""
        return self._frame("series")

    def plot(self, column: str = "delivered_bytes", ax: Axes | None = None) -> Axes:
        """Draws a column of :attr:`series` over time. Needs matplotlib."""
        from . import plot

        return plot.series(self, column, ax=ax)


class Comparison(Result):
    """Schemes side by side. Its main table has a row for each number of clients and scheme."""

    _main = "rows"

    def __init__(self, answer: _native.Answer, directory: Path | None = None) -> None:
        super().__init__(answer)
        #: Where the results and the report are kept; None where nothing is.
        self.directory = directory

    @property
    def rows(self) -> Frame:
        """A row for each number of clients and scheme, means over the seeds."""
        return self.frame

    @property
    def warnings(self) -> list[str]:
        """What was asked for and is not in the results, and what keeps octets out of the goodput."""
        return list(self.data["warnings"])

    def plot(self, clients: int | None = None, ax: Axes | None = None) -> Axes:
        """Draws goodput with its 95 % intervals, the largest on top. Needs matplotlib."""
        from . import plot

        return plot.goodput(self, clients, ax=ax)

    def plot_airtime(self, clients: int | None = None, ax: Axes | None = None) -> Axes:
        """Draws where the channel's time goes. Needs matplotlib."""
        from . import plot

        return plot.airtime(self, clients, ax=ax)

    def plot_completion_times(self, clients: int | None = None, ax: Axes | None = None) -> Axes:
        """Draws flow completion times as cumulative shares; kept results have them. Needs matplotlib."""
        from . import plot

        return plot.completion_times(self, clients, ax=ax)


class Why(Result):
    """Why one scheme carries more than another. Its main table has a row for each use of the bottleneck's time."""

    _main = "parts"


class Advice(Result):
    """Which ACK frequency or mechanism suits a link. Its main table has a row for what each side could change."""

    _main = "choices"

    @property
    def rows(self) -> Frame:
        """A row for each scheme that was run."""
        return self._frame("rows")


class Audit(Result):
    """What the ACKs in a capture cost. Its main table has a row for each connection."""

    _main = "flows"

    @property
    def flows(self) -> Frame:
        """A row for each connection."""
        return self.frame

    @property
    def schemes(self) -> Frame:
        """A row for each scheme: what it would make of these ACKs."""
        return self._frame("schemes")


class Figure(Result):
    """A figure or table of a paper, made again. Its main table has a row for each claim."""

    _main = "claims"

    def __init__(self, answer: _native.Answer, svg: str | None) -> None:
        super().__init__(answer)
        #: The picture; None where there is none.
        self.svg = svg

    @property
    def claims(self) -> Frame:
        """A row for each claim: the paper's value, what was measured, and what became of it."""
        return self.frame

    @property
    def passed(self) -> bool:
        """No claim fails: each holds, is missed where its file says, or was not judged."""
        return all(claim["verdict"] != "fail" for claim in self.data["claims"])

    @property
    def skipped(self) -> str | None:
        """Why it was not made; None where it was."""
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


class Answered(Result):
    """A result without tables: :attr:`Result.data` has its numbers."""

    @property
    def frame(self) -> Frame:
        raise AttributeError("there is no table in it; `data` has the numbers")
