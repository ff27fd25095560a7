"""Runs, comparisons and queries of them."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import SHORT

import tacit
from tacit import InputError, Scenario


def test_a_mix_says_who_gains_and_who_loses() -> None:
    mixed = tacit.compare("wlan-11n-150", SHORT, mix={"tcp-l8": 1, "stock": 1}, seeds=2)
    stock, thinned = mixed.data["rows"]
    assert (stock["scheme"], thinned["scheme"], thinned["clients"], thinned["adopters"]) == ("stock", "tcp-l8", 2, 1.0)
    assert thinned["adopter_gain_over_stock"] is not None and thinned["other_gain_over_stock"] is not None
    with pytest.raises(TypeError, match="leave out"):
        tacit.compare("wlan-11n-150", mix={"tack": 1, "stock": 1}, clients=2)
    with pytest.raises(tacit.InputError, match="names no scheme to switch to"):
        tacit.compare("wlan-11n-150", mix={"stock": 2})


def test_a_run_repeats_and_says_what_happened() -> None:
    run = tacit.run("wlan-11n-150", SHORT, scheme="hack-batch", clients=2, cache=False)
    assert run.digest == tacit.run("wlan-11n-150", SHORT, scheme="hack-batch", clients=2, wire=True).digest
    assert run.goodput_bps == run.metrics["goodput_bps"] > 50e6
    assert run.data["clients"] == 2 and json.loads(run.json) == run.data
    assert len(run.flows) == 2 and len(run.stations) == 3 and len(run.hops) >= 2
    assert "digest" in str(run) and run._repr_html_().startswith("<pre>")
    assert run.command.startswith("tacit run wlan-11n-150") and "--scheme hack-batch" in run.command
    assert run.frame["goodput_bps"] == [run.goodput_bps]


def test_the_command_that_a_run_names_makes_it_again() -> None:
    run = tacit.run("wlan-11n-150", SHORT, seed=7)
    program = Path(sys.executable).with_name("tacit")
    if not program.exists():
        pytest.skip(f"{program} is not there: the package was not installed from a wheel")
    words = [str(program), *run.command.split()[1:], "--json", "--no-cache"]
    made = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    assert made["digest"] == run.digest
    assert made["metrics"] == run.metrics


def test_samples_are_a_frame() -> None:
    run = tacit.run("wlan-11n-150", {**SHORT, "run.sample-interval": "10ms"})
    times = run.series["at_s"]
    assert len(times) >= 19 and times == sorted(t for t in times if isinstance(t, float))
    [whole] = run.flows["delivered_bytes"]
    delivered = [count for count in run.series["delivered_bytes"] if isinstance(count, int)]
    assert isinstance(whole, int) and delivered == sorted(delivered) and 0.8 * whole < delivered[-1] <= whole


def test_a_comparison_has_rows_and_a_report(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    comparison = tacit.compare(
        "wlan-11n-150",
        SHORT,
        schemes=["stock", "hack-more-data"],
        clients=[1, 2],
        seeds=2,
        directory=tmp_path,
        progress=lambda done, total: heard.append((done, total)),
    )
    rows = [(row["clients"], row["scheme"]) for row in comparison.rows]
    # udp is the bound, which shares are of.
    assert rows == [(n, scheme) for n in (1, 2) for scheme in ("stock", "hack-more-data")]
    assert heard[0][0] == 0 and heard[-1][0] == heard[-1][1] == max(total for _, total in heard)
    assert (tmp_path / "index.html").is_file()
    assert comparison._repr_html_().count("<tr>") == 5
    assert tacit.load(tmp_path).data["rows"] == comparison.data["rows"]
    why = tacit.why(comparison, schemes=["hack-more-data", "stock"])
    account = why.data["accounts"][0]
    total = sum(part["contribution_bps"] for part in account["parts"])
    gain = account["winner"]["goodput_bps"] - account["other"]["goodput_bps"]
    assert not account["differs"] or abs(total - gain) < 1
    station = tacit.why(comparison, schemes=["hack-more-data", "stock"], station=True)
    assert [account["resource"] for account in station.data["accounts"]] == ["station", "station"]


def test_frames_are_arrow_s_polars_and_pandas() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    frame = tacit.run("wlan-11n-150", {**SHORT, "clients.stagger": "0ms"}, clients=3).flows
    arrow = frame.to_arrow()
    assert isinstance(arrow, pyarrow.Table) and arrow.column_names == frame.columns
    assert isinstance(frame.to_polars(), polars.DataFrame)
    assert isinstance(frame.to_pandas(), pandas.DataFrame)
    for name in frame.columns:
        expected = frame[name]
        assert arrow[name].to_pylist() == expected
        assert frame.to_polars()[name].to_list() == expected
        there = [None if pandas.isna(value) else value for value in frame.to_pandas()[name]]
        assert there == expected, name
    # Taken as it is: two views of one table share their memory.
    one, other = pyarrow.table(frame), pyarrow.table(frame)
    assert one["goodput_bps"].chunk(0).buffers()[1].address == other["goodput_bps"].chunk(0).buffers()[1].address


def test_a_frame_shows_itself() -> None:
    frame = tacit.metrics()
    assert repr(frame).splitlines()[0].split() == ["name", "summary"]
    assert f"{len(frame) - 20} more rows" in repr(frame)
    assert "<td>goodput_bps</td>" in frame._repr_html_()
    with pytest.raises(KeyError):
        frame["nothing"]


def test_mistakes_are_said_before_anything_runs() -> None:
    for wrong, what in [
        ({"schemes": ["stok"]}, 'unknown scheme "stok"'),
        ({"seeds": 0}, "seeds: 0 is out of range"),
        ({"clients": 0}, "clients: 0 is out of range"),
    ]:
        with pytest.raises(InputError, match=what):
            tacit.compare("wlan-11n-150", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not kept"):
        tacit.why(tacit.compare("wlan-11n-150", SHORT, schemes=["stock"], clients=1, seeds=1))


def test_other_threads_run_meanwhile() -> None:
    count = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    began, before = time.monotonic(), count
    tacit.run("wlan-11n-150", {"run.duration": "5s"}, cache=False)
    took, meanwhile = time.monotonic() - began, count - before
    # As often as a busy machine wakes the other thread; with the interpreter held there would be one tick or two.
    before = count
    time.sleep(took)
    idle = count - before
    done.set()
    ticker.join()
    assert meanwhile >= max(5, idle / 20)


def compared(_: int) -> float:
    return float(tacit.compare("wlan-11n-150", SHORT, schemes=["stock"], clients=1, seeds=2, cache=False).data["rows"][0]["goodput_bps_mean"])


def test_processes_that_are_forked_off_compare_too() -> None:
    here = compared(0)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(compared, range(2)).get(timeout=120) == [here, here]


def test_control_c_ends_a_comparison_between_runs() -> None:
    code = (
        "import tacit, sys\n"
        "def told(done, total):\n"
        "    print(done, flush=True)\n"
        "tacit.compare('wlan-11n-150', {'run.duration': '3s'}, clients=1, seeds=500, cache=False, progress=told)\n"
    )
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) != 0
        assert b"KeyboardInterrupt" in child.stderr.read()


def test_warnings_are_python_s() -> None:
    with pytest.warns(tacit.TacitWarning, match="stock"):
        # Nothing of that setting is left under schemes that set it themselves.
        tacit.compare("wlan-11n-150", {**SHORT, "tcp.ack-every": 4}, schemes=["stock", "tcp-l8"], clients=1, seeds=1)


def test_figures_and_closed_forms() -> None:
    figure = tacit.figure("hack/fig1a")
    assert figure.passed and len(figure.claims) > 0 and figure.skipped is None
    assert figure.svg is not None and "<svg" in figure._repr_html_()
    with pytest.raises(InputError, match="hack/fig1"):
        tacit.figure("hack/fig99")
    skipped = tacit.figure("hack/live", quick=True)
    assert skipped.skipped is not None and skipped.svg is None
    assert tacit.theory("802.11a", "54Mbps").data["phy"]
    with pytest.raises(InputError):
        tacit.theory("802.11z")


def test_advice_is_that_of_the_command_line() -> None:
    advice = tacit.advise(phy="802.11n", rate="150Mbps", quick=True)
    assert len(advice.frame) == len(advice.data["choices"]) > 0
    assert "scheme" in advice.table("rows")


def test_a_scenario_of_one_s_own_is_compared() -> None:
    mine = Scenario('base = "wlan-11n-150"\ndescription = "mine"\n[clients]\ncount = 2\n').changed({**SHORT, "compare.clients": [2]})
    rows = tacit.compare(mine, schemes=["stock"], seeds=1).rows
    assert {(row["clients"], row["scheme"]) for row in rows} == {(2, "stock")}
