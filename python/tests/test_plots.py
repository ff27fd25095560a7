"""Pictures match the reports'."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SHORT

import tacit

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import colors, pyplot  # noqa: E402

from tacit import plot  # noqa: E402


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tacit.Comparison:
    directory = tmp_path_factory.mktemp("report")
    schemes = ["stock", "hack-more-data", "tcp-l8", "udp"]
    return tacit.compare("wlan-11n-150", SHORT, schemes=schemes, clients=[1, 2], seeds=3, directory=directory)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def artefact(ax: Any, name: str) -> None:
    """Pictures are kept, for people to look at."""
    place = Path(__file__).resolve().parents[2] / "target" / "python"
    place.mkdir(parents=True, exist_ok=True)
    ax.figure.savefig(place / f"{name}.png", dpi=120)


def test_goodput_is_the_report_s(kept: tacit.Comparison) -> None:
    ax = kept.plot(clients=2)
    artefact(ax, "goodput")
    rows = {row["scheme"]: row for row in kept.rows if row["clients"] == 2}
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == sorted(rows, key=lambda name: rows[name]["goodput_bps_mean"])
    for name, container in zip(names, ax.containers):
        [x], _ = container.lines[0].get_data()
        assert x == pytest.approx(rows[name]["goodput_bps_mean"] / 1e6)
        assert f"--c0:{colors.to_hex(container.lines[0].get_color())}" in report(kept) or name != "stock"
    with pytest.raises(ValueError, match="no rows with 3 clients; there are 1, 2"):
        kept.plot(clients=3)


def report(comparison: tacit.Comparison) -> str:
    assert comparison.directory is not None
    return (comparison.directory / "index.html").read_text(encoding="utf-8")


def test_colours_are_those_of_the_report_s_style(kept: tacit.Comparison) -> None:
    light = report(kept).split("@media(prefers-color-scheme:dark)")[0]
    for name in ("stock", "hack-more-data", "tcp-l8", "tack"):
        assert f":{plot.look([name])[0]['color']}" in light
    for use in tacit.Frame(tacit._native.airtime_looks()):
        assert str(use["label"]) in report(kept) and f":{use['colour']}" in light


def test_airtime_adds_up(kept: tacit.Comparison) -> None:
    ax = kept.plot_airtime()
    artefact(ax, "airtime")
    ends = [max(patch.get_x() + patch.get_width() for patch in bars) for bars in zip(*(c.patches for c in ax.containers))]
    assert ends == pytest.approx([100.0] * 4, abs=1e-6)
    wired = tacit.compare("wired-10", SHORT, schemes=["stock"], clients=1, seeds=1)
    with pytest.raises(ValueError, match="no Wi-Fi"):
        wired.plot_airtime()


def test_series_completion_times_and_sweeps(tmp_path: Path, kept: tacit.Comparison) -> None:
    pytest.importorskip("pyarrow")
    run = tacit.run("wlan-11n-150", {**SHORT, "run.sample-interval": "5ms"}, clients=2)
    artefact(run.plot("congestion_window_bytes"), "series")
    with pytest.raises(ValueError, match="no samples"):
        tacit.run("wlan-11n-150", {**SHORT, "run.sample-interval": None}).plot()
    with pytest.raises(ValueError, match=r"traffic\.size"):
        kept.plot_completion_times()
    sized = {**SHORT, "traffic.size": "50 kB", "run.measure-from": "0s", "clients.stagger": "0ms"}
    flows = tacit.compare("wlan-11n-150", sized, schemes=["stock", "tcp-l8"], clients=4, seeds=2, directory=tmp_path / "sized")
    artefact(flows.plot_completion_times(), "completion-times")
    sweep = tacit.sweep("wlan-11n-150", {"wifi.rate": ["65Mbps", "150Mbps"]}, SHORT, schemes=["stock", "hack-batch"], seeds=2, directory=tmp_path / "sweep")
    ax = sweep.plot("wifi.rate_bps")
    artefact(ax, "curves")
    assert [list(bars[0].get_xdata()) for bars in ax.containers] == [[65.0, 150.0]] * 2
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("wifi.rate (Mb/s)", "goodput (Mb/s)")
    assert ax.get_title(loc="left") == "wlan-11n-150: goodput over wifi.rate"
    # Two seeds: Student's t with one degree of freedom times half the distance between them.
    runs = [row["goodput_bps"] / 1e6 for row in sweep.to_arrow().to_pylist() if row["scheme"] == "stock" and row["wifi.rate_bps"] == 65e6]
    _, _, (bars,) = next(bars for bars in ax.containers if bars.get_label() == "stock")
    (_, low), (_, high) = bars.get_segments()[0]
    assert high - low == pytest.approx(12.706 * abs(runs[0] - runs[1]), rel=1e-3)
    assert ax.get_legend() is None and {text.get_text() for text in ax.texts} == {"stock", "hack-batch"}
