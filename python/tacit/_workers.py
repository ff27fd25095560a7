"""Hands the missing runs of a sweep to the workers of a Dask cluster.

Messages are small: an order of some kilobytes there, a Parquet file of at most 64 runs back. The client keeps a bounded number
of orders under way, so that neither it nor the scheduler holds more however long the sweep is. An order that a lost worker had is
handed to another by Dask.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from . import _native
from ._progress import Progress

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
