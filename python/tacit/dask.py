"""Sweeps on a Dask cluster: ``tacit sweep --dask ADDRESS`` runs this.

Messages are small: an order of some kilobytes there, a Parquet file of at most 64 runs back. The client keeps a bounded number
of orders under way, so that neither it nor the scheduler holds more however long the sweep is. An order that a lost worker had is
handed to another by Dask.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import _native
from ._progress import Progress
from ._sweep import complete

if TYPE_CHECKING:
    from distributed import Client, Future

#: Orders under way for each thread of the workers: one that is made, one that waits, one on its way.
_ORDERS_PER_THREAD = 3
#: How often workers are counted, in seconds: they come and go.
_COUNT_EVERY_S = 1.0


def distribute(sweep: _native.Sweep, client: Client, progress: Progress) -> None:
    """Lets the workers of ``client`` make the missing runs of ``sweep``, and keeps them.

    Raises a worker's exceptions, such as :class:`tacit.InputError` where it has another build of tacit.
    """
    from distributed import as_completed

    missing, there = sweep.missing()
    progress.start(sweep.runs, there)
    orders = iter(missing)
    under_way = as_completed()
    batches: dict[Future[bytes], tuple[int, int]] = {}
    limit, counted = 0, float("-inf")

    def hand_out() -> bool:
        batch = next(orders, None)
        if batch is None:
            return False
        # Not pure: results are kept as files here, and nowhere else.
        future = client.submit(_native.make_order, sweep.order(*batch), pure=False)
        batches[future] = batch
        under_way.add(future)
        return True

    def fill() -> None:
        nonlocal limit, counted
        if time.monotonic() - counted > _COUNT_EVERY_S:
            limit, counted = _ORDERS_PER_THREAD * max(1, sum(client.nthreads().values())), time.monotonic()
        while len(batches) < limit and hand_out():
            pass

    try:
        fill()
        for future in under_way:
            batch = batches.pop(future)
            sweep.keep(*batch, future.result())
            # The scheduler forgets it.
            future.release()
            progress.finish(batch[1] - batch[0])
            fill()
    finally:
        for future in batches:
            future.cancel()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line's words, after ``python -m tacit.dask``."""
    parser = argparse.ArgumentParser(prog="tacit sweep --dask", description=__doc__)
    parser.add_argument("address", help="of the scheduler, such as tcp://10.0.0.1:8786")
    parser.add_argument("scenario", nargs="?", default=_native.DEFAULT_SCENARIO)
    parser.add_argument("--sweep", action="append", default=[], metavar="KEY=VALUE,…")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--schemes", default="", metavar="NAME,…")
    parser.add_argument("--clients", default="", metavar="N,…")
    parser.add_argument("--seeds", type=int, metavar="N")
    parser.add_argument("--out", default="tacit-sweep", metavar="DIR")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    from distributed import Client

    try:
        native = _native.Sweep(
            asked.scenario,
            asked.set,
            _native.grid(asked.sweep),
            schemes=[name for name in asked.schemes.split(",") if name],
            own=[],
            clients=[int(count) for count in asked.clients.split(",") if count],
            seeds=asked.seeds,
            directory=asked.out,
        )
        with Client(asked.address, timeout="10s") as client:
            swept = complete(native, Path(asked.out), client, cache=True, progress=None)
    except _native.TacitError as error:
        print(f"tacit: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"tacit: --dask {asked.address}: {error}; allowed: the address of a running scheduler", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"tacit: interrupted; the same command resumes it in {asked.out}", file=sys.stderr)
        return 130
    if asked.json:
        told = {"directory": asked.out, "runs": swept.runs, "reused": swept.reused, "files": swept.files}
        print(json.dumps(told, indent=2))
    else:
        print(f"{swept.runs} runs in {swept.files} files, {swept.reused} of them there already")
        print(f"results: {swept.runs_directory}/**/*.parquet", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
