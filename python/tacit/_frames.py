"""Tables of results."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, Union


if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Cell = Union[str, int, float, None]

#: Rows in a printed frame.
_SHOWN = 20


class Table(Protocol):
    """Columns of the native module, or of Parquet files."""

    @property
    def columns(self) -> list[str]: ...
    def column(self, name: str) -> list[Cell]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class Frame:
    """A table with named columns, of texts, counts and numbers; None for a missing value.

    It implements Arrow's C stream interface (``__arrow_c_stream__``), so libraries that read it take a frame directly:
    ``polars.DataFrame(frame)``, ``pyarrow.table(frame)``, ``pandas.DataFrame.from_arrow(frame)``.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._table.columns

    def __getitem__(self, column: str) -> list[Cell]:
        """The values of a column. Raises KeyError if there is none."""
        return self._table.column(column)

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        """Iterates over rows."""
        names = self.columns
        columns = [self[name] for name in names]
        return (dict(zip(names, row)) for row in zip(*columns))

    def rows(self) -> list[dict[str, Cell]]:
        """All rows, each as a dictionary."""
        return list(self)

    def to_arrow(self) -> pyarrow.Table:
        """As a pyarrow table. Needs pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """As a Polars frame. Needs polars."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a pandas frame. Needs pandas, and pyarrow for versions before 3."""
        import pandas

        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(self)
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        names = self.columns
        shown = [[_text(row[name]) for name in names] for row in _first(self)]
        widths = [max(len(text) for text in column) for column in zip(names, *shown)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in [names, *shown]]
        if len(self) > _SHOWN:
            lines.append(f"… {len(self) - _SHOWN} more rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = self.columns
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(row[name]))}</td>" for name in names) + "</tr>"
            for row in _first(self)
        )
        more = f"<p>… {len(self) - _SHOWN} more rows</p>" if len(self) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _first(frame: Frame) -> Iterator[dict[str, Cell]]:
    return (row for row, _ in zip(frame, range(_SHOWN)))


def _text(value: Cell) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


