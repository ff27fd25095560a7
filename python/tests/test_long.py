"""Tests that take minutes: ``pytest -m long``."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import tacit

#: A run of some tenth of a millisecond of work.
TINY = {"run.duration": "10ms", "run.measure-from": "5ms", "run.sample-interval": "none", "clients.stagger": "0ms"}


def resident_bytes(pid: int) -> int:
    """The memory that a process has, from /proc."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


@pytest.mark.long
def test_a_hundred_thousand_runs_hold_steady_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    distributed = pytest.importorskip("distributed")
    distances = [f"{meters} m" for meters in range(1, 26)]
    asked = {"schemes": ["stock", "hack-batch"], "clients": [1], "seeds": 2_000}

    began = time.process_time()
    tacit.sweep("wlan-11n-150", {"wifi.distance": distances[:1]}, TINY, directory=tmp_path / "here", cache=False, **asked)  # type: ignore[arg-type]
    alone_s = (time.process_time() - began) / 4_000

    seen: list[dict[str, int]] = []
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            workers = client.run(lambda: __import__("os").getpid())

            def told(done: int, total: int) -> None:
                if done * 20 // total > len(seen):
                    pids = {"client and scheduler": "self", **{f"worker {n}": pid for n, pid in enumerate(workers.values())}}
                    seen.append({name: resident_bytes(pid) for name, pid in pids.items()})  # type: ignore[arg-type]

            began = time.monotonic()
            sweep = tacit.sweep(
                "wlan-11n-150", {"wifi.distance": distances}, TINY, directory=tmp_path / "dask", client=client, progress=told, **asked  # type: ignore[arg-type]
            )
            took_s = time.monotonic() - began
    assert sweep.runs == 100_000
    per_run_s = 2 * took_s / sweep.runs
    with capsys.disabled():
        grown = {name: f"{seen[4][name] / 1e6:.0f} -> {seen[-1][name] / 1e6:.0f} MB" for name in seen[0]}
        print(f"\n100,000 runs in {took_s:.0f} s on 2 workers: {1e3 * per_run_s:.2f} ms a run and worker, {1e3 * alone_s:.2f} ms of work; {grown}")
    for name, early in seen[4].items():
        assert seen[-1][name] < 1.15 * early, name
    assert per_run_s - alone_s < 2e-3
