"""Sweeps here, on a cluster in this process, and on one of several processes of which one is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SHORT

import tacit

GRID = {"wifi.distance": ["5 m", "20 m"]}
ASKED = {"schemes": ["stock", "hack-batch"], "clients": [1, 2], "seeds": 40}


def small(directory: Path, **more: object) -> tacit.Sweep:
    return tacit.sweep("wlan-11n-150", GRID, SHORT, directory=directory, **{**ASKED, **more})  # type: ignore[arg-type]


def files(sweep: tacit.Sweep) -> dict[str, bytes]:
    return {str(path.relative_to(sweep.directory)): path.read_bytes() for path in sweep._paths()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tacit.Sweep:
    return small(tmp_path_factory.mktemp("sweeps") / "here")


def test_a_sweep_has_a_row_for_each_run(whole: tacit.Sweep) -> None:
    polars = pytest.importorskip("polars")
    assert (whole.runs, whole.reused, whole.files) == (2 * 2 * 2 * 40, 0, 2 * 2 * 2)
    frame = whole.to_polars()
    assert frame.height == whole.runs
    assert frame["run"].n_unique() == whole.runs
    grouped = frame.group_by("wifi.distance_m", "scheme", "clients").len()
    assert grouped["len"].unique().to_list() == [40] and grouped.height == 8
    # A run is the one that run() makes of the same words.
    row = frame.row(by_predicate=(polars.col("wifi.distance_m") == 20.0) & (polars.col("scheme") == "stock") & (polars.col("clients") == 2) & (polars.col("seed") == 3), named=True)
    alone = tacit.run("wlan-11n-150", {**SHORT, "wifi.distance": "20 m"}, scheme="stock", clients=2, seed=3)
    assert row["digest"] == alone.digest and row["goodput_bps"] == alone.goodput_bps


def test_a_sweep_is_a_result_like_any_other(whole: tacit.Sweep) -> None:
    pytest.importorskip("pyarrow")
    assert isinstance(whole, tacit.Result) and whole.data["runs"] == whole.runs
    frame = whole.frame
    assert len(frame) == whole.runs and "goodput_bps" in frame
    assert sorted(set(frame["scheme"])) == sorted(set(ASKED["schemes"]))  # type: ignore[arg-type]
    assert whole.to_arrow().num_rows == whole.runs
    with pytest.raises(KeyError):
        whole.table("flows")
    again = tacit.load(whole.directory)
    assert isinstance(again, tacit.Sweep) and (again.runs, again.files) == (whole.runs, whole.files)
    assert str(again) != "" and again.frame["digest"] == frame["digest"]


def test_a_sweep_draws_means_over_a_key(whole: tacit.Sweep) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pyarrow")
    axes = whole.plot("wifi.distance_m")
    # A line for each scheme and number of clients, with its intervals.
    assert len(axes.containers) == 4


def test_a_sweep_goes_on_where_it_stopped(whole: tacit.Sweep, tmp_path: Path) -> None:
    first = small(tmp_path / "again")
    before = files(first)
    assert {name: bytes for name, bytes in before.items()} == files(whole)
    lost = sorted(before)[3]
    (first.directory / lost).unlink()
    again = small(first.directory)
    assert again.reused == again.runs - 64 or again.reused == again.runs - 16
    assert files(again) == before
    assert small(first.directory).reused == first.runs
    with pytest.raises(tacit.InputError, match="another sweep is kept here"):
        small(first.directory, seeds=41)


def test_values_with_commas_are_values(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    losses = ['{ down = "2 %", up = "1 %" }', "5 %"]
    sweep = tacit.sweep("wlan-11n-150", {"wifi.mpdu-error": losses}, SHORT, seeds=2, directory=tmp_path / "sweep")
    assert sorted(sweep.to_polars()["wifi.mpdu-error"].unique()) == sorted(losses)
    with pytest.raises(tacit.InputError, match="no places"):
        tacit.sweep("wlan-11n-150", {"wifi.mpdu-error": []}, SHORT, seeds=2, directory=tmp_path / "none")
    assert polars and not (tmp_path / "none").exists()


def test_a_killed_sweep_leaves_whole_files_only(tmp_path: Path) -> None:
    code = (
        "import tacit\n"
        "tacit.sweep('wlan-11n-150', {'wifi.distance': ['5 m', '20 m']}, {'run.duration': '200ms', 'run.measure-from': '50ms'},"
        f" schemes=['stock', 'hack-batch'], clients=[1, 2], seeds=40, directory={str(tmp_path / 'sweep')!r}, cache=False)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as child:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("sweep/runs/*/*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.005)
        child.kill()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".parquet", ".jsonl", ".json")]
    sweep = small(tmp_path / "sweep")
    assert sweep.runs == 320 and len(files(sweep)) == sweep.files


def test_workers_of_a_local_cluster_make_the_same_files(whole: tacit.Sweep, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    heard: list[tuple[int, int]] = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            sweep = small(tmp_path / "dask", client=client, progress=lambda done, total: heard.append((done, total)))
            # Idempotent: nothing is left to do.
            assert small(tmp_path / "dask", client=client).reused == sweep.runs
            # A worker's refusals are raised here.
            with pytest.raises(tacit.InputError, match="one that this program wrote"):
                client.submit(tacit._native.make_order, "{}").result()
    assert files(sweep) == files(whole)
    assert heard[0] == (0, 320) and heard[-1] == (320, 320)


def address_in(file: Path, scheduler: subprocess.Popen[bytes]) -> str:
    """The address of a scheduler, which writes it once it has its port."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and scheduler.poll() is None:
        # It is not there yet, or not whole.
        with contextlib.suppress(OSError, ValueError):
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.02)
    raise AssertionError(f"no address of a scheduler in {file}; it ended with {scheduler.poll()}")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler that answers and two workers, processes of their own."""
    distributed = pytest.importorskip("distributed")
    processes: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *words, "--no-dashboard"]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return processes[-1]

    try:
        file = tmp_path / "scheduler.json"
        scheduler = start("dask_scheduler", "--host", "tcp://127.0.0.1", "--port", "0", "--scheduler-file", str(file), "--no-show")
        address = address_in(file, scheduler)
        workers = [start("dask_worker", address, "--nthreads", "1", "--no-nanny") for _ in range(2)]
        # The command line waits 10 s for a scheduler, which may be busy with its start for longer.
        distributed.Client(address, timeout="120s").close()
        yield address, workers
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def test_a_killed_worker_loses_nothing(
    whole: tacit.Sweep, tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    import distributed

    address, workers = cluster
    killed = []

    def told(done: int, total: int) -> None:
        if done > 0 and not killed:
            os.kill(workers[0].pid, signal.SIGKILL)
            killed.append(done)

    with distributed.Client(address, timeout="60s") as client:
        client.wait_for_workers(2, timeout=60)
        sweep = small(tmp_path / "dask", client=client, progress=told)
        assert len(client.nthreads()) == 1
    assert killed and files(sweep) == files(whole)


def test_the_command_line_sweeps_on_a_cluster(
    whole: tacit.Sweep, tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    program = Path(sys.executable).with_name("tacit")
    if not program.exists():
        pytest.skip(f"{program} is not there: the package was not installed from a wheel")
    words = ["sweep", "wlan-11n-150", "--sweep", "wifi.distance=5 m,20 m", "--schemes", "stock,hack-batch", "--clients", "1,2"]
    words += ["--seeds", "40", "--out", str(tmp_path / "dask"), "--json"]
    words += [f"--set={key}={value}" for key, value in SHORT.items()]
    done = subprocess.run([program, *words, "--dask", cluster[0]], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert (told["runs"], told["reused"]) == (320, 0)
    sweep = tacit.Sweep(tmp_path / "dask", told["runs"], told["reused"], told["files"])
    assert files(sweep) == files(whole)
    # The same words again find all of it; others are told that the directory is taken.
    again = subprocess.run([program, *words, "--dask", cluster[0]], capture_output=True, check=True)
    assert json.loads(again.stdout)["reused"] == 320
    other = subprocess.run([program, *words, "--dask", cluster[0], "--seeds", "41"], capture_output=True, check=False)
    assert other.returncode == 2
    with socket.socket() as silent:
        # A port that is taken, where no program listens.
        silent.bind(("127.0.0.1", 0))
        nowhere = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        words = ["sweep", "--dask", nowhere, "--out", str(tmp_path / "no")]
        unreachable = subprocess.run([program, *words], capture_output=True, check=False)
    assert unreachable.returncode == 2 and b"allowed: the address of a running scheduler" in unreachable.stderr
