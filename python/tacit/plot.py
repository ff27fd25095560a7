"""Pictures of results with matplotlib, with the colours and markers of tacit's reports. Needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from . import _native
from ._frames import Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._results import Comparison, Run

#: matplotlib's letters for the reports' markers.
_MARKERS = {
    "Circle": "o",
    "Square": "s",
    "Triangle": "^",
    "Diamond": "D",
    "TriangleDown": "v",
    "Cross": "x",
    "Plus": "+",
}
_MUTED = "#5f6b76"
_GRID = "#e3e7eb"


def look(names: list[str]) -> list[dict[str, Any]]:
    """How series of these names look in a report: ``color``, ``marker`` and ``linestyle`` for matplotlib."""
    looks = []
    for row in Frame(_native.looks(names)):
        dash = [float(pixels) for pixels in str(row["dash"]).split()]
        style: Any = (0, tuple(dash)) if dash else "-"
        looks.append({"color": row["colour"], "marker": _MARKERS[str(row["marker"])], "linestyle": style})
    return looks


def goodput(comparison: Comparison, clients: int | None = None, ax: Axes | None = None) -> Axes:
    """Goodput of each scheme with its 95 % interval over the seeds, the largest on top; for one number of clients, the first."""
    rows = _rows_of(comparison, clients)
    rows.sort(key=lambda row: row["goodput_bps_mean"])
    ax = _axes(ax, height=0.32 * len(rows) + 1.2)
    names = [str(row["scheme"]) for row in rows]
    for place, (row, style) in enumerate(zip(rows, look(names))):
        interval = row["goodput_bps_ci95"]
        ax.errorbar(
            row["goodput_bps_mean"] / 1e6,
            place,
            xerr=None if interval is None else interval / 1e6,
            color=style["color"],
            marker=style["marker"],
            capsize=2,
        )
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("goodput, Mb/s")
    ax.set_title(_title(comparison, rows), loc="left", fontsize=10)
    ax.grid(axis="x", color=_GRID)
    return ax


def airtime(comparison: Comparison, clients: int | None = None, ax: Axes | None = None) -> Axes:
    """Where the channel's time goes, for each scheme; every moment is booked once."""
    rows = [row for row in _rows_of(comparison, clients) if row["airtime"] is not None]
    if not rows:
        raise ValueError(f"{comparison.data['scenario']} has no Wi-Fi, hence no airtime")
    ax = _axes(ax, height=0.32 * len(rows) + 1.8)
    places = range(len(rows))
    left = [0.0] * len(rows)
    for use in Frame(_native.airtime_looks()):
        key = str(use["name"]).removeprefix("airtime_")
        shares = [100 * float(row["airtime"][key]) for row in rows]
        ax.barh(places, shares, left=left, color=use["colour"], label=use["label"])
        left = [begin + share for begin, share in zip(left, shares)]
    ax.set_yticks(places, [str(row["scheme"]) for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.set_xlabel("% of the time")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=4, frameon=False, fontsize=8)
    ax.set_title(_title(comparison, rows), loc="left", fontsize=10)
    return ax


def completion_times(comparison: Comparison, clients: int | None = None, ax: Axes | None = None) -> Axes:
    """Flow completion times as cumulative shares; of flows with an end, of results that are kept in a directory."""
    curves = comparison.data.get("flow_completion_cdfs", [])
    clients = curves[0]["clients"] if curves and clients is None else clients
    curves = [curve for curve in curves if curve["clients"] == clients]
    if not curves:
        raise ValueError("no flow completion times: traffic.size gives flows an end, compare(directory=…) keeps their times")
    ax = _axes(ax)
    for curve, style in zip(curves, look([curve["scheme"] for curve in curves])):
        times, shares = zip(*curve["steps"])
        ax.step(times, shares, where="post", color=style["color"], linestyle=style["linestyle"], label=curve["scheme"])
    ax.set_xlabel("flow completion time, s")
    ax.set_ylabel("share of flows")
    ax.set_ylim(0, 1)
    ax.grid(color=_GRID)
    ax.legend(frameon=False)
    return ax


def series(run: Run, column: str = "delivered_bytes", ax: Axes | None = None) -> Axes:
    """A column of a run's samples over time, a line for each flow: ``delivered_bytes``, ``congestion_window_bytes``,
    ``smoothed_rtt_us``."""
    samples = run.series
    flows = sorted({int(cast(int, flow)) for flow in samples["flow"]})
    if not flows:
        raise ValueError("no samples: run.sample-interval is none, or the run was captured")
    names = dict(zip(run.flows["flow"], run.flows["name"]))
    ax = _axes(ax)
    for flow, style in zip(flows, look([f"flow {flow}" for flow in flows])):
        rows = [row for row in samples if row["flow"] == flow]
        ax.plot(
            cast("list[float]", [row["at_s"] for row in rows]),
            cast("list[float]", [row[column] for row in rows]),
            color=style["color"],
            linestyle=style["linestyle"],
            label=names.get(flow, str(flow)),
        )
    ax.set_xlabel("time, s")
    ax.set_ylabel(column)
    ax.grid(color=_GRID)
    ax.legend(frameon=False, fontsize=8)
    return ax


def curves(frame: Any, x: str, y: str, by: str | list[str] | None = None, ax: Axes | None = None) -> Axes:
    """Means of ``y`` over ``x`` with their 95 % intervals, a line for each value of ``by``, as in reports: of a sweep's runs,
    ``curves(sweep.to_polars(), …)``.

    Without ``by`` there is a line for each combination of columns that vary beside ``x``: scheme, clients and swept keys. Each
    line has its name at its end. Rates are in Mb/s.

    ``frame`` is anything that has Arrow's C stream interface. Values of ``x`` are taken as numbers with a unit behind.
    """
    import pyarrow

    whole = pyarrow.table(frame)
    names = _varying(whole, x) if by is None else [by] if isinstance(by, str) else by
    table = whole.select([x, y, *names]).to_pydict()
    lines = zip(*(table[name] for name in names)) if names else (() for _ in table[x])
    (x_label, x_factor), (y_label, y_factor) = _label(x), _label(y)
    values: dict[str, dict[float, list[float]]] = {}
    for place, value, line in zip(table[x], table[y], lines):
        if value is not None:
            told = [_told(name, said) for name, said in zip(names, line)]
            of_line = values.setdefault(", ".join(told), {})
            of_line.setdefault(_number(place) * x_factor, []).append(float(value) * y_factor)
    ax = _axes(ax)
    for (name, places), style in zip(values.items(), look(list(values))):
        means = [(place, *_native.mean_and_ci95(of_place)) for place, of_place in sorted(places.items())]
        xs, ys, intervals = zip(*means)
        halves = [interval or 0.0 for interval in intervals]
        ax.errorbar(xs, ys, yerr=halves if any(halves) else None, label=name, capsize=2, elinewidth=1, markersize=5, **style)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_title(_heading(whole, x, y), loc="left", fontsize=10)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    _scale_x(ax, {place for places in values.values() for place in places})
    ax.grid(color=_GRID)
    _name_at_ends(ax)
    return ax


#: Ends of columns' names: how axes show the unit, and the factor for that.
_UNITS: dict[str, tuple[str, float]] = {
    "bps": ("Mb/s", 1e-6),
    "s": ("s", 1.0),
    "us": ("ms", 1e-3),
    "ms": ("ms", 1.0),
    "m": ("m", 1.0),
    "percent": ("%", 1.0),
    "bytes": ("B", 1.0),
    "db": ("dB", 1.0),
    "dbm": ("dBm", 1.0),
}


def _told(name: str, said: Any) -> str:
    if name == "scheme":
        return str(said)
    return f"{name} {said:g}" if isinstance(said, float) else f"{name} {said}"


def _heading(table: Any, x: str, y: str) -> str:
    scenarios = table["scenario"].unique().to_pylist() if "scenario" in table.column_names else []
    words = f"{_name(y)} over {_name(x)}"
    return f"{scenarios[0]}: {words}" if len(scenarios) == 1 else words


def _scale_x(ax: Axes, places: set[float]) -> None:
    """As reports do: logarithmic if four or more places span more than a decade and a half."""
    if len(places) >= 4 and min(places) > 0 and max(places) / min(places) >= 30:
        ax.set_xscale("log")


def _name_at_ends(ax: Axes) -> None:
    """Writes the name of each line beside its end, apart from the others."""
    #: Height of a name as a part of the axes.
    step = 0.06
    bottom, top = ax.get_ylim()
    ends = []
    for container in ax.containers:
        line: Any = container[0]
        (x, y), name = (line.get_xdata()[-1], line.get_ydata()[-1]), str(container.get_label())
        ends.append(((y - bottom) / (top - bottom), x, y, name, line.get_color()))
    ends.sort()
    levels: list[float] = []
    for level, *_ in ends:
        levels.append(max(level, levels[-1] + step) if levels else level)
    limit = 1.0
    for place in reversed(range(len(levels))):
        levels[place] = min(levels[place], limit)
        limit = levels[place] - step
    for (_, x, y, name, color), level in zip(ends, levels):
        ax.annotate(
            name,
            xy=(x, y),
            xytext=(1.03, level),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color=color,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": _GRID},
        )


def _varying(table: Any, x: str) -> list[str]:
    """The columns that tell the lines apart: scheme, clients and swept keys, as far as there is more than one of each."""
    candidates = ["scheme", "clients", *(name for name in table.column_names if "." in name)]
    varying = [name for name in candidates if name != x and name in table.column_names and len(table[name].unique()) > 1]
    # One line has a name, too.
    return varying or [name for name in ("scheme",) if name in table.column_names and name != x]


def _name(column: str) -> str:
    name, _, end = column.rpartition("_")
    return (name if name and end in _UNITS else column).replace("_", " ")


def _label(column: str) -> tuple[str, float]:
    """How an axis names a column, and the factor of its values."""
    unit, factor = _UNITS.get(column.rpartition("_")[2], ("", 1.0))
    return (f"{_name(column)} ({unit})" if unit else _name(column)), factor


def _number(place: Any) -> float:
    text = str(place)
    end = next((index for index, letter in enumerate(text) if letter not in "0123456789.-+e"), len(text))
    return float(text[:end])


def _rows_of(comparison: Comparison, clients: int | None) -> list[dict[str, Any]]:
    rows = list(comparison.data["rows"])
    counts = sorted({row["clients"] for row in rows})
    clients = counts[0] if clients is None else clients
    if clients not in counts:
        raise ValueError(f"no rows with {clients} clients; there are {', '.join(map(str, counts))}")
    return [row for row in rows if row["clients"] == clients]


def _title(comparison: Comparison, rows: list[dict[str, Any]]) -> str:
    clients = rows[0]["clients"]
    return f"{comparison.data['scenario']}, {clients} client{'' if clients == 1 else 's'}"


def _axes(ax: Axes | None, height: float = 3.6) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    _, made = pyplot.subplots(figsize=(7.2, height), layout="constrained")
    made.spines[["top", "right"]].set_visible(False)
    made.spines[["left", "bottom"]].set_color(_MUTED)
    return made
